//! The part of the golden life that level 4 has added: quotas.

use sereno_core::{
    command::{
        Adjust, Adjustment, Begin, Commit, Extend, Item, Late, NodeLimits, NodeRef, OnExpiry,
        Operation, PutHome, PutLimit, PutNamespace, QuotaCommand, Reconcile, ReleaseReservation,
        RemoveNode, ReportUsage, ReservationRef, Reserve, Resize, ReturnUse, Settle, Settlement,
        ShareGrant, ShareReclaim, ShareReturn,
    },
    ids::{ObjectId, ReservationId},
    names::{Labels, NamespaceName, Owner, QuotaName, QuotaPath, Reason, RegionName, RequestId},
    outcome::{Done, QuotaDone},
    policy::Policy,
    testing::{Scribe, default_namespace},
};

fn request(n: u64) -> RequestId {
    RequestId::new(&format!("quota-request-{n}")).expect("an id")
}

fn owner(text: &str) -> Owner {
    Owner::new(text).expect("an owner")
}

fn reason() -> Reason {
    Reason::new("an operator wants it").expect("a reason")
}

fn node(quota: &str, path: &str) -> NodeRef {
    let quota = QuotaName::new(quota).expect("a quota");
    NodeRef { quota, path: QuotaPath::new(path).expect("a path") }
}

fn item(quota: &str, path: &str, amount: u64) -> Item {
    Item { node: node(quota, path), amount }
}

fn name(n: u8) -> ReservationId {
    ReservationId([n; 16])
}

fn of(n: u8) -> ReservationRef {
    ReservationRef { namespace: default_namespace(), reservation: name(n), fence: None }
}

fn limit(n: u64, quota: &str, path: &str, limits: NodeLimits) -> QuotaCommand {
    QuotaCommand::PutLimit(PutLimit {
        namespace: default_namespace(),
        node: node(quota, path),
        limits,
        expected_version: 0,
        refuse_debt: false,
        request_id: request(n),
    })
}

fn reserve(
    n: u8,
    items: Vec<Item>,
    ttl_ms: u64,
    on_expiry: OnExpiry,
    wait_ms: u64,
) -> QuotaCommand {
    QuotaCommand::Reserve(Reserve {
        namespace: default_namespace(),
        owner: owner("worker"),
        items,
        request_id: request(100 + u64::from(n)),
        reservation: name(n),
        ttl_ms,
        max_lifetime_ms: Some(7_200_000),
        on_expiry,
        priority: n,
        wait_timeout_ms: wait_ms,
        labels: Labels::new([("job".into(), "7".into())]).expect("labels"),
    })
}

fn run(scribe: &mut Scribe, after_ms: u64, commands: Vec<QuotaCommand>) -> Vec<QuotaDone> {
    let operations = commands.into_iter().map(Operation::Quota).collect();
    let outcomes = scribe.batch(after_ms, operations).outcomes;
    let done = |result| match result {
        Ok(Done::Quota(done)) => Some(done),
        _ => None,
    };
    outcomes.into_iter().filter_map(|outcome| done(outcome.result)).collect()
}

/// Lives through every command of level 4, and leaves reservations of every kind, accounts, a report and one who waits.
pub(super) fn live(scribe: &mut Scribe) {
    trees(scribe);
    let commit = reservations(scribe);
    books(scribe, commit);
    regions(scribe);
}

fn trees(scribe: &mut Scribe) {
    let acme = NodeLimits {
        limit: 40,
        burst: 4,
        guaranteed: 10,
        weight: 3,
        owner_reserved_max: Some(38),
        patience_ms: None,
        home: None,
    };
    let patient = NodeLimits { patience_ms: Some(60_000), ..NodeLimits::of(64) };
    let remove = QuotaCommand::RemoveNode(RemoveNode {
        namespace: default_namespace(),
        node: node("gpu", "gone"),
        expected_version: 1,
        request_id: request(6),
    });
    run(
        scribe,
        10,
        vec![
            limit(1, "gpu", "", patient),
            limit(2, "gpu", "acme", acme),
            limit(3, "gpu", "gone", NodeLimits::of(1)),
            limit(4, "gpu", "bolt", NodeLimits::of(64)),
            limit(5, "bytes", "", NodeLimits::of(1 << 40)),
            remove,
        ],
    );
}

