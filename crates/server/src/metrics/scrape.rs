//! What is, at the moment somebody asks: read from the state and the node's status, never kept.

use super::{NAMESPACES_SHOWN, OTHERS, hot::Hot, quotas::Quotas, vacancies::Vacant};
use crate::cluster::Seen;
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use sereno_core::{
    State,
    ids::Token,
    names::NamespaceName,
    query::{ListLocks, NamespaceView},
};
use sereno_node::handle::{Role, Status};
use std::{sync::atomic::AtomicU64, time::Duration};

/// Namespaces looked at for one answer.
const NAMESPACES_READ: usize = 1_000;

pub(super) type Figure = Gauge<f64, AtomicU64>;

/// What belongs to one namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    namespace: String,
    leases: u64,
    waiters: u64,
    reply_records: u64,
    reply_records_max: u64,
    oldest_hold_ms: u64,
    is_unproven: Option<bool>,
}

impl Sample {
    /// Reads the busiest namespaces; the others are summed up in one.
    pub(crate) fn read(state: &State) -> Vec<Self> {
        let mut views = state.namespaces("", NAMESPACES_READ);
        views.sort_by_key(|view| std::cmp::Reverse(view.leases + view.waiters));
        let (shown, rest) = views.split_at(views.len().min(NAMESPACES_SHOWN));
        let mut samples: Vec<Self> = shown.iter().map(|view| Self::of(state, view)).collect();
        if !rest.is_empty() {
            samples.push(rest.iter().fold(Self::of_others(), |sum, view| sum.and(view)));
        }
        samples
    }

    fn of(state: &State, view: &NamespaceView) -> Self {
        Self {
            namespace: view.namespace.to_string(),
            leases: view.leases,
            waiters: view.waiters,
            reply_records: view.reply_records,
            reply_records_max: view.policy.reply_records,
            oldest_hold_ms: oldest_hold_ms(state, &view.namespace),
            is_unproven: view.policy.fencing_required.then_some(!view.is_proven),
        }
    }

    fn of_others() -> Self {
        Self { namespace: OTHERS.into(), ..Self::default() }
    }

    fn and(self, view: &NamespaceView) -> Self {
        Self {
            leases: self.leases + view.leases,
            waiters: self.waiters + view.waiters,
            reply_records: self.reply_records + view.reply_records,
            reply_records_max: self.reply_records_max + view.policy.reply_records,
            ..self
        }
    }
}

fn oldest_hold_ms(state: &State, namespace: &NamespaceName) -> u64 {
    let oldest = ListLocks {
        namespace: namespace.clone(),
        prefix: String::new(),
        owner: None,
        limit: 1,
        after: Token(0),
    };
    let page = state.list_locks(&oldest);
    let holder = page.and_then(|page| page.locks.into_iter().next()).and_then(|lock| lock.holder);
    holder.map_or(0, |view| view.holder.held_for_ms)
}

/// Everything that is read for one answer.
pub(crate) struct Present {
    pub(crate) status: Status,
    pub(crate) uptime: Duration,
    pub(crate) log_bytes: Option<u64>,
    pub(crate) namespaces: Vec<Sample>,
    pub(crate) quotas: Quotas,
    pub(crate) audit_queue: Option<u64>,
    /// What is known of the log's etcd.
    pub(crate) etcd: Option<Seen>,
}

/// `more` adds what this process has seen going on.
pub(super) fn encode(
    counted: &Registry,
    present: &Present,
    more: impl FnOnce(&mut Registry),
) -> Result<String, std::fmt::Error> {
    let mut now = Registry::with_prefix("sereno");
    node(&mut now, present);
    super::cluster::encode(&mut now, &present.status, present.etcd.as_ref());
    namespaces(&mut now, &present.namespaces);
    present.quotas.encode(&mut now);
    more(&mut now);
    let mut text = String::with_capacity(32 << 10);
    encode_registry(&mut text, counted)?;
    encode_registry(&mut text, &now)?;
    encode_eof(&mut text)?;
    Ok(text)
}

