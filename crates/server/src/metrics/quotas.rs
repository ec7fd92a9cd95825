//! Quotas: what the log says happened to them, and what is. Of nodes the roots and those right below them are shown, the
//! fullest; what is deeper shows in their sums.

use super::scrape::{Figure, gauge};
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use sereno_core::{
    State,
    command::{NodeRef, OnExpiry},
    event::{Event, QuotaChange, QuotaEvent},
    names::{NamespaceName, Owner},
    query::{NodeView, QuotaFigures},
};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Nodes looked at for one answer.
const NODES_READ: usize = 1_000;
/// Nodes that have labels of their own.
const NODES_SHOWN: usize = 100;
/// Quotas that have.
const QUOTAS_SHOWN: usize = 50;
/// Nodes of which a drift is remembered; beyond it new ones are not.
const DRIFTS_MAX: usize = 10_000;

type Labels<const N: usize> = [(&'static str, String); N];

/// Counts what happens.
pub(super) struct QuotaEvents {
    expiries: Family<Labels<2>, Counter>,
    late_commits: Family<Labels<1>, Counter>,
    reports: Family<Labels<2>, Counter>,
    reconciliations: Family<Labels<1>, Counter>,
    drifts: Mutex<Drifts>,
}

/// Whose last report says that a node uses something else than the books have, and by how much.
type Drifts = BTreeMap<(NamespaceName, NodeRef, Owner), i64>;

impl QuotaEvents {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let events = Self {
            expiries: Family::default(),
            late_commits: Family::default(),
            reports: Family::default(),
            reconciliations: Family::default(),
            drifts: Mutex::default(),
        };
        registry.register(
            "quota_expiries",
            "Reservations whose deadline passed, by what became of them",
            events.expiries.clone(),
        );
        registry.register(
            "quota_late_commits",
            "Commits that came after their reservation had expired, and found room",
            events.late_commits.clone(),
        );
        registry.register(
            "quota_reports",
            "Reports of real use, by whether more or less was counted than the books explain",
            events.reports.clone(),
        );
        registry.register(
            "quota_reconciliations",
            "Changes of committed use that compensate a drift",
            events.reconciliations.clone(),
        );
        events.begin(NamespaceName::DEFAULT);
        events
    }

    /// A series that only appears with its first event hides that event from every rate.
    pub(super) fn begin(&self, namespace: &str) {
        let of = || ("namespace", namespace.to_owned());
        for fate in ["release", "commit", "quarantine"] {
            drop(self.expiries.get_or_create(&[of(), ("fate", fate.into())]));
        }
        for drift in ["none", "more", "less"] {
            drop(self.reports.get_or_create(&[of(), ("drift", drift.into())]));
        }
        drop(self.late_commits.get_or_create(&[of()]));
        drop(self.reconciliations.get_or_create(&[of()]));
    }

    /// Counts one event under the label of its namespace.
    pub(super) fn count(&self, label: &str, event: &QuotaEvent) {
        let of = || ("namespace", label.to_owned());
        let expired = |fate: OnExpiry| {
            let fate = match fate {
                OnExpiry::Release => "release",
                OnExpiry::Commit => "commit",
                OnExpiry::Quarantine => "quarantine",
            };
            self.expiries.get_or_create(&[of(), ("fate", fate.into())]).inc();
        };
        match &event.change {
            QuotaChange::Expired => expired(OnExpiry::Release),
            QuotaChange::Committed { by_expiry: true, .. } => expired(OnExpiry::Commit),
            QuotaChange::Quarantined => expired(OnExpiry::Quarantine),
            QuotaChange::Committed { readmits: Some(_), .. } => {
                self.late_commits.get_or_create(&[of()]).inc();
            }
            QuotaChange::Reported { drift, .. } => {
                let drift = match drift.drift {
                    0 => "none",
                    1.. => "more",
                    _ => "less",
                };
                self.reports.get_or_create(&[of(), ("drift", drift.into())]).inc();
            }
            QuotaChange::Reconciled { .. } => {
                self.reconciliations.get_or_create(&[of()]).inc();
            }
            _ => {}
        }
    }

    /// Remembers who drifts: whoever did before this process began does so still.
    pub(super) fn note(&self, event: &Event, of_quota: &QuotaEvent) {
        let Some(namespace) = &event.namespace else { return };
        let mut drifts = self.drifts.lock().unwrap_or_else(PoisonError::into_inner);
        match &of_quota.change {
            QuotaChange::Reported { node, reporter, drift, .. } => {
                let key = (namespace.clone(), node.clone(), reporter.clone());
                if drift.drift == 0 {
                    drifts.remove(&key);
                } else if drifts.len() < DRIFTS_MAX || drifts.contains_key(&key) {
                    drifts.insert(key, drift.drift);
                }
            }
            QuotaChange::Reconciled { reporter, .. } => {
                for line in &of_quota.lines {
                    drifts.remove(&(namespace.clone(), line.node.clone(), reporter.clone()));
                }
            }
            QuotaChange::NodeRemoved { node } => {
                drifts.retain(|(space, of, _), _| space != namespace || of != node);
            }
            _ => {}
        }
    }

    /// Adds what is known of drifts.
    pub(super) fn drifts(&self, registry: &mut Registry) {
        let drifts = self.drifts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut nodes: BTreeMap<(&NamespaceName, &NodeRef), i64> = BTreeMap::new();
        for ((namespace, node, _), &drift) in drifts.iter() {
            let largest = nodes.entry((namespace, node)).or_default();
            if drift.abs() > largest.abs() {
                *largest = drift;
            }
        }
        let help = "Nodes whose last report differs from the books, and is not compensated";
        gauge(registry, "quota_drifting", help, nodes.len() as f64);
        let mut nodes: Vec<_> = nodes.into_iter().collect();
        nodes.sort_by_key(|(_, drift)| Reverse(drift.abs()));
        let family = Family::<Labels<3>, Figure>::default();
        for ((namespace, node), drift) in nodes.into_iter().take(NODES_SHOWN) {
            family.get_or_create(&node_labels(namespace, node)).set(drift as f64);
        }
        let help = "More (or less) is used at a node than the books explain, by the last report; the largest";
        registry.register("quota_drift", help, family);
    }
}

/// What is.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    quotas: Vec<QuotaFigures>,
    quarantined: u64,
}

