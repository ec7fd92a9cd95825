//! Get, List and the other reads: what is shown, in which order, page by page; they end nothing.

use sereno_core::{
    State,
    command::{
        Item, NodeLimits, NodeRef, OnExpiry, Operation, PutLimit, PutNamespace, QuotaCommand,
        Reserve,
    },
    ids::{LeaseId, ReservationId, Token},
    names::{Labels, NamespaceName, Owner, QuotaName, QuotaPath, RequestId},
    outcome::Done,
    policy::{Fencing, Policy},
    query::ListLocks,
    testing::{Scribe, acquire, default_namespace, lease_id, release, renew, resource_name},
};

fn list(prefix: &str) -> ListLocks {
    let (namespace, prefix) = (default_namespace(), prefix.to_string());
    ListLocks { namespace, prefix, owner: None, limit: 100, after: Token(0) }
}

fn names(state: &State, list: &ListLocks) -> Vec<String> {
    let page = state.list_locks(list).expect("a namespace");
    page.locks.iter().map(|lock| lock.resource.to_string()).collect()
}

/// Locks `names` in this order, requests numbered from 1.
fn holding(names: &[&str]) -> Scribe {
    let mut scribe = Scribe::new();
    for (n, name) in (1..).zip(names) {
        scribe.run(Operation::Acquire(acquire(name, n)));
    }
    scribe
}

fn waiting(resource: &str, n: u64, wait_timeout_ms: u64) -> Operation {
    let mut operation = acquire(resource, n);
    operation.wait_timeout_ms = wait_timeout_ms;
    Operation::Acquire(operation)
}

#[test]
fn lists_are_by_prefix_and_owner_oldest_first() {
    let mut scribe = holding(&["b/1", "a/1", "b/2", "c", "b"]);
    assert_eq!(names(&scribe.state, &list("")), ["b/1", "a/1", "b/2", "c", "b"]);
    assert_eq!(names(&scribe.state, &list("b/")), ["b/1", "b/2"]);
    let owner = Some(Owner::new("owner-3").unwrap());
    assert_eq!(names(&scribe.state, &ListLocks { owner: owner.clone(), ..list("b") }), ["b/2"]);
    assert_eq!(names(&scribe.state, &ListLocks { owner, ..list("c") }), [""; 0]);
    // A renewal makes no lock younger; a new grant does.
    scribe.run(renew("b/1", 1));
    scribe.run(release("a/1", 2));
    scribe.run(Operation::Acquire(acquire("a/1", 9)));
    assert_eq!(names(&scribe.state, &list("")), ["b/1", "b/2", "c", "b", "a/1"]);
    let elsewhere = ListLocks { namespace: NamespaceName::new("shop").unwrap(), ..list("") };
    assert_eq!(scribe.state.list_locks(&elsewhere), None);
}

