//! Has etcd forget the history of its keys: each append leaves an old value of the head behind, each trim its
//! entries. Only the engine that appends does it, and only of what is older than the configured time.

use super::Shared;
use std::{collections::VecDeque, sync::Arc, sync::atomic::Ordering, time::Duration};
use tokio::time::Instant;

/// How often there is a look, at most; less often than the history is long.
const INTERVAL: Duration = Duration::from_secs(30);

/// Revisions of the store, and when they were current.
#[derive(Debug, Default)]
struct Past {
    samples: VecDeque<(Instant, i64)>,
}

impl Past {
    /// `revision` is current now. Returns the newest revision that was current `history` ago.
    fn step(&mut self, now: Instant, revision: i64, history: Duration) -> Option<i64> {
        match self.samples.back() {
            // The store was set back: what its revisions meant is over.
            Some((_, newest)) if *newest > revision => self.samples.clear(),
            // Nothing was appended: another engine has taken over.
            Some((_, newest)) if *newest == revision => return self.take_older(now, history),
            _ => {}
        }
        self.samples.push_back((now, revision));
        self.take_older(now, history)
    }

    fn take_older(&mut self, now: Instant, history: Duration) -> Option<i64> {
        let mut newest = None;
        while self.samples.front().is_some_and(|(at, _)| now.duration_since(*at) >= history) {
            newest = self.samples.pop_front().map(|(_, revision)| revision);
        }
        newest
    }
}

impl Shared {
    /// For as long as the log is open.
    pub(super) async fn compact_now_and_then(self: Arc<Self>, history: Duration) {
        let mut past = Past::default();
        let interval = INTERVAL.min(history / 2).max(Duration::from_millis(10));
        loop {
            tokio::time::sleep(interval).await;
            let revision = self.revision.load(Ordering::Relaxed);
            if revision == 0 {
                continue; // This engine has appended nothing.
            }
            let Some(old) = past.step(Instant::now(), revision, history) else { continue };
            let compacting = self
                .cluster
                .ask(|mut connection| async move { connection.kv.compact(old, None).await });
            let failed =
                compacting.await.err().map(|failure| crate::LogError::from(failure).to_string());
            // Somebody else may have compacted further.
            let failed = failed.filter(|why| !why.contains("required revision has been compacted"));
            *self.compaction_error.lock().expect("no thread panicked with it") = failed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_current_long_enough_ago_is_compacted() {
        let start = Instant::now();
        let mut past = Past::default();
        let mut step = |second: u64, revision| {
            past.step(start + Duration::from_secs(second), revision, Duration::from_secs(100))
        };
        assert_eq!(step(0, 10), None);
        assert_eq!(step(40, 20), None);
        assert_eq!(step(99, 30), None);
        assert_eq!(step(100, 40), Some(10));
        assert_eq!(step(101, 41), None);
        assert_eq!(step(199, 50), Some(30));
        assert_eq!(step(250, 50), Some(41), "nothing new, but something old");
        assert_eq!(step(260, 5), None, "the store was set back");
        assert_eq!(step(361, 900), Some(5));
    }
}
