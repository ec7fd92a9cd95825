use super::*;

const START: Moment = Moment::from_boot(Duration::from_secs(1_000));

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(seconds: u64) -> Moment {
    START.plus(secs(seconds))
}

/// The longest pause each time.
fn longest() -> u32 {
    999
}

fn plan(wait: u64, timeout: Option<u64>) -> Plan {
    let terms = Terms { wait: secs(wait), timeout: timeout.map(secs) };
    Plan::new(terms, 1, START, longest)
}

/// Sends at `now`, hears `news` in the same moment.
fn exchange(plan: &mut Plan, news: News, now: Moment) -> Step {
    plan.send(now);
    let before = plan.may_hold();
    plan.under_way();
    plan.hear(news, before, now)
}

fn refused(code: ErrorCode, retry_with: Option<RetryWith>) -> Box<Problem> {
    Box::new(Problem { retry_with, ..Problem::new(code, "because") })
}

fn locked() -> News {
    News::Refused(refused(ErrorCode::Locked, Some(RetryWith::NewRequestId)))
}

fn silent() -> News {
    News::Nothing(NoAnswer::Silent("silence".into()))
}

fn not_sent() -> News {
    News::Nothing(NoAnswer::NotSent("no connection".into()))
}

fn waiting() -> News {
    News::Waiting { round_trip: secs(20) }
}

#[test]
fn a_grant_at_once_is_taken_as_it_is() {
    let news = News::Granted { round_trip: Duration::from_millis(3) };
    assert_eq!(exchange(&mut plan(0, None), news, at(0)), Step::Granted { confirm: false });
}

#[test]
fn a_grant_after_a_wait_is_confirmed() {
    let slow = News::Granted { round_trip: Duration::from_millis(251) };
    assert_eq!(exchange(&mut plan(30, None), slow, at(0)), Step::Granted { confirm: true });
    let mut polled = plan(30, None);
    assert_eq!(exchange(&mut polled, waiting(), at(20)), Step::Again(Duration::ZERO));
    let quick = News::Granted { round_trip: Duration::from_millis(1) };
    assert_eq!(exchange(&mut polled, quick, at(20)), Step::Granted { confirm: true });
}

#[test]
fn locked_ends_it_without_a_time_out() {
    let mut plan = plan(0, None);
    let step = exchange(&mut plan, locked(), at(0));
    assert!(matches!(&step, Step::Stop(error) if error.is_locked()), "{step:?}");
    assert!(!plan.may_hold(), "a refusal that was seen holds nothing");
}

