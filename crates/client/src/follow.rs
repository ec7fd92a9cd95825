//! Follows a stream of server-sent events that survives lost connections. What the events mean is the story's.

use crate::{
    client::Inner,
    clock::Moment,
    core::{Core, retry_pause},
    error::Error,
    servers::{Round, Standing},
    sse::{Parser, SentEvent},
    transport::{Ask, NoAnswer},
};
use http_body_util::{BodyExt, Limited};
use hyper::{Response, body::Incoming};
use sereno_api::{ErrorCode, Problem};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// A connection on which nothing comes for this long, not even the server's keep-alive, is taken for dead.
const SILENCE_MAX: Duration = Duration::from_secs(45);
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
const PROBLEM_BYTES_MAX: usize = 64 * 1024;
const QUEUED_MAX: usize = 256;

/// What a stream is about. It knows how far it has come; each method may give an item for the listener.
pub(crate) trait Story: Send + Sync + 'static {
    type Item: Send + 'static;

    /// Where to go on from here.
    fn path(&self) -> String;

    /// An event, also one without data.
    fn take(&mut self, sent: SentEvent) -> Option<Self::Item>;

    /// The stream cannot be resumed; the service would go on at `cursor`.
    fn resync(&mut self, cursor: String) -> Option<Self::Item>;

    /// No address serves the stream at present. Said once until one does.
    fn silent(&mut self, why: &str) -> Option<Self::Item>;
}

/// The items of a story; it ends when this is dropped.
pub(crate) struct Following<T> {
    items: mpsc::Receiver<Result<T, Error>>,
    _inner: Arc<Inner>,
}

impl<T: Send + 'static> Following<T> {
    pub(crate) fn start(inner: &Arc<Inner>, story: impl Story<Item = T>) -> Self {
        let (sender, items) = mpsc::channel(QUEUED_MAX);
        let core = inner.core.clone();
        inner.core.background.spawn(async move {
            let mut follower = Follower { core, story, items: sender, is_silent: false };
            let items = follower.items.clone();
            tokio::select! {
                ended = follower.follow() => if let Err(Stop::Refused(error)) = ended {
                    let _ = items.send(Err(error)).await;
                },
                () = items.closed() => {}
            }
        });
        Self { items, _inner: inner.clone() }
    }

    /// The next item, as long as it takes.
    pub(crate) async fn next(&mut self) -> Result<T, Error> {
        let ended = || Err(Error::Unavailable("the stream has ended".into()));
        self.items.recv().await.unwrap_or_else(ended)
    }
}

/// Why following ends.
enum Stop {
    Refused(Error),
    NobodyListens,
}

/// What became of opening the stream.
enum Opened {
    Stream(Response<Incoming>),
    /// Not now, and why.
    NotNow(String),
    /// The service has said where to go on.
    GoOn,
}

struct Follower<S: Story> {
    core: Arc<Core>,
    story: S,
    items: mpsc::Sender<Result<S::Item, Error>>,
    is_silent: bool,
}

impl<S: Story> Follower<S> {
    async fn follow(&mut self) -> Result<(), Stop> {
        let servers = self.core.transport.len();
        let (mut failures, mut round) = (0, Round::default());
        loop {
            let server = self.core.transport.next(&mut round);
            match self.open(server).await? {
                Opened::Stream(response) => {
                    (failures, round) = (0, Round::default());
                    self.is_silent = false;
                    self.read(response).await?;
                }
                Opened::GoOn => {}
                Opened::NotNow(why) => {
                    if round.is_over(servers) && !std::mem::replace(&mut self.is_silent, true) {
                        let item = self.story.silent(&why);
                        self.say(item).await?;
                    }
                }
            }
            tokio::time::sleep(retry_pause(failures, servers)).await;
            failures = failures.saturating_add(1);
        }
    }

    async fn open(&mut self, server: usize) -> Result<Opened, Stop> {
        let ask = Ask::get(self.story.path());
        let transport = &self.core.transport;
        let (sent, patience) = (Moment::now(), transport.patience(server, OPEN_TIMEOUT));
        let opened = tokio::time::timeout(patience, transport.open(server, &ask, None)).await;
        let opened = opened.unwrap_or_else(|_| {
            Err(NoAnswer::Silent(format!("no answer in {} s", patience.as_secs())))
        });
        let standing = match &opened {
            Ok((_, response)) if response.status().is_server_error() => Standing::Answers,
            Ok(_) => Standing::Serves,
            Err(_) => Standing::Silent,
        };
        transport.note(server, standing, sent);
        let response = match opened {
            Ok((_, response)) if response.status().is_success() => {
                return Ok(Opened::Stream(response));
            }
            Ok((_, response)) => response,
            Err(NoAnswer::NotSent(why) | NoAnswer::Silent(why)) => return Ok(Opened::NotNow(why)),
        };
        let status = response.status();
        let body = Limited::new(response.into_body(), PROBLEM_BYTES_MAX).collect().await;
        let problem = body.ok().and_then(|b| serde_json::from_slice::<Problem>(&b.to_bytes()).ok());
        match problem {
            Some(Problem { code: ErrorCode::Resync, cursor: Some(cursor), .. }) => {
                let item = self.story.resync(cursor);
                self.say(item).await?;
                Ok(Opened::GoOn)
            }
            Some(problem) if problem.status < 500 && problem.retry_with.is_none() => {
                Err(Stop::Refused(Error::Refused(Box::new(problem))))
            }
            Some(problem) => Ok(Opened::NotNow(format!("{}: {}", problem.code, problem.detail))),
            None => Ok(Opened::NotNow(format!("status {status} without a problem document"))),
        }
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
                let item = match event.event.as_str() {
                    "resync" => self.resync(&event),
                    _ => self.story.take(event),
                };
                self.say(item).await?;
            }
        }
    }

    /// Who fell behind on an open connection is told so there.
    fn resync(&mut self, sent: &SentEvent) -> Option<S::Item> {
        let problem = serde_json::from_str::<Problem>(&sent.data).ok()?;
        self.story.resync(problem.cursor?)
    }

    async fn say(&self, item: Option<S::Item>) -> Result<(), Stop> {
        match item {
            Some(item) => self.items.send(Ok(item)).await.map_err(|_| Stop::NobodyListens),
            None => Ok(()),
        }
    }
}
