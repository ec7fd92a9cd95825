//! What one owner has committed at one node: commits one by one, the older ones folded into a sum.

use crate::{ids::ObjectId, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::VecDeque;

/// What one commit has left.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Lot {
    pub(crate) commit: ObjectId,
    pub(crate) left: u64,
}

/// One owner's committed use at one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Account {
    /// Oldest first; none is empty.
    lots: VecDeque<Lot>,
    /// Of commits up to this one, what they have left together.
    folded_to: ObjectId,
    folded: u64,
}

impl Account {
    pub(crate) fn total(&self) -> u64 {
        self.folded + self.lots.iter().map(|lot| lot.left).sum::<u64>()
    }

    /// The commits that are kept one by one.
    pub(crate) fn lots(&self) -> impl Iterator<Item = &Lot> {
        self.lots.iter()
    }

    /// The sum of those that are not.
    pub(crate) fn folded(&self) -> u64 {
        self.folded
    }

    /// A new commit; nothing happens for nothing.
    pub(crate) fn add(&mut self, commit: ObjectId, amount: u64) {
        if amount == 0 {
            return;
        }
        assert!(self.folded_to < commit, "commits are numbered as they come");
        match self.lots.back_mut().filter(|lot| lot.commit == commit) {
            Some(lot) => lot.left += amount,
            None => self.lots.push_back(Lot { commit, left: amount }),
        }
        while self.lots.len() > limits::COMMITS_KEPT_MAX {
            let oldest = self.lots.pop_front().expect("there are many");
            self.folded += oldest.left;
            self.folded_to = oldest.commit;
        }
    }

    /// What a commit has left: of a folded one, what all folded ones have.
    pub(crate) fn left(&self, commit: ObjectId) -> u64 {
        if commit <= self.folded_to {
            return self.folded;
        }
        self.lots.iter().find(|lot| lot.commit == commit).map_or(0, |lot| lot.left)
    }

    /// Takes from a commit, which has that much left.
    pub(crate) fn take(&mut self, commit: ObjectId, amount: u64) {
        let short = "no more is returned than a commit has left";
        if commit <= self.folded_to {
            self.folded = self.folded.checked_sub(amount).expect(short);
            return;
        }
        let at = self.lots.iter().position(|lot| lot.commit == commit).expect(short);
        self.lots[at].left = self.lots[at].left.checked_sub(amount).expect(short);
        if self.lots[at].left == 0 {
            self.lots.remove(at);
        }
    }

    /// Takes from the oldest commits on, at most what there is, and says how much.
    pub(crate) fn take_oldest(&mut self, amount: u64) -> u64 {
        let mut wanted = amount;
        let of_folded = wanted.min(self.folded);
        self.folded -= of_folded;
        wanted -= of_folded;
        while wanted > 0 {
            let Some(lot) = self.lots.front_mut() else { break };
            let part = wanted.min(lot.left);
            (lot.left, wanted) = (lot.left - part, wanted - part);
            if lot.left == 0 {
                self.lots.pop_front();
            }
        }
        amount - wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_commits_are_folded_and_nothing_is_returned_twice() {
        let mut account = Account::default();
        for commit in 1..=40 {
            account.add(ObjectId(commit), 10);
        }
        assert_eq!((account.total(), account.folded(), account.lots().count()), (400, 80, 32));
        assert_eq!((account.left(ObjectId(3)), account.left(ObjectId(9))), (80, 10));
        account.take(ObjectId(9), 10);
        assert_eq!(account.left(ObjectId(9)), 0, "it is not folded: it has nothing left");
        account.take(ObjectId(1), 80);
        assert_eq!((account.left(ObjectId(2)), account.total()), (0, 310));
        assert_eq!(account.take_oldest(15), 15);
        assert_eq!((account.left(ObjectId(10)), account.left(ObjectId(11))), (0, 5));
        assert_eq!((account.take_oldest(1_000), account.total()), (295, 0));
    }
}
