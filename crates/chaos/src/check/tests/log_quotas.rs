//! The checker that replays the log, on quotas; and the guards' tokens.

use super::{quota_words::*, written::Written, *};
use crate::{
    check::guards,
    history::{Held, NodeRules, QuotaHeard, QuotaOp, ReservationOf},
};
use sereno_api::{OnExpiry, QuotaItem};
use sereno_core::{
    command::{
        self, Commit, Item, Late, NodeLimits, NodeRef, Operation, PutLimit, QuotaCommand,
        ReservationRef, Reserve, ReturnUse,
    },
    ids::{ObjectId, ReservationId},
    names::{Labels, Owner, QuotaName, QuotaPath, RequestId},
    outcome::{Detail, Done, Outcome, QuotaDone},
    testing,
};

fn node(path: &str) -> NodeRef {
    NodeRef { quota: QuotaName::new("t").unwrap(), path: QuotaPath::new(path).unwrap() }
}

fn logged(items: &[QuotaItem]) -> Vec<Item> {
    items.iter().map(|it| Item { node: node(&it.path), amount: it.amount }).collect()
}

fn told(items: &[Item]) -> Vec<QuotaItem> {
    items.iter().map(|it| item("t", it.node.path.as_str(), it.amount)).collect()
}

fn request_id(text: &str) -> RequestId {
    RequestId::new(text).unwrap()
}

fn id(number: u8) -> ReservationId {
    ReservationId([number; 16])
}

impl Written {
    /// A tree of two nodes; a reservation, a refusal, a commit in part, a return, a return of too much.
    fn of_quotas() -> Self {
        let mut written = Self::new();
        for level in [3, 4] {
            written.scribe.run(Operation::RaiseLevel { level });
        }
        written.limit("", 8);
        written.limit("a", 5);
        written.reserve(1, 3);
        written.reserve(2, 4);
        written.commit();
        written.give_back(1);
        written.give_back(2);
        written
    }

    fn about_quotas(&mut self, op: QuotaOp, command: QuotaCommand) {
        self.run(Op::Quota(op), Operation::Quota(command), answer);
    }

    fn limit(&mut self, path: &str, limit: u64) {
        let request = format!("request-{path}-{limit}");
        let (quota, burst, guaranteed, weight) = ("t".to_owned(), 0, 0, 1);
        let rules = NodeRules {
            quota,
            path: path.into(),
            limit,
            burst,
            guaranteed,
            weight,
            owner_reserved_max: None,
        };
        let op = QuotaOp::PutLimit { node: rules, expected_version: 0, request: request.clone() };
        let command = PutLimit {
            namespace: testing::default_namespace(),
            node: node(path),
            limits: NodeLimits::of(limit),
            expected_version: 0,
            refuse_debt: false,
            request_id: request_id(&request),
        };
        self.about_quotas(op, QuotaCommand::PutLimit(command));
    }

    fn reserve(&mut self, number: u8, amount: u64) {
        let (request, items) = (format!("reserve-{number}"), vec![item("t", "a", amount)]);
        let command = Reserve {
            namespace: testing::default_namespace(),
            owner: Owner::new("w").unwrap(),
            items: logged(&items),
            request_id: request_id(&request),
            reservation: id(number),
            ttl_ms: 10_000,
            max_lifetime_ms: None,
            on_expiry: command::OnExpiry::Release,
            priority: 0,
            wait_timeout_ms: 0,
            labels: Labels::default(),
        };
        let Op::Quota(op) = reserve_of(&request, items, OnExpiry::Release) else { panic!() };
        self.about_quotas(op, QuotaCommand::Reserve(command));
    }

    fn commit(&mut self) {
        let items = vec![item("t", "a", 2)];
        let of = ReservationRef {
            namespace: testing::default_namespace(),
            reservation: id(1),
            fence: None,
        };
        let command = Commit {
            of,
            items: Some(logged(&items)),
            is_final: false,
            late: Late::Reject,
            readmitted: id(9),
            request_id: request_id("commit-1"),
        };
        let (reservation, fence) = (id(1).to_hex(), None);
        let (request, asked) = ("commit-1".into(), "reserve-1".into());
        let of = ReservationOf { reservation, fence, request, asked };
        let op = QuotaOp::Commit { of, items: Some(items), is_final: false, readmits: false };
        self.about_quotas(op, QuotaCommand::Commit(command));
    }

