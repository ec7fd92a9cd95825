//! The checker that replays the log.

use super::{written::Written, *};
use crate::{check::requests, truth::Truth};
use sereno_core::{
    command::Operation,
    ids::LogId,
    outcome::{Done, Outcome},
    testing,
};

impl Written {
    fn acquire(&mut self, n: u64) {
        let op = acquire(&format!("request-{n}"));
        self.run(op, Operation::Acquire(testing::acquire("a", n)), answer_to_acquire);
    }

    fn release(&mut self, n: u64) {
        let lease_id = testing::lease_id(n).to_hex();
        let op = Op::Release(LeaseOf { lease: lease_id, ..lease(&format!("request-{n}")) });
        self.run(op, testing::release("a", n), |outcome| {
            let Ok(Done::Released { already }) = &outcome.result else { panic!("{outcome:?}") };
            let mut heard = released(already.is_none(), outcome.revision.0);
            stamp(&mut heard, outcome);
            heard
        });
    }
}

fn stamp(heard: &mut Heard, outcome: &Outcome) {
    let time = outcome.time.0;
    match heard {
        Heard::Granted(it) => it.cluster_time_ms = time,
        Heard::Released(it) => it.cluster_time_ms = time,
        Heard::Problem(it) => it.cluster_time_ms = Some(time),
        Heard::Read(it) => it.cluster_time_ms = time,
        other => panic!("{other:?}"),
    }
}

fn answer_to_acquire(outcome: &Outcome) -> Heard {
    let revision = outcome.revision.0;
    let mut heard = match &outcome.result {
        Ok(Done::Granted(grant)) => {
            let mut heard = granted(grant.holdings[0].1.0, revision);
            if let Heard::Granted(it) = &mut heard {
                it.lease_id = grant.lease_id.to_hex();
                it.replayed = outcome.replayed.is_some();
                it.original_revision = outcome.replayed.map(|it| it.0);
            }
            heard
        }
        Err(refusal) => {
            let sereno_core::outcome::Detail::Locked(in_the_way) = &refusal.detail else {
                panic!("{refusal:?}")
            };
            let holder = in_the_way[0].holder.as_ref().unwrap();
            let mut heard = locked(holder.owner.as_str(), holder.token.0, revision);
            let told = as_refused(&mut heard);
            let to_tell = told.holder.as_mut().unwrap();
            (to_tell.held_for_ms, to_tell.expires_in_ms) =
                (holder.held_for_ms, holder.expires_in_ms);
            told.waiters = Some(in_the_way[0].waiters);
            told.retry_after_ms = refusal.retry_after_ms;
            heard
        }
        other => panic!("{other:?}"),
    };
    stamp(&mut heard, outcome);
    heard
}

/// Grant, refusal, release, grant.
fn lawful() -> Written {
    let mut written = Written::new();
    written.acquire(1);
    written.acquire(2);
    written.release(1);
    written.acquire(3);
    written
}

fn as_refused(heard: &mut Heard) -> &mut Problem {
    match heard {
        Heard::Problem(problem) => problem,
        other => panic!("{other:?}"),
    }
}

fn as_released(call: &mut Call) -> &mut Released {
    match &mut call.heard {
        Heard::Released(released) => released,
        other => panic!("{other:?}"),
    }
}

fn as_granted(call: &mut Call) -> &mut sereno_api::Granted {
    match &mut call.heard {
        Heard::Granted(grant) => grant,
        other => panic!("{other:?}"),
    }
}

#[test]
fn answers_that_are_the_logs_pass() {
    let mut written = lawful();
    assert_eq!(written.violations(), Vec::<&str>::new());
    // The same request again, and a read.
    written.acquire(3);
    let revision = written.scribe.state.revision().0;
    let token = as_granted(&mut written.calls[3]).fencing_token;
    let mut heard = read(Some(("owner-3", token)), revision);
    if let Heard::Read(lock) = &mut heard {
        lock.cluster_time_ms = written.scribe.state.time().0;
    }
    written.calls.push(call(60, 65, get(), heard));
    assert_eq!(written.violations(), Vec::<&str>::new());
}

