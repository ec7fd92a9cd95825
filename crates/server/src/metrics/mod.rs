//! Metrics (DESIGN.md section 17), as Prometheus reads them at `/metrics`.
//!
//! What happens is counted as it happens, by calls, by events of the log and by the node's work; what *is* (leases,
//! queues, ages) is read when somebody asks. Labels are bounded: of namespaces and resources only so many are
//! shown, the rest under one name.

mod calls;
mod cluster;
mod door;
mod events;
mod hot;
mod leaderless;
mod node;
mod quotas;
mod scrape;
mod vacancies;

pub(crate) use calls::{CallMetrics, Kind, Mode, OK, WAITING};
pub(crate) use door::{Counted, DoorMetrics};
pub(crate) use events::EventMetrics;
pub(crate) use hot::HotResources;
pub(crate) use leaderless::Leaderless;
pub(crate) use node::NodeMetrics;
pub(crate) use quotas::Quotas;
pub(crate) use scrape::{Present, Sample};

use prometheus_client::{metrics::histogram::Histogram, registry::Registry};
use std::sync::Arc;

/// Namespaces that have labels of their own.
const NAMESPACES_SHOWN: usize = 50;
/// The label of all others.
const OTHERS: &str = "_other";

/// All that is counted in this process.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) calls: CallMetrics,
    pub(crate) hot: HotResources,
    pub(crate) events: Arc<EventMetrics>,
    pub(crate) node: Arc<NodeMetrics>,
    pub(crate) door: DoorMetrics,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("sereno");
        Self {
            calls: CallMetrics::register(&mut registry),
            hot: HotResources::default(),
            events: Arc::new(EventMetrics::register(&mut registry)),
            node: Arc::new(NodeMetrics::register(&mut registry)),
            door: DoorMetrics::register(&mut registry),
            registry,
        }
    }

    /// The whole text, with what is now.
    pub(crate) fn encode(&self, present: &Present) -> Result<String, std::fmt::Error> {
        let vacant = self.events.vacant(present.status.time);
        let hot = self.hot.top();
        scrape::encode(&self.registry, present, |now| {
            scrape::elections(now, vacant);
            scrape::hot_resources(now, &hot);
            self.events.drifts(now);
        })
    }
}

/// From a quarter of a millisecond to the longest time that a call is held.
fn call_seconds() -> Histogram {
    Histogram::new([
        0.000_25, 0.000_5, 0.001, 0.002, 0.003, 0.005, 0.007_5, 0.01, 0.015, 0.025, 0.05, 0.075,
        0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0,
    ])
}

/// From ten milliseconds to a day.
fn long_seconds() -> Histogram {
    Histogram::new([
        0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0,
        3_600.0, 21_600.0, 86_400.0,
    ])
}

/// Powers of two up to `2^(count - 1)`.
fn doubling(count: u16) -> Histogram {
    Histogram::new((0..count).map(|power| 2f64.powi(i32::from(power))))
}