    /// Of the commit before: it has used 2.
    fn give_back(&mut self, amount: u64) {
        let Heard::Quota(QuotaHeard::Committed(commit)) = &self.calls[4].heard else { panic!() };
        let (commit, request) = (commit.commit_id, format!("return-{amount}"));
        let command = ReturnUse {
            namespace: testing::default_namespace(),
            commit: ObjectId(commit),
            node: node("a"),
            owner: Owner::new("w").unwrap(),
            amount,
            request_id: request_id(&request),
        };
        let (owner, item) = ("w".into(), item("t", "a", amount));
        let op = QuotaOp::Return { commit, owner, item, request };
        self.about_quotas(op, QuotaCommand::Return(command));
    }
}

/// The answer that the door makes of an outcome.
fn answer(outcome: &Outcome) -> Heard {
    let (revision, time) = (outcome.revision.0, outcome.time.0);
    let body = match &outcome.result {
        Ok(Done::Quota(done)) => told_done(done),
        Err(refusal) => return refused_as(refusal, revision, time),
        other => panic!("{other:?}"),
    };
    let (op, mut body) = body;
    body["revision"] = revision.into();
    body["clusterTimeMs"] = time.into();
    body["replayed"] = false.into();
    let answer = crate::history::Answer::Response { status: 200, body };
    Heard::of(&op, &answer).expect("the interface's own words")
}

fn told_done(done: &QuotaDone) -> (Op, serde_json::Value) {
    match done {
        QuotaDone::LimitPut { version, debt } => {
            let body = json!({"quota": "t", "path": "", "version": version, "debt": debt});
            (limit("t", "", 1).op, body)
        }
        QuotaDone::Reserved(it) => {
            let item = |it: &sereno_core::outcome::ReservedItem| {
                let (path, amount) = (it.item.node.path.as_str(), it.item.amount);
                json!({"quota": "t", "path": path, "amount": amount, "available": it.available})
            };
            let body = json!({
                "state": "reserved", "reservationId": it.reservation.to_hex(),
                "fenceKey": format!("chaos/quota/{}", it.reservation), "fence": it.fence.0, "items": it.items.iter().map(item).collect::<Vec<_>>(),
                "clipped": it.clipped, "expiresAt": "", "expiresInMs": it.expires_in_ms,
                "finalDeadlineInMs": it.final_deadline_in_ms,
            });
            (reserve("any", 1), body)
        }
        QuotaDone::Committed(it) => {
            let body = json!({
                "commitId": it.commit.0, "reservationId": it.reservation.to_hex(),
                "taken": told(&it.taken), "returned": told(&it.returned), "left": told(&it.left),
            });
            (commit("any", "any", None, true), body)
        }
        QuotaDone::Returned { commit, amount, left } => {
            let body = json!({"commitId": commit.0, "amount": amount, "left": left});
            (give_back(1, "any", 1), body)
        }
        other => panic!("{other:?}"),
    }
}

fn refused_as(refusal: &sereno_core::outcome::Refusal, revision: u64, time: u64) -> Heard {
    let code = match &refusal.detail {
        Detail::Exhausted(_) => ErrorCode::QuotaExhausted,
        _ => ErrorCode::ExceedsReservation,
    };
    let mut problem = problem(code, revision);
    problem.cluster_time_ms = Some(time);
    problem.retry_after_ms = refusal.retry_after_ms;
    match &refusal.detail {
        Detail::Exhausted(of) => {
            problem.sweep_pending = Some(of.sweep_pending);
            let layer = |it: &sereno_core::outcome::Layer| sereno_api::QuotaLayer {
                quota: "t".into(),
                path: it.node.path.to_string(),
                limit: it.limit,
                burst: it.burst,
                committed: it.committed,
                reserved: it.reserved,
                available: it.available,
                asked: it.asked,
                shortfall: it.shortfall,
                version: it.version,
                kind: sereno_api::Shortage::Limit,
            };
            problem.layers = of.layers.iter().map(layer).collect();
        }
        Detail::Excess(it) => {
            problem.excess = Some(sereno_api::QuotaExcess {
                quota: "t".into(),
                path: it.node.path.to_string(),
                owner: it.owner.to_string(),
                has: it.has,
                asked: it.asked,
            });
        }
        other => panic!("{other:?}"),
    }
    Heard::Problem(Box::new(problem))
}

