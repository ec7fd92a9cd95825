//! `GET /v1/watch`: server-sent events.
//!
//! Only the last event of a revision carries an `id`, the cursor: who resumes from one has seen all of that
//! revision or gets all of it again. What a filter leaves out moves the cursor too; the heartbeats tell it.

use super::{Door, Phase, caller::Caller, openapi::WatchProblems, problem::Refused, query::Params};
use crate::{metrics, time, wire};
use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use hyper::{
    HeaderMap, Uri,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use sereno_api::{ErrorCode, Problem, RetryWith, WatchEvent, WatchKind, WatchStart};
use sereno_core::{
    command::Family,
    event::{Event, EventKind},
    ids::{LogId, Revision},
    names::NamespaceName,
};
use sereno_node::events::{Cursor, EventBatch, Resync};
use sereno_schedule::instant;
use std::{convert::Infallible, io::Write as _, sync::Arc, time::Duration};
use tokio::sync::watch as signal;

/// A silent watch is told that it is alive this often.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Follows what happens, as server-sent events.
///
/// Without `from` it follows from now. The first event has the type `start` and the cursor; each further one is a
/// change, with the cursor as `id` of the last one of a revision. An event of the type `resync` is a problem
/// document with a new cursor, and the last one: this reader was too slow.
#[utoipa::path(
    get, path = "/v1/watch", operation_id = "watch", tag = "locks",
    params(super::openapi::WatchParams),
    responses(
        (
            status = 200, content_type = "text/event-stream",
            description = "Each `data` is a WatchEvent; of the first, of type `start`, a WatchStart.",
            body = super::openapi::ServerSentEvent,
        ),
        WatchProblems,
    )
)]
pub(super) async fn watch(
    State(door): State<Arc<Door>>,
    _: Caller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refused> {
    let params = Params::parse(uri.query(), &["family", "prefix", "namespace", "from"])?;
    let filter = Filter::parse(&door, &params)?;
    let cursor = match from(&params, &headers)? {
        Some(text) => parse_cursor(text)?,
        None => door.node.events().now(),
    };
    // Whether the cursor can be followed is known at once; whether something follows is not waited for.
    if let Some(Err(resync)) = door.node.events().after(cursor).now_or_never() {
        return Err(Refused(Box::new(resync_problem(resync))));
    }
    let watcher = Watcher {
        phase: door.phase.clone(),
        _counted: door.metrics.door.watcher(),
        door,
        filter,
        cursor,
        ended: false,
    };
    let start = Bytes::from(start_frame(cursor));
    let stream =
        futures_util::stream::unfold((Some(start), watcher), |(start, mut watcher)| async {
            match start {
                Some(start) => Some((Ok::<_, Infallible>(start), (None, watcher))),
                None => watcher.next().await.map(|frame| (Ok(frame), (None, watcher))),
            }
        });
    Ok(event_stream(Body::from_stream(stream)))
}

/// A response of server-sent events.
pub(super) fn event_stream(body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The cursor to follow from. A browser that reconnects says in a header how far it came.
pub(super) fn from<'a>(
    params: &'a Params,
    headers: &'a HeaderMap,
) -> Result<Option<&'a str>, Refused> {
    match headers.get("last-event-id") {
        Some(value) => {
            let text =
                value.to_str().map_err(|_| Refused::invalid("Last-Event-ID", "is not text"))?;
            Ok(Some(text).filter(|text| !text.is_empty()).or(params.get("from")))
        }
        None => Ok(params.get("from")),
    }
}

/// A cursor is the log's id and a revision.
pub(super) fn format_cursor(cursor: Cursor) -> String {
    format!("{}-{}", cursor.log_id, cursor.revision)
}

pub(super) fn parse_cursor(text: &str) -> Result<Cursor, Refused> {
    let parsed = text.split_once('-').and_then(|(log_id, revision)| {
        let digits = !revision.is_empty() && revision.bytes().all(|byte| byte.is_ascii_digit());
        let revision = Revision(revision.parse().ok().filter(|_| digits)?);
        Some(Cursor { log_id: LogId::from_hex(log_id)?, revision })
    });
    parsed.ok_or_else(|| Refused::invalid("from", "must be a cursor that this service has given"))
}

pub(super) fn resync_problem(resync: Resync) -> Problem {
    let detail = "events between the cursor and the first one remembered are gone, or the cursor is of another \
                  log: read the present state, then follow from the new cursor";
    let refused = Refused::new(ErrorCode::Resync, detail).with(|problem| {
        problem.cursor = Some(format_cursor(resync.now));
        problem.retry_with = Some(RetryWith::SameRequestId);
    });
    *refused.0
}

/// What a watcher wants to see.
struct Filter {
    family: Option<Family>,
    namespace: Option<NamespaceName>,
    prefix: String,
}

