//! Size: ten thousand waiters of one name, and twenty thousand leases that end together. Order, one wake each,
//! and nothing left behind.

use sereno_core::{
    Applied, Settled, State,
    command::{Abandon, EndDeserted, Family, Operation},
    ids::{ObjectId, Revision},
    limits,
    outcome::{AbandonedWas, Code, Done, End, NotReleased},
    testing::{Scribe, acquire, default_namespace, release, renew, resource_name},
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Numbers that are random enough, and the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

fn waiting(n: u64, wait_timeout_ms: u64) -> Operation {
    let mut operation = acquire("hot", n);
    (operation.wait_timeout_ms, operation.lease_ttl_ms) = (wait_timeout_ms, Some(5_000));
    Operation::Acquire(operation)
}

fn abandon(n: u64) -> Operation {
    let (namespace, family) = (default_namespace(), Family::Lock);
    Operation::Abandon(Abandon { namespace, family, request_id: acquire("hot", n).request_id })
}

/// After everything has ended and been forgotten: as if nothing had ever been there, but for the counters.
fn assert_empty(scribe: &mut Scribe) {
    scribe.pass(limits::REPLY_ENDINGS_MS_DEFAULT + 10_000);
    let state = &scribe.state;
    state.check_invariants();
    assert_eq!((state.leases(), state.waiters(), state.reply_records()), (0, 0, 0));
    assert_eq!((state.next_deadline(), state.due().objects), (None, 0));
    assert_eq!(state.waiting_claims().count(), 0);
    let view = state.namespace(&default_namespace()).expect("it is there");
    assert_eq!((view.leases, view.waiters, view.reply_records), (0, 0, 0));
    let lock = state.lock(&default_namespace(), &resource_name("hot")).expect("a view");
    assert_eq!((lock.holder, lock.waiters, lock.lock_delay_ms), (None, 0, 0));
    // A snapshot has all of the state: it is as small as that of a new log.
    let (empty, left) = (Scribe::new().state.to_snapshot().len(), state.to_snapshot().len());
    assert!(left < empty + 32, "{left} bytes are left, and an empty state has {empty}");
}

/// The queue as somebody outside would keep it, and who has been woken.
struct Queue {
    scribe: Scribe,
    waiting: VecDeque<u64>,
    claims: BTreeMap<ObjectId, u64>,
    holder: u64,
    woken: BTreeSet<u64>,
}

impl Queue {
    /// One holder, and as many waiters as a name may have.
    fn full() -> Self {
        let mut scribe = Scribe::new();
        scribe.run(waiting(0, 0));
        let waiters = limits::WAITERS_PER_RESOURCE_MAX as u64;
        let numbers: Vec<_> = (1..=waiters).collect();
        let mut queue = Self {
            scribe,
            waiting: VecDeque::new(),
            claims: BTreeMap::new(),
            holder: 0,
            woken: BTreeSet::new(),
        };
        for numbers in numbers.chunks(500) {
            let asks = numbers.iter().map(|&n| waiting(n, limits::WAIT_TIMEOUT_MS_MAX)).collect();
            let applied = queue.scribe.batch(0, asks);
            for (&n, outcome) in numbers.iter().zip(&applied.outcomes) {
                let Ok(Done::Waiting(waits)) = &outcome.result else { panic!("{outcome:?}") };
                assert_eq!(waits.place, n);
                queue.claims.insert(waits.claim, n);
                queue.waiting.push_back(n);
            }
        }
        let full = queue.scribe.run(waiting(waiters + 1, 1_000));
        assert_eq!(full.result.expect_err("it is full").code, Code::QueueFull);
        queue
    }

    /// Who has been told what: a grant goes to the first in the queue and to nobody twice; the others are gone.
    fn settle(&mut self, applied: &Applied) {
        for settled in &applied.settled {
            let n = self.claims.remove(&settled.claim).expect("each is settled once");
            match &settled.outcome.result {
                Ok(Done::Granted(_)) => {
                    assert_eq!(self.waiting.pop_front(), Some(n), "served in order");
                    assert!(self.woken.insert(n), "one wake each");
                    self.holder = n;
                }
                Ok(other) => panic!("no end of a wait: {other:?}"),
                Err(refusal) => {
                    assert!(matches!(refusal.code, Code::Abandoned | Code::WaitTimeout));
                    let at = self.waiting.binary_search(&n).expect("it waited");
                    self.waiting.remove(at);
                }
            }
        }
    }

    fn run(&mut self, operations: Vec<Operation>) -> Applied {
        let applied = self.scribe.batch(0, operations);
        self.settle(&applied);
        applied
    }

    fn pass(&mut self, ms: u64) {
        for applied in self.scribe.pass(ms) {
            self.settle(&applied);
        }
    }

    /// Somebody in the queue.
    fn anybody(&self, dice: &mut Dice) -> Option<(u64, ObjectId)> {
        let n = *self.waiting.get(dice.roll(self.waiting.len().max(1)))?;
        let (claim, _) = self.claims.iter().find(|(_, waiter)| **waiter == n)?;
        Some((n, *claim))
    }
}

#[test]
fn ten_thousand_waiters_with_cancels_and_dying_clients() {
    let (mut queue, mut dice) = (Queue::full(), Dice(7));
    let mut deserted = 0;
    while !queue.waiting.is_empty() {
        let mut operations = Vec::new();
        let mut gone = BTreeSet::new();
        for _ in 0..dice.roll(4) {
            let Some((n, claim)) = queue.anybody(&mut dice) else { break };
            if !gone.insert(n) {
                continue;
            }
            let asked_at = queue.scribe.state.asked_at(claim).unwrap();
            match dice.roll(4) {
                0 => operations.push(abandon(n)),
                1 => operations.push(Operation::EndDeserted(EndDeserted { claim, asked_at })),
                // Asked for since: the one that comes after it is void.
                2 => operations.extend([
                    waiting(n, 1),
                    Operation::EndDeserted(EndDeserted { claim, asked_at }),
                ]),
                _ => operations.push(waiting(n, 1)),
            }
        }
        let before = queue.woken.len();
        let applied = queue.run(operations);
        let ended = |outcome: &&_| matches!(outcome, Ok(Done::DesertedEnded(true)));
        deserted += applied.outcomes.iter().map(|outcome| &outcome.result).filter(ended).count();
        assert_eq!(queue.woken.len(), before, "nobody is woken while it is held");
        // The holder releases, abandons, is forgotten by the leader, or dies.
        let holder = queue.holder;
        match dice.roll(40) {
            0 => queue.pass(5_000),
            1..4 => drop(queue.run(vec![abandon(holder)])),
            _ => drop(queue.run(vec![release("hot", holder), release("hot", holder)])),
        }
        let woken = queue.woken.len() - before;
        assert!(woken == 1 || queue.waiting.is_empty(), "one hand-over for one end");
    }
    assert!(queue.woken.len() > 4_000 && deserted > 1_000, "{} {deserted}", queue.woken.len());
    assert!(queue.claims.is_empty());
    queue.run(vec![release("hot", queue.holder)]);
    assert_empty(&mut queue.scribe);
}

/// All waits end in the same millisecond: a thousand an entry; whoever comes meanwhile finds a free name free.
#[test]
fn ten_thousand_waits_that_time_out_together() {
    let mut queue = Queue::full();
    while queue.scribe.state.waiters() == 10_000 {
        let renewal = queue.scribe.batch(1_000, vec![renew("hot", 0)]);
        queue.settle(&renewal);
    }
    assert_eq!(queue.waiting.len(), 9_000);
    let mut applied = queue.scribe.batch(
        0,
        vec![
            release("hot", 0),
            waiting(20_001, 0),
            waiting(20_002, 60_000),
            release("hot", 20_001),
        ],
    );
    assert!(applied.outcomes.iter().all(|outcome| outcome.result.is_ok()), "{applied:?}");
    let is_granted = |settled: &Settled| settled.outcome.result.is_ok();
    let (granted, ended) = applied.settled.into_iter().partition::<Vec<_>, _>(is_granted);
    assert_eq!(granted.len(), 1, "who is alive has it, past eight thousand who are due");
    applied.settled = ended;
    queue.settle(&applied);
    for left in (0..8).rev() {
        let applied = queue.run(Vec::new());
        assert_eq!((applied.settled.len(), queue.waiting.len()), (1_000, left * 1_000));
    }
    queue.run(vec![release("hot", 20_002)]);
    assert_empty(&mut queue.scribe);
}

#[test]
fn twenty_thousand_leases_that_end_together() {
    const LEASES: u64 = 20_000;
    let mut scribe = Scribe::new();
    let name = |n: u64| format!("n/{n}");
    let numbers: Vec<_> = (1..=LEASES).collect();
    for numbers in numbers.chunks(1_000) {
        let asks = numbers.iter().map(|&n| Operation::Acquire(acquire(&name(n), n))).collect();
        scribe.batch(0, asks);
    }
    // The last ones, which the sweep reaches last, have somebody waiting.
    let waits = |n: u64| {
        let mut wait = acquire(&name(n), LEASES + n);
        wait.wait_timeout_ms = 60_000;
        Operation::Acquire(wait)
    };
    scribe.batch(0, (LEASES - 9..=LEASES).map(waits).collect());
    scribe.pass(9_999);
    assert_eq!((scribe.state.leases(), scribe.state.due().objects), (LEASES, 0));

    // One millisecond later all are due. Commands on those that the sweep has not reached act at once.
    let (last, lost) = (LEASES, LEASES - 5_000);
    let applied = scribe.batch(
        1,
        vec![
            renew(&name(lost), lost),
            release(&name(lost - 1), lost - 1),
            Operation::Acquire(acquire(&name(lost - 2), 3 * LEASES)),
            Operation::Acquire(acquire(&name(last), 3 * LEASES + 1)),
        ],
    );
    let results: Vec<_> = applied.outcomes.into_iter().map(|outcome| outcome.result).collect();
    assert_eq!(results[0].as_ref().unwrap_err().code, Code::LeaseEnded);
    let expired = Some(NotReleased::Ended(End::Expired));
    assert_eq!(results[1], Ok(Done::Released { already: expired }));
    assert!(matches!(results[2], Ok(Done::Granted(_))), "a free name is granted");
    assert_eq!(results[3].as_ref().unwrap_err().code, Code::Locked, "to who waited before");
    assert_eq!(applied.settled.len(), 1);

    let swept_and_touched = 1_000 + 4;
    let mut due = LEASES - swept_and_touched;
    let mut entries = 1;
    while due > 0 {
        let counted = scribe.state.due().objects;
        assert_eq!(counted, due.min(10_000), "counted up to ten thousand");
        let before = scribe.state.revision();
        scribe.write(0, sereno_core::entry::Body::Batch(Vec::new()));
        let swept = due.min(1_000);
        assert_eq!(scribe.state.revision(), Revision(before.0 + swept), "a revision each");
        due -= swept;
        entries += 1;
    }
    assert_eq!(entries, 20, "a thousand an entry");
    scribe.state.check_invariants();
    assert_eq!((scribe.state.leases(), scribe.state.waiters()), (11, 0), "ten waited, one came");
    assert_empty(&mut scribe);
}

/// L1's twenty thousand: every holder dies in the same millisecond, and somebody waits for each lock. Twenty entries hand them
/// all over, without any cluster time passing; the leader writes them one after the other (`node/tests/time.rs`).
#[test]
fn twenty_thousand_holders_that_die_together_are_followed_within_twenty_entries() {
    const LEASES: u64 = 20_000;
    let mut scribe = Scribe::new();
    let name = |n: u64| format!("n/{n}");
    let ask = |scribe: &mut Scribe, first: u64, wait_timeout_ms: u64| {
        let numbers: Vec<_> = (1..=LEASES).collect();
        for numbers in numbers.chunks(1_000) {
            let asks = numbers.iter().map(|&n| {
                let mut asked = acquire(&name(n), first + n);
                asked.wait_timeout_ms = wait_timeout_ms;
                Operation::Acquire(asked)
            });
            scribe.batch(0, asks.collect());
        }
    };
    ask(&mut scribe, 0, 0);
    ask(&mut scribe, LEASES, 60_000);
    let early: usize = scribe.pass(9_999).iter().map(|applied| applied.settled.len()).sum();
    assert_eq!((scribe.state.leases(), scribe.state.waiters(), early), (LEASES, LEASES, 0));
    let dead_at = scribe.state.time().plus(1);
    let mut served = BTreeSet::new();
    for entry in 0..20 {
        let applied = scribe.batch(u64::from(entry == 0), Vec::new());
        assert_eq!(applied.settled.len(), 1_000, "entry {entry}");
        for Settled { claim, outcome } in applied.settled {
            assert!(matches!(outcome.result, Ok(Done::Granted(_))), "{outcome:?}");
            assert!(served.insert(claim), "one wake each");
        }
    }
    assert_eq!(served.len() as u64, LEASES);
    assert_eq!(scribe.state.time(), dead_at, "no time has passed for anybody");
    assert_eq!((scribe.state.leases(), scribe.state.waiters()), (LEASES, 0));
    scribe.state.check_invariants();
}

/// Many remembered requests that are forgotten in the same moment do not pile up: forgetting keeps up with as many
/// commands as an entry can have.
#[test]
fn forgetting_keeps_up() {
    let mut scribe = Scribe::new();
    let commands = limits::BATCH_COMMANDS_MAX as u64;
    let unseen = |n: u64| abandon(1_000_000 + n);
    for entry in 0..40 {
        let first = entry * commands;
        let applied = scribe.batch(0, (first..first + commands).map(unseen).collect());
        let was = Ok(Done::Abandoned { was: AbandonedWas::Unseen });
        assert!(applied.outcomes.iter().all(|outcome| outcome.result == was));
    }
    assert_eq!(scribe.state.reply_records(), 40 * commands);
    scribe.pass(limits::REPLY_REFUSALS_MS_DEFAULT - 1);
    assert_eq!(scribe.state.reply_records(), 40 * commands, "never early");
    for entry in 40..60 {
        let first = entry * commands;
        scribe.batch(1, (first..first + commands).map(unseen).collect());
    }
    assert_eq!(scribe.state.reply_records(), 20 * commands, "the first forty are gone");
    let bytes = scribe.state.to_snapshot();
    assert!(State::from_snapshot(&bytes).unwrap().to_snapshot() == bytes);
    assert_empty(&mut scribe);
}
