//! The HTTP door itself.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

#[derive(Default)]
pub(crate) struct DoorMetrics {
    connections: Gauge,
    watchers: Gauge,
    turned_away: Counter,
    links: Gauge,
    links_refused: Counter,
}

/// Counts something as long as it lives.
pub(crate) struct Counted(Gauge);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl DoorMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("connections", "Open HTTP connections", metrics.connections.clone());
        registry.register("watchers", "Open watches", metrics.watchers.clone());
        registry.register(
            "connections_turned_away",
            "Connections refused because there were too many",
            metrics.turned_away.clone(),
        );
        registry.register("links", "Links of other nodes to this one", metrics.links.clone());
        registry.register(
            "links_refused",
            "Connections that wanted to be links and did not prove that they come from a node of this service",
            metrics.links_refused.clone(),
        );
        metrics
    }

    pub(crate) fn connection(&self) -> Counted {
        self.connections.inc();
        Counted(self.connections.clone())
    }

    pub(crate) fn watcher(&self) -> Counted {
        self.watchers.inc();
        Counted(self.watchers.clone())
    }

    pub(crate) fn link(&self) -> Counted {
        self.links.inc();
        Counted(self.links.clone())
    }

    pub(crate) fn link_refused(&self) {
        self.links_refused.inc();
    }

    pub(crate) fn turned_away(&self) {
        self.turned_away.inc();
    }
}