impl Quotas {
    pub(crate) fn read(state: &State) -> Self {
        Self { quotas: state.quota_figures(NODES_READ), quarantined: state.quarantined() }
    }

    pub(super) fn encode(&self, registry: &mut Registry) {
        let nodes =
            || self.quotas.iter().flat_map(|of| of.nodes.iter().map(move |node| (of, node)));
        let in_debt = nodes().filter(|(_, node)| node.debt > 0).count();
        let reclaimed = self.quotas.iter().filter(|of| of.lent_twice > 0).count();
        for (name, help, value) in [
            (
                "quota_quarantined",
                "Reservations that keep their capacity until an operator settles them",
                self.quarantined as f64,
            ),
            (
                "quota_nodes_in_debt",
                "Roots, and nodes right below them, that claim more than their limit and burst",
                in_debt as f64,
            ),
            (
                "quotas_lent_twice",
                "Quotas of which a share was reclaimed whose region has not given it back yet",
                reclaimed as f64,
            ),
        ] {
            gauge(registry, name, help, value);
        }
        let mut shown: Vec<_> = nodes().collect();
        shown.sort_by_key(|(_, node)| Reverse((node.debt, node.committed + node.reserved)));
        shown.truncate(NODES_SHOWN);
        encode_nodes(registry, &shown);
        self.encode_quotas(registry);
    }

    fn encode_quotas(&self, registry: &mut Registry) {
        type Value = fn(&QuotaFigures) -> u64;
        let figures: [(&str, &str, Value); 3] = [
            ("quota_waiters", "Reservations that wait for something of it", |of| of.waiters),
            ("quota_lent", "What other regions may use of it", |of| of.lent),
            (
                "quota_lent_twice",
                "What of that was lent again: the worst overshoot until they report",
                |of| of.lent_twice,
            ),
        ];
        let mut shown: Vec<_> = self.quotas.iter().collect();
        shown.sort_by_key(|of| Reverse((of.lent_twice, of.waiters, of.lent)));
        shown.truncate(QUOTAS_SHOWN);
        for (name, help, value) in figures {
            let family = Family::<Labels<2>, Figure>::default();
            for of in &shown {
                let labels =
                    [("namespace", of.namespace.to_string()), ("quota", of.quota.to_string())];
                family.get_or_create(&labels).set(value(of) as f64);
            }
            registry.register(name, help, family);
        }
    }
}

