//! Watching what happens: a stream of events that survives lost connections.

use crate::{
    client::Client,
    error::Error,
    follow::{Following, Story},
    plain::Query,
    sse::SentEvent,
};
use sereno_api::{Family, WatchEvent, WatchStart};

/// Which events to watch.
#[derive(Clone, Debug, Default)]
pub struct WatchFilter {
    /// Only of this namespace.
    pub namespace: Option<String>,
    /// Only of this family.
    pub family: Option<Family>,
    /// Only of resources whose names begin so.
    pub prefix: String,
    /// Only what came after this cursor. `None`: from now on.
    pub from: Option<String>,
}

/// One thing that a watch says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchItem {
    /// Everything after this cursor follows.
    Started {
        /// For [`WatchFilter::from`], to go on later.
        cursor: String,
    },
    /// Something happened.
    Event {
        /// The event.
        event: Box<WatchEvent>,
        /// For [`WatchFilter::from`], to go on after it. `None`: more of the same revision follows.
        cursor: Option<String>,
    },
    /// Events between the last cursor and this one are gone, or the service was restored from a backup: read the
    /// present state. The watch goes on from here.
    Resync {
        /// Where it goes on.
        cursor: String,
    },
}

/// A running watch; ends when dropped.
pub struct Watch {
    following: Following<WatchItem>,
}

impl Watch {
    /// The next item; waits for it as long as it takes. Lost connections are made anew and resumed.
    ///
    /// # Errors
    /// When the service refuses the watch; it is over then.
    pub async fn next(&mut self) -> Result<WatchItem, Error> {
        self.following.next().await
    }
}

impl Client {
    /// Watches events from now on, or from a cursor.
    pub fn watch(&self, filter: WatchFilter) -> Watch {
        let watcher = Watcher { from: filter.from.clone(), filter };
        Watch { following: Following::start(&self.inner, watcher) }
    }
}

struct Watcher {
    filter: WatchFilter,
    from: Option<String>,
}

impl Story for Watcher {
    type Item = WatchItem;

    fn path(&self) -> String {
        let prefix = Some(&self.filter.prefix).filter(|prefix| !prefix.is_empty());
        let query = Query::default()
            .with("namespace", self.filter.namespace.as_deref())
            .with("family", self.filter.family)
            .with("prefix", prefix)
            .with("from", self.from.as_deref());
        format!("/v1/watch{}", query.0)
    }

    fn take(&mut self, sent: SentEvent) -> Option<WatchItem> {
        if sent.event == "start" {
            let start = serde_json::from_str::<WatchStart>(&sent.data).ok()?;
            let is_resumed = self.from.replace(start.cursor.clone()).is_some();
            return (!is_resumed).then_some(WatchItem::Started { cursor: start.cursor });
        }
        if sent.id.is_some() {
            self.from.clone_from(&sent.id);
        }
        let event = serde_json::from_str::<WatchEvent>(&sent.data).ok()?;
        Some(WatchItem::Event { event: Box::new(event), cursor: sent.id })
    }

    fn resync(&mut self, cursor: String) -> Option<WatchItem> {
        self.from = Some(cursor.clone());
        Some(WatchItem::Resync { cursor })
    }

    /// Events that come later miss nothing, so there is nothing to say.
    fn silent(&mut self, _: &str) -> Option<WatchItem> {
        None
    }
}
