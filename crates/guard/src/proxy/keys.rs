//! Who is at work under which key, within this process: the turns of the writes.
//!
//! What has to survive a crash is in the [memory](super::memory); here is what a request waits for.

use crate::{Fence, Refused};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// The keys that somebody writes under or waits for.
#[derive(Default)]
pub(super) struct Keys {
    all: Mutex<HashMap<String, Key>>,
}

struct Key {
    /// The highest token that has come since this entry is there. The memory may know a higher one.
    highest: u64,
    /// The writes in flight by their number, each with its token.
    at_work: BTreeMap<u64, u64>,
    /// Requests that wait for their turn.
    waiting: usize,
    /// Told of every change.
    changed: watch::Sender<()>,
}

impl Key {
    fn has_older(&self, token: u64) -> bool {
        self.at_work.values().any(|&at_work| at_work < token)
    }

    fn is_idle(&self) -> bool {
        self.at_work.is_empty() && self.waiting == 0
    }
}

/// A write in flight. It counts until this is dropped.
pub(super) struct Turn {
    keys: Arc<Keys>,
    key: String,
    id: u64,
}

/// A request that waits; gives its place up when dropped.
struct Place<'a> {
    keys: &'a Arc<Keys>,
    fence: &'a Fence,
    changed: watch::Receiver<()>,
}

impl Keys {
    /// Waits until no write with a lower token is in flight, and begins one. From the moment of the call on lower
    /// tokens are refused, so that nobody keeps this one out.
    pub(super) async fn turn(self: &Arc<Self>, fence: &Fence, id: u64) -> Result<Turn, Refused> {
        let mut place = self.queue_up(fence)?;
        loop {
            if let Some(turn) = place.try_begin(id)? {
                return Ok(turn);
            }
            // The entry lives as long as somebody waits, and its sender with it.
            let _ = place.changed.changed().await;
        }
    }

    /// A write of an earlier process that may still be going on.
    pub(super) fn go_on(self: &Arc<Self>, fence: &Fence, id: u64) -> Turn {
        self.entry(&mut self.lock(), fence).at_work.insert(id, fence.token());
        Turn { keys: self.clone(), key: fence.key().into(), id }
    }

    fn queue_up<'a>(self: &'a Arc<Self>, fence: &'a Fence) -> Result<Place<'a>, Refused> {
        let mut all = self.lock();
        let key = self.entry(&mut all, fence);
        if key.highest > fence.token() {
            return Err(fence.refused(key.highest));
        }
        if key.highest < fence.token() {
            key.highest = fence.token();
            // Older ones that wait will see that they wait in vain.
            key.changed.send_replace(());
        }
        key.waiting += 1;
        Ok(Place { keys: self, fence, changed: key.changed.subscribe() })
    }

    fn entry<'a>(&self, all: &'a mut HashMap<String, Key>, fence: &Fence) -> &'a mut Key {
        all.entry(fence.key().into()).or_insert_with(|| Key {
            highest: fence.token(),
            at_work: BTreeMap::new(),
            waiting: 0,
            changed: watch::Sender::new(()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Key>> {
        // Nothing in here can be left half-done.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes an entry, tells who waits, and forgets it when nobody needs it.
    fn change(&self, name: &str, change: impl FnOnce(&mut Key)) {
        let mut all = self.lock();
        let Some(key) = all.get_mut(name) else { return };
        change(key);
        key.changed.send_replace(());
        if key.is_idle() {
            all.remove(name);
        }
    }
}

impl Place<'_> {
    fn try_begin(&self, id: u64) -> Result<Option<Turn>, Refused> {
        let mut all = self.keys.lock();
        let token = self.fence.token();
        let key = self.keys.entry(&mut all, self.fence);
        if key.highest > token {
            return Err(self.fence.refused(key.highest));
        }
        if key.has_older(token) {
            return Ok(None);
        }
        key.at_work.insert(id, token);
        Ok(Some(Turn { keys: self.keys.clone(), key: self.fence.key().into(), id }))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.keys.change(self.fence.key(), |key| key.waiting -= 1);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let id = self.id;
        self.keys.change(&self.key, |key| {
            key.at_work.remove(&id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::Future, pin::pin, task::Poll};

    fn fence(token: u64) -> Fence {
        Fence::new("k", token).unwrap()
    }

    /// Polls it once.
    async fn now<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        std::future::poll_fn(|context| {
            Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
                Poll::Ready(value) => Some(value),
                Poll::Pending => None,
            })
        })
        .await
    }

    #[tokio::test]
    async fn equal_ones_go_together_and_a_newer_one_waits_for_all() {
        let keys = Arc::new(Keys::default());
        let (old, new) = (fence(5), fence(7));
        let first = keys.turn(&old, 1).await.unwrap();
        let second = keys.turn(&old, 2).await.unwrap();
        let mut newer = pin!(keys.turn(&new, 3));
        assert!(now(&mut newer).await.is_none());
        assert_eq!(keys.turn(&old, 4).await.err().unwrap().highest, 7, "nobody goes before it");
        drop(first);
        assert!(now(&mut newer).await.is_none());
        drop(second);
        let newer = newer.await.unwrap();
        assert!(keys.turn(&Fence::new("other", 1).unwrap(), 5).await.is_ok(), "keys are apart");
        drop(newer);
        assert!(keys.lock().is_empty(), "nothing is kept of idle keys");
    }

    #[tokio::test]
    async fn one_that_is_overtaken_while_it_waits_is_refused() {
        let keys = Arc::new(Keys::default());
        let (five, six, seven) = (fence(5), fence(6), fence(7));
        let first = keys.turn(&five, 1).await.unwrap();
        let mut second = pin!(keys.turn(&six, 2));
        assert!(now(&mut second).await.is_none());
        let mut third = pin!(keys.turn(&seven, 3));
        assert!(now(&mut third).await.is_none());
        assert_eq!(second.await.err().unwrap().highest, 7);
        drop(first);
        assert!(third.await.is_ok());
    }

    #[tokio::test]
    async fn one_that_gives_up_leaves_nothing_behind() {
        let keys = Arc::new(Keys::default());
        let (old, new) = (fence(5), fence(7));
        let first = keys.go_on(&old, 1);
        {
            let mut newer = pin!(keys.turn(&new, 2));
            assert!(now(&mut newer).await.is_none());
        }
        drop(first);
        assert!(keys.lock().is_empty());
    }
}