fn encode_nodes(registry: &mut Registry, nodes: &[(&QuotaFigures, &NodeView)]) {
    type Value = fn(&NodeView) -> u64;
    let figures: [(&str, &str, Value); 5] = [
        ("quota_limit", "How much a node may use; without its burst", |node| node.limits.limit),
        ("quota_committed", "Used, at a node and below it", |node| node.committed),
        ("quota_reserved", "Reserved, at a node and below it", |node| node.reserved),
        ("quota_available", "The largest amount that would pass at a node", |node| node.available),
        ("quota_debt", "What a node claims above its limit and burst", |node| node.debt),
    ];
    for (name, help, value) in figures {
        let family = Family::<Labels<3>, Figure>::default();
        for (of, node) in nodes {
            let labels = node_labels(&of.namespace, &node.node);
            family.get_or_create(&labels).set(value(node) as f64);
        }
        registry.register(name, help, family);
    }
}

fn node_labels(namespace: &NamespaceName, node: &NodeRef) -> Labels<3> {
    [
        ("namespace", namespace.to_string()),
        ("quota", node.quota.to_string()),
        ("path", node.path.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode_registry;
    use sereno_core::{
        command::Family as CoreFamily,
        ids::Revision,
        names::{Caller, QuotaName, QuotaPath},
        outcome::Drift,
    };

    fn node(path: &str) -> NodeRef {
        NodeRef { quota: QuotaName::new("gpu").unwrap(), path: QuotaPath::new(path).unwrap() }
    }

    fn event(change: QuotaChange, lines: Vec<sereno_core::event::LedgerLine>) -> Event {
        let event = QuotaEvent { reservation: None, change, lines, reason: None };
        Event {
            revision: Revision(1),
            family: CoreFamily::Quota,
            namespace: Some(NamespaceName::new("default").unwrap()),
            resource: None,
            owner: None,
            caller: Caller::new("").unwrap(),
            lease_hash: None,
            kind: sereno_core::event::EventKind::Quota(Box::new(event)),
        }
    }

    fn reported(path: &str, reporter: &str, drift: i64) -> Event {
        let told = Drift { observed: 0, committed_then: 0, explained: 0, drift, in_a_row: 1 };
        let (node, reporter) = (node(path), Owner::new(reporter).unwrap());
        event(QuotaChange::Reported { node, reporter, epoch: 1, drift: told }, Vec::new())
    }

    fn text(events: &QuotaEvents) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        events.drifts(&mut registry);
        encode_registry(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_drift_shows_until_it_is_gone_or_compensated() {
        let events = QuotaEvents::register(&mut Registry::default());
        let take = |event: Event| match &event.kind {
            sereno_core::event::EventKind::Quota(of) => events.note(&event, of),
            other => panic!("{other:?}"),
        };
        take(reported("acme", "counter", 5));
        take(reported("acme", "other", -7));
        take(reported("bolt", "counter", 2));
        let seen = text(&events);
        assert!(seen.contains("quota_drifting 2.0"), "{seen}");
        assert!(seen.contains("path=\"acme\"} -7.0"), "the largest: {seen}");
        take(reported("acme", "other", 0));
        assert!(text(&events).contains("path=\"acme\"} 5.0"));
        let line = sereno_core::event::LedgerLine { node: node("acme"), layers: Vec::new() };
        let reporter = Owner::new("counter").unwrap();
        take(event(QuotaChange::Reconciled { reporter, epoch: 1 }, vec![line]));
        let seen = text(&events);
        assert!(seen.contains("quota_drifting 1.0") && !seen.contains("acme"), "{seen}");
        take(event(QuotaChange::NodeRemoved { node: node("bolt") }, Vec::new()));
        assert!(text(&events).contains("quota_drifting 0.0"));
    }
}
