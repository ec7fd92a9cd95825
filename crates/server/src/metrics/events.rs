//! What the log says happened: grants, endings, waits, by namespace and family.

use super::{
    NAMESPACES_SHOWN, OTHERS, long_seconds,
    quotas::QuotaEvents,
    vacancies::{Vacancies, Vacant},
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use sereno_core::{
    command::Family as CoreFamily,
    event::{Event, EventKind, QuotaChange, QuotaEvent},
    ids::{ClusterTime, Position},
    names::NamespaceName,
    outcome::{End, RunState},
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
    quotas: QuotaEvents,
    namespaces: Mutex<BTreeMap<(NamespaceName, CoreFamily), Arc<Namespace>>>,
    vacancies: Mutex<Vacancies>,
}

type TwoLabels = [(&'static str, String); 2];
type ThreeLabels = [(&'static str, String); 3];

struct Families {
    grants: Family<ThreeLabels, Counter>,
    ends: Family<ThreeLabels, Counter>,
    wait_seconds: Family<ThreeLabels, Histogram, fn() -> Histogram>,
    hold_seconds: Family<TwoLabels, Histogram, fn() -> Histogram>,
    refusals: Family<ThreeLabels, Counter>,
    runs: Family<TwoLabels, Counter>,
    fence_refusals: Family<TwoLabels, Counter>,
    vacant_seconds: Histogram,
}

/// The counters of one family in one namespace, looked up once.
struct Namespace {
    label: String,
    family: &'static str,
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
    handed_off: Counter,
    finished: Counter,
    replaced: Counter,
    committed: Counter,
}

impl Namespace {
    fn labels(&self) -> TwoLabels {
        [("namespace", self.label.clone()), ("family", self.family.to_owned())]
    }

    fn ended(&self, end: End) -> &Counter {
        match end {
            End::Released => &self.released,
            End::Expired => &self.expired,
            End::MaxHold => &self.max_hold,
            End::Forced => &self.forced,
            End::Abandoned => &self.abandoned,
            End::HandedOff => &self.handed_off,
            End::Finished => &self.finished,
            End::Replaced => &self.replaced,
            End::Committed => &self.committed,
        }
    }
}

impl Namespace {
    /// Grants and ends of reservations count like those of leases.
    fn count_quota(&self, event: &QuotaEvent) {
        match event.change {
            QuotaChange::Reserved { waited_ms: None } => {
                self.granted_at_once.inc();
            }
            QuotaChange::Reserved { waited_ms: Some(waited_ms) } => {
                self.granted_after_wait.inc();
                self.waited_for_grant.observe(seconds(waited_ms));
            }
            QuotaChange::Committed { by_expiry: true, .. } | QuotaChange::Expired => {
                self.expired.inc();
            }
            QuotaChange::Committed { is_final: true, .. } => {
                self.committed.inc();
            }
            QuotaChange::Released => {
                self.released.inc();
            }
            _ => {}
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
            runs: Family::default(),
            fence_refusals: Family::default(),
            vacant_seconds: long_seconds(),
        };
        registry.register(
            "runs",
            "Slots of scheduled jobs that came to a state",
            families.runs.clone(),
        );
        registry.register(
            "fence_refusals",
            "Writes that fence guards reported as refused",
            families.fence_refusals.clone(),
        );
        registry.register(
            "election_vacant_seconds",
            "Time from the end of one leader to the next, of elections that were led again",
            families.vacant_seconds.clone(),
        );
        registry.register(
            "grants",
            "Leases granted, at once or out of a queue",
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
        let metrics = Self {
            live: AtomicBool::new(false),
            families,
            quotas: QuotaEvents::register(registry),
            namespaces: Mutex::default(),
            vacancies: Mutex::default(),
        };
        if let Ok(default) = NamespaceName::new(NamespaceName::DEFAULT) {
            for family in [
                CoreFamily::Lock,
                CoreFamily::Election,
                CoreFamily::Hold,
                CoreFamily::Job,
                CoreFamily::Quota,
            ] {
                metrics.namespace(&default, family);
            }
        }
        metrics
    }

    /// From now on events are news.
    pub(crate) fn go_live(&self) {
        self.live.store(true, Ordering::Relaxed);
    }

    fn namespace(&self, name: &NamespaceName, family: CoreFamily) -> Arc<Namespace> {
        let mut known = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(namespace) = known.get(&(name.clone(), family)) {
            return Arc::clone(namespace);
        }
        if known.len() < NAMESPACES_SHOWN {
            let namespace = Arc::new(self.families.namespace(name.as_str(), family.as_str()));
            if family == CoreFamily::Quota {
                self.quotas.begin(name.as_str());
            }
            known.insert((name.clone(), family), Arc::clone(&namespace));
            return namespace;
        }
        Arc::new(self.families.namespace(OTHERS, family.as_str()))
    }

    /// How long an election is without a leader. A hand-over takes no time, and is not one.
    fn note_vacancy(&self, event: &Event, time: ClusterTime) {
        let (Some(namespace), Some(election)) = (&event.namespace, &event.resource) else { return };
        if event.family != CoreFamily::Election {
            return;
        }
        let mut vacancies = self.vacancies.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (namespace.clone(), election.clone());
        match event.kind {
            EventKind::Ended { .. } => vacancies.begin(key, time),
            EventKind::Granted { .. } => {
                let since = vacancies.end(&key).filter(|_| self.live.load(Ordering::Relaxed));
                if let Some(since) = since {
                    self.families.vacant_seconds.observe(seconds(since.until(time)));
                }
            }
            _ => {}
        }
    }

    /// Adds what is known of quotas whose books and reality differ.
    pub(super) fn drifts(&self, registry: &mut Registry) {
        self.quotas.drifts(registry);
    }

    /// The elections that were led and are not.
    pub(super) fn vacant(&self, now: ClusterTime) -> Vacant {
        self.vacancies.lock().unwrap_or_else(PoisonError::into_inner).now(now)
    }

    fn count(&self, event: &Event) {
        let Some(name) = &event.namespace else { return };
        let namespace = self.namespace(name, event.family);
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
                let [of, family] = namespace.labels();
                self.families.refusals.get_or_create(&[of, family, ("code", code)]).inc();
            }
            EventKind::FenceRefused { .. } => {
                self.families.fence_refusals.get_or_create(&namespace.labels()).inc();
            }
            EventKind::RunChanged { state, .. } => {
                let state = crate::wire::run_state(*state).as_str().into();
                let [of, _] = namespace.labels();
                self.families.runs.get_or_create(&[of, ("state", state)]).inc();
            }
            EventKind::Quota(of) => {
                namespace.count_quota(of);
                self.quotas.count(&namespace.label, of);
            }
            EventKind::Queued
            | EventKind::NamespacePut { .. }
            | EventKind::TokenFloorSet { .. }
            | EventKind::LevelRaised { .. }
            | EventKind::TrimHeld
            | EventKind::Proclaimed { .. }
            | EventKind::Begun { .. }
            | EventKind::JobPut { .. }
            | EventKind::JobPaused { .. }
            | EventKind::RunAsked { .. }
            | EventKind::RunClaimed { .. }
            | EventKind::RegionSet { .. }
            | EventKind::HomePut { .. }
            | EventKind::GuardSeen => {}
        }
    }
}

impl Families {
    fn namespace(&self, label: &str, family: &'static str) -> Namespace {
        let labels = || [("namespace", label.to_owned()), ("family", family.to_owned())];
        let with = |name, value: &str| {
            let [namespace, family] = labels();
            [namespace, family, (name, value.to_owned())]
        };
        let ended = |end: End| self.ends.get_or_create_owned(&with("end", end.as_str()));
        // A series that only appears with its first event hides that event from every rate.
        drop(self.fence_refusals.get_or_create(&labels()));
        if family == CoreFamily::Job.as_str() {
            for state in [RunState::Succeeded, RunState::Failed, RunState::Lost] {
                let state = crate::wire::run_state(state).as_str().to_owned();
                let [namespace, _] = labels();
                drop(self.runs.get_or_create(&[namespace, ("state", state)]));
            }
        }
        Namespace {
            label: label.to_owned(),
            family,
            handed_off: ended(End::HandedOff),
            finished: ended(End::Finished),
            replaced: ended(End::Replaced),
            committed: ended(End::Committed),
            released: ended(End::Released),
            expired: ended(End::Expired),
            max_hold: ended(End::MaxHold),
            forced: ended(End::Forced),
            abandoned: ended(End::Abandoned),
            granted_at_once: self.grants.get_or_create_owned(&with("waited", "false")),
            granted_after_wait: self.grants.get_or_create_owned(&with("waited", "true")),
            waited_for_grant: self.wait_seconds.get_or_create_owned(&with("result", "granted")),
            waited_in_vain: self.wait_seconds.get_or_create_owned(&with("result", "ended")),
            held: self.hold_seconds.get_or_create_owned(&labels()),
        }
    }
}

fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

#[async_trait::async_trait]
impl Sink for EventMetrics {
    fn applied(&self, batch: &Arc<EventBatch>) {
        let is_live = self.live.load(Ordering::Relaxed);
        for event in &batch.events {
            // Who was without a leader, or drifted, before this process began is so still.
            self.note_vacancy(event, batch.time);
            if let EventKind::Quota(of) = &event.kind {
                self.quotas.note(event, of);
            }
            if is_live {
                self.count(event);
            }
        }
    }

    async fn durable(&self, _: Position) -> Result<(), String> {
        Ok(())
    }
}