#[test]
fn answers_about_quotas_that_are_the_logs_pass() {
    let written = Written::of_quotas();
    assert_eq!(written.violations(), Vec::<&str>::new());
    let refused = written.calls.iter().filter(|it| matches!(it.heard, Heard::Problem(_))).count();
    assert_eq!(refused, 2, "one for want of room, one for want of use");
}

#[test]
fn answers_about_quotas_that_are_not_the_logs_are_found() {
    type Plant = fn(&mut [Call]);
    fn quota(call: &mut Call) -> &mut QuotaHeard {
        match &mut call.heard {
            Heard::Quota(heard) => heard,
            other => panic!("{other:?}"),
        }
    }
    fn reserved(call: &mut Call) -> &mut sereno_api::Reserved {
        match quota(call) {
            QuotaHeard::Reserved(it) => it,
            other => panic!("{other:?}"),
        }
    }
    fn committed(call: &mut Call) -> &mut sereno_api::Committed {
        match quota(call) {
            QuotaHeard::Committed(it) => it,
            other => panic!("{other:?}"),
        }
    }
    fn refused(call: &mut Call) -> &mut Problem {
        match &mut call.heard {
            Heard::Problem(it) => it,
            other => panic!("{other:?}"),
        }
    }
    let planted: [(&str, Plant); 19] = [
        ("another fence key", |calls| reserved(&mut calls[2]).fence_key = "chaos/quota/a".into()),
        ("a debt", |calls| {
            if let QuotaHeard::Put(it) = quota(&mut calls[1]) {
                it.debt = 1;
            }
        }),
        ("another limit was put", |calls| {
            if let Op::Quota(QuotaOp::PutLimit { node, .. }) = &mut calls[1].op {
                node.limit += 1;
            }
        }),
        ("another fence", |calls| reserved(&mut calls[2]).fence += 1),
        ("another reservation", |calls| reserved(&mut calls[2]).reservation_id = name("other")),
        ("more was reserved", |calls| reserved(&mut calls[2]).items[0].amount += 1),
        ("more is free", |calls| reserved(&mut calls[2]).items[0].available[0] += 1),
        ("longer than decided", |calls| reserved(&mut calls[2]).expires_in_ms += 1),
        ("a longer life", |calls| reserved(&mut calls[2]).final_deadline_in_ms += 1),
        ("in another state", |calls| {
            reserved(&mut calls[2]).state = sereno_api::ReservationState::InFlight;
        }),
        ("another's reservation", |calls| {
            if let Op::Quota(QuotaOp::Reserve { owner, .. }) = &mut calls[2].op {
                *owner = "x".into();
            }
        }),
        ("an exhausted layer is left out", |calls| drop(refused(&mut calls[3]).layers.pop())),
        ("another shortfall", |calls| refused(&mut calls[3]).layers[0].shortfall += 1),
        ("another kind of shortage", |calls| {
            refused(&mut calls[3]).layers[0].kind = sereno_api::Shortage::Waiting;
        }),
        ("another time to try again", |calls| refused(&mut calls[3]).retry_after_ms = None),
        ("more was used", |calls| committed(&mut calls[4]).taken[0].amount += 1),
        ("nothing stays reserved", |calls| committed(&mut calls[4]).left.clear()),
        ("more is left", |calls| {
            if let QuotaHeard::Returned(it) = quota(&mut calls[5]) {
                it.left += 1;
            }
        }),
        ("it has more", |calls| {
            refused(&mut calls[6]).excess.as_mut().expect("it is told").has += 1;
        }),
    ];
    for (what, plant) in planted {
        let mut written = Written::of_quotas();
        plant(&mut written.calls);
        assert!(!written.violations().is_empty(), "not found: {what}");
    }
}

