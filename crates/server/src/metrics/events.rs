//! What the log says happened: grants, endings, waits, by namespace.

use super::{NAMESPACES_SHOWN, OTHERS, long_seconds};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use sereno_core::{
    event::{Event, EventKind},
    ids::Position,
    names::NamespaceName,
    outcome::End,
};
use sereno_node::events::{EventBatch, Sink};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Counts events as a sink of the node. Those of the replay at start happened in another process: they count only
/// from [`Self::go_live`] on.
pub(crate) struct EventMetrics {
    live: AtomicBool,
    families: Families,
    namespaces: Mutex<BTreeMap<NamespaceName, Arc<Namespace>>>,
}

type NamespaceLabel = [(&'static str, String); 1];
type TwoLabels = [(&'static str, String); 2];

struct Families {
    grants: Family<TwoLabels, Counter>,
    ends: Family<TwoLabels, Counter>,
    wait_seconds: Family<TwoLabels, Histogram, fn() -> Histogram>,
    hold_seconds: Family<NamespaceLabel, Histogram, fn() -> Histogram>,
    refusals: Family<TwoLabels, Counter>,
}

/// One namespace's counters, looked up once.
struct Namespace {
    label: String,
    granted_at_once: Counter,
    granted_after_wait: Counter,
    waited_for_grant: Histogram,
    waited_in_vain: Histogram,
    held: Histogram,
    released: Counter,
    expired: Counter,
    max_hold: Counter,
    forced: Counter,
    abandoned: Counter,
}

impl Namespace {
    fn ended(&self, end: End) -> &Counter {
        match end {
            End::Released => &self.released,
            End::Expired => &self.expired,
            End::MaxHold => &self.max_hold,
            End::Forced => &self.forced,
            End::Abandoned => &self.abandoned,
        }
    }
}

impl EventMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let families = Families {
            grants: Family::default(),
            ends: Family::default(),
            wait_seconds: Family::new_with_constructor(long_seconds),
            hold_seconds: Family::new_with_constructor(long_seconds),
            refusals: Family::default(),
        };
        registry.register(
            "grants",
            "Locks granted, at once or out of a queue",
            families.grants.clone(),
        );
        registry.register("ends", "Ownerships ended, by how", families.ends.clone());
        registry.register(
            "wait_seconds",
            "Time in a queue, until the grant or in vain",
            families.wait_seconds.clone(),
        );
        registry.register(
            "hold_seconds",
            "Time from grant to end of an ownership",
            families.hold_seconds.clone(),
        );
        registry.register(
            "refusals_by_rule",
            "Requests refused by an operator's rule, by code",
            families.refusals.clone(),
        );
        let metrics = Self { live: AtomicBool::new(false), families, namespaces: Mutex::default() };
        if let Ok(default) = NamespaceName::new(NamespaceName::DEFAULT) {
            metrics.namespace(&default);
        }
        metrics
    }

    /// From now on events are news.
    pub(crate) fn go_live(&self) {
        self.live.store(true, Ordering::Relaxed);
    }

    fn namespace(&self, name: &NamespaceName) -> Arc<Namespace> {
        let mut known = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(namespace) = known.get(name) {
            return Arc::clone(namespace);
        }
        if known.len() < NAMESPACES_SHOWN {
            let namespace = Arc::new(self.families.namespace(name.as_str()));
            known.insert(name.clone(), Arc::clone(&namespace));
            return namespace;
        }
        Arc::new(self.families.namespace(OTHERS))
    }

    fn count(&self, event: &Event) {
        let Some(name) = &event.namespace else { return };
        let namespace = self.namespace(name);
        match &event.kind {
            EventKind::Granted { waited_ms: None, .. } => {
                namespace.granted_at_once.inc();
            }
            EventKind::Granted { waited_ms: Some(waited_ms), .. } => {
                namespace.granted_after_wait.inc();
                namespace.waited_for_grant.observe(seconds(*waited_ms));
            }
            EventKind::WaitEnded { waited_ms, .. } => {
                namespace.waited_in_vain.observe(seconds(*waited_ms))
            }
            EventKind::Ended { end, held_ms, .. } => {
                namespace.held.observe(seconds(*held_ms));
                namespace.ended(*end).inc();
            }
            EventKind::Refused { code } => {
                let code = crate::wire::code(*code).as_str().into();
                let labels = [("namespace", namespace.label.clone()), ("code", code)];
                self.families.refusals.get_or_create(&labels).inc();
            }
            EventKind::Queued
            | EventKind::NamespacePut { .. }
            | EventKind::TokenFloorSet { .. }
            | EventKind::LevelRaised { .. }
            | EventKind::TrimHeld => {}
        }
    }
}

impl Families {
    fn namespace(&self, label: &str) -> Namespace {
        let with = |name, value: &str| [("namespace", label.to_owned()), (name, value.to_owned())];
        let ended = |end: End| self.ends.get_or_create_owned(&with("end", end.as_str()));
        Namespace {
            label: label.to_owned(),
            released: ended(End::Released),
            expired: ended(End::Expired),
            max_hold: ended(End::MaxHold),
            forced: ended(End::Forced),
            abandoned: ended(End::Abandoned),
            granted_at_once: self.grants.get_or_create_owned(&with("waited", "false")),
            granted_after_wait: self.grants.get_or_create_owned(&with("waited", "true")),
            waited_for_grant: self.wait_seconds.get_or_create_owned(&with("result", "granted")),
            waited_in_vain: self.wait_seconds.get_or_create_owned(&with("result", "ended")),
            held: self.hold_seconds.get_or_create_owned(&[("namespace", label.to_owned())]),
        }
    }
}

fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

#[async_trait::async_trait]
impl Sink for EventMetrics {
    fn applied(&self, batch: &Arc<EventBatch>) {
        if self.live.load(Ordering::Relaxed) {
            batch.events.iter().for_each(|event| self.count(event));
        }
    }

    async fn durable(&self, _: Position) -> Result<(), String> {
        Ok(())
    }
}
