//! Quotas over HTTP: `/v1/quotas/…`, `/v1/quota-explain` and `/v1/reservations/…`.

pub(super) mod books;
pub(super) mod commit;
mod fields;
pub(super) mod limit;
mod params;
pub(super) mod read;
pub(super) mod refused;
pub(super) mod reservations;
pub(super) mod reserve;
pub(super) mod share;
mod views;

use super::{
    Door,
    call::{Asked, mismatch},
    problem::Refused,
    timeout::Timeout,
};
use crate::metrics::{Kind, Mode};
use sereno_core::{
    command::{Operation, QuotaCommand},
    names::Caller,
    outcome::{Done, QuotaDone},
};

/// What a write about a quota was answered.
struct Written {
    done: QuotaDone,
    /// Of an answer from the reply memory: the first one's revision.
    replayed: Option<u64>,
    revision: u64,
    time: u64,
}

/// A write that never waits, from whom.
struct Write {
    kind: Kind,
    caller: Caller,
    timeout: Timeout,
    born_at: Option<u64>,
}

impl Door {
    /// Carries out a write that never waits. `command`: as far as the request makes one.
    async fn write_quota(
        &self,
        Write { kind, caller, timeout, born_at }: Write,
        command: Result<QuotaCommand, Refused>,
    ) -> Result<Written, Refused> {
        let asked = Asked { kind, mode: Mode::Now, caller, born_at, timeout };
        let command = self.counted(kind, command)?;
        let decided = self.call(asked, Operation::Quota(command)).await?;
        let Done::Quota(done) = decided.done else { mismatch(kind) };
        let (replayed, revision, time) = (decided.replayed, decided.revision, decided.time);
        Ok(Written { done, replayed, revision, time })
    }
}
