//! What clients have said and have been told, as far as a promise depends on it.

use crate::clock::Real;
use sereno_core::ids::Token;
use std::collections::{BTreeMap, BTreeSet};

/// That a client relies on its lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Belief {
    /// Whose, for the message.
    #[expect(dead_code, reason = "it is printed")]
    pub(crate) client: usize,
    /// Until its own clock says that it may have lost it, in real time.
    pub(crate) until: Real,
}

#[derive(Debug, Default)]
pub(crate) struct Told {
    beliefs: BTreeMap<Token, Belief>,
    /// Leases whose owner has sent a release, requests that were abandoned, tokens that an operator has ended.
    pub(crate) released: BTreeSet<u64>,
    pub(crate) abandoned: BTreeSet<String>,
    pub(crate) forced: BTreeSet<Token>,
    /// Holds that their owner has ended: whichever instance did, the others learn of it later.
    pub(super) given_up: BTreeSet<Token>,
}

impl Told {
    pub(crate) fn relies(&mut self, token: Token, belief: Belief) {
        self.beliefs.insert(token, belief);
    }

    pub(crate) fn relies_no_more(&mut self, token: Token) {
        self.beliefs.remove(&token);
    }

    /// All clients are gone, with what they relied on.
    pub(crate) fn all_are_others(&mut self) {
        self.beliefs.clear();
    }

    /// Whether a lease may end before whoever relies on it has learned of it.
    pub(super) fn may_end_unseen(&self, token: Token) -> bool {
        self.forced.contains(&token) || self.given_up.contains(&token)
    }

    /// The belief of whoever relies on this token at this moment.
    pub(super) fn belief(&self, token: Token, now: Real) -> Option<&Belief> {
        self.beliefs.get(&token).filter(|belief| belief.until > now)
    }
}