impl Filter {
    fn parse(door: &Door, params: &Params) -> Result<Self, Refused> {
        let family = match params.get("family") {
            None => None,
            Some(word) => Some(wire::to_family(word).ok_or_else(|| {
                let rule =
                    format!("must be lock, election, job, hold, quota or admin, is {word:?}");
                Refused::invalid("family", rule)
            })?),
        };
        let namespace = params.get("namespace").map(|text| door.namespace(text)).transpose()?;
        Ok(Self { family, namespace, prefix: params.prefix()? })
    }

    fn takes(&self, event: &Event) -> bool {
        let name = event.resource.as_ref().map_or("", |resource| resource.as_str());
        self.family.is_none_or(|family| family == event.family)
            && (self.namespace.is_none() || self.namespace == event.namespace)
            && name.starts_with(&self.prefix)
    }
}

struct Watcher {
    door: Arc<Door>,
    filter: Filter,
    cursor: Cursor,
    phase: signal::Receiver<Phase>,
    ended: bool,
    _counted: metrics::Counted,
}

impl Watcher {
    /// The next piece of the stream; `None`: it ends.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            let hub = Arc::clone(self.door.node.events());
            tokio::select! {
                batches = hub.after(self.cursor) => match batches {
                    Ok(batches) => {
                        let frames = self.frames(&batches);
                        if !frames.is_empty() {
                            return Some(frames.into());
                        }
                    }
                    Err(resync) => {
                        self.ended = true;
                        return Some(resync_frame(resync).into());
                    }
                },
                () = tokio::time::sleep(HEARTBEAT) => {
                    let cursor = format_cursor(self.cursor);
                    return Some(format!(": still here\nid: {cursor}\n\n").into());
                }
                () = left(&mut self.phase) => self.ended = true,
            }
        }
        None
    }

    fn frames(&mut self, batches: &[Arc<EventBatch>]) -> Vec<u8> {
        let mut out = Vec::new();
        for batch in batches {
            for of_revision in batch.events.chunk_by(|a, b| a.revision == b.revision) {
                if of_revision[0].revision <= self.cursor.revision {
                    continue;
                }
                self.cursor.revision = of_revision[0].revision;
                let wanted: Vec<&Event> =
                    of_revision.iter().filter(|event| self.filter.takes(event)).collect();
                if let Some((last, others)) = wanted.split_last() {
                    others.iter().for_each(|event| data(&mut out, &to_event(batch, event)));
                    writeln!(out, "id: {}", format_cursor(self.cursor)).expect("memory takes it");
                    data(&mut out, &to_event(batch, last));
                }
            }
            self.cursor.revision = self.cursor.revision.max(batch.revision);
        }
        out
    }
}

/// Returns when the server takes nothing new any more.
pub(super) async fn left(phase: &mut signal::Receiver<Phase>) {
    let _gone = phase.wait_for(|phase| *phase != Phase::Serving).await.is_err();
}

fn start_frame(cursor: Cursor) -> Vec<u8> {
    let start = WatchStart { cursor: format_cursor(cursor), revision: cursor.revision.0 };
    let mut out = format!("event: start\nid: {}\n", start.cursor).into_bytes();
    data(&mut out, &start);
    out
}

pub(super) fn resync_frame(resync: Resync) -> Vec<u8> {
    let mut out = b"event: resync\n".to_vec();
    data(&mut out, &resync_problem(resync));
    out
}

/// JSON has no line ends in it, so one `data` line is enough.
pub(super) fn data(out: &mut Vec<u8>, body: &impl serde::Serialize) {
    out.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *out, body).expect("the interface's types serialise");
    out.extend_from_slice(b"\n\n");
}

