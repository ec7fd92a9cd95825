//! An answer as a type.

use super::{Answer, Op};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sereno_api::{
    Abandoned, ForceReleased, Granted, Lock, Outcome, Problem, Released, Renewed, RenewedMany,
    Waiting,
};

/// What an answer means.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// To an acquire: the lock is held.
    Granted(Granted),
    /// To an acquire: in the queue.
    Waiting(Waiting),
    /// To a renewal.
    Renewed(Renewed),
    /// To several.
    RenewedMany(RenewedMany),
    /// To a release.
    Released(Released),
    /// To an abandon.
    Abandoned(Abandoned),
    /// To a forced release.
    Forced(ForceReleased),
    /// To a read.
    Read(Lock),
    /// An error.
    Problem(Box<Problem>),
    /// Nothing that tells anything.
    Nothing {
        /// Whether the call may have reached somebody.
        sent: bool,
    },
}

impl Heard {
    /// Reads an answer to `op`.
    ///
    /// # Errors
    /// When it is none that the interface knows.
    pub fn of(op: &Op, answer: &Answer) -> Result<Self, String> {
        let (status, body) = match answer {
            Answer::Silence { sent, .. } => return Ok(Self::Nothing { sent: *sent }),
            Answer::Response { status, body } => (*status, body),
        };
        if status >= 400 {
            return typed(body).map(|problem| Self::Problem(Box::new(problem)));
        }
        match op {
            Op::Acquire { .. } if status == 202 => typed(body).map(Self::Waiting),
            Op::Acquire { .. } => typed(body).map(Self::Granted),
            Op::Renew(_) => typed(body).map(Self::Renewed),
            Op::RenewMany { .. } => typed(body).map(Self::RenewedMany),
            Op::Release(_) => typed(body).map(Self::Released),
            Op::Abandon { .. } => typed(body).map(Self::Abandoned),
            Op::Force { .. } => typed(body).map(Self::Forced),
            Op::Get { .. } => typed(body).map(Self::Read),
        }
    }

    /// Revision and cluster time, where the log decided.
    pub fn decided(&self) -> Option<(u64, u64)> {
        let (revision, time) = match self {
            Self::Granted(it) => (it.revision, it.cluster_time_ms),
            Self::Waiting(it) => (it.revision, it.cluster_time_ms),
            Self::Renewed(it) => (it.revision, it.cluster_time_ms),
            Self::RenewedMany(it) => (it.revision, it.cluster_time_ms),
            Self::Released(it) => (it.revision, it.cluster_time_ms),
            Self::Abandoned(it) => (it.revision, it.cluster_time_ms),
            Self::Forced(it) => (it.revision, it.cluster_time_ms),
            Self::Read(it) => (it.revision, it.cluster_time_ms),
            Self::Problem(it) => (it.revision?, it.cluster_time_ms?),
            Self::Nothing { .. } => return None,
        };
        Some((revision, time))
    }

    /// The call may have had an effect that nobody told of.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::Nothing { sent } => *sent,
            Self::Problem(problem) => problem.outcome == Outcome::Unknown,
            _ => false,
        }
    }

    /// The call certainly had no effect, and nothing in the log decided that.
    pub fn is_refused_outside_the_log(&self) -> bool {
        match self {
            Self::Nothing { sent } => !sent,
            Self::Problem(it) => it.revision.is_none() && it.outcome == Outcome::NotApplied,
            _ => false,
        }
    }
}

fn typed<T: DeserializeOwned>(body: &Value) -> Result<T, String> {
    T::deserialize(body).map_err(|error| format!("{error}: {body}"))
}
