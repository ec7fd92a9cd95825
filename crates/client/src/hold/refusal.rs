//! Why there is no hold, told apart by what a shop does about it.

use crate::error::Error;
use sereno_api::{ErrorCode, Holder, InTheWay, Problem};
use std::{
    fmt,
    time::{Duration, SystemTime},
};

/// Why a hold was not placed, or not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// Somebody else has it: say until when, or offer something else.
    #[error("{0}")]
    Taken(Box<Taken>),
    /// This owner has too much, or had this one too lately.
    #[error("{0}")]
    Limit(Box<HoldLimit>),
    /// The hold is not this one's any more: it has ended, or another fence holds. What was sold under it has to be
    /// looked at.
    #[error("the hold is over: {}: {}", .0.code, .0.detail)]
    Over(Box<Problem>),
    /// Anything else.
    #[error("{0}")]
    Other(#[from] Error),
}

/// Somebody else has what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// When it is free again unless it is renewed or bought, as far as the service says. Of several resources: when
    /// the last of them is. By this machine's wall clock, for people.
    pub until: Option<SystemTime>,
    /// The same from now on.
    pub frees_in: Option<Duration>,
    /// Who has it, where one resource was asked for.
    pub holder: Option<Holder>,
    /// Of several: each that is not free.
    pub in_the_way: Vec<InTheWay>,
    /// What the service said.
    pub problem: Problem,
}

/// A limit of the namespace stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldLimit {
    /// Which.
    pub kind: LimitKind,
    /// Its value, where it is a count.
    pub max: Option<u64>,
    /// When another try makes sense.
    pub retry_after: Option<Duration>,
    /// What the service said.
    pub problem: Problem,
}

/// Which limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitKind {
    /// `holdsPerOwner`: the owner has as many holds as are allowed.
    PerOwner,
    /// `holdCooldown`: the owner let this resource go, unpaid, too short a time ago.
    CoolDown,
    /// Another one, by its name.
    Other(String),
}

impl HoldError {
    pub(super) fn of(error: Error) -> Self {
        let Error::Refused(problem) = error else { return Self::Other(error) };
        match problem.code {
            ErrorCode::Taken => Self::Taken(Box::new(Taken::of(*problem))),
            ErrorCode::LimitReached => Self::Limit(Box::new(HoldLimit::of(*problem))),
            ErrorCode::NotHolder | ErrorCode::LeaseEnded => Self::Over(problem),
            _ => Self::Other(Error::Refused(problem)),
        }
    }

    /// The service could not be reached, or takes nothing now: the case for going on without a hold.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Other(Error::Unavailable(_) | Error::Unknown(_)) => true,
            Self::Other(Error::Refused(problem)) => matches!(
                problem.code,
                ErrorCode::Unavailable | ErrorCode::Overloaded | ErrorCode::UnknownOutcome
            ),
            _ => false,
        }
    }
}

impl From<HoldError> for Error {
    /// What it was before it was told apart.
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Taken(taken) => Self::Refused(Box::new(taken.problem)),
            HoldError::Limit(limit) => Self::Refused(Box::new(limit.problem)),
            HoldError::Over(problem) => Self::Refused(problem),
            HoldError::Other(error) => error,
        }
    }
}

impl Taken {
    fn of(problem: Problem) -> Self {
        let frees_in = problem.retry_after_ms.map(Duration::from_millis);
        Self {
            until: frees_in.and_then(|left| SystemTime::now().checked_add(left)),
            frees_in,
            holder: problem.holder.clone(),
            in_the_way: problem.in_the_way.clone(),
            problem,
        }
    }
}

impl HoldLimit {
    fn of(problem: Problem) -> Self {
        let kind = match problem.limit.as_deref() {
            Some("holdsPerOwner") => LimitKind::PerOwner,
            Some("holdCooldown") => LimitKind::CoolDown,
            other => LimitKind::Other(other.unwrap_or_default().into()),
        };
        let retry_after = problem.retry_after_ms.map(Duration::from_millis);
        Self { kind, max: problem.max, retry_after, problem }
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem.code, self.problem.detail)
    }
}

impl fmt::Display for HoldLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem.code, self.problem.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: ErrorCode, more: impl FnOnce(&mut Problem)) -> HoldError {
        let mut problem = Problem::new(code, "because");
        more(&mut problem);
        HoldError::of(Error::Refused(Box::new(problem)))
    }

    #[test]
    fn what_a_shop_acts_on_is_typed() {
        let taken = refused(ErrorCode::Taken, |problem| problem.retry_after_ms = Some(60_000));
        let HoldError::Taken(taken) = taken else { panic!("{taken}") };
        assert_eq!(taken.frees_in, Some(Duration::from_secs(60)));
        assert!(taken.until > Some(SystemTime::now()));
        assert_eq!(taken.to_string(), "TAKEN: because");

        for (name, kind) in [
            ("holdsPerOwner", LimitKind::PerOwner),
            ("holdCooldown", LimitKind::CoolDown),
            ("maxLeases", LimitKind::Other("maxLeases".into())),
        ] {
            let limit = refused(ErrorCode::LimitReached, |problem| {
                problem.limit = Some(name.into());
                problem.max = Some(3);
            });
            let HoldError::Limit(limit) = limit else { panic!("{limit}") };
            assert_eq!((limit.kind, limit.max), (kind, Some(3)));
        }
        for code in [ErrorCode::NotHolder, ErrorCode::LeaseEnded] {
            assert!(matches!(refused(code, |_| {}), HoldError::Over(_)), "{code}");
        }
    }

    #[test]
    fn only_a_service_that_does_not_serve_is_unavailable() {
        let errors = [Error::Unavailable(String::new()), Error::Unknown(String::new())];
        assert!(errors.map(HoldError::of).iter().all(HoldError::is_unavailable));
        for (code, is_unavailable) in [
            (ErrorCode::Overloaded, true),
            (ErrorCode::Unavailable, true),
            (ErrorCode::Taken, false),
            (ErrorCode::LimitReached, false),
            (ErrorCode::InvalidArgument, false),
            (ErrorCode::MaxHoldReached, false),
        ] {
            assert_eq!(refused(code, |_| {}).is_unavailable(), is_unavailable, "{code}");
        }
    }
}
