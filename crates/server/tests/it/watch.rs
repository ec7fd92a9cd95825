//! Server-sent events: order, cursors, filters, resuming, ends.

use crate::harness::{Bench, request_id};
use serde_json::json;
use sereno_api::{ErrorCode, Granted, Reason, Released, WatchEvent, WatchKind, WatchStart};

/// One event as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Frame {
    pub(crate) event: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

impl Frame {
    fn change(&self) -> WatchEvent {
        assert_eq!(self.event, "", "{self:?}");
        serde_json::from_str(&self.data).unwrap()
    }
}

pub(crate) struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
    async fn open(bench: &Bench, query: &str) -> Self {
        Self::open_path(bench, &format!("/v1/watch{query}")).await
    }

    pub(crate) async fn open_path(bench: &Bench, path: &str) -> Self {
        let response = bench.http.get(format!("{}{path}", bench.url)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// Opens one and takes its first event.
    async fn start(bench: &Bench, query: &str) -> (Self, WatchStart) {
        let mut stream = Self::open(bench, query).await;
        let first = stream.next().await.unwrap();
        assert_eq!(first.event, "start");
        let start: WatchStart = serde_json::from_str(&first.data).unwrap();
        assert_eq!(first.id.as_deref(), Some(start.cursor.as_str()));
        (stream, start)
    }

    /// The next event; `None`: the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let text: String = self.text.drain(..end + 2).collect();
                let mut frame = Frame::default();
                for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(':')) {
                    match line.split_once(": ").unwrap() {
                        ("event", value) => frame.event = value.into(),
                        ("id", value) => frame.id = Some(value.into()),
                        ("data", value) => frame.data = value.into(),
                        other => panic!("{other:?}"),
                    }
                }
                return Some(frame);
            }
            self.text
                .push_str(std::str::from_utf8(&self.response.chunk().await.unwrap()?).unwrap());
        }
    }

    async fn take(&mut self, count: usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        while frames.len() < count {
            frames.push(self.next().await.expect("the stream goes on"));
        }
        frames
    }
}

/// A is granted, B waits, A releases and B gets it: end and hand-over share a revision.
async fn handover(bench: &Bench, resource: &str) {
    let holder = bench.grant(resource).await;
    let waiting = bench.acquire(resource, json!({"waitTimeout": "10s", "owner": "second"}));
    let release = async {
        // The wait is in the log before the release is sent.
        loop {
            let lock: sereno_api::Lock = bench.get(&format!("/v1/locks/{resource}")).await.ok();
            if lock.waiters == 1 {
                break;
            }
        }
        let lease = json!({"resource": resource, "leaseId": holder.lease_id});
        bench.post("/v1/locks/release", lease).await.ok::<Released>();
    };
    let (granted, ()) = tokio::join!(waiting, release);
    granted.ok::<Granted>();
}

#[tokio::test]
async fn changes_come_in_order_and_resume_by_whole_revisions() {
    let bench = Bench::memory().await;
    let (mut stream, start) = Stream::start(&bench, "").await;
    handover(&bench, "a").await;
    let frames = stream.take(4).await;
    let changes: Vec<_> = frames.iter().map(Frame::change).collect();
    let kinds: Vec<_> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(
        kinds,
        [WatchKind::Granted, WatchKind::Queued, WatchKind::Ended, WatchKind::Granted]
    );
    assert_eq!(changes[2].end, Some(Reason::Released));
    assert_eq!(changes[3].owner.as_deref(), Some("second"));
    assert!(changes[3].waited_ms.is_some() && changes[2].held_ms.is_some());
    assert_eq!(changes[2].revision, changes[3].revision);
    assert_eq!(frames[2].id, None, "only the last of a revision is a place to resume from");
    let ids: Vec<_> = [0, 1, 3].map(|index| frames[index].id.clone().unwrap()).into();
    for (seen, id) in [(0, &start.cursor), (1, &ids[0]), (2, &ids[1]), (4, &ids[2])] {
        let (mut again, _) = Stream::start(&bench, &format!("?from={id}")).await;
        assert_eq!(again.take(4 - seen).await, frames[seen..], "from {id}");
    }
    // A browser says in a header how far it came, and that wins over the address.
    let request = bench.http.get(format!("{}/v1/watch?from={}", bench.url, start.cursor));
    let response = request.header("Last-Event-ID", &ids[1]).send().await.unwrap();
    let mut again = Stream { response, text: String::new() };
    assert_eq!(again.take(3).await[1..], frames[2..]);
    bench.stop().await;
}

#[tokio::test]
async fn filters_leave_out_the_rest() {
    let bench = Bench::memory().await;
    bench
        .put("/v1/namespaces/other", json!({"expectedVersion": 0, "policy": {}}))
        .await
        .ok::<serde_json::Value>();
    let (mut by_prefix, _) = Stream::start(&bench, "?prefix=orders/&family=lock").await;
    let (mut by_namespace, _) = Stream::start(&bench, "?namespace=other").await;
    let (mut admin, _) = Stream::start(&bench, "?family=admin").await;
    bench.grant("stock/1").await;
    bench.acquire("stock/2", json!({"namespace": "other"})).await.ok::<Granted>();
    let last = bench.grant("orders/1").await.fencing_token;
    let floor = json!({"requestId": request_id(), "floor": last + 1_000_000_000});
    bench.post("/v1/admin/token-floor", floor).await.ok::<serde_json::Value>();
    let resource = |frame: Frame| frame.change().resource;
    assert_eq!(resource(by_prefix.next().await.unwrap()).as_deref(), Some("orders/1"));
    assert_eq!(resource(by_namespace.next().await.unwrap()).as_deref(), Some("stock/2"));
    assert_eq!(admin.next().await.unwrap().change().kind, WatchKind::TokenFloorSet);
    bench.stop().await;
}

#[tokio::test]
async fn a_cursor_that_cannot_be_followed_is_gone() {
    let bench = Bench::memory().await;
    let (_, start) = Stream::start(&bench, "").await;
    let log_id = start.cursor.split_once('-').unwrap().0;
    let ahead = format!("/v1/watch?from={log_id}-{}", start.revision + 1_000);
    let problem = bench.get(&ahead).await.problem(ErrorCode::Resync);
    let (mut stream, _) =
        Stream::start(&bench, &format!("?from={}", problem.cursor.unwrap())).await;
    bench.grant("a").await;
    assert_eq!(stream.next().await.unwrap().change().kind, WatchKind::Granted);
    bench.stop().await;
}

#[tokio::test]
async fn open_watches_end_when_the_server_stops() {
    let bench = Bench::memory().await;
    let (mut stream, _) = Stream::start(&bench, "").await;
    let (rest, _) = tokio::join!(stream.next(), bench.stop());
    assert_eq!(rest, None);
}
