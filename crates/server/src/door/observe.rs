//! An election as server-sent events: its record, and again at each change of it.

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
use sereno_api::Election;
use sereno_core::{
    self as core,
    command::Family,
    event::{Event, EventKind},
    names::{NamespaceName, ResourceName},
};
use sereno_node::{
    events::{Cursor, EventBatch},
    handle::{Consistency, Undecided},
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{sync::watch as signal, time::Instant};

/// A read of this node's own state is answered at once; one that is not is no use.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn observe(
    door: Arc<Door>,
    timeout: Timeout,
    params: &Params,
    headers: &HeaderMap,
    namespace: NamespaceName,
    election: ResourceName,
) -> Result<Response, Refused> {
    if let Some(text) = from(params, headers)? {
        let cursor = parse_cursor(text)?;
        if let Some(Err(resync)) = door.node.events().after(cursor).now_or_never() {
            return Err(Refused(Box::new(resync_problem(resync))));
        }
    }
    // The record that comes first is never older than this call.
    let (asked, name) = (namespace.clone(), election.clone());
    let read = move |state: &core::State| state.leased(Family::Election, &asked, &name).is_some();
    let (is_there, _) = door.read(params.consistency()?, timeout, read).await?;
    if !is_there {
        return Err(refusal::no_namespace(namespace.as_str()));
    }
    let cursor = door.node.events().now();
    let observer = Observer {
        phase: door.phase.clone(),
        _counted: door.metrics.door.watcher(),
        door,
        namespace,
        election,
        cursor,
        is_due: true,
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
    cursor: Cursor,
    phase: signal::Receiver<Phase>,
    /// The record has changed since it was last told.
    is_due: bool,
    ended: bool,
    _counted: metrics::Counted,
}

impl Observer {
    /// The next piece of the stream; `None`: it ends.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            if std::mem::take(&mut self.is_due) {
                // The client comes back to a node that answers.
                return self.record().await.ok();
            }
            let hub = Arc::clone(self.door.node.events());
            tokio::select! {
                batches = hub.after(self.cursor) => match batches {
                    Ok(batches) => self.take(&batches),
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

    fn take(&mut self, batches: &[Arc<EventBatch>]) {
        for batch in batches {
            let news = batch.events.iter().filter(|event| event.revision > self.cursor.revision);
            self.is_due |= news.into_iter().any(|event| self.concerns(event));
            self.cursor.revision = self.cursor.revision.max(batch.revision);
        }
    }

    fn concerns(&self, event: &Event) -> bool {
        let is_change = matches!(
            event.kind,
            EventKind::Granted { .. } | EventKind::Ended { .. } | EventKind::Proclaimed { .. }
        );
        is_change
            && event.family == Family::Election
            && event.namespace.as_ref() == Some(&self.namespace)
            && event.resource.as_ref() == Some(&self.election)
    }

    /// The record as this node's state has it: at least as new as the events that were seen.
    async fn record(&mut self) -> Result<Bytes, Undecided> {
        let (namespace, name) = (self.namespace.clone(), self.election.clone());
        let read = move |state: &core::State| state.leased(Family::Election, &namespace, &name);
        let deadline = Instant::now() + READ_TIMEOUT;
        let (view, at) = self.door.node.read(Consistency::Stale, deadline, read).await?;
        self.cursor.revision = self.cursor.revision.max(at.revision);
        let view = view.expect("a namespace that was there stays");
        let record: Election = elections::record(&self.namespace, &view, at);
        let mut out = format!("event: leader\nid: {}\n", format_cursor(self.cursor)).into_bytes();
        data(&mut out, &record);
        Ok(out.into())
    }
}