fn to_event(batch: &EventBatch, event: &Event) -> WatchEvent {
    let base = WatchEvent {
        kind: kind(&event.kind),
        revision: event.revision.0,
        cluster_time_ms: batch.time.0,
        time: time::rfc3339(batch.wall_us / 1_000),
        family: wire::family(event.family),
        namespace: event.namespace.as_ref().map(ToString::to_string),
        resource: event.resource.as_ref().map(ToString::to_string),
        owner: event.owner.as_ref().map(ToString::to_string),
        caller: Some(event.caller.to_string()).filter(|caller| !caller.is_empty()),
        lease_hash: event.lease_hash.map(wire::lease_hash),
        fencing_token: None,
        waited_ms: None,
        held_ms: None,
        end: None,
        reason: None,
        code: None,
        version: None,
        floor: None,
        level: None,
        slot: None,
        attempt: None,
        state: None,
        highest: None,
    };
    match &event.kind {
        EventKind::Queued | EventKind::TrimHeld => base,
        EventKind::WaitEnded { why, waited_ms } => WatchEvent {
            end: Some(why.map_or(sereno_api::Reason::Abandoned, wire::wait_end)),
            waited_ms: Some(*waited_ms),
            ..base
        },
        EventKind::Granted { token, waited_ms } => {
            WatchEvent { fencing_token: Some(token.0), waited_ms: *waited_ms, ..base }
        }
        EventKind::Ended { token, end, held_ms, reason } => WatchEvent {
            fencing_token: Some(token.0),
            end: Some(wire::end(*end)),
            held_ms: Some(*held_ms),
            reason: reason.as_ref().map(ToString::to_string),
            ..base
        },
        EventKind::Refused { code } => WatchEvent { code: Some(wire::code(*code)), ..base },
        EventKind::NamespacePut { version } => WatchEvent { version: Some(*version), ..base },
        EventKind::TokenFloorSet { floor } => WatchEvent { floor: Some(floor.0), ..base },
        EventKind::LevelRaised { level } => WatchEvent { level: Some(*level), ..base },
        EventKind::Proclaimed { term, version } => {
            WatchEvent { fencing_token: Some(term.0), version: Some(*version), ..base }
        }
        EventKind::Begun { token } => WatchEvent { fencing_token: Some(token.0), ..base },
        EventKind::FenceRefused { token, highest } => WatchEvent {
            fencing_token: Some(token.0),
            highest: highest.map(|token| token.0),
            ..base
        },
        EventKind::GuardSeen | EventKind::RegionSet { .. } | EventKind::HomePut { .. } => base,
        EventKind::Quota(event) => WatchEvent {
            fencing_token: event.reservation.map(|(_, fence)| fence.0),
            reason: event.reason.as_ref().map(ToString::to_string),
            ..base
        },
        EventKind::JobPut { version } => WatchEvent { version: Some(*version), ..base },
        EventKind::JobPaused { reason, .. } => {
            WatchEvent { reason: Some(reason.to_string()), ..base }
        }
        EventKind::RunAsked { slot, reason } => WatchEvent {
            slot: Some(instant::format(slot.0)),
            reason: Some(reason.to_string()),
            ..base
        },
        EventKind::RunClaimed { slot, attempt, token } => WatchEvent {
            slot: Some(instant::format(slot.0)),
            attempt: Some(*attempt),
            fencing_token: Some(token.0),
            ..base
        },
        EventKind::RunChanged { slot, attempt, state, reason } => WatchEvent {
            slot: Some(instant::format(slot.0)),
            attempt: Some(*attempt),
            state: Some(wire::run_state(*state)),
            reason: reason.as_ref().map(ToString::to_string),
            ..base
        },
    }
}

fn kind(kind: &EventKind) -> WatchKind {
    match kind {
        EventKind::Queued => WatchKind::Queued,
        EventKind::WaitEnded { .. } => WatchKind::WaitEnded,
        EventKind::Granted { .. } => WatchKind::Granted,
        EventKind::Ended { .. } => WatchKind::Ended,
        EventKind::Refused { .. } => WatchKind::Refused,
        EventKind::NamespacePut { .. } => WatchKind::NamespacePut,
        EventKind::TokenFloorSet { .. } => WatchKind::TokenFloorSet,
        EventKind::LevelRaised { .. } => WatchKind::LevelRaised,
        EventKind::TrimHeld => WatchKind::TrimHeld,
        EventKind::Proclaimed { .. } => WatchKind::Proclaimed,
        EventKind::Begun { .. } => WatchKind::Begun,
        EventKind::JobPut { .. } => WatchKind::JobPut,
        EventKind::JobPaused { paused: true, .. } => WatchKind::JobPaused,
        EventKind::JobPaused { paused: false, .. } => WatchKind::JobResumed,
        EventKind::RunAsked { .. } => WatchKind::RunAsked,
        EventKind::RunClaimed { .. } => WatchKind::RunClaimed,
        EventKind::RunChanged { .. } => WatchKind::RunChanged,
        EventKind::GuardSeen => WatchKind::GuardSeen,
        EventKind::FenceRefused { .. } => WatchKind::FenceRefused,
        EventKind::Quota(_) => WatchKind::QuotaChanged,
        EventKind::RegionSet { .. } => WatchKind::RegionSet,
        EventKind::HomePut { .. } => WatchKind::HomePut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_nothing_else_is_one() {
        let cursor = Cursor { log_id: LogId([0xab; 16]), revision: Revision(17) };
        assert_eq!(parse_cursor(&format_cursor(cursor)).ok(), Some(cursor));
        for wrong in
            ["", "17", "-17", &format!("{}-", cursor.log_id), &format!("{}-+1", cursor.log_id)]
        {
            assert!(parse_cursor(wrong).is_err(), "{wrong}");
        }
    }
}
