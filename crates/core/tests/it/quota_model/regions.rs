//! Two services, one of them home to a quota: whatever order messages between them come in, and however long either
//! side is cut off, what both use together never passes the limit by more than the caps of reclaimed shares.

use proptest::{collection::vec, prelude::*};
use sereno_core::{
    command::{
        Adjust, Adjustment, NodeLimits, NodeRef, Operation, PutLimit, QuotaCommand, ShareGrant,
        ShareReclaim, ShareReturn,
    },
    ids::ReservationId,
    names::{Owner, QuotaName, QuotaPath, Reason, RegionName, RequestId},
    outcome::Outcome,
    testing::{Scribe, default_namespace, lease_id},
};

const LIMIT: u64 = 10;

#[derive(Clone, Debug)]
enum Step {
    UseAtHome(u64),
    FreeAtHome(u64),
    Grant {
        amount: u64,
        cap: u64,
    },
    UseAway {
        share: usize,
        amount: u64,
    },
    FreeAway {
        share: usize,
        amount: u64,
    },
    GiveBack {
        share: usize,
        amount: u64,
    },
    /// The oldest message to the region, or to the home, arrives.
    Deliver {
        home: bool,
    },
    Reclaim(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let amount = || 1..6_u64;
    let share = || 0..4_usize;
    prop_oneof![
        3 => amount().prop_map(Step::UseAtHome),
        2 => amount().prop_map(Step::FreeAtHome),
        3 => (amount(), 0..4_u64).prop_map(|(amount, cap)| Step::Grant { amount, cap }),
        4 => (share(), amount()).prop_map(|(share, amount)| Step::UseAway { share, amount }),
        2 => (share(), amount()).prop_map(|(share, amount)| Step::FreeAway { share, amount }),
        3 => (share(), amount()).prop_map(|(share, amount)| Step::GiveBack { share, amount }),
        6 => any::<bool>().prop_map(|home| Step::Deliver { home }),
        1 => share().prop_map(Step::Reclaim),
        1 => Just(Step::Pass(10_000)),
    ]
}

fn node(quota: &str) -> NodeRef {
    NodeRef { quota: QuotaName::new(quota).expect("a quota"), path: QuotaPath::root() }
}

/// A service with its quotas.
struct Service {
    scribe: Scribe,
    drawn: u64,
}

impl Service {
    fn new(region: &str) -> Self {
        let mut scribe = Scribe::new();
        scribe.run(Operation::RaiseLevel { level: 4 });
        let region = Some(RegionName::new(region).expect("a region"));
        scribe.run(Operation::SetRegion { region });
        Self { scribe, drawn: 0 }
    }

    fn request_id(&mut self) -> RequestId {
        self.drawn += 1;
        RequestId::new(&format!("request-{}", self.drawn)).expect("an id")
    }

    fn run(&mut self, command: QuotaCommand) -> Outcome {
        let outcome = self.scribe.run(Operation::Quota(command));
        self.scribe.state.check_invariants();
        outcome
    }

    fn limit(&mut self, quota: &str, limit: u64, refuse_debt: bool) -> bool {
        let view = self.scribe.state.quota_node(&default_namespace(), &node(quota)).flatten();
        let request_id = self.request_id();
        let put = PutLimit {
            namespace: default_namespace(),
            node: node(quota),
            limits: NodeLimits::of(limit),
            expected_version: view.map_or(0, |view| view.version),
            refuse_debt,
            request_id,
        };
        self.run(QuotaCommand::PutLimit(put)).result.is_ok()
    }

    fn limit_of(&self, quota: &str) -> u64 {
        let view = self.scribe.state.quota_node(&default_namespace(), &node(quota)).flatten();
        view.map_or(0, |view| view.limits.limit)
    }

    /// Uses an amount for good, if the service admits it, and says how much.
    fn takes(&mut self, quota: &str, amount: u64) -> u64 {
        let request_id = self.request_id();
        let name = ReservationId(lease_id(self.drawn).0);
        let namespace = default_namespace();
        let reserve = sereno_core::command::Reserve {
            namespace: namespace.clone(),
            owner: Owner::new("user").expect("an owner"),
            items: vec![sereno_core::command::Item { node: node(quota), amount }],
            request_id,
            reservation: name,
            ttl_ms: 10_000,
            max_lifetime_ms: None,
            on_expiry: sereno_core::command::OnExpiry::Release,
            priority: 0,
            wait_timeout_ms: 0,
            labels: Default::default(),
        };
        if self.run(QuotaCommand::Reserve(reserve)).result.is_err() {
            return 0;
        }
        let request_id = self.request_id();
        let of = sereno_core::command::ReservationRef { namespace, reservation: name, fence: None };
        let (late, readmitted) = (sereno_core::command::Late::Reject, ReservationId::default());
        let commit = sereno_core::command::Commit {
            of,
            items: None,
            is_final: true,
            late,
            readmitted,
            request_id,
        };
        assert!(self.run(QuotaCommand::Commit(commit)).result.is_ok());
        amount
    }

