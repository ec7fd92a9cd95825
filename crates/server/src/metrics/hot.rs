//! The resources asked for most. Bounded: a resource seen for the first time takes the place, and the count, of
//! the one asked for least, so that a count may be too high and never too low.

use sereno_core::names::{NamespaceName, ResourceName};
use std::{
    hash::{BuildHasher, RandomState},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Resources that are followed.
const FOLLOWED: usize = 128;
/// Resources that are shown.
const SHOWN: usize = 10;
/// All counts are halved after this time, so that the past fades.
const HALF_LIFE: Duration = Duration::from_secs(60);

/// Counts acquires by resource.
#[derive(Default)]
pub(crate) struct HotResources {
    hasher: RandomState,
    counts: Mutex<Counts>,
}

struct Counts {
    entries: Vec<Entry>,
    halved_at: Instant,
}

struct Entry {
    hash: u64,
    namespace: NamespaceName,
    resource: ResourceName,
    count: u64,
}

/// A resource and about how often it was asked for of late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hot {
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) acquires: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self { entries: Vec::with_capacity(FOLLOWED), halved_at: Instant::now() }
    }
}

impl HotResources {
    /// Somebody asked for this one.
    pub(crate) fn asked(&self, namespace: &NamespaceName, resource: &ResourceName, now: Instant) {
        let hash = self.hasher.hash_one((namespace, resource));
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.fade(now);
        if let Some(entry) = counts.entries.iter_mut().find(|entry| entry.hash == hash) {
            entry.count += 1;
            return;
        }
        let fresh =
            |count| Entry { hash, namespace: namespace.clone(), resource: resource.clone(), count };
        if counts.entries.len() < FOLLOWED {
            counts.entries.push(fresh(1));
        } else if let Some(least) = counts.entries.iter_mut().min_by_key(|entry| entry.count) {
            *least = fresh(least.count + 1);
        }
    }

    /// The hottest first.
    pub(crate) fn top(&self) -> Vec<Hot> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.fade(Instant::now());
        counts
            .entries
            .sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.resource.cmp(&b.resource)));
        let shown = counts.entries.iter().filter(|entry| entry.count > 1).take(SHOWN);
        let hot = |entry: &Entry| Hot {
            namespace: entry.namespace.to_string(),
            resource: entry.resource.to_string(),
            acquires: entry.count,
        };
        shown.map(hot).collect()
    }
}

impl Counts {
    fn fade(&mut self, now: Instant) {
        let half_lives =
            now.saturating_duration_since(self.halved_at).as_secs() / HALF_LIFE.as_secs();
        if half_lives == 0 {
            return;
        }
        let shift = u32::try_from(half_lives).unwrap_or(u32::MAX);
        self.entries
            .iter_mut()
            .for_each(|entry| entry.count = entry.count.checked_shr(shift).unwrap_or(0));
        self.entries.retain(|entry| entry.count > 0);
        self.halved_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ResourceName {
        ResourceName::new(text).unwrap()
    }

    #[test]
    fn the_hottest_are_found_among_many() {
        let (hot, space) = (HotResources::default(), NamespaceName::new("default").unwrap());
        let start = Instant::now();
        for round in 0..2_000 {
            hot.asked(&space, &name(&format!("cold/{round}")), start);
            hot.asked(&space, &name("hot/a"), start);
            if round % 2 == 0 {
                hot.asked(&space, &name("hot/b"), start);
            }
        }
        let top = hot.top();
        assert_eq!(top.len(), SHOWN);
        assert_eq!((top[0].resource.as_str(), top[0].acquires), ("hot/a", 2_000));
        assert_eq!(top[1].resource, "hot/b");
        assert!(hot.counts.lock().unwrap().entries.len() <= FOLLOWED);
    }

    #[test]
    fn the_past_fades() {
        let (hot, space) = (HotResources::default(), NamespaceName::new("default").unwrap());
        let start = Instant::now();
        (0..8).for_each(|_| hot.asked(&space, &name("a"), start));
        hot.asked(&space, &name("b"), start + 2 * HALF_LIFE);
        let counts = hot.counts.lock().unwrap();
        let of =
            |text| counts.entries.iter().find(|entry| entry.resource == name(text)).unwrap().count;
        assert_eq!((of("a"), of("b")), (2, 1));
    }
}