#[test]
fn pages_end_and_go_on_where_they_ended() {
    let scribe = holding(&["a", "b", "c", "d", "e"]);
    for limit in [0, 1, 2, 3, 4, 5, 6, usize::MAX] {
        let (mut page, mut seen) = (ListLocks { limit, ..list("") }, Vec::new());
        loop {
            let got = scribe.state.list_locks(&page).unwrap();
            assert!(!got.locks.is_empty() && got.locks.len() <= limit.max(1));
            seen.extend(got.locks.iter().map(|lock| lock.resource.to_string()));
            match got.next {
                Some(next) => page.after = next,
                None => break,
            }
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e"], "limit {limit}");
    }
    let beyond = ListLocks { after: Token(u64::MAX), ..list("") };
    assert_eq!(scribe.state.list_locks(&beyond).unwrap().locks, []);
}

#[test]
fn a_lock_is_shown_with_its_holder_and_its_queue() {
    let mut scribe = holding(&["a"]);
    scribe.run(waiting("a", 2, 30_000));
    scribe.pass(1_000);
    scribe.run(waiting("a", 3, 20_000));
    scribe.pass(2_000);
    scribe.run(renew("a", 1));
    scribe.pass(500);
    let view = scribe.state.lock(&default_namespace(), &resource_name("a")).unwrap();
    let holder = view.holder.unwrap();
    assert_eq!(holder.holder.owner.as_str(), "owner-1");
    assert_eq!((holder.holder.held_for_ms, holder.holder.expires_in_ms), (3_500, 9_500));
    assert_eq!((holder.renewed_ago_ms, holder.final_deadline_in_ms), (500, None));
    assert_eq!(holder.lease_hash, lease_id(1).public_hash());
    assert_eq!(holder.fencing, Fencing::BestEffort);
    assert_eq!((view.waiters, view.lock_delay_ms), (2, 0));
    let rows: Vec<_> =
        view.queue.iter().map(|w| (w.place, w.waited_ms, w.wait_expires_in_ms)).collect();
    assert_eq!(rows, [(1, 3_500, 26_500), (2, 2_500, 17_500)]);
}

#[test]
fn reads_end_nothing() {
    let mut scribe = Scribe::new();
    let fill = |n| Operation::Acquire(acquire(&format!("fill/{n}"), n));
    scribe.batch(0, (10..1_010).map(fill).collect());
    scribe.run(Operation::Acquire(acquire("a", 1)));
    scribe.pass(9_500);
    scribe.pass(500);
    // The sweep has ended the thousand; `a` is due and shown as held with nothing left.
    let view = scribe.state.lock(&default_namespace(), &resource_name("a")).unwrap();
    assert_eq!(view.holder.unwrap().holder.expires_in_ms, 0);
    assert_eq!((scribe.state.due().objects, scribe.state.leases()), (1, 1));
    scribe.pass(0);
    let view = scribe.state.lock(&default_namespace(), &resource_name("a")).unwrap();
    assert_eq!((view.holder, view.waiters), (None, 0));
    assert_eq!((scribe.state.due().objects, scribe.state.leases()), (0, 0));
}

#[test]
fn claims_as_the_leader_looks_at_them() {
    let mut scribe = holding(&["a"]);
    let Ok(Done::Waiting(waits)) = scribe.run(waiting("a", 2, 30_000)).result else { panic!() };
    let state = &scribe.state;
    assert_eq!(state.waiting_claims().collect::<Vec<_>>(), [waits.claim]);
    assert_eq!(state.waiting_answer(waits.claim).unwrap().result, Ok(Done::Waiting(waits.clone())));
    assert_eq!(state.grant_of(waits.claim), None);
    assert_eq!(state.asked_at(waits.claim), Some(state.revision()));
    // Nobody has been granted the waiter's lease id: it has no deadline that a renewal could be late for.
    assert_eq!(state.lease_expires_in_ms(lease_id(2)), None);
    assert_eq!(state.lease_expires_in_ms(lease_id(1)), Some(10_000));
    assert_eq!(state.lease_expires_in_ms(lease_id(3)), None);
    assert_eq!(state.lease_expires_in_ms(LeaseId::default()), None);

    scribe.run(release("a", 1));
    let state = &scribe.state;
    assert_eq!(state.waiting_claims().count(), 0);
    assert_eq!(state.waiting_answer(waits.claim), None);
    assert_eq!(state.grant_of(waits.claim).unwrap().lease_id, lease_id(2));
    assert_eq!(state.lease_expires_in_ms(lease_id(2)), Some(10_000));
    assert_eq!(state.lease_expires_in_ms(lease_id(1)), None);
    assert_eq!((state.leases(), state.waiters(), state.reply_records()), (1, 0, 2));
}

fn put(name: &str, expected_version: u64, policy: Policy) -> Operation {
    let namespace = NamespaceName::new(name).expect("a name");
    Operation::PutNamespace(PutNamespace { namespace, expected_version, policy })
}

#[test]
fn namespaces_are_listed_by_name_and_counted() {
    let mut scribe = holding(&["a", "b"]);
    for name in ["zoo", "bar", "shop"] {
        scribe.run(put(name, 0, Policy { requests_per_second: Some(7), ..Policy::default() }));
    }
    let listed = |after, limit| {
        let views = scribe.state.namespaces(after, limit);
        views.iter().map(|view| view.namespace.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed("", 10), ["bar", "default", "shop", "zoo"]);
    assert_eq!(listed("default", 1), ["shop"]);
    let view = scribe.state.namespace(&default_namespace()).unwrap();
    assert_eq!((view.version, view.leases, view.waiters, view.reply_records), (1, 2, 0, 2));
    assert_eq!(scribe.state.namespace(&NamespaceName::new("nowhere").unwrap()), None);
    assert_eq!(scribe.state.requests_per_second(&NamespaceName::new("shop").unwrap()), Some(7));
    assert_eq!(scribe.state.requests_per_second(&default_namespace()), None);
}

/// A restore grants nothing for the longest TTL: a lease keeps its own when the policy is cut, and may have been
/// renewed after the backup. A lock delay comes on top.
#[test]
fn the_pause_of_a_restore_counts_live_leases_and_lock_delays() {
    let mut scribe = Scribe::new();
    let mut long = acquire("a", 1);
    long.lease_ttl_ms = Some(600_000);
    scribe.run(Operation::Acquire(long));
    let short = Policy { default_ttl_ms: 5_000, max_ttl_ms: 20_000, ..Policy::default() };
    scribe.run(put(NamespaceName::DEFAULT, 1, short));
    assert_eq!(scribe.state.restore_pause_ms(), 600_000);
    let Ok(Done::Renewed(renewed)) = scribe.run(renew("a", 1)).result else { panic!() };
    assert_eq!(renewed.expires_in_ms, 600_000);
    scribe.run(release("a", 1));
    assert_eq!(scribe.state.restore_pause_ms(), 20_000);
    let delaying = Policy {
        lock_delay_ms: 3_000,
        default_ttl_ms: 5_000,
        max_ttl_ms: 10_000,
        ..Policy::default()
    };
    scribe.run(put("shop", 0, delaying));
    assert_eq!(scribe.state.restore_pause_ms(), 23_000);
}

#[test]
fn a_reservation_has_its_deadline_under_its_name() {
    let mut scribe = Scribe::new();
    scribe.run(Operation::RaiseLevel { level: sereno_core::LEVEL_MAX });
    let node = NodeRef { quota: QuotaName::new("gpu").unwrap(), path: QuotaPath::root() };
    let put = PutLimit {
        namespace: default_namespace(),
        node: node.clone(),
        limits: NodeLimits::of(1),
        expected_version: 0,
        refuse_debt: false,
        request_id: RequestId::new("put-limit").unwrap(),
    };
    scribe.run(Operation::Quota(QuotaCommand::PutLimit(put)));
    let reserve = |n: u8, wait_timeout_ms| {
        Operation::Quota(QuotaCommand::Reserve(Reserve {
            namespace: default_namespace(),
            owner: Owner::new("o").unwrap(),
            items: vec![Item { node: node.clone(), amount: 1 }],
            request_id: RequestId::new(&format!("reserve-{n}")).unwrap(),
            reservation: ReservationId([n; 16]),
            ttl_ms: 10_000,
            max_lifetime_ms: None,
            on_expiry: OnExpiry::Release,
            priority: 0,
            wait_timeout_ms,
            labels: Labels::default(),
        }))
    };
    scribe.run(reserve(1, 0));
    scribe.run(reserve(2, 30_000));
    let left_ms = |scribe: &Scribe, n: u8| scribe.state.lease_expires_in_ms(LeaseId([n; 16]));
    assert_eq!((left_ms(&scribe, 1), left_ms(&scribe, 2)), (Some(10_000), None));
    scribe.pass(4_000);
    assert_eq!((left_ms(&scribe, 1), left_ms(&scribe, 3)), (Some(6_000), None));
}
