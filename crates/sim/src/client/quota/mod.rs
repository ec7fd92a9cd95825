//! Users of quotas: workers that reserve for their teams, keep what they have, use it, give it back, or die with it;
//! and operators who set limits, settle, count, adjust and lend.

mod keep;
mod operator;
mod reserve;

pub(super) use keep::Keeping;
pub(super) use reserve::Reserving;

use crate::world::World;
use sereno_core::{
    LEVEL_MAX,
    command::{Item, NodeLimits, NodeRef, OnExpiry, Operation, PutLimit, QuotaCommand},
    names::{NamespaceName, Owner, QuotaName, QuotaPath},
};
use sereno_node::clock::Mono;

/// How long an operator tries, and a worker each step.
const DOING_MS: u64 = 9_000;
/// Teams that have the reservations: several workers each.
const TEAMS: usize = 3;

/// Quota, path, limit, guarantee.
const NODES: [(&str, &str, u64, u64); 9] = [
    ("gpu", "", 48, 0),
    ("gpu", "acme", 40, 12),
    ("gpu", "acme/vision", 24, 6),
    ("gpu", "acme/text", 32, 0),
    ("gpu", "bolt", 40, 8),
    ("gpu", "bolt/x", 16, 3),
    ("bytes", "", 60, 0),
    ("bytes", "acme", 30, 10),
    ("bytes", "bolt", 50, 0),
];

fn node(quota: &str, path: &str) -> NodeRef {
    let quota = QuotaName::new(quota).expect("a valid name");
    NodeRef { quota, path: QuotaPath::new(path).expect("a valid path") }
}

/// All quotas live where everything is.
fn namespace() -> NamespaceName {
    NamespaceName::new(NamespaceName::DEFAULT).expect("a valid name")
}

impl World {
    pub(super) fn quota_begins(&mut self, client: usize, now: Mono) {
        if self.config.upgraded_from.is_some() && self.random.in_1000(60) {
            let operation = Operation::RaiseLevel { level: LEVEL_MAX };
            return self.client_does(client, vec![operation], DOING_MS);
        }
        let missing = self.missing_nodes();
        if !missing.is_empty() && self.random.in_1000(500) {
            return self.client_does(client, missing, DOING_MS);
        }
        match self.random.in_1000(200) {
            true => self.quota_operator_begins(client),
            false => self.reserve_begins(client, now),
        }
    }

    /// The puts of nodes that are not there; the last is done first, and is the highest.
    fn missing_nodes(&mut self) -> Vec<Operation> {
        let is_missing =
            |node: &NodeRef| self.truth.state.quota_node(&namespace(), node).flatten().is_none();
        let nodes = NODES.map(|(quota, path, limit, guaranteed)| {
            (node(quota, path), NodeLimits { guaranteed, ..NodeLimits::of(limit) })
        });
        let missing: Vec<_> = nodes.into_iter().filter(|(node, _)| is_missing(node)).collect();
        let put = |(node, limits)| self.put_limit(node, limits, 0);
        let puts: Vec<_> = missing.into_iter().map(put).collect();
        puts.into_iter().rev().collect()
    }

    fn put_limit(&mut self, node: NodeRef, limits: NodeLimits, version: u64) -> Operation {
        Operation::Quota(QuotaCommand::PutLimit(PutLimit {
            namespace: namespace(),
            node,
            limits,
            expected_version: version,
            refuse_debt: self.random.in_1000(100),
            request_id: self.request_id(),
        }))
    }

    fn some_node(&mut self) -> NodeRef {
        let (quota, path, ..) = NODES[self.random.below(NODES.len())];
        node(quota, path)
    }

    fn some_item(&mut self) -> Item {
        let node = match self.random.in_1000(15) {
            true => node("gpu", "nobody"),
            false => self.some_node(),
        };
        Item { node, amount: [1, 2, 3, 5, 8, 13][self.random.below(6)] }
    }

    fn some_team(&mut self) -> Owner {
        let team = self.random.below(TEAMS);
        Owner::new(&format!("team-{team}")).expect("a valid owner")
    }

    fn some_fate(&mut self) -> OnExpiry {
        match self.random.between(0, 9) {
            0..=5 => OnExpiry::Release,
            6..=7 => OnExpiry::Commit,
            _ => OnExpiry::Quarantine,
        }
    }
}
