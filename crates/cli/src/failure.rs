//! What goes to standard error when something did not work: what happened, and what to do.

use crate::{
    exit,
    output::{Format, note, note_json},
    wording,
};
use sereno_client::{
    Error,
    api::{ErrorCode, Problem},
};
use std::fmt;

/// A command that did not work, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What happened.
    pub what: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
    /// The exit code.
    pub exit: u8,
    /// Of a call that the service refused: its problem document, for programs.
    pub problem: Option<Box<Problem>>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, exit: exit::FAILED, problem: None }
    }

    /// The reader of standard output has gone: there is nothing more to do, and nothing to complain about.
    pub(crate) fn silent() -> Self {
        Self { exit: 0, ..Self::new("") }
    }

    /// The command line makes no sense.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(what).exit(exit::USAGE)
    }

    pub(crate) fn problem(self, problem: Problem) -> Self {
        Self { problem: Some(Box::new(problem)), ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same in a family where other things help than with locks.
    pub(crate) fn hints(self, hints: &[(ErrorCode, &'static str)]) -> Self {
        let code = self.problem.as_ref().map(|problem| problem.code);
        match hints.iter().find(|(of, _)| Some(*of) == code) {
            Some((_, hint)) => self.hint(*hint),
            None => self,
        }
    }

    pub(crate) fn exit(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    /// `doing` failed with `error`.
    pub(crate) fn io(doing: &str, error: &std::io::Error) -> Self {
        Self::new(format!("{doing}: {error}"))
    }

    /// Writes it to standard error: for programs the problem document where there is one.
    pub(crate) fn print(&self, format: Format) {
        match (&self.problem, format) {
            (Some(problem), Format::Json) => note_json(problem),
            _ if self.what.is_empty() => {}
            _ => note(&self.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {hint}"),
            None => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::new(wording::in_durations(&error.to_string()));
        match &error {
            Error::Refused(problem) => {
                let failure = Self::new(format!("{}: {}", problem.code, wording::detail(problem)))
                    .exit(exit_for(problem.code))
                    .problem((**problem).clone());
                match hint_for(problem.code) {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
            Error::Unavailable(why) => failure.exit(exit::UNREACHABLE).hint(unavailable_hint(why)),
            Error::Unknown(_) => failure
                .exit(exit::UNREACHABLE)
                .hint("It may have been carried out: look before you repeat it."),
            Error::Invalid(_) => failure.exit(exit::USAGE),
            _ => failure,
        }
    }
}

/// What breaks a rule of the interface breaks one of the command line.
fn exit_for(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::InvalidArgument => exit::USAGE,
        _ => exit::FAILED,
    }
}

/// A service that answers gives its code first.
fn unavailable_hint(why: &str) -> &'static str {
    match ErrorCode::leading(why) {
        Some(_) => {
            "It answers, and does not take this call now: see `sereno status`, and try again."
        }
        None => {
            "Is it running there? Start one with `sereno serve`; name another with --server or SERENO_SERVER."
        }
    }
}

/// What usually helps.
fn hint_for(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::Locked => {
            "Stand in the queue with --wait, or look at the holder with `sereno locks get`."
        }
        ErrorCode::NotFound => {
            "Create a namespace with `sereno namespace set`; list them with `sereno namespace ls`."
        }
        ErrorCode::NotHolder => {
            "Read the present token with `sereno locks get`: the lock may have changed hands."
        }
        ErrorCode::VersionConflict => {
            "Somebody changed it meanwhile: read it again, then repeat with that version."
        }
        ErrorCode::FencingRequired => {
            "The namespace wants resources that check tokens: use --fencing enforced."
        }
        ErrorCode::Overloaded | ErrorCode::LimitReached | ErrorCode::QueueFull => {
            "Try again later, or raise the namespace's limit with `sereno namespace set`."
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_its_code_what_happened_and_what_to_do() {
        let problem = Problem::new(ErrorCode::NotHolder, "nobody holds it with token 5");
        let failure = Failure::from(Error::Refused(Box::new(problem)));
        let text = failure.to_string();
        for part in ["NOT_HOLDER", "token 5", "sereno locks get"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(failure.exit, exit::FAILED);
    }

    #[test]
    fn what_makes_no_sense_is_wrong_usage_whoever_finds_it() {
        let rule = Problem::new(ErrorCode::InvalidArgument, "leaseTtl: must be 1s to 1h, is 2h");
        for error in [Error::Refused(Box::new(rule)), Error::Invalid("no server".into())] {
            assert_eq!(Failure::from(error).exit, exit::USAGE);
        }
    }

    #[test]
    fn what_was_not_reached_has_an_exit_code_of_its_own() {
        let failure = Failure::from(Error::Unavailable("connection refused".into()));
        assert_eq!(failure.exit, exit::UNREACHABLE);
        assert!(failure.to_string().contains("sereno serve"));
        let answers = Failure::from(Error::Unavailable("UNAVAILABLE: no leader".into()));
        assert_eq!(answers.exit, exit::UNREACHABLE);
        let text = answers.to_string();
        assert!(text.contains("sereno status") && !text.contains("sereno serve"), "{text}");
    }
}