#[test]
fn answers_that_are_not_the_logs_are_found() {
    type Plant = fn(&mut Vec<Call>);
    let planted: [(&str, Plant); 18] = [
        ("another holder", |calls| {
            as_refused(&mut calls[1].heard).holder.as_mut().unwrap().owner = "x".into();
        }),
        ("no holder", |calls| as_refused(&mut calls[1].heard).holder = None),
        ("it has been held for longer", |calls| {
            as_refused(&mut calls[1].heard).holder.as_mut().unwrap().held_for_ms += 1;
        }),
        ("it is held for longer", |calls| {
            as_refused(&mut calls[1].heard).holder.as_mut().unwrap().expires_in_ms += 1;
        }),
        ("somebody waits", |calls| as_refused(&mut calls[1].heard).waiters = Some(1)),
        ("a lock delay", |calls| as_refused(&mut calls[1].heard).lock_delay_ms = Some(1)),
        ("another time to try again", |calls| {
            as_refused(&mut calls[1].heard).retry_after_ms = Some(1);
        }),
        ("another reason of a release", |calls| {
            as_released(&mut calls[2]).reason = Some(Reason::Expired);
        }),
        ("another fence key", |calls| as_granted(&mut calls[0]).fence_key = "chaos/lock/b".into()),
        ("another who checks tokens", |calls| {
            as_granted(&mut calls[0]).fencing = Fencing::Enforced;
        }),
        ("a final deadline", |calls| as_granted(&mut calls[0]).final_deadline_in_ms = Some(1)),
        ("another token", |calls| as_granted(&mut calls[0]).fencing_token += 1),
        ("another lease", |calls| as_granted(&mut calls[0]).lease_id = "00".into()),
        ("longer than decided", |calls| as_granted(&mut calls[0]).expires_in_ms += 1),
        ("a repeated answer that claims to be new", |calls| {
            as_granted(&mut calls[3]).replayed = true
        }),
        ("another outcome", |calls| {
            let revision = calls[1].heard.decided().unwrap().0;
            calls[1].heard = granted(7, revision);
        }),
        ("a change that the log has not", |calls| {
            as_granted(&mut calls[3]).revision += 100;
        }),
        ("another's answer", |calls| {
            calls[0].op = acquire("request-9");
        }),
    ];
    for (what, plant) in planted {
        let mut written = lawful();
        plant(&mut written.calls);
        assert!(!written.violations().is_empty(), "not found: {what}");
    }
}

#[test]
fn a_read_that_shows_another_holder_than_the_log_is_found() {
    let mut written = lawful();
    let revision = written.scribe.state.revision().0;
    written.calls.push(call(60, 65, get(), read(None, revision)));
    let Some(Heard::Read(lock)) = written.calls.last_mut().map(|it| &mut it.heard) else {
        panic!()
    };
    lock.cluster_time_ms = written.scribe.state.time().0;
    assert_eq!(written.violations(), ["S5, S6"]);
}

#[test]
fn an_answer_that_is_older_than_one_before_it_is_found() {
    let mut written = lawful();
    // The first grant is told last, though it was asked for after all others had been answered.
    let mut first = written.calls.remove(0);
    (first.start, first.end) = (ms(70), Some(ms(75)));
    written.calls.push(first);
    assert_eq!(written.violations(), ["S5 (order)"]);
}

#[test]
fn what_was_told_as_not_applied_and_is_in_the_log_is_found() {
    let written = lawful();
    let truth = written.truth();
    let told = |request: &str| {
        let heard = Heard::Problem(Box::new(Problem::new(ErrorCode::Unavailable, "planted")));
        requests::check(&[call(0, 5, acquire(request), heard)], &truth).len()
    };
    assert_eq!(told("request-99"), 0);
    assert_eq!(told("request-1"), 1);
    let pending = call(0, None, acquire("request-1"), unknown());
    assert_eq!(requests::check(&[pending], &truth), []);
}

#[test]
fn a_log_that_was_changed_does_not_follow() {
    let written = lawful();
    let mut truth = Truth::default();
    let mut entries = written.scribe.entries.iter();
    truth.add(&entries.next().unwrap().seal(LogId([7; 16])).bytes).unwrap();
    entries.next();
    let later = entries.next().unwrap().seal(LogId([7; 16]));
    assert!(truth.add(&later.bytes).is_err(), "an entry is missing before it");
}
