//! What happens many times a second while something is away is written down now and then.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Between two log lines that say the same.
const INTERVAL: Duration = Duration::from_secs(10);

/// Remembers when something was last written down. A clone remembers the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Seldom(Arc<Mutex<Option<Instant>>>);

impl Seldom {
    /// Whether it is to be written down now; then not again for a while.
    pub(super) fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = last.is_none_or(|last| now.duration_since(last) >= INTERVAL);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_is_told_and_then_one_in_a_while() {
        let seldom = Seldom::default();
        assert!(seldom.is_due());
        assert!(!seldom.is_due() && !seldom.clone().is_due());
        tokio::time::advance(INTERVAL).await;
        assert!(seldom.is_due() && !seldom.is_due());
    }
}
