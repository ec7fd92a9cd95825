//! Redis: a script, which Redis runs as one step.

/// Sets keys behind the fence: see the script's own head. Run it by `EVAL` or `EVALSHA` with the fence's key first.
pub const REDIS_SCRIPT: &str = include_str!("../lua/fenced_set.lua");
/// How the error reply to a stale token begins.
pub const REDIS_REFUSAL: &str = "FENCED";
