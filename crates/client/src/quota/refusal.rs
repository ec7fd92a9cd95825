//! Why there is no capacity, told apart by what a caller does about it.

use crate::error::Error;
use sereno_api::{ErrorCode, Problem, QuotaLayer};
use std::{fmt, time::Duration};

/// Why a call about quotas did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuotaError {
    /// There is not enough: wait, ask for less, or have a limit raised.
    #[error("{0}")]
    Exhausted(Box<Exhausted>),
    /// A late commit: the reservation had expired, and its capacity is somebody else's by now. What was done has to be
    /// undone (refund).
    #[error("{0}")]
    ExpiredNoCapacity(Box<Exhausted>),
    /// The reservation is not this one's any more: it has ended, or another fence is its own.
    #[error("the reservation is over: {}: {}", .0.code, .0.detail)]
    Over(Box<Problem>),
    /// More was named than is reserved, or than a commit has left. Nothing was changed.
    #[error("{}: {}", .0.code, .0.detail)]
    Exceeds(Box<Problem>),
    /// Another region decides.
    #[error("{}: {}", .problem.code, .problem.detail)]
    WrongRegion {
        /// Which, where the service says it.
        home: Option<String>,
        /// What the service said.
        problem: Box<Problem>,
    },
    /// Anything else.
    #[error("{0}")]
    Other(#[from] Error),
}

/// What there is too little of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// **Every** layer that does not let it pass, root first.
    pub layers: Vec<QuotaLayer>,
    /// When another try makes sense. `None`: as the limits are, it could never be had.
    pub retry_after: Option<Duration>,
    /// Reservations that have ended are still counted: a moment later there may be more.
    pub sweep_pending: bool,
    /// What the service said.
    pub problem: Problem,
}

impl QuotaError {
    pub(super) fn of(error: Error) -> Self {
        let Error::Refused(problem) = error else { return Self::Other(error) };
        match problem.code {
            ErrorCode::QuotaExhausted => Self::Exhausted(Box::new(Exhausted::of(*problem))),
            ErrorCode::ExpiredNoCapacity => {
                Self::ExpiredNoCapacity(Box::new(Exhausted::of(*problem)))
            }
            ErrorCode::ReservationEnded | ErrorCode::NotHolder => Self::Over(problem),
            ErrorCode::ExceedsReservation => Self::Exceeds(problem),
            ErrorCode::WrongRegion => Self::WrongRegion { home: problem.home.clone(), problem },
            _ => Self::Other(Error::Refused(problem)),
        }
    }

    /// There was not enough: at once, or still when the wait was over.
    pub fn is_exhausted(&self) -> bool {
        match self {
            Self::Exhausted(_) => true,
            Self::Other(error) => error.code() == Some(ErrorCode::WaitTimeout),
            _ => false,
        }
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Exhausted(why) | Self::ExpiredNoCapacity(why) => Some(why.problem.code),
            Self::Over(problem) | Self::Exceeds(problem) | Self::WrongRegion { problem, .. } => {
                Some(problem.code)
            }
            Self::Other(error) => error.code(),
        }
    }
}

impl From<QuotaError> for Error {
    /// What it was before it was told apart.
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exhausted(why) | QuotaError::ExpiredNoCapacity(why) => {
                Self::Refused(Box::new(why.problem))
            }
            QuotaError::Over(problem)
            | QuotaError::Exceeds(problem)
            | QuotaError::WrongRegion { problem, .. } => Self::Refused(problem),
            QuotaError::Other(error) => error,
        }
    }
}

impl Exhausted {
    fn of(problem: Problem) -> Self {
        Self {
            layers: problem.layers.clone(),
            retry_after: problem.retry_after_ms.map(Duration::from_millis),
            sweep_pending: problem.sweep_pending.unwrap_or(false),
            problem,
        }
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem.code, self.problem.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: ErrorCode, more: impl FnOnce(&mut Problem)) -> QuotaError {
        let mut problem = Problem::new(code, "because");
        more(&mut problem);
        QuotaError::of(Error::Refused(Box::new(problem)))
    }

    #[test]
    fn what_a_caller_acts_on_is_typed() {
        let full = refused(ErrorCode::QuotaExhausted, |it| {
            it.retry_after_ms = Some(1_000);
            it.sweep_pending = Some(true);
        });
        assert!(full.is_exhausted() && full.to_string() == "QUOTA_EXHAUSTED: because");
        let QuotaError::Exhausted(why) = full else { panic!("{full}") };
        assert_eq!((why.retry_after, why.sweep_pending), (Some(Duration::from_secs(1)), true));

        let refund = refused(ErrorCode::ExpiredNoCapacity, |_| {});
        assert!(matches!(refund, QuotaError::ExpiredNoCapacity(_)) && !refund.is_exhausted());
        for code in [ErrorCode::ReservationEnded, ErrorCode::NotHolder] {
            assert!(matches!(refused(code, |_| {}), QuotaError::Over(_)), "{code}");
        }
        assert!(matches!(refused(ErrorCode::ExceedsReservation, |_| {}), QuotaError::Exceeds(_)));
        let away = refused(ErrorCode::WrongRegion, |it| it.home = Some("eu".into()));
        assert!(matches!(away, QuotaError::WrongRegion { home: Some(home), .. } if home == "eu"));
        assert!(refused(ErrorCode::WaitTimeout, |_| {}).is_exhausted());
        assert!(!refused(ErrorCode::Overloaded, |_| {}).is_exhausted());
    }

    #[test]
    fn nothing_is_lost_on_the_way_back() {
        for code in ErrorCode::ALL.iter().copied() {
            let error = refused(code, |it| it.retry_after_ms = Some(7));
            assert_eq!(error.code(), Some(code));
            let Error::Refused(problem) = Error::from(error) else { panic!("{code}") };
            assert_eq!((problem.code, problem.retry_after_ms), (code, Some(7)));
        }
    }
}
