//! Exit codes, as documented in docs/cli.md.

use std::process::ExitCode;

/// It was refused, or failed, or damage was found.
pub(crate) const FAILED: u8 = 1;
/// The command line makes no sense: clap's own code.
pub(crate) const USAGE: u8 = 2;
/// The service could not be reached, or did not say what became of the call.
pub(crate) const UNREACHABLE: u8 = 3;
/// `doctor`: it could not be examined, so nothing is known about it.
pub(crate) const NOT_EXAMINED: u8 = 4;

/// `guard file`: a newer token was shown.
pub(crate) const FENCED: u8 = 117;
/// `guard file`: an earlier command still works there.
pub(crate) const GUARD_BUSY: u8 = 118;
/// `guard file`: the fence could not be read or written.
pub(crate) const GUARD_FAILED: u8 = 119;

/// `lock`: somebody else has it, at once or still when the wait was over. `quota`: there is not enough.
pub(crate) const NOT_ACQUIRED: u8 = 120;
/// `lock --skip-if-held`: somebody else has it, so there is nothing to do.
pub(crate) const SKIPPED: u8 = 121;
/// `lock`: the service could not be reached, or did not answer.
pub(crate) const NO_ANSWER: u8 = 122;
/// `lock`: the lock was about to be lost, or was; the command was stopped.
pub(crate) const LOST: u8 = 123;
/// `lock`: the longest hold was used up; the command was stopped.
pub(crate) const MAX_HOLD: u8 = 124;
/// `lock`: refused by a rule, or something of our own failed.
pub(crate) const LOCK_FAILED: u8 = 125;
/// `lock`: the command was found and cannot be run.
pub(crate) const CANNOT_RUN: u8 = 126;
/// `lock`: the command was not found.
pub(crate) const NOT_FOUND: u8 = 127;

/// A command that was ended by a signal, in the way of shells.
pub(crate) fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// What a command that could not be started exits with.
pub(crate) fn of_exec_error(error: &std::io::Error) -> u8 {
    match error.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    }
}

/// `code` as the process's own.
pub(crate) fn with(code: u8) -> ExitCode {
    ExitCode::from(code)
}
