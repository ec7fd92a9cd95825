use super::*;
use Standing::{Answers, Serves, Silent};

fn at(ms: u64) -> Moment {
    Moment::from_boot(Duration::from_millis(100_000 + ms))
}

/// Three addresses, each last seen like this a millisecond after the one before; `None`: never asked.
fn three(seen: [Option<Standing>; 3]) -> Servers {
    let mut servers = Servers::new(3);
    for (server, standing) in seen.into_iter().enumerate() {
        if let Some(standing) = standing {
            let now = at(u64::try_from(server).unwrap());
            servers.note(server, standing, now, now);
        }
    }
    servers
}

/// The order of one round at this moment.
fn order(servers: &Servers, ms: u64) -> Vec<usize> {
    let (mut servers, mut round) = (servers.clone(), Round::default());
    (0..servers.len()).map(|_| servers.next(&mut round, at(ms))).collect()
}

#[test]
fn the_first_one_given_is_asked_first_and_the_one_that_serves_is_kept() {
    assert_eq!(order(&Servers::new(3), 0), [0, 1, 2]);
    let mut servers = three([Some(Silent), Some(Serves), None]);
    assert_eq!(order(&servers, 10)[0], 1);
    assert_eq!(order(&servers, 3_600_000)[0], 1, "though nobody has asked it for an hour");
    servers.note(0, Serves, at(20), at(20));
    assert_eq!(order(&servers, 30)[0], 1, "the one that never failed, of two that serve");
}

#[test]
fn those_that_answer_come_before_those_that_are_silent_or_unknown() {
    let (yes, no) = (Some(Answers), Some(Silent));
    for (seen, expected) in [
        ([no, yes, yes], [1, 2, 0]),
        ([yes, no, yes], [0, 2, 1]),
        ([no, None, yes], [2, 1, 0]),
        ([None, no, Some(Serves)], [2, 0, 1]),
        ([no, no, None], [2, 0, 1]),
        ([no, no, no], [0, 1, 2]),
    ] {
        assert_eq!(order(&three(seen), 10), expected, "{seen:?}");
    }
}

#[test]
fn those_that_answer_take_turns() {
    let mut servers = three([Some(Silent), Some(Answers), Some(Answers)]);
    for turn in 0..6 {
        let now = at(100 * (turn + 1));
        let Targets { first, .. } = servers.for_renewal(now);
        assert_eq!(first, if turn % 2 == 0 { 1 } else { 2 });
        servers.note(first, Answers, now, now);
    }
}

#[test]
fn a_round_asks_every_address_once_the_silent_one_too() {
    let mut servers = three([Some(Silent), Some(Answers), Some(Answers)]);
    let mut round = Round::default();
    let mut asked = Vec::new();
    for turn in 0..6 {
        let now = at(10 + turn);
        let server = servers.next(&mut round, now);
        asked.push(server);
        assert_eq!(round.is_over(3), turn % 3 == 2);
        servers.note(server, if server == 0 { Silent } else { Answers }, now, now);
    }
    assert_eq!(asked, [1, 2, 0, 1, 2, 0]);
}

#[test]
fn what_was_seen_long_ago_says_nothing() {
    let servers = three([Some(Silent), Some(Answers), None]);
    assert_eq!(order(&servers, 9_000), [1, 2, 0]);
    assert_eq!(order(&servers, 11_000), [2, 0, 1], "those that failed longest ago first");
}

#[test]
fn a_renewal_goes_to_one_that_answers_and_to_a_silent_one_beside_it() {
    let mut servers = three([Some(Silent), Some(Answers), Some(Answers)]);
    assert_eq!(servers.for_renewal(at(10)), Targets { first: 1, beside: Some(0) });
    servers.note(1, Answers, at(10), at(11));
    // The silent one hangs. It is not asked again and again meanwhile.
    assert_eq!(servers.for_renewal(at(200)), Targets { first: 2, beside: None });
    servers.note(2, Answers, at(200), at(201));
    assert_eq!(servers.for_renewal(at(1_010)), Targets { first: 1, beside: Some(0) });
    // It is back.
    servers.note(0, Serves, at(1_010), at(1_050));
    assert_eq!(servers.for_renewal(at(1_100)), Targets { first: 0, beside: None });
}

#[test]
fn a_renewal_is_sent_once_where_one_serves_or_there_is_but_one() {
    let mut servers = three([Some(Serves), None, Some(Silent)]);
    assert_eq!(servers.for_renewal(at(10)), Targets { first: 0, beside: None });
    let mut alone = Servers::new(1);
    for standing in [Serves, Answers, Silent] {
        assert_eq!(alone.for_renewal(at(10)), Targets { first: 0, beside: None });
        alone.note(0, standing, at(10), at(10));
    }
}

#[test]
fn silent_ones_are_asked_two_at_a_time_where_none_answers() {
    let mut servers = three([Some(Silent), Some(Silent), None]);
    assert_eq!(servers.for_renewal(at(10)), Targets { first: 2, beside: Some(0) });
    servers.note(2, Silent, at(10), at(20));
    assert_eq!(servers.for_renewal(at(30)), Targets { first: 0, beside: Some(1) });
}

#[test]
fn an_old_failure_says_nothing_of_one_that_has_served_since() {
    let mut servers = three([Some(Serves), None, None]);
    servers.note(0, Serves, at(900), at(910));
    servers.note(0, Silent, at(500), at(1_000));
    assert_eq!(order(&servers, 1_100)[0], 0);
    servers.note(0, Silent, at(950), at(1_200));
    assert_eq!(order(&servers, 1_300)[0], 1);
}

#[test]
fn little_time_is_spent_on_a_silent_one_while_another_answers() {
    assert!(three([Some(Silent), Some(Answers), None]).is_worth_little(0, at(10)));
    assert!(three([Some(Silent), Some(Serves), None]).is_worth_little(0, at(10)));
    assert!(!three([Some(Silent), Some(Answers), None]).is_worth_little(1, at(10)));
    assert!(!three([Some(Silent), Some(Answers), None]).is_worth_little(2, at(10)));
    assert!(!three([Some(Silent), Some(Silent), None]).is_worth_little(0, at(10)));
}
