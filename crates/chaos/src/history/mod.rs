//! What clients did and saw, as JSON lines: one when a call is sent, one when its answer is there. A call without the
//! second line is pending for ever: its client was killed, and nobody knows what became of it.

mod heard;
mod read;
mod write;

pub use heard::Heard;
pub use read::{Call, Held, History, read_folder};
pub use write::Recorder;

use crate::clock::Micros;
use serde::{Deserialize, Serialize};

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Line {
    /// A call is about to be sent.
    Start {
        /// Its number in this process.
        call: u64,
        /// Who calls.
        worker: String,
        /// Which node is asked: 0, 1, 2.
        node: usize,
        /// When.
        at: Micros,
        /// What is asked.
        op: Op,
    },
    /// A call has come to its end.
    End {
        /// Its number.
        call: u64,
        /// When.
        at: Micros,
        /// What was heard.
        answer: Answer,
    },
    /// A guard of the SDK said that it holds the lock, at least from when it was handed out.
    Guard {
        /// The lock.
        resource: String,
        /// Its token.
        token: u64,
        /// When the SDK handed it out.
        since: Micros,
        /// Before its last look at the guard that said yes.
        until: Micros,
    },
}

/// What is asked. The owner of an acquire is its request id, so that whoever reads a holder knows the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Op {
    /// Grant a lock, or queue for it.
    Acquire {
        /// What to lock.
        resource: String,
        /// The same over all attempts.
        request: String,
        /// 0: answer now.
        wait_ms: u64,
        /// The lease.
        ttl_ms: u64,
    },
    /// Move a deadline forward.
    Renew(LeaseOf),
    /// Several renewals in one call.
    RenewMany {
        /// Which.
        leases: Vec<LeaseOf>,
    },
    /// End a lease.
    Release(LeaseOf),
    /// The request shall hold nothing.
    Abandon {
        /// What it asked for: not sent along.
        resource: String,
        /// The request.
        request: String,
    },
    /// An operator ends the lease with this token.
    Force {
        /// The lock.
        resource: String,
        /// The token.
        token: u64,
        /// The operator's own request id.
        request: String,
    },
    /// A consistent read.
    Get {
        /// The lock.
        resource: String,
    },
}

/// A lease, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseOf {
    /// The lock.
    pub resource: String,
    /// The secret.
    pub lease: String,
    /// The request that was granted: not sent along.
    pub request: String,
}

/// What was heard of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// An HTTP answer.
    Response {
        /// The status.
        status: u16,
        /// The JSON.
        body: serde_json::Value,
    },
    /// No answer.
    Silence {
        /// Why.
        silence: String,
        /// Whether the call may have reached somebody.
        sent: bool,
    },
}
