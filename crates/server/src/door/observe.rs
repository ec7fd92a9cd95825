//! An election as server-sent events: its record, and again at each change of it.
//!
//! Whoever resumes is told what has changed since its cursor. Changes that come faster than they are read are folded
//! into the record as it is then, marked `missed`; that nobody led is told in any case.

use super::{
    Door, Phase, elections,
    problem::Refused,
    query::Params,
    refusal,
    timeout::Timeout,
    watch::{
        HEARTBEAT, data, event_stream, format_cursor, from, left, parse_cursor, resync_frame,
        resync_problem,
    },
};
use crate::metrics;
use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::FutureExt as _;
use hyper::HeaderMap;
use sereno_api::{Election, ElectionState};
use sereno_core::{
    self as core,
    command::Family,
    event::{Event, EventKind},
    ids::{ClusterTime, Revision},
    names::{NamespaceName, ResourceName},
};
use sereno_node::{
    events::{Cursor, EventBatch, Resync},
    handle::Consistency,
};
use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};
use tokio::{sync::watch as signal, time::Instant};

/// A read of this node's own state is answered at once; one that is not is no use.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How often is looked whether the events have come to where a read was.
const BEHIND: Duration = Duration::from_millis(1);

pub(super) async fn observe(
    door: Arc<Door>,
    timeout: Timeout,
    params: &Params,
    headers: &HeaderMap,
    namespace: NamespaceName,
    election: ResourceName,
) -> Result<Response, Refused> {
    let resumed = from(params, headers)?.map(parse_cursor).transpose()?;
    if let Some(cursor) = resumed
        && let Some(Err(resync)) = door.node.events().after(cursor).now_or_never()
    {
        return Err(Refused(Box::new(resync_problem(resync))));
    }
    // The record that comes first is never older than this call.
    let (asked, name) = (namespace.clone(), election.clone());
    let read = move |state: &core::State| state.leased(Family::Election, &asked, &name).is_some();
    let (is_there, _) = door.read(params.consistency()?, timeout, read).await?;
    if !is_there {
        return Err(refusal::no_namespace(namespace.as_str()));
    }
    let cursor = resumed.unwrap_or_else(|| door.node.events().now());
    let observer = Observer {
        phase: door.phase.clone(),
        _counted: door.metrics.door.watcher(),
        door,
        namespace,
        election,
        cursor,
        changes: VecDeque::new(),
        present: None,
        missed: false,
        is_due: true,
        resumed: resumed.is_some(),
        ended: false,
    };
    let stream = futures_util::stream::unfold(observer, |mut observer| async {
        let frame = observer.next().await?;
        Some((Ok::<_, Infallible>(frame), observer))
    });
    Ok(event_stream(Body::from_stream(stream)))
}

struct Observer {
    door: Arc<Door>,
    namespace: NamespaceName,
    election: ResourceName,
    /// Every change up to here is told, or stands in `changes`.
    cursor: Cursor,
    /// Untold, in order. The last one led to the present record.
    changes: VecDeque<Change>,
    /// The record as it is after all of them.
    present: Option<Election>,
    /// A change was left out since the record that was told last.
    missed: bool,
    phase: signal::Receiver<Phase>,
    /// The record is told first, whether or not anything has changed.
    is_due: bool,
    /// Whoever observes knows the record at the cursor: each change after it counts.
    resumed: bool,
    ended: bool,
    _counted: metrics::Counted,
}

/// What one revision has done to the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    revision: Revision,
    time: ClusterTime,
    /// It left nobody to lead.
    is_loss: bool,
}

impl Change {
    fn of(event: &Event, time: ClusterTime) -> Option<Self> {
        let is_loss = match event.kind {
            EventKind::Ended { .. } => true,
            EventKind::Granted { .. } | EventKind::Proclaimed { .. } => false,
            _ => return None,
        };
        Some(Self { revision: event.revision, time, is_loss })
    }
}

