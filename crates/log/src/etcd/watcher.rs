//! A watch on the head, as a hint. It may be late, or stand still with the member that it comes from: whoever waits
//! looks for themselves after a while.

use super::{Shared, entries};
use etcd_client::{EventType, GetOptions, WatchResponse};
use sereno_core::ids::Position;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// A wait ends after this at the latest, whatever the watch says.
const WAIT_MAX: Duration = Duration::from_millis(500);
/// Between two attempts to watch.
const RETRY: Duration = Duration::from_millis(250);

impl Shared {
    /// Tells those who wait that an own append has landed.
    pub(super) fn publish(&self, position: Position) {
        self.hint.send_if_modified(|seen| {
            let is_news = position > *seen;
            *seen = if is_news { position } else { *seen };
            is_news
        });
    }

    pub(super) async fn wait_past(&self, position: Position) {
        let mut hint = self.hint.subscribe();
        // Either way the caller looks for itself.
        let _ = timeout(WAIT_MAX, hint.wait_for(|head| *head > position)).await;
    }

    /// Watches for as long as the log is open.
    pub(super) async fn watch_head(self: Arc<Self>) {
        loop {
            self.watch_at_current().await;
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Returns when this watch is over, or others than its member are asked now.
    async fn watch_at_current(&self) {
        let mut current = self.cluster.current();
        let member = *current.borrow_and_update();
        let key = self.keys.head();
        let watching = self.cluster.attempt(member, |mut connection| async move {
            connection.client.watch(key, None).await
        });
        let Ok(mut stream) = watching.await else { return };
        loop {
            let answer = tokio::select! {
                answer = stream.message() => answer,
                _ = current.changed() => return,
            };
            match answer {
                // It watches from now on: what came before is asked for.
                Ok(Some(answer)) if answer.created() && !answer.canceled() => {
                    self.look_at_head().await
                }
                Ok(Some(answer)) if !answer.canceled() => self.head_moved(&answer),
                _ => return,
            }
        }
    }

    async fn look_at_head(&self) {
        let Ok(answer) = self.get(self.keys.head(), GetOptions::new()).await else { return };
        let position = match answer.kvs().first() {
            Some(kv) => entries::decode_head(kv.value()).map(|head| head.position),
            None => Ok(Position(0)),
        };
        if let Ok(position) = position {
            self.follow(position);
        }
    }

    fn head_moved(&self, answer: &WatchResponse) {
        let Some(event) = answer.events().last() else { return };
        match (event.event_type(), event.kv()) {
            (EventType::Put, Some(kv)) => {
                if let Ok(head) = entries::decode_head(kv.value()) {
                    self.follow(head.position);
                }
            }
            _ => self.follow(Position(0)),
        }
    }

    /// Also back, when the store was set back: a hint that stays ahead would make every wait a short one.
    fn follow(&self, position: Position) {
        self.hint.send_if_modified(|seen| std::mem::replace(seen, position) != position);
    }
}
