//! What an error of etcd says about the request that met it.
//!
//! Certain is only what is on the list here: errors that etcd gives before it proposes a request to its members, or
//! when it refuses to apply it. Everything else may have happened: time-outs, a lost connection, a changed leader,
//! a stopped server, and every error that a later etcd may invent.

use crate::LogError;
use etcd_client::Error;
use std::error::Error as _;
use tonic::{Code, ConnectError};

/// What is known of a request that was not answered as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Certainly not done; another member may do it.
    NotHere(String),
    /// Certainly not done, and no member will.
    Refused(String),
    /// etcd's space is used up. A write may have been applied all the same: the member that notices first applies
    /// it and then says so. It has been decided, though: a read that follows tells.
    NoSpace(String),
    /// The answer is larger than this client takes.
    TooMuch(String),
    /// It may have been done, or may be yet.
    Unknown(String),
}

impl Failure {
    pub(super) fn of(error: &Error) -> Self {
        let text = error.to_string();
        match error {
            // Nothing is wrong with the network: the request could not even be made.
            Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => {
                Self::Refused(text)
            }
            Error::GRpcStatus(status) if never_sent(status) => Self::NotHere(describe(status)),
            Error::GRpcStatus(status) => {
                Self::kind(status.code(), status.message())(describe(status))
            }
            _ => Self::Unknown(text),
        }
    }

    /// By gRPC code and message.
    fn kind(code: Code, message: &str) -> fn(String) -> Self {
        match (code, message) {
            // Checked before a request is proposed.
            (Code::Unavailable, "etcdserver: no leader") => Self::NotHere,
            (Code::Unavailable, "etcdserver: rpc not supported for learner") => Self::NotHere,
            (Code::ResourceExhausted, "etcdserver: too many requests") => Self::NotHere,
            // Checked before it is applied; a new connection logs in anew.
            (Code::InvalidArgument, "etcdserver: revision of auth store is old") => Self::NotHere,
            (Code::InvalidArgument, text) if text.starts_with("etcdserver: ") => Self::Refused,
            (Code::ResourceExhausted, text)
                if text.starts_with("grpc: received message larger") =>
            {
                Self::Refused
            }
            // Checked before a request is proposed, and again before it is applied.
            (Code::Unauthenticated, "etcdserver: invalid auth token") => Self::Refused,
            (Code::PermissionDenied, "etcdserver: permission denied") => Self::Refused,
            // Of a log-in, which comes before anything is sent.
            (Code::FailedPrecondition, "etcdserver: authentication is not enabled") => {
                Self::Refused
            }
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded") => Self::NoSpace,
            (Code::OutOfRange, text) if text.contains("decoded message length too large") => {
                Self::TooMuch
            }
            _ => Self::Unknown,
        }
    }

    /// Whether it speaks against the member that was asked.
    pub(super) fn is_of_the_member(&self) -> bool {
        matches!(self, Self::NotHere(_) | Self::Unknown(_))
    }
}

/// The connection could not be made, so nothing went over it.
fn never_sent(status: &tonic::Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Its message and all that led to it: "transport error" alone does not help anybody.
fn describe(status: &tonic::Status) -> String {
    let mut text = match status.message() {
        "" => status.code().to_string(),
        message => message.into(),
    };
    let mut cause = status.source();
    while let Some(error) = cause {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        cause = error.source();
    }
    text
}

impl From<Failure> for LogError {
    /// Of a request that changes nothing, or can be sent again.
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(why) => Self::Refused(why),
            Failure::NotHere(why)
            | Failure::NoSpace(why)
            | Failure::TooMuch(why)
            | Failure::Unknown(why) => Self::Unreachable(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Status;

    fn told(code: Code, message: &str) -> Failure {
        Failure::of(&Error::GRpcStatus(Status::new(code, message)))
    }

    #[test]
    fn only_what_is_certain_is_taken_for_certain() {
        for (code, message) in [
            (Code::Unavailable, "etcdserver: request timed out"),
            (
                Code::Unavailable,
                "etcdserver: request timed out, possibly due to previous leader failure",
            ),
            (Code::Unavailable, "etcdserver: request timed out, possibly due to connection lost"),
            (Code::Unavailable, "etcdserver: leader changed"),
            (Code::Unavailable, "etcdserver: server stopped"),
            (Code::Unavailable, "etcdserver: unhealthy cluster"),
            (Code::Unavailable, "error reading a body from connection"),
            (Code::DataLoss, "etcdserver: corrupt cluster"),
            (Code::DeadlineExceeded, "context deadline exceeded"),
            (Code::Cancelled, "context canceled"),
            (Code::Unknown, "transport error"),
            (Code::Unknown, "etcdserver: no leader"),
            (Code::Internal, "h2 protocol error"),
            (Code::ResourceExhausted, "something new"),
            (Code::PermissionDenied, "a proxy's own words"),
            (Code::InvalidArgument, "a proxy's own words"),
        ] {
            assert_eq!(told(code, message), Failure::Unknown(message.into()));
        }
    }

    #[test]
    fn the_list_of_what_is_certain() {
        let refused = |code, message: &str| {
            assert_eq!(told(code, message), Failure::Refused(message.into()));
        };
        refused(Code::InvalidArgument, "etcdserver: request is too large");
        refused(Code::InvalidArgument, "etcdserver: duplicate key given in txn request");
        refused(Code::PermissionDenied, "etcdserver: permission denied");
        refused(Code::Unauthenticated, "etcdserver: invalid auth token");
        refused(Code::ResourceExhausted, "grpc: received message larger than max (2 vs. 1)");
        for (code, message) in [
            (Code::Unavailable, "etcdserver: no leader"),
            (Code::ResourceExhausted, "etcdserver: too many requests"),
            (Code::InvalidArgument, "etcdserver: revision of auth store is old"),
        ] {
            assert_eq!(told(code, message), Failure::NotHere(message.into()));
        }
        let full = "etcdserver: mvcc: database space exceeded";
        assert_eq!(told(Code::ResourceExhausted, full), Failure::NoSpace(full.into()));
    }

    #[test]
    fn a_failed_connection_is_found_among_the_causes() {
        let mut status = Status::unavailable("tcp connect error");
        assert!(matches!(Failure::of(&Error::GRpcStatus(status.clone())), Failure::Unknown(_)));
        let cause = ConnectError("refused".into());
        status.set_source(std::sync::Arc::new(cause));
        assert!(matches!(Failure::of(&Error::GRpcStatus(status)), Failure::NotHere(_)));
    }
}
