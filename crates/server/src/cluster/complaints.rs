//! What is wrong with one address again and again is said once a minute, with a count.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Between two lines about one address.
const INTERVAL: Duration = Duration::from_secs(60);
/// Addresses remembered: of what a flood from more of them does only the metric tells.
const ADDRESSES_MAX: usize = 64;

/// When something was last said about an address, and how often there was reason to since.
#[derive(Debug, Default)]
pub(super) struct Complaints(Mutex<BTreeMap<IpAddr, Told>>);

#[derive(Clone, Copy, Debug)]
struct Told {
    at: Instant,
    unsaid: u64,
}

impl Complaints {
    /// Counts one. `Some`: it is to be said now, of so many since the last time.
    pub(super) fn count(&self, about: IpAddr) -> Option<u64> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(told) = told.get_mut(&about) {
            told.unsaid += 1;
            if now.duration_since(told.at) < INTERVAL {
                return None;
            }
            told.at = now;
            return Some(std::mem::take(&mut told.unsaid));
        }
        if told.len() >= ADDRESSES_MAX {
            told.retain(|_, told| now.duration_since(told.at) < INTERVAL);
        }
        if told.len() >= ADDRESSES_MAX {
            return None;
        }
        told.insert(about, Told { at: now, unsaid: 0 });
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[tokio::test(start_paused = true)]
    async fn each_address_has_a_line_a_minute_with_a_count() {
        let complaints = Complaints::default();
        assert_eq!(complaints.count(address(1)), Some(1));
        for _ in 0..299 {
            assert_eq!(complaints.count(address(1)), None);
        }
        assert_eq!(complaints.count(address(2)), Some(1), "another one is another matter");
        tokio::time::advance(INTERVAL).await;
        assert_eq!(complaints.count(address(1)), Some(300));
        assert_eq!(complaints.count(address(1)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_from_everywhere_is_bounded() {
        let complaints = Complaints::default();
        let said = (0..=255).filter(|&last| complaints.count(address(last)).is_some()).count();
        assert_eq!(said, ADDRESSES_MAX);
        tokio::time::advance(INTERVAL).await;
        assert_eq!(complaints.count(address(255)), Some(1), "the old ones have made room");
    }
}