pub(super) fn gauge(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Figure::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

pub(super) fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

fn node(registry: &mut Registry, present: &Present) {
    let status = &present.status;
    let yes = |is: bool| f64::from(u8::from(is));
    let leads = matches!(status.role, Role::Leader { .. });
    let snapshot_age = status.snapshot_age_ms.map_or(present.uptime.as_secs_f64(), seconds);
    for (name, help, value) in [
        ("ready", "1: this node serves", yes(status.not_ready.is_none())),
        (
            "leader",
            "1: this node leads, and the log answers it",
            yes(leads && status.not_ready.is_none()),
        ),
        ("active_leases", "Held resources of all namespaces", status.leases as f64),
        ("active_waiters", "Waiting requests of all namespaces", status.waiters as f64),
        ("sweep_due", "Objects that are due and not ended yet", status.sweep_due as f64),
        (
            "sweep_oldest_seconds",
            "How long the oldest of them has been due",
            seconds(status.sweep_oldest_ms),
        ),
        (
            "snapshot_age_seconds",
            "Since this process saved a snapshot, or since it started",
            snapshot_age,
        ),
        (
            "log_bytes_since_snapshot",
            "Log to replay at a start",
            status.log_bytes_since_snapshot as f64,
        ),
        ("log_position", "Last applied position", status.position.0 as f64),
        ("revision", "Commands applied and objects swept so far", status.revision.0 as f64),
        ("cluster_time_seconds", "Cluster time; compare its rate with 1", seconds(status.time.0)),
        ("intake", "Calls that wait for the next entry", status.intake as f64),
        (
            "paused_seconds",
            "Granting begins again after this time (after a restore)",
            seconds(status.paused_ms),
        ),
        ("trim_held", "1: a rehearsal differed twice; nothing is trimmed", yes(status.trim_held)),
    ] {
        gauge(registry, name, help, value);
    }
    if let Some(bytes) = present.log_bytes {
        gauge(registry, "log_bytes", "Bytes that the log takes", bytes as f64);
    }
    if let Some(queue) = present.audit_queue {
        gauge(
            registry,
            "audit_queue",
            "Entries that the audit trail has still to write",
            queue as f64,
        );
    }
}

fn namespaces(registry: &mut Registry, samples: &[Sample]) {
    type Value = fn(&Sample) -> Option<f64>;
    let figures: [(&str, &str, Value); 6] = [
        ("leases", "Held resources", |s| Some(s.leases as f64)),
        ("waiters", "Waiting requests", |s| Some(s.waiters as f64)),
        ("reply_records", "Remembered requests", |s| Some(s.reply_records as f64)),
        ("reply_records_max", "Requests that can be remembered", |s| {
            Some(s.reply_records_max as f64)
        }),
        ("oldest_hold_seconds", "For how long the oldest ownership has been held", |s| {
            (s.namespace != OTHERS).then(|| seconds(s.oldest_hold_ms))
        }),
        (
            "namespace_fencing_unproven",
            "1: fencing is required, and no fence guard has reported that it checks tokens",
            |s| s.is_unproven.map(|is_unproven| if is_unproven { 1.0 } else { 0.0 }),
        ),
    ];
    for (name, help, value) in figures {
        let family = Family::<[(&str, String); 1], Figure>::default();
        for sample in samples {
            if let Some(value) = value(sample) {
                family.get_or_create(&[("namespace", sample.namespace.clone())]).set(value);
            }
        }
        registry.register(name, help, family);
    }
}

pub(super) fn elections(registry: &mut Registry, vacant: Vacant) {
    let help = "Elections that were led within a day and have no leader now";
    gauge(registry, "elections_vacant", help, vacant.count as f64);
    let help = "For how long the first of them has had none";
    gauge(registry, "elections_vacant_oldest_seconds", help, seconds(vacant.oldest_ms));
}

pub(super) fn hot_resources(registry: &mut Registry, hot: &[Hot]) {
    let family = Family::<[(&str, String); 2], Figure>::default();
    for one in hot {
        let labels = [("namespace", one.namespace.clone()), ("resource", one.resource.clone())];
        family.get_or_create(&labels).set(one.acquires as f64);
    }
    registry.register(
        "hot_resource_acquires",
        "The resources asked for most: acquires of late, halved each minute",
        family,
    );
}
