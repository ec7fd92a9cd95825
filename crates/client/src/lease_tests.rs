//! Every transition of the state machine with a clock that the test moves, and L4 as a property.

use super::*;

const START: Moment = Moment::from_boot(Duration::from_secs(1_000));
const MIDDLE: Roll = Roll(100);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(after_start_ms: u64) -> Moment {
    START.plus(ms(after_start_ms))
}

fn term(sent_ms: u64, expires_in_ms: u64) -> Term {
    Term { sent: at(sent_ms), expires_in: ms(expires_in_ms), final_in: None }
}

fn bounded(sent_ms: u64, expires_in_ms: u64, final_in_ms: u64) -> Term {
    Term { final_in: Some(ms(final_in_ms)), ..term(sent_ms, expires_in_ms) }
}

#[test]
fn the_deadline_is_sent_plus_ttl_less_one_percent_and_20_ms() {
    assert_eq!(local_deadline(START, ms(30_000)), at(30_000 - 300 - 20));
    assert_eq!(local_deadline(START, ms(1_000)), at(1_000 - 10 - 20));
    assert_eq!(local_deadline(START, ms(150)), START.plus(Duration::from_micros(128_500)));
    assert_eq!(local_deadline(START, ms(20)), START, "nothing is left of it");
    assert_eq!(local_deadline(START, Duration::ZERO), START);
}

#[test]
fn held_then_at_risk_then_lost_by_time_alone() {
    let mut lease = Lease::new(term(0, 30_000), MIDDLE);
    assert_eq!(lease.deadline(), at(29_680));
    let risk_at = at(0).plus(ms(29_680) * 2 / 3);
    assert_eq!(lease.state(at(0)), GuardState::Held);
    assert_eq!(lease.state(risk_at.minus(Duration::from_nanos(1))), GuardState::Held);
    assert_eq!(lease.state(risk_at), GuardState::AtRisk);
    assert_eq!(lease.state(at(29_679)), GuardState::AtRisk);
    assert_eq!(lease.state(at(29_680)), GuardState::Lost(Loss::Deadline));
}

#[test]
fn lost_is_final() {
    let mut lease = Lease::new(term(0, 1_000), MIDDLE);
    assert_eq!(lease.state(at(970)), GuardState::Lost(Loss::Deadline));
    lease.renewed(term(900, 1_000), at(971), MIDDLE);
    lease.not_renewed(NotRenewed::Lost(Loss::Unknown), at(972), MIDDLE);
    lease.end(Loss::Released, at(973));
    assert_eq!(lease.state(at(971)), GuardState::Lost(Loss::Deadline));
    assert!(!lease.is_due(at(2_000)) && !lease.may_join(at(2_000)));
    assert_eq!(lease.next_wake(at(971)), None);
}

#[test]
fn an_answer_that_comes_after_the_local_deadline_does_not_resurrect() {
    let mut lease = Lease::new(term(0, 1_000), MIDDLE);
    // Nobody has asked for the state in between: the loss has to be found by the answer itself.
    lease.renewed(term(960, 1_000), at(970), MIDDLE);
    assert_eq!(lease.state(at(970)), GuardState::Lost(Loss::Deadline));
}

#[test]
fn a_renewal_moves_the_deadline_and_ends_the_risk() {
    let mut lease = Lease::new(term(0, 30_000), MIDDLE);
    assert_eq!(lease.state(at(25_000)), GuardState::AtRisk);
    lease.renewal_sent(at(25_000));
    lease.renewed(term(25_000, 30_000), at(25_010), MIDDLE);
    assert_eq!(lease.state(at(25_010)), GuardState::Held);
    assert_eq!(lease.deadline(), at(25_000 + 29_680));
}

#[test]
fn an_overtaken_answer_never_brings_the_deadline_nearer() {
    let mut lease = Lease::new(term(0, 30_000), MIDDLE);
    lease.renewed(term(15_000, 30_000), at(15_005), MIDDLE);
    lease.renewed(term(10_000, 30_000), at(15_010), MIDDLE);
    assert_eq!(lease.deadline(), at(15_000 + 29_680));
}