impl Observer {
    /// The next piece of the stream; `None`: it ends.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            if let Some(frame) = self.tell() {
                return Some(frame);
            }
            if self.is_due || !self.changes.is_empty() {
                if let Err(resync) = self.read().await? {
                    return Some(self.end(resync));
                }
                continue;
            }
            let hub = Arc::clone(self.door.node.events());
            tokio::select! {
                batches = hub.after(self.cursor) => match batches {
                    Ok(batches) => _ = self.take(&batches, Revision(u64::MAX)),
                    Err(resync) => return Some(self.end(resync)),
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

    fn end(&mut self, resync: Resync) -> Bytes {
        self.ended = true;
        resync_frame(resync).into()
    }

    /// Notes what the batches up to this revision have changed. Says whether those were all.
    fn take(&mut self, batches: &[Arc<EventBatch>], last: Revision) -> bool {
        for batch in batches {
            if batch.revision > last {
                return false;
            }
            for event in batch.events.iter().filter(|event| event.revision > self.cursor.revision) {
                let Some(change) = Change::of(event, batch.time).filter(|_| self.concerns(event))
                else {
                    continue;
                };
                // An end and the hand-over that follows from it are one change: somebody leads throughout.
                self.changes.pop_back_if(|before| before.revision == change.revision);
                self.changes.push_back(change);
            }
            self.cursor.revision = self.cursor.revision.max(batch.revision);
        }
        true
    }

    fn concerns(&self, event: &Event) -> bool {
        event.family == Family::Election
            && event.namespace.as_ref() == Some(&self.namespace)
            && event.resource.as_ref() == Some(&self.election)
    }

    /// Reads the record as this node's state has it, and notes every change up to it. `None`: the stream ends, and the
    /// client comes back to a node that answers.
    async fn read(&mut self) -> Option<Result<(), Resync>> {
        let (namespace, name) = (self.namespace.clone(), self.election.clone());
        let read = move |state: &core::State| state.leased(Family::Election, &namespace, &name);
        let deadline = Instant::now() + READ_TIMEOUT;
        let (view, at) = self.door.node.read(Consistency::Stale, deadline, read).await.ok()?;
        let view = view.expect("a namespace that was there stays");
        let hub = Arc::clone(self.door.node.events());
        // A read is answered a moment before the same entry's events are told.
        while hub.now().revision < at.revision {
            if deadline <= Instant::now() {
                return None;
            }
            tokio::time::sleep(BEHIND).await;
        }
        while let Some(batches) = hub.after(self.cursor).now_or_never() {
            match batches {
                Ok(batches) if self.take(&batches, at.revision) => {}
                Ok(_) => break,
                Err(resync) => return Some(Err(resync)),
            }
        }
        self.cursor.revision = self.cursor.revision.max(at.revision);
        if !std::mem::replace(&mut self.resumed, true) {
            self.changes.clear();
        }
        self.is_due = false;
        self.present = Some(elections::record(&self.namespace, &view, at));
        Some(Ok(()))
    }

    /// The next thing to tell of what was read: every loss of the leader, and the present record last. Of leaders and
    /// values in between the log's events do not say enough for a record: they are left out, and that is told.
    fn tell(&mut self) -> Option<Bytes> {
        let mut present = self.present.take()?;
        while self.changes.len() > 1 {
            let change = self.changes.pop_front().expect("there are several");
            if change.is_loss {
                let cursor = Cursor { revision: change.revision, ..self.cursor };
                let missed = std::mem::take(&mut self.missed);
                let told = frame(cursor, &Election { missed, ..vacancy(&present, change) });
                self.present = Some(present);
                return Some(told);
            }
            self.missed = true;
        }
        self.changes.clear();
        present.missed = std::mem::take(&mut self.missed);
        Some(frame(self.cursor, &present))
    }
}

/// The record of a moment without a leader that is over.
fn vacancy(present: &Election, change: Change) -> Election {
    Election {
        state: ElectionState::Vacant,
        leader: None,
        lock_delay_ms: None,
        waiters: 0,
        queue: Vec::new(),
        revision: change.revision.0,
        cluster_time_ms: change.time.0,
        ..present.clone()
    }
}

fn frame(cursor: Cursor, record: &Election) -> Bytes {
    let mut out = format!("event: leader\nid: {}\n", format_cursor(cursor)).into_bytes();
    data(&mut out, record);
    out.into()
}
