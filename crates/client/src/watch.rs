//! Watching what happens: a stream of events that survives lost connections.

use crate::{
    client::{Client, Inner},
    core::{Core, retry_pause},
    error::Error,
    sse::{Parser, SentEvent},
    transport::{Ask, NoAnswer, escape},
};
use http_body_util::{BodyExt, Limited};
use hyper::{Response, body::Incoming};
use sereno_api::{ErrorCode, Family, Problem, WatchEvent, WatchStart};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// A connection on which nothing comes for this long, not even the server's keep-alive, is taken for dead.
const SILENCE_MAX: Duration = Duration::from_secs(45);
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
const PROBLEM_BYTES_MAX: usize = 64 * 1024;
const QUEUED_MAX: usize = 256;

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
    items: mpsc::Receiver<Result<WatchItem, Error>>,
    _inner: Arc<Inner>,
}

impl Watch {
    /// The next item; waits for it as long as it takes. Lost connections are made anew and resumed.
    ///
    /// # Errors
    /// When the service refuses the watch; it is over then.
    pub async fn next(&mut self) -> Result<WatchItem, Error> {
        let ended = || Err(Error::Unavailable("the watch has ended".into()));
        self.items.recv().await.unwrap_or_else(ended)
    }
}

impl Client {
    /// Watches events from now on, or from a cursor.
    pub fn watch(&self, filter: WatchFilter) -> Watch {
        let (sender, items) = mpsc::channel(QUEUED_MAX);
        let core = self.core().clone();
        self.core().background.spawn(async move {
            let mut follower = Follower { core, from: filter.from.clone(), filter, items: sender };
            let items = follower.items.clone();
            tokio::select! {
                ended = follower.follow() => if let Err(Stop::Refused(error)) = ended {
                    let _ = items.send(Err(error)).await;
                },
                () = items.closed() => {}
            }
        });
        Watch { items, _inner: self.inner.clone() }
    }
}

/// Why following ends.
enum Stop {
    Refused(Error),
    NobodyListens,
}

struct Follower {
    core: Arc<Core>,
    filter: WatchFilter,
    from: Option<String>,
    items: mpsc::Sender<Result<WatchItem, Error>>,
}

impl Follower {
    async fn follow(&mut self) -> Result<(), Stop> {
        let mut failures = 0;
        loop {
            let server = self.core.transport.current();
            match self.open(server).await? {
                Some(response) => {
                    failures = 0;
                    self.read(response).await?;
                }
                None => self.core.transport.move_on(server),
            }
            tokio::time::sleep(retry_pause(failures, self.core.transport.len())).await;
            failures = failures.saturating_add(1);
        }
    }

    /// `None`: not now.
    async fn open(&mut self, server: usize) -> Result<Option<Response<Incoming>>, Stop> {
        let ask = Ask::get(self.path());
        let opened = self.core.transport.open(server, &ask, None);
        let Ok(opened) = tokio::time::timeout(OPEN_TIMEOUT, opened).await else {
            return Ok(None);
        };
        let response = match opened {
            Ok((_, response)) if response.status().is_success() => return Ok(Some(response)),
            Ok((_, response)) => response,
            Err(NoAnswer::NotSent(_) | NoAnswer::Silent(_)) => return Ok(None),
        };
        let body = Limited::new(response.into_body(), PROBLEM_BYTES_MAX).collect().await;
        let problem = body.ok().and_then(|b| serde_json::from_slice::<Problem>(&b.to_bytes()).ok());
        match problem {
            Some(Problem { code: ErrorCode::Resync, cursor: Some(cursor), .. }) => {
                self.from = Some(cursor.clone());
                self.say(WatchItem::Resync { cursor }).await?;
                Ok(None)
            }
            Some(problem) if problem.status < 500 && problem.retry_with.is_none() => {
                Err(Stop::Refused(Error::Refused(Box::new(problem))))
            }
            Some(_) | None => Ok(None),
        }
    }

    fn path(&self) -> String {
        let mut path = String::from("/v1/watch");
        let mut separator = '?';
        let prefix = Some(self.filter.prefix.as_str()).filter(|prefix| !prefix.is_empty());
        for (name, value) in [
            ("namespace", self.filter.namespace.as_deref()),
            ("family", self.filter.family.map(Family::as_str)),
            ("prefix", prefix),
            ("from", self.from.as_deref()),
        ] {
            if let Some(value) = value {
                path.push_str(&format!("{separator}{name}={}", escape(value, "/:")));
                separator = '&';
            }
        }
        path
    }

    /// Until the connection ends.
    async fn read(&mut self, mut response: Response<Incoming>) -> Result<(), Stop> {
        let mut parser = Parser::default();
        loop {
            let frame = tokio::time::timeout(SILENCE_MAX, response.body_mut().frame()).await;
            let Ok(Some(Ok(frame))) = frame else {
                return Ok(());
            };
            let Some(bytes) = frame.data_ref() else { continue };
            let Ok(events) = parser.push(bytes) else {
                return Ok(());
            };
            for event in events {
                self.take(event).await?;
            }
        }
    }

    async fn take(&mut self, sent: SentEvent) -> Result<(), Stop> {
        if sent.event == "start" {
            let Ok(start) = serde_json::from_str::<WatchStart>(&sent.data) else { return Ok(()) };
            let resumed = self.from.replace(start.cursor.clone()).is_some();
            return match resumed {
                true => Ok(()),
                false => self.say(WatchItem::Started { cursor: start.cursor }).await,
            };
        }
        if sent.event == "resync" {
            return self.resync(&sent).await;
        }
        if sent.id.is_some() {
            self.from.clone_from(&sent.id);
        }
        let Ok(event) = serde_json::from_str::<WatchEvent>(&sent.data) else { return Ok(()) };
        self.say(WatchItem::Event { event: Box::new(event), cursor: sent.id }).await
    }

    /// A watcher that fell behind on an open connection is told so there.
    async fn resync(&mut self, sent: &SentEvent) -> Result<(), Stop> {
        let problem = serde_json::from_str::<Problem>(&sent.data).ok();
        match problem.and_then(|problem| problem.cursor) {
            Some(cursor) => {
                self.from = Some(cursor.clone());
                self.say(WatchItem::Resync { cursor }).await
            }
            None => Ok(()),
        }
    }

    async fn say(&self, item: WatchItem) -> Result<(), Stop> {
        self.items.send(Ok(item)).await.map_err(|_| Stop::NobodyListens)
    }
}
