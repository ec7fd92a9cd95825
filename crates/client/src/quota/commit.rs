//! What a commit takes, and what becomes of the rest.

use super::calls::{Named, items};
use crate::core::random_id;
use sereno_api::{CommitRequest, LateCommit, QuotaItem};

/// What a commit takes of a reservation. [`Commit::default`]: all of it.
#[must_use = "give it to a reservation's commit_with"]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    items: Option<Vec<QuotaItem>>,
    keeps_rest: bool,
    readmits: bool,
}

impl Commit {
    /// All that is reserved.
    pub fn all() -> Self {
        Self::default()
    }

    /// These amounts, as (quota, path, amount); of nodes that are not named nothing. The rest is given back.
    pub fn of<Q: Into<String>, P: Into<String>>(
        amounts: impl IntoIterator<Item = (Q, P, u64)>,
    ) -> Self {
        Self { items: Some(items(amounts)), ..Self::default() }
    }

    /// The rest stays reserved: another commit follows.
    pub fn keep_rest(self) -> Self {
        Self { keeps_rest: true, ..self }
    }

    /// If the reservation has expired (an hour ago at most), admit it anew, where there is room: as another
    /// reservation, which is committed in the same step. Without room it is refused with `EXPIRED_NO_CAPACITY`: undo
    /// the work.
    pub fn or_readmit(self) -> Self {
        Self { readmits: true, ..self }
    }

    /// A new request.
    pub(super) fn request(self, of: &Named) -> CommitRequest {
        CommitRequest {
            namespace: of.namespace.clone(),
            reservation_id: of.reservation_id.clone(),
            fence: of.fence,
            items: self.items,
            is_final: !self.keeps_rest,
            late: self.readmits.then_some(LateCommit::Readmit),
            request_id: random_id(),
            born_at: None,
        }
    }
}
