//! Redis: a script, which Redis runs as one step.

use crate::{Fence, Refused};

/// Sets keys behind the fence: see the script's own head. Run it by `EVAL` or `EVALSHA` with the fence's key first.
pub const REDIS_SCRIPT: &str = include_str!("../lua/fenced_set.lua");
/// How the error reply to a stale token begins.
pub const REDIS_REFUSAL: &str = "FENCED";

impl Refused {
    /// What an error of [`REDIS_SCRIPT`] says about the token that was shown, for a [`crate::Reporter`]. `None`: it is
    /// another error.
    ///
    /// `error`: the reply's text, or what a client library makes of it (`"FENCED": 7 was accepted …`).
    pub fn from_redis(error: &str, shown: &Fence) -> Option<Self> {
        let (_, after) = error.split_once(REDIS_REFUSAL)?;
        let after = after.trim_start_matches(['"', '\'', ':', ' ']);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let highest = after[..digits].parse().ok().filter(|&highest| highest > shown.token())?;
        Some(shown.refused(highest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fence_s_own_errors_are_refusals() {
        let fence = Fence::new("default/lock/x", 5).unwrap();
        let refused = |error| Refused::from_redis(error, &fence);
        let expected = Some(fence.refused(7));
        assert_eq!(refused("FENCED 7 was accepted for fence:x, token 5 is stale"), expected);
        assert_eq!(refused(r#""FENCED": 7 was accepted for fence:x, token 5 is stale"#), expected);
        assert_eq!(refused("-FENCED 7"), expected);
        for other in ["", "FENCED", "FENCED x", "ERR the token must be", "FENCED 5 x", "FENCED 4"] {
            assert_eq!(refused(other), None, "{other:?}");
        }
    }
}