fn reservations(scribe: &mut Scribe) -> ObjectId {
    let both = vec![item("gpu", "acme", 8), item("bytes", "", 1 << 30)];
    let gpu = |amount| vec![item("gpu", "acme", amount)];
    let commit = |n: u64, of: ReservationRef, items, is_final, late, readmitted| {
        let readmitted = name(readmitted);
        let request_id = request(n);
        QuotaCommand::Commit(Commit { of, items, is_final, late, readmitted, request_id })
    };
    let (in_flight_ttl_ms, on_expiry) = (90_000, OnExpiry::Quarantine);
    let begin = Begin { of: of(2), in_flight_ttl_ms, on_expiry, request_id: request(20) };
    let extend = Extend { of: of(2), ttl_ms: Some(120_000), request_id: request(21) };
    let resize = Resize { of: of(2), items: gpu(3), request_id: request(22) };
    let done = run(
        scribe,
        10,
        vec![
            reserve(1, both, 60_000, OnExpiry::Commit, 0),
            reserve(2, gpu(4), 60_000, OnExpiry::Release, 0),
            reserve(3, gpu(1), 1_000, OnExpiry::Quarantine, 0),
            reserve(4, gpu(1), 1_000, OnExpiry::Release, 0),
            reserve(5, gpu(1), 1_000, OnExpiry::Quarantine, 0),
            reserve(6, gpu(1), 60_000, OnExpiry::Release, 0),
            reserve(
                7,
                vec![item("gpu", "acme", 60), item("gpu", "none", 1)],
                5_000,
                OnExpiry::Release,
                0,
            ),
            QuotaCommand::Begin(begin),
            QuotaCommand::Extend(extend),
            QuotaCommand::Resize(resize),
            QuotaCommand::Release(ReleaseReservation { of: of(6), request_id: request(23) }),
            commit(24, of(1), Some(gpu(2)), false, Late::Reject, 50),
        ],
    );
    let mut commits = done.iter().filter_map(|done| match done {
        QuotaDone::Committed(done) => Some(done.commit),
        _ => None,
    });
    let first = commits.next().expect("one was made");
    scribe.pass(1_500);
    let (settlement, reason) = (Settlement::Commit, reason());
    let settle = Settle { of: of(3), settlement, reason, request_id: request(25) };
    run(
        scribe,
        10,
        vec![
            QuotaCommand::Settle(settle),
            commit(26, of(4), None, true, Late::Readmit, 51),
            reserve(8, gpu(1), 500_000, OnExpiry::Release, 0),
            reserve(9, vec![item("gpu", "bolt", 60)], 60_000, OnExpiry::Release, 300_000),
            reserve(10, gpu(1), 1_000, OnExpiry::Release, 0),
        ],
    );
    scribe.pass(1_500);
    first
}

fn books(scribe: &mut Scribe, commit: ObjectId) {
    let namespace = default_namespace;
    let back = ReturnUse {
        namespace: namespace(),
        commit,
        node: node("gpu", "acme"),
        owner: owner("worker"),
        amount: 1,
        request_id: request(30),
    };
    let report = ReportUsage {
        namespace: namespace(),
        node: node("gpu", "acme"),
        reporter: owner("counter"),
        epoch: 1,
        observed: 40,
        as_of: scribe.state.revision(),
        committed_then: 4,
        read_at: scribe.state.time(),
        request_id: request(31),
    };
    let reconcile = Reconcile {
        namespace: namespace(),
        node: node("gpu", "acme"),
        reporter: owner("counter"),
        epoch: 1,
        dry_run: false,
        at_once: true,
        request_id: request(32),
    };
    let adjust = Adjust {
        namespace: namespace(),
        node: node("gpu", "bolt"),
        owner: owner("worker"),
        change: Adjustment::Add(2),
        reason: reason(),
        request_id: request(33),
    };
    run(
        scribe,
        10,
        vec![
            QuotaCommand::Return(back),
            QuotaCommand::ReportUsage(report),
            QuotaCommand::Reconcile(reconcile),
            QuotaCommand::Adjust(adjust),
        ],
    );
}

fn regions(scribe: &mut Scribe) {
    let region = |text: &str| RegionName::new(text).expect("a region");
    let namespace = default_namespace;
    let grant = |n: u8| {
        QuotaCommand::ShareGrant(ShareGrant {
            namespace: namespace(),
            node: node("bytes", ""),
            region: region("us-east"),
            amount: 1 << 20,
            overdraft_cap: 1 << 10,
            share: name(n),
            request_id: request(u64::from(n)),
        })
    };
    let back = ShareReturn {
        namespace: namespace(),
        share: name(60),
        returned: 5,
        spent: 6,
        request_id: request(62),
    };
    let reclaim = ShareReclaim {
        namespace: namespace(),
        share: name(61),
        reason: reason(),
        request_id: request(63),
    };
    run(
        scribe,
        10,
        vec![
            grant(60),
            grant(61),
            QuotaCommand::ShareReturn(back),
            QuotaCommand::ShareReclaim(reclaim),
        ],
    );
    let elsewhere = NamespaceName::new("elsewhere").expect("a name");
    let put = PutNamespace {
        namespace: elsewhere.clone(),
        expected_version: 0,
        policy: Policy::default(),
    };
    let home = PutHome { namespace: elsewhere, home: Some(region("us-east")), expected_version: 1 };
    scribe.batch(
        10,
        vec![
            Operation::SetRegion { region: Some(region("eu-west")) },
            Operation::PutNamespace(put),
            Operation::PutHome(home),
        ],
    );
}