#[test]
fn locked_is_tried_again_afresh_ever_more_slowly_until_the_time_out() {
    let mut plan = plan(0, Some(60));
    let mut pauses = Vec::new();
    for _ in 0..8 {
        match exchange(&mut plan, locked(), at(1)) {
            Step::Afresh(pause) => pauses.push(pause.as_millis()),
            other => panic!("{other:?}"),
        }
        plan.renew_id();
    }
    assert_eq!(pauses, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    let step = exchange(&mut plan, locked(), at(59));
    assert!(matches!(&step, Step::Stop(error) if error.is_locked()), "{step:?}");
}

#[test]
fn jitter_is_full() {
    assert_eq!(jittered(3, 50, 2_000, 0), Duration::from_micros(400));
    assert_eq!(jittered(3, 50, 2_000, 999), Duration::from_millis(400));
}

#[test]
fn silence_repeats_the_same_request_and_leaves_it_to_be_abandoned() {
    let mut plan = plan(0, Some(20));
    assert!(matches!(exchange(&mut plan, silent(), at(0)), Step::Again(_)));
    assert!(plan.may_hold());
    let step = exchange(&mut plan, silent(), at(20));
    assert!(matches!(step, Step::Stop(Error::Unknown(_))), "{step:?}");
    assert!(plan.may_hold());
}

#[test]
fn what_was_never_sent_holds_nothing_and_is_unavailable() {
    let mut plan = plan(0, None);
    assert!(matches!(exchange(&mut plan, not_sent(), at(0)), Step::Again(_)));
    let step = exchange(&mut plan, not_sent(), at(10));
    assert!(matches!(step, Step::Stop(Error::Unavailable(_))), "{step:?}");
    assert!(!plan.may_hold());
}

#[test]
fn a_failed_repeat_does_not_forget_that_an_earlier_copy_went_out() {
    let mut plan = plan(0, None);
    exchange(&mut plan, silent(), at(0));
    exchange(&mut plan, not_sent(), at(1));
    assert!(plan.may_hold());
    let unavailable = refused(ErrorCode::Unavailable, Some(RetryWith::SameRequestId));
    exchange(&mut plan, News::Refused(unavailable), at(2));
    assert!(plan.may_hold(), "this copy was not applied; the first one may have been");
}

#[test]
fn unavailable_is_repeated_with_the_same_id_when_the_service_says() {
    let mut plan = plan(0, None);
    let mut problem = refused(ErrorCode::Unavailable, Some(RetryWith::SameRequestId));
    problem.retry_after_ms = Some(3_000);
    let step = exchange(&mut plan, News::Refused(problem.clone()), at(0));
    assert_eq!(step, Step::Again(secs(3)));
    assert!(!plan.may_hold());
    problem.retry_after_ms = Some(3_600_000);
    let step = exchange(&mut plan, News::Refused(problem), at(3));
    assert!(matches!(step, Step::Stop(Error::Unavailable(_))), "{step:?}");
}

#[test]
fn an_unknown_outcome_may_hold() {
    let mut plan = plan(0, None);
    let mut problem = refused(ErrorCode::UnknownOutcome, Some(RetryWith::SameRequestId));
    problem.outcome = Outcome::Unknown;
    assert!(matches!(exchange(&mut plan, News::Refused(problem), at(0)), Step::Again(_)));
    assert!(plan.may_hold());
}

#[test]
fn after_55_seconds_of_silence_the_request_is_renounced() {
    let mut plan = plan(0, Some(300));
    assert!(matches!(exchange(&mut plan, silent(), at(0)), Step::Again(_)));
    assert!(matches!(exchange(&mut plan, silent(), at(54)), Step::Again(_)));
    assert_eq!(exchange(&mut plan, silent(), at(55)), Step::Renounce);
}

#[test]
fn an_answer_that_it_waits_begins_the_55_seconds_anew() {
    let mut plan = plan(300, None);
    exchange(&mut plan, waiting(), at(40));
    assert!(matches!(exchange(&mut plan, silent(), at(90)), Step::Again(_)));
    assert_eq!(exchange(&mut plan, silent(), at(95)), Step::Renounce);
}

#[test]
fn a_request_that_never_left_is_too_old_too_and_is_drawn_anew_without_abandon() {
    let mut plan = plan(0, Some(300));
    exchange(&mut plan, not_sent(), at(0));
    assert_eq!(exchange(&mut plan, not_sent(), at(56)), Step::Afresh(Duration::from_millis(100)));
}

#[test]
fn a_request_that_was_granted_unheard_and_ended_is_asked_anew() {
    let mut plan = plan(0, None);
    let ended = refused(ErrorCode::LeaseEnded, Some(RetryWith::NewRequestId));
    assert!(matches!(exchange(&mut plan, News::Refused(ended), at(0)), Step::Afresh(_)));
    assert!(!plan.may_hold());
}

#[test]
fn a_wait_that_timed_out_is_over_and_one_that_was_deserted_is_not() {
    let ended = |reason| {
        let mut problem = refused(ErrorCode::WaitTimeout, Some(RetryWith::NewRequestId));
        problem.reason = Some(reason);
        News::Refused(problem)
    };
    let step = exchange(&mut plan(30, None), ended(Reason::TimedOut), at(29));
    assert!(matches!(&step, Step::Stop(error) if error.is_locked()), "{step:?}");
    let step = exchange(&mut plan(30, None), ended(Reason::Abandoned), at(15));
    assert!(matches!(step, Step::Afresh(_)), "{step:?}");
    let step = exchange(&mut plan(30, None), ended(Reason::Abandoned), at(30));
    assert!(matches!(step, Step::Stop(_)), "{step:?}");
}

#[test]
fn a_refusal_by_rule_is_final() {
    let mut plan = plan(30, Some(60));
    let problem = refused(ErrorCode::FencingRequired, None);
    let step = exchange(&mut plan, News::Refused(problem.clone()), at(0));
    assert_eq!(step, Step::Stop(Error::Refused(problem)));
}

#[test]
fn full_queues_are_tried_again_only_by_the_patient() {
    let full = || News::Refused(refused(ErrorCode::QueueFull, Some(RetryWith::NewRequestId)));
    assert!(matches!(exchange(&mut plan(0, None), full(), at(0)), Step::Stop(_)));
    assert!(matches!(exchange(&mut plan(9, None), full(), at(0)), Step::Afresh(_)));
    assert!(matches!(exchange(&mut plan(0, Some(9)), full(), at(0)), Step::Afresh(_)));
}

#[test]
fn attempts_are_bounded_by_what_a_door_holds_and_by_the_time_left() {
    let send = plan(0, None).send(at(0));
    assert_eq!(send, Send { wait: None, timeout: secs(5) });
    let send = plan(300, None).send(at(0));
    assert_eq!(send, Send { wait: Some(secs(300)), timeout: secs(25) });
    let send = plan(300, None).send(at(293));
    assert_eq!(send, Send { wait: Some(secs(7)), timeout: secs(12) });
    let send = plan(300, Some(10)).send(at(0));
    assert_eq!(send, Send { wait: Some(secs(9)), timeout: secs(10) });
    let send = plan(0, Some(10)).send(at(8));
    assert_eq!(send, Send { wait: None, timeout: secs(2) });
}

#[test]
fn a_wait_that_goes_on_past_the_time_out_is_abandoned() {
    let mut plan = plan(300, Some(60));
    let step = exchange(&mut plan, waiting(), at(60));
    assert!(matches!(step, Step::Stop(Error::Unknown(_))), "{step:?}");
    assert!(plan.may_hold());
}

#[test]
fn a_door_that_does_not_hold_the_call_is_not_asked_in_a_tight_loop() {
    let mut plan = plan(300, None);
    let news = News::Waiting { round_trip: Duration::from_millis(10) };
    assert_eq!(exchange(&mut plan, news, at(1)), Step::Again(Duration::from_millis(90)));
}

#[test]
fn other_addresses_are_asked_at_once() {
    let terms = Terms { wait: Duration::ZERO, timeout: None };
    let mut plan = Plan::new(terms, 3, START, longest);
    assert_eq!(exchange(&mut plan, not_sent(), at(0)), Step::Again(Duration::ZERO));
    assert_eq!(exchange(&mut plan, not_sent(), at(0)), Step::Again(Duration::ZERO));
    assert_eq!(exchange(&mut plan, not_sent(), at(0)), Step::Again(Duration::from_millis(200)));
}

#[test]
fn a_wait_longer_than_the_service_takes_goes_on_in_rounds() {
    let ended = || {
        let mut problem = refused(ErrorCode::WaitTimeout, Some(RetryWith::NewRequestId));
        problem.reason = Some(Reason::TimedOut);
        News::Refused(problem)
    };
    let mut plan = plan(900, None);
    assert_eq!(plan.send(at(0)).wait, Some(secs(600)));
    assert_eq!(exchange(&mut plan, waiting(), at(20)), Step::Again(Duration::ZERO));
    let step = exchange(&mut plan, ended(), at(600));
    assert!(matches!(step, Step::Afresh(_)), "{step:?}");
    plan.renew_id();
    assert_eq!(plan.send(at(600)).wait, Some(secs(300)));
    let step = exchange(&mut plan, ended(), at(899));
    assert!(matches!(&step, Step::Stop(error) if error.is_locked()), "the last round: {step:?}");
}

#[test]
fn a_wait_that_another_one_of_the_same_name_took_over_is_over() {
    let mut problem = refused(ErrorCode::WaitTimeout, Some(RetryWith::NewRequestId));
    problem.reason = Some(Reason::Replaced);
    let step = exchange(&mut plan(900, None), News::Refused(problem), at(1));
    assert!(matches!(&step, Step::Stop(error) if error.is_locked()), "{step:?}");
}

#[test]
fn a_wait_without_an_end_outlasts_every_outage() {
    let terms = Terms { wait: Duration::MAX, timeout: None };
    let mut plan = Plan::new(terms, 1, START, longest);
    let a_year = 365 * 24 * 3_600;
    assert_eq!(exchange(&mut plan, waiting(), at(0)), Step::Again(Duration::from_millis(0)));
    assert!(matches!(exchange(&mut plan, silent(), at(a_year)), Step::Renounce));
    plan.renew_id();
    assert_eq!(plan.send(at(2 * a_year)).wait, Some(secs(600)));
    assert!(matches!(exchange(&mut plan, not_sent(), at(2 * a_year)), Step::Again(_)));
}
