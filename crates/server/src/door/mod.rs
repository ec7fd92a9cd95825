//! The HTTP door: JSON in, calls of the node, JSON out. It translates and decides nothing.

mod acquire;
mod admin;
mod answer;
mod audit;
mod body;
mod call;
mod caller;
mod docs;
mod election;
mod elections;
mod fields;
mod guard;
mod guards;
mod health;
mod hold;
mod holds;
mod job;
mod jobs;
mod lease;
mod ledger;
mod listen;
mod namespaces;
mod observe;
mod openapi;
mod problem;
mod query;
mod quota;
mod reads;
mod refusal;
mod renew_many;
mod routes;
mod run;
mod status;
mod timeout;
mod views;
mod watch;

pub(crate) use guard::Hosts;
pub(crate) use listen::{Bounds, Phase, Running, listen, prepare};
pub use openapi::openapi;

use crate::{
    audit::Audit,
    cluster::{Links, Storage},
    metrics::Metrics,
};
use sereno_core::names::{Caller, NamespaceName};
use sereno_log::Log;
use sereno_node::handle::NodeHandle;
use std::{sync::Arc, time::Instant};
use tokio::sync::watch as signal;

/// What every request can reach.
pub(crate) struct Door {
    pub(crate) node: NodeHandle,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) metrics: Arc<Metrics>,
    /// `None`: none is kept.
    pub(crate) audit: Option<Arc<Audit>>,
    pub(crate) reach: Reach,
    /// Tells open watches to end.
    pub(crate) phase: signal::Receiver<Phase>,
    pub(crate) started: Instant,
    bodies: body::Bodies,
    names: CommonNames,
}

/// Who may come, and what they may still ask for.
pub(crate) struct Reach {
    /// The names under which clients may call.
    pub(crate) hosts: Hosts,
    /// Where other nodes share the log: their links.
    pub(crate) links: Option<Links>,
    /// How full the log's storage is.
    pub(crate) storage: Storage,
}

/// Names that almost every request has: made once, and shared.
struct CommonNames {
    anonymous: Caller,
    default: NamespaceName,
}

impl Door {
    pub(crate) fn new(
        node: NodeHandle,
        log: Arc<dyn Log>,
        metrics: Arc<Metrics>,
        audit: Option<Arc<Audit>>,
        reach: Reach,
        phase: signal::Receiver<Phase>,
    ) -> Self {
        let names = CommonNames {
            anonymous: Caller::new("").expect("empty is anonymous"),
            default: NamespaceName::new(NamespaceName::DEFAULT).expect("the default is valid"),
        };
        let (started, bodies) = (Instant::now(), body::Bodies::default());
        Self { node, log, metrics, audit, reach, phase, started, bodies, names }
    }
}