    fn frees(&mut self, quota: &str, amount: u64) -> u64 {
        let request_id = self.request_id();
        let adjust = Adjust {
            namespace: default_namespace(),
            node: node(quota),
            owner: Owner::new("user").expect("an owner"),
            change: Adjustment::Subtract(amount),
            reason: Reason::new("gone").expect("a reason"),
            request_id,
        };
        amount * u64::from(self.run(QuotaCommand::Adjust(adjust)).result.is_ok())
    }
}

struct Share {
    cap: u64,
    is_reclaimed: bool,
    used: u64,
}

struct Regions {
    home: Service,
    away: Service,
    shares: Vec<Share>,
    /// Under way: the share and the amount.
    to_away: Vec<(usize, u64)>,
    to_home: Vec<(usize, u64)>,
    used_at_home: u64,
}

fn quota_of(share: usize) -> String {
    format!("share-{share}")
}

fn name_of(share: usize) -> ReservationId {
    ReservationId([share as u8 + 1; 16])
}

impl Regions {
    fn play(&mut self, step: &Step) {
        match *step {
            Step::UseAtHome(amount) => self.used_at_home += self.home.takes("gpu", amount),
            Step::FreeAtHome(amount) => self.used_at_home -= self.home.frees("gpu", amount),
            Step::Grant { amount, cap } => self.grant(amount, cap.min(amount)),
            Step::UseAway { share, amount } if share < self.shares.len() => {
                self.shares[share].used += self.away.takes(&quota_of(share), amount);
            }
            Step::FreeAway { share, amount } if share < self.shares.len() => {
                self.shares[share].used -= self.away.frees(&quota_of(share), amount);
            }
            Step::GiveBack { share, amount } if share < self.shares.len() => {
                let limit = self.away.limit_of(&quota_of(share));
                if amount <= limit && self.away.limit(&quota_of(share), limit - amount, true) {
                    self.to_home.push((share, amount));
                }
            }
            Step::Deliver { home: true } if !self.to_home.is_empty() => {
                let (share, returned) = self.to_home.remove(0);
                let request_id = self.home.request_id();
                let back = ShareReturn {
                    namespace: default_namespace(),
                    share: name_of(share),
                    returned,
                    spent: 0,
                    request_id,
                };
                assert!(self.home.run(QuotaCommand::ShareReturn(back)).result.is_ok());
            }
            Step::Deliver { home: false } if !self.to_away.is_empty() => {
                let (share, amount) = self.to_away.remove(0);
                assert!(self.away.limit(&quota_of(share), amount, false));
            }
            Step::Reclaim(share) if share < self.shares.len() => {
                let request_id = self.home.request_id();
                let reclaim = ShareReclaim {
                    namespace: default_namespace(),
                    share: name_of(share),
                    reason: Reason::new("silence").expect("a reason"),
                    request_id,
                };
                if self.home.run(QuotaCommand::ShareReclaim(reclaim)).result.is_ok() {
                    self.shares[share].is_reclaimed = true;
                }
            }
            Step::Pass(ms) => drop(self.home.scribe.pass(ms)),
            _ => {}
        }
        let used_away: u64 = self.shares.iter().map(|share| share.used).sum();
        let views = self.home.scribe.state.quota_shares(&default_namespace());
        let views = views.expect("the namespace is there");
        assert!(views.iter().all(|view| view.kept + view.overdraft_cap >= view.amount));
        let reclaimed = self.shares.iter().filter(|share| share.is_reclaimed);
        let caps: u64 = reclaimed.map(|share| share.cap).sum();
        assert!(self.used_at_home + used_away <= LIMIT + caps, "overshoot beyond the caps");
    }

    fn grant(&mut self, amount: u64, cap: u64) {
        let share = self.shares.len();
        if share == 4 {
            return;
        }
        let request_id = self.home.request_id();
        let grant = ShareGrant {
            namespace: default_namespace(),
            node: node("gpu"),
            region: RegionName::new("us").expect("a region"),
            amount,
            overdraft_cap: cap,
            share: name_of(share),
            request_id,
        };
        if self.home.run(QuotaCommand::ShareGrant(grant)).result.is_ok() {
            self.shares.push(Share { cap, is_reclaimed: false, used: 0 });
            self.to_away.push((share, amount));
        }
    }
}

proptest! {
    #![proptest_config(super::config())]

    #[test]
    fn no_overshoot_beyond_the_caps(steps in vec(step(), 1..80)) {
        let (home, away) = (Service::new("eu"), Service::new("us"));
        let mut regions = Regions {
            home,
            away,
            shares: Vec::new(),
            to_away: Vec::new(),
            to_home: Vec::new(),
            used_at_home: 0,
        };
        assert!(regions.home.limit("gpu", LIMIT, false));
        steps.iter().for_each(|step| regions.play(step));
    }
}
