//! What runs beside the loop: rehearsals and reloads on threads of their own, trims, and the log's flushes.

use super::{link::Link, run::Driver, seldom::Seldom};
use crate::{
    node::{Fetched, HEARTBEAT_MS, Input, Presence, Rehearsal},
    replay::{self, ReplayError},
};
use sereno_core::{
    entry::{EntryHash, Head},
    ids::Position,
};
use sereno_log::{Log, LogError, Read};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::Notify, task::JoinHandle, time::Instant};

/// How often the log makes its own checks durable.
const FLUSH_INTERVAL: Duration = Duration::from_millis(HEARTBEAT_MS);

/// Bytes of log that a node which follows reads at once.
const FETCH_BYTES: usize = 4 << 20;

/// What a background thread comes to: an input for the node, or why going on would be wrong.
pub(super) type FromBackground = Result<Input, String>;

impl Driver {
    /// Runs `work` on a thread of its own, with low priority: the live node comes first.
    fn in_background(
        &self,
        name: &'static str,
        work: impl FnOnce(&dyn Log) -> FromBackground + Send + 'static,
    ) {
        let (log, background) = (self.log.clone(), self.background.clone());
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            replay::lower_priority();
            // A broken invariant there is one of this node: it must not be lost with the thread.
            let come = catch_unwind(AssertUnwindSafe(|| work(&*log)));
            let panicked = |_| Err(format!("the {name} panicked: see the message above"));
            drop(log);
            // A driver that is gone needs no result.
            let _ = background.send(come.unwrap_or_else(panicked));
        });
        thread.expect("the system can start a thread");
    }

    pub(super) fn rehearse(&self, head: Head, outcome_chain: EntryHash) {
        let (runtime, sinks) = (tokio::runtime::Handle::current(), self.sinks.clone());
        let observer = self.observer.clone();
        self.in_background("rehearsal", move |log| {
            let begun = Instant::now();
            let rehearsal =
                replay::rehearse(&runtime, log, &sinks, head, outcome_chain).map_err(|error| {
                    format!("the log no longer leads to this node's state: {error}")
                })?;
            match &rehearsal {
                Rehearsal::Saved(head) => {
                    tracing::info!(position = head.position.0, "snapshot saved")
                }
                Rehearsal::Differs(head) => {
                    tracing::error!(
                        position = head.position.0,
                        "a rehearsal came to another state"
                    );
                }
                Rehearsal::Failed(reason) => tracing::warn!(%reason, "no snapshot could be saved"),
            }
            observer.rehearsed(begun.elapsed(), &rehearsal);
            Ok(Input::Rehearsed(rehearsal))
        });
    }

    pub(super) fn reload(&self, head: Head) {
        let runtime = tokio::runtime::Handle::current();
        self.in_background("reload", move |log| {
            let once = || {
                let state = replay::from_snapshot_to(&runtime, log, head);
                state.map_err(|error| format!("the log cannot be read again: {error}"))
            };
            let again = once()?.outcome_chain();
            Ok(Input::Reloaded { state: Box::new(once()?), again })
        });
    }

    /// Reads on once there is something, or after a while.
    pub(super) fn fetch(&mut self, from: Position) {
        let (log, inputs) = (self.log.clone(), self.background.clone());
        let (snapshot_log, failures) = (self.log.clone(), self.fetch_failures.clone());
        self.fetcher = Some(Task::spawn(async move {
            log.wait_past(Position(from.0 - 1)).await;
            let come = match log.read(from, FETCH_BYTES).await {
                Ok(Read::Entries(entries)) => Ok(Fetched::Entries(entries)),
                Ok(Read::Trimmed { .. }) => newest_snapshot(snapshot_log, &failures).await,
                Err(error) => failed_fetch(error, &failures),
            };
            // A driver that is gone needs no entries.
            let _ = inputs.send(come.map(Input::Fetched));
        }));
    }

    /// The state is another one: whoever follows it begins anew.
    pub(super) fn jumped(&self) {
        let state = self.node.state();
        tracing::warn!(
            position = state.head().position.0,
            "the log was trimmed: on from a snapshot"
        );
        self.events.jump(state);
        self.sinks.iter().for_each(|sink| sink.jumped(state.head().position));
    }

    pub(super) fn link_to(&mut self, leader: Option<String>) {
        let Some(shared) = &self.shared else { return };
        let inputs = self.background.clone();
        let log_id = self.node.state().log_id();
        let (dial, secret) = (shared.dial.clone(), shared.secret.of_log(log_id));
        self.link = leader.map(|address| Link::to(address, dial, secret, inputs));
    }

    /// Rewrites the record and reads all. One at a time: what is slower than a second is an old record anyhow.
    pub(super) fn publish(&mut self, record: &Presence) {
        let Some(shared) = &self.shared else { return };
        if self.publisher.as_ref().is_some_and(|task| !task.0.is_finished()) {
            return;
        }
        let (presence, inputs) = (shared.presence.clone(), self.background.clone());
        let (id, bytes) = (record.node_id.clone(), record.to_bytes());
        self.publisher = Some(Task::spawn(async move {
            // Before this node's own is written: a process with the same id shows by what it has left there.
            match presence.list().await {
                Ok(present) => {
                    let records = present.iter().filter_map(|it| Presence::from_bytes(&it.record));
                    let _ = inputs.send(Ok(Input::Present(records.collect())));
                }
                Err(error) => tracing::debug!(%error, "the presence records were not read"),
            }
            if let Err(error) = presence.publish(&id, bytes.into()).await {
                tracing::debug!(%error, "the presence record was not written");
            }
        }));
    }

    pub(super) fn trim(&mut self, position: Position) {
        let log = self.log.clone();
        // One before that is still under way goes on in the engine.
        self.trimmer = Some(Task::spawn(async move {
            match log.trim(position).await {
                Ok(first) => tracing::info!(first = first.0, "log trimmed"),
                Err(error) => tracing::warn!(%error, "the log was not trimmed"),
            }
        }));
    }
}

async fn newest_snapshot(log: Arc<dyn Log>, failures: &Seldom) -> Result<Fetched, String> {
    match replay::last_snapshot(&*log).await {
        Ok((state, _)) => Ok(Fetched::Snapshot(Box::new(state))),
        Err(ReplayError::Log(error)) => failed_fetch(error, failures),
        Err(error) => Err(error.to_string()),
    }
}

fn failed_fetch(error: LogError, failures: &Seldom) -> Result<Fetched, String> {
    match error {
        LogError::Storage(_) | LogError::Damaged(_) => Err(error.to_string()),
        error => {
            if failures.is_due() {
                tracing::warn!(%error, "the log could not be read");
            }
            Ok(Fetched::Failed)
        }
    }
}

/// A task that holds the log, and so ends with the driver, also if that panics.
pub(super) struct Task<T>(pub(super) JoinHandle<T>);

impl<T: Send + 'static> Task<T> {
    pub(super) fn spawn(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    /// Returns when it has let the log go.
    pub(super) async fn end(mut self) {
        self.0.abort();
        // Aborted, or just done: either will do.
        let _ = (&mut self.0).await;
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns when the log's storage has failed.
pub(super) async fn flush_now_and_then(log: Arc<dyn Log>, at_once: Arc<Notify>) -> LogError {
    loop {
        tokio::select! {
            () = tokio::time::sleep(FLUSH_INTERVAL) => {}
            () = at_once.notified() => {}
        }
        match log.flush().await {
            Ok(()) => {}
            Err(error @ (LogError::Storage(_) | LogError::Damaged(_))) => return error,
            Err(error) => tracing::warn!(%error, "the log could not be flushed"),
        }
    }
}