#[test]
fn renewals_are_due_at_a_third_with_ten_percent_of_jitter() {
    for (roll, due_ms) in [(0, 9_000), (100, 10_000), (200, 11_000), (201, 9_000)] {
        let lease = Lease::new(term(0, 30_000), Roll(roll));
        assert!(!lease.is_due(at(due_ms - 1)), "roll {roll}");
        assert!(lease.is_due(at(due_ms)), "roll {roll}");
        assert_eq!(lease.next_wake(at(0)), Some(at(due_ms)));
    }
}

#[test]
fn a_renewal_that_is_nearly_due_joins_the_call_of_others_once() {
    let mut lease = Lease::new(term(0, 30_000), Roll(200));
    assert!(!lease.may_join(at(8_999)));
    assert!(lease.may_join(at(9_000)) && !lease.is_due(at(9_000)));
    lease.renewal_sent(at(9_000));
    assert!(!lease.may_join(at(9_001)), "it is under way");
    assert!(lease.is_due(at(14_000)), "hung: another one goes beside it");
}

#[test]
fn failures_are_retried_ever_more_slowly_and_more_often_again_towards_the_end() {
    let mut lease = Lease::new(term(0, 30_000), MIDDLE);
    let mut now = at(10_000);
    let mut pauses = Vec::new();
    while lease.state(now) != GuardState::Lost(Loss::Deadline) {
        assert!(lease.is_due(now));
        lease.renewal_sent(now);
        lease.not_renewed(NotRenewed::Undecided, now, Roll(1_000));
        let again = lease.renew_at.expect("still renewing");
        pauses.push(again.since(now));
        now = again;
    }
    assert_eq!(pauses[..3], [ms(1_500), ms(3_000), ms(5_000)]);
    assert!(pauses[3..].is_sorted_by(|one, next| one >= next), "{pauses:?}");
    assert_eq!(pauses.last(), Some(&ms(250)));
    let least = Lease::new(term(0, 30_000), MIDDLE);
    let mut least = least.clone();
    least.renewal_sent(at(10_000));
    least.not_renewed(NotRenewed::Undecided, at(10_000), Roll(0));
    assert_eq!(least.renew_at, Some(at(10_750)));
}

#[test]
fn being_told_loses_at_once_and_says_why() {
    let mut lease = Lease::new(term(0, 30_000), MIDDLE);
    let told = Loss::Ended("forced".into());
    lease.not_renewed(NotRenewed::Lost(told.clone()), at(5), MIDDLE);
    assert_eq!(lease.state(at(5)), GuardState::Lost(told));
}

#[test]
fn released_by_the_owner() {
    let mut lease = Lease::new(term(0, 30_000), MIDDLE);
    lease.end(Loss::Released, at(5));
    assert_eq!(lease.state(at(5)), GuardState::Lost(Loss::Released));
    assert!(!lease.is_due(at(20_000)));
}

#[test]
fn a_clipped_renewal_is_the_last_one_and_holds_to_the_end() {
    let mut lease = Lease::new(bounded(0, 10_000, 12_000), MIDDLE);
    assert!(lease.is_due(at(4_000)), "2 s are left to add");
    lease.renewed(bounded(4_000, 8_000, 8_000), at(4_005), MIDDLE);
    assert!(!lease.is_due(at(11_800)));
    assert_eq!(lease.deadline(), at(4_000 + 7_900));
    assert_eq!(lease.state(at(11_899)), GuardState::Held, "nothing is overdue");
    assert_eq!(lease.next_wake(at(5_000)), Some(at(11_900)));
    assert_eq!(lease.state(at(11_900)), GuardState::Lost(Loss::MaxHold));
}

#[test]
fn a_grant_as_long_as_its_max_hold_is_never_renewed() {
    let mut lease = Lease::new(bounded(0, 10_000, 10_000), MIDDLE);
    assert!(!lease.is_due(at(9_000)));
    assert_eq!(lease.state(at(9_000)), GuardState::Held);
    assert_eq!(lease.state(at(9_880)), GuardState::Lost(Loss::MaxHold));
}

#[test]
fn max_hold_reached_leaves_it_held_until_the_known_deadline() {
    let mut lease = Lease::new(term(0, 9_000), MIDDLE);
    lease.renewal_sent(at(3_000));
    lease.not_renewed(NotRenewed::Final, at(7_000), MIDDLE);
    assert_eq!(lease.state(at(7_000)), GuardState::Held);
    assert_eq!(lease.final_deadline(), Some(at(8_890)));
    assert!(!lease.is_due(at(8_000)));
    assert_eq!(lease.state(at(8_890)), GuardState::Lost(Loss::MaxHold));
}

