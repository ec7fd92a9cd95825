//! The leases that the generator keeps: renewed in turn, released oldest first.

use super::names::Name;
use crate::target::LeaseId;
use rand::{RngExt, rngs::SmallRng};
use std::collections::VecDeque;

/// How far from the front a release looks for a lease that is not just being renewed.
const RELEASE_LOOK: usize = 64;

/// One lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holding {
    pub name: Name,
    pub lease: LeaseId,
    /// Somebody waits for it.
    pub wanted: bool,
    renewing: bool,
}

/// Stays the holding's as long as it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    slot: u32,
    use_: u32,
}

/// All leases.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    slots: Vec<(u32, Option<Holding>)>,
    vacant: Vec<u32>,
    /// Oldest first; may name holdings that are no more.
    releases: VecDeque<Id>,
    /// Renewed longest ago first; likewise.
    renewals: VecDeque<Id>,
    count: usize,
}

impl Holdings {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self, name: Name, lease: LeaseId) {
        let holding = Some(Holding { name, lease, wanted: false, renewing: false });
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let (use_, place) = &mut self.slots[slot as usize];
        *use_ += 1;
        *place = holding;
        let id = Id { slot, use_: *use_ };
        self.releases.push_back(id);
        self.renewals.push_back(id);
        self.count += 1;
    }

    fn get_mut(&mut self, id: Id) -> Option<&mut Holding> {
        let (use_, place) = self.slots.get_mut(id.slot as usize)?;
        if *use_ == id.use_ { place.as_mut() } else { None }
    }

    /// Ends a holding: its lease was lost.
    pub(super) fn remove(&mut self, id: Id) -> Option<Holding> {
        self.get_mut(id)?;
        let holding = self.slots[id.slot as usize].1.take();
        self.vacant.push(id.slot);
        self.count -= 1;
        holding
    }

    /// The oldest, to be released. One that is just being renewed waits for its turn, as a guard's would.
    pub(super) fn take_oldest(&mut self) -> Option<Holding> {
        let mut index = 0;
        while index < self.releases.len().min(RELEASE_LOOK) {
            let id = self.releases[index];
            match self.get_mut(id) {
                None => {
                    self.releases.remove(index);
                }
                Some(holding) if holding.renewing => index += 1,
                Some(_) => {
                    self.releases.remove(index);
                    return self.remove(id);
                }
            }
        }
        None
    }

    /// The oldest that somebody waits for, to be released.
    pub(super) fn take_wanted(&mut self) -> Option<Holding> {
        while let Some(id) = self.releases.pop_front() {
            if self.get_mut(id).is_some_and(|holding| holding.wanted) {
                return self.remove(id);
            }
        }
        None
    }

    /// Any, whatever is going on with it.
    pub(super) fn take_any(&mut self) -> Option<Holding> {
        while let Some(id) = self.renewals.pop_front() {
            if let Some(holding) = self.remove(id) {
                return Some(holding);
            }
        }
        None
    }

    /// A held name for somebody to wait for: one of `ahead` positions in the order of release, that is not wanted
    /// yet.
    pub(super) fn want(
        &mut self,
        ahead: std::ops::Range<usize>,
        rng: &mut SmallRng,
    ) -> Option<Name> {
        let ahead = ahead.start..ahead.end.min(self.releases.len());
        if ahead.is_empty() {
            return None;
        }
        let first = rng.random_range(ahead.clone());
        for index in (first..ahead.end).chain(ahead.start..first) {
            let id = self.releases[index];
            if let Some(holding) = self.get_mut(id)
                && !holding.wanted
            {
                holding.wanted = true;
                return Some(holding.name);
            }
        }
        None
    }

    /// The next `most` to be renewed.
    pub(super) fn start_renewal(&mut self, most: usize) -> Vec<(Id, Name, LeaseId)> {
        let mut batch = Vec::with_capacity(most);
        for _ in 0..self.renewals.len() {
            if batch.len() == most {
                break;
            }
            let Some(id) = self.renewals.pop_front() else { break };
            let Some(holding) = self.get_mut(id) else { continue };
            holding.renewing = true;
            batch.push((id, holding.name, holding.lease));
            self.renewals.push_back(id);
        }
        batch
    }

    /// The renewal was answered, or given up.
    pub(super) fn end_renewal(&mut self, id: Id) {
        if let Some(holding) = self.get_mut(id) {
            holding.renewing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn holdings(count: u32) -> Holdings {
        let mut holdings = Holdings::default();
        for name in 0..count {
            holdings.add(name, LeaseId::from_bits(name.into()));
        }
        holdings
    }

    #[test]
    fn the_oldest_is_released_first_unless_it_is_being_renewed() {
        let mut holdings = holdings(3);
        let batch = holdings.start_renewal(1);
        assert_eq!(batch[0].1, 0);
        assert_eq!(holdings.take_oldest().unwrap().name, 1);
        holdings.end_renewal(batch[0].0);
        assert_eq!(holdings.take_oldest().unwrap().name, 0);
        assert_eq!(holdings.len(), 1);
    }

    #[test]
    fn renewals_go_round_and_step_over_what_is_gone() {
        let mut holdings = holdings(4);
        assert_eq!(holdings.take_oldest().unwrap().name, 0);
        let names = |batch: Vec<(Id, Name, LeaseId)>| {
            batch.into_iter().map(|(_, name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(holdings.start_renewal(2)), [1, 2]);
        assert_eq!(names(holdings.start_renewal(2)), [3, 1]);
        assert_eq!(names(holdings.start_renewal(9)), [2, 3, 1]);
    }

    #[test]
    fn a_late_answer_does_not_touch_the_next_holding_of_the_slot() {
        let mut holdings = holdings(1);
        let (id, ..) = holdings.start_renewal(1)[0];
        assert!(holdings.remove(id).is_some());
        holdings.add(7, LeaseId::from_bits(7));
        assert!(holdings.remove(id).is_none());
        assert_eq!(holdings.len(), 1);
    }

    #[test]
    fn each_is_wanted_once() {
        let (mut holdings, mut rng) = (holdings(10), SmallRng::seed_from_u64(3));
        let mut wanted: Vec<Name> = std::iter::from_fn(|| holdings.want(2..6, &mut rng)).collect();
        wanted.sort_unstable();
        assert_eq!(wanted, [2, 3, 4, 5]);
        assert_eq!(holdings.want(20..30, &mut rng), None);
        let taken = std::iter::from_fn(|| holdings.take_wanted());
        assert_eq!(taken.map(|holding| holding.name).collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert_eq!(std::iter::from_fn(|| holdings.take_any()).count(), 6, "and nothing is left");
        assert_eq!(holdings.len(), 0);
    }
}
