//! Connections that want to be links and have not proven yet who they are. They have places of their own, so that they take
//! none from the links that are; and when those are full the oldest has to go, not the newest: a node proves itself in a
//! moment, and whoever is still there after others have come has had that moment.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::oneshot;

/// At once.
const STRANGERS_MAX: usize = 64;

/// All of them, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Strangers(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    entered: u64,
    places: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A place among them, given back when dropped.
pub(super) struct Place {
    of: Strangers,
    number: u64,
    gone: oneshot::Receiver<()>,
}

impl Strangers {
    /// A place for one more.
    pub(super) fn enter(&self) -> Place {
        let (stays, gone) = oneshot::channel();
        let mut waiting = self.waiting();
        if waiting.places.len() >= STRANGERS_MAX {
            // Its `Place` learns that by the sender's end.
            drop(waiting.places.pop_front());
        }
        waiting.entered += 1;
        let number = waiting.entered;
        waiting.places.push_back((number, stays));
        Place { of: self.clone(), number, gone }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Returns when it has to make room.
    pub(super) async fn lost(&mut self) {
        // Nothing is ever sent.
        let _ = (&mut self.gone).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.waiting().places.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn has_to_go(place: &mut Place) -> bool {
        place.lost().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_makes_room_for_whoever_comes() {
        let strangers = Strangers::default();
        let mut old: Vec<_> = (0..STRANGERS_MAX).map(|_| strangers.enter()).collect();
        assert!(!old.iter_mut().any(has_to_go));
        let mut new = strangers.enter();
        assert!(has_to_go(&mut old[0]) && !has_to_go(&mut old[1]) && !has_to_go(&mut new));
        // One that has proven itself, or given up, leaves its place to others.
        drop(old.remove(1));
        let mut newer = strangers.enter();
        assert!(!old.iter_mut().skip(1).any(has_to_go) && !has_to_go(&mut newer));
        drop((old, new, newer));
        assert!(strangers.waiting().places.is_empty());
    }
}