#[test]
fn a_lease_that_arrives_used_up_is_lost_from_the_start() {
    let mut lease = Lease::new(term(0, 15), MIDDLE);
    assert_eq!(lease.state(at(0)), GuardState::Lost(Loss::Deadline));
}

#[test]
fn the_next_wake_is_the_next_thing_that_happens() {
    let mut lease = Lease::new(term(0, 30_000), MIDDLE);
    assert_eq!(lease.next_wake(at(0)), Some(at(10_000)));
    lease.stop_renewing();
    assert_eq!(lease.next_wake(at(0)), Some(at(29_680)));
}

/// The service as section 3 of the design has it, on a clock of its own rate, with delays both ways.
struct Service {
    /// Nanoseconds of the service's clock per 1,000 of the client's.
    rate_per_mille: u64,
    ttl: Duration,
    /// In the service's time.
    ends: Duration,
}

impl Service {
    fn time(&self, at: Moment) -> Duration {
        at.since(START) * u32::try_from(self.rate_per_mille).expect("small") / 1_000
    }

    /// The entry is stamped at `stamped`; what the answer says. Cluster time is whole milliseconds, rounded down.
    fn decide(&mut self, stamped: Moment) -> Option<Duration> {
        let time =
            Duration::from_millis(u64::try_from(self.time(stamped).as_millis()).expect("fits"));
        if time >= self.ends && self.ends > Duration::ZERO {
            return None;
        }
        self.ends = self.ends.max(time + self.ttl);
        Some(self.ends - time)
    }
}

/// xorshift: the test has to be the same at every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// What becomes of one renewal.
enum Fate {
    RequestLost,
    AnswerLost,
    Answered,
}

/// Often none at all: the sharpest case.
fn delay(dice: &mut Dice) -> Duration {
    ms(dice.below(2) * dice.below(400))
}

fn renew(lease: &mut Lease, service: &mut Service, sent: Moment, dice: &mut Dice) -> Moment {
    lease.renewal_sent(sent);
    let fate = match dice.below(4) {
        0 => Fate::RequestLost,
        1 => Fate::AnswerLost,
        _ => Fate::Answered,
    };
    let stamped = sent.plus(delay(dice));
    let answered = stamped.plus(delay(dice));
    let granted = match fate {
        Fate::RequestLost => None,
        Fate::AnswerLost => service.decide(stamped).and(None),
        Fate::Answered => service.decide(stamped),
    };
    match granted {
        Some(expires_in) => {
            let term = Term { sent, expires_in, final_in: None };
            lease.renewed(term, answered, Roll(7));
        }
        None => lease.not_renewed(NotRenewed::Undecided, answered, Roll(7)),
    }
    answered
}

/// L4: whatever is lost or late, the client has stopped before the service can grant to somebody else.
#[test]
fn lost_always_comes_before_the_service_ends_the_lease() {
    let mut dice = Dice(0x5e7e_0001);
    let mut renewed = 0;
    for _ in 0..5_000 {
        let ttl = ms(1_000 + dice.below(30_000));
        let rate_per_mille = 990 + dice.below(21);
        let mut service = Service { rate_per_mille, ttl, ends: Duration::ZERO };
        let stamped = START.plus(delay(&mut dice));
        let first = service.decide(stamped).expect("it was free");
        let mut lease = Lease::new(Term { sent: START, expires_in: first, final_in: None }, MIDDLE);
        let granted_until = lease.deadline();
        let mut now = stamped.plus(delay(&mut dice));
        while !matches!(lease.state(now), GuardState::Lost(_)) {
            if lease.is_due(now) {
                now = renew(&mut lease, &mut service, now, &mut dice);
            }
            // Timers may be late, and a process may be paused.
            now = lease.next_wake(now).map_or(now, |wake| wake.max(now)).plus(ms(dice.below(3)));
        }
        renewed += u32::from(lease.deadline() > granted_until);
        let stopped = service.time(lease.deadline());
        assert!(
            stopped < service.ends,
            "{stopped:?}, but the service ends it at {:?}",
            service.ends
        );
    }
    assert!(renewed > 1_000, "walks without renewals show little: {renewed}");
}
