//! How this program starts itself for its helpers.

/// The running program, even if its file was replaced by an upgrade meanwhile.
pub(crate) const PROGRAM: &str = "/proc/self/exe";
/// What the helpers are called in the process table.
pub(crate) const NAME: &str = "sereno";
/// The hidden subcommand that watches a command.
pub(crate) const WATCHDOG: &str = "__watchdog";
/// The hidden subcommand that becomes a command once it is watched.
pub(crate) const LAUNCH: &str = "__launch";
/// The hidden subcommand that plays one part of the demo.
pub(crate) const DEMO_WORKER: &str = "__demo-worker";