/// What the state shows of the node, read after everything.
fn read_of(written: &Written, committed: u64, reserved: u64) -> Call {
    let revision = written.scribe.state.revision().0;
    let view = written.scribe.state.quota_node(&testing::default_namespace(), &node("a"));
    let view = view.flatten().expect("it is there");
    let commit = match &written.calls[4].heard {
        Heard::Quota(QuotaHeard::Committed(it)) => it.commit_id,
        other => panic!("{other:?}"),
    };
    let mut call = shows(600, ("t", "a"), committed, reserved);
    if let Heard::Quota(QuotaHeard::Node(read)) = &mut call.heard {
        (read.revision, read.cluster_time_ms) = (revision, written.scribe.state.time().0);
        read.node.updated_in_revision = view.updated_in.0;
        read.node.available = view.available;
        let commits = vec![sereno_api::OwnerCommit { commit_id: commit, left: committed }];
        let owner = "w".to_owned();
        read.owners = vec![sereno_api::OwnerUse { owner, committed, commits, folded: 0 }];
    }
    call
}

#[test]
fn reads_of_quotas_that_show_another_state_than_the_logs_are_found() {
    let check = |call: &dyn Fn(&Written) -> Call| {
        let mut written = Written::of_quotas();
        let call = call(&written);
        written.calls.push(call);
        written.violations().len()
    };
    assert_eq!(check(&|written| read_of(written, 1, 1)), 0);
    assert_eq!(check(&|written| read_of(written, 1, 2)), 1, "other books");
    assert_eq!(check(&|written| read_of(written, 2, 1)), 1, "other use");
    let folded = |written: &Written| {
        let mut call = read_of(written, 1, 1);
        if let Heard::Quota(QuotaHeard::Node(read)) = &mut call.heard {
            read.owners[0].folded = 1;
        }
        call
    };
    assert_eq!(check(&folded), 1, "another account");
    let reservation = |amount: u64| {
        move |written: &Written| {
            let asked = "reserve-1".to_owned();
            let reservation = id(1).to_hex();
            let op = Op::Quota(QuotaOp::Reservation { reservation: reservation.clone(), asked });
            let fence = written.calls[2].heard.tokens()[0].1;
            let of = json!({
                "reservationId": reservation, "state": "reserved", "fenceKey": "k", "fence": fence,
                "owner": "w", "items": [item("t", "a", amount)], "onExpiry": "release",
                "priority": 0, "ageMs": 0, "heldForMs": 0, "expiresInMs": 0,
            });
            let revision = written.scribe.state.revision().0;
            let mut heard = heard(&op, 200, json!({"reservation": of, "ageMs": 0}), revision);
            if let Heard::Quota(QuotaHeard::Reservation(it)) = &mut heard {
                it.cluster_time_ms = written.scribe.state.time().0;
            }
            call(600, 605, op, heard)
        }
    };
    assert_eq!(check(&reservation(1)), 0);
    assert_eq!(check(&reservation(2)), 1, "another amount");
}

#[test]
fn a_guard_that_holds_by_a_token_that_was_not_granted_there_is_found() {
    let mut written = Written::new();
    let outcome = written.scribe.run(Operation::Acquire(testing::acquire("a", 1)));
    let Ok(Done::Granted(grant)) = outcome.result else { panic!() };
    let truth = written.truth();
    let held = |place: &str, token| {
        let (place, since, until) = (place.to_owned(), ms(0), ms(1));
        guards(&[Held { place, token, since, until }], &truth).len()
    };
    let token = grant.holdings[0].1.0;
    assert_eq!(held("lock/a", token), 0);
    assert_eq!(held("lock/a", token + 1), 1, "nobody was granted it");
    assert_eq!(held("lock/b", token), 1, "it was granted elsewhere");
    assert_eq!(held("election/a", token), 1, "it was granted in another family");
}
