//! Elections against a scripted service: campaigns, terms and their loss, proclaims, hand-offs, observation.

use crate::stub::{
    Asked, LEASE_ID, Say, Stub, abandoned, elected, elects_all, problem, problem_with, released,
    term_renewed, waiting,
};
use crate::{client, ids, secs};
use serde_json::json;
use sereno_client::{
    Client, Error, GuardState, Handoff, Loss, NotHeld, Observed, RunError, Standing,
    api::{ElectionState, ErrorCode},
};
use std::{
    collections::BTreeSet,
    ops::ControlFlow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

const CAMPAIGN: &str = "/v1/elections/campaign";
const RENEW: &str = "/v1/elections/renew";
const RESIGN: &str = "/v1/elections/resign";
const ABANDON: &str = "/v1/elections/abandon";
const PROCLAIM: &str = "/v1/elections/proclaim";
const HANDOFF: &str = "/v1/elections/handoff";

async fn until_asked_on(stub: &Stub, path: &'static str) -> Asked {
    let waiting = stub.clone();
    tokio::task::spawn_blocking(move || waiting.until_asked_on(path)).await.unwrap()
}

/// Leads for a second; everything else is answered by `others`.
fn leads_and(
    mut others: impl FnMut(&Asked) -> Say + Send + 'static,
) -> impl FnMut(&Asked) -> Say + Send + 'static {
    move |asked| if asked.path == CAMPAIGN { elected(asked, 7, 1_000) } else { others(asked) }
}

#[tokio::test]
async fn a_won_campaign_is_a_term_that_is_renewed_and_resigned() {
    let stub = Stub::start(elects_all(1_000));
    let campaign = client(&stub).election("billing/eu").candidate("node-1").value("10.0.0.1:80");
    let leadership = campaign.ttl(secs(1)).campaign().await.unwrap();
    assert_eq!(leadership.term(), Ok(7));
    assert_eq!(leadership.fence_key(), "default/election/billing/eu");
    let body = &stub.asked_on(CAMPAIGN)[0].body;
    assert_eq!(
        (&body["election"], &body["candidate"], &body["value"], &body["leaseTtl"]),
        (&json!("billing/eu"), &json!("node-1"), &json!("10.0.0.1:80"), &json!("1s"))
    );
    assert_eq!(body["waitTimeout"], "10m", "as long as it takes is asked for in rounds");
    let renewals = stub.clone();
    let enough = |asked: &[Asked]| asked.iter().filter(|asked| asked.path == RENEW).count() >= 4;
    tokio::task::spawn_blocking(move || renewals.until("renewals", enough)).await.unwrap();
    assert_eq!(leadership.check(), Ok(()));
    let renewal = &stub.asked_on(RENEW)[0].body;
    assert_eq!(
        (&renewal["election"], &renewal["leaseId"]),
        (&json!("billing/eu"), &json!(LEASE_ID))
    );
    assert_eq!(leadership.resign().await, Ok(sereno_client::Release::Now));
    assert_eq!(stub.asked_on(RESIGN)[0].body["leaseId"], LEASE_ID);
}

#[tokio::test]
async fn a_campaign_waits_by_repeating_the_same_call_and_tells_how_it_is_doing() {
    let mut polls = 0;
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        CAMPAIGN => {
            polls += 1;
            match polls {
                1 | 2 => waiting(asked),
                3 => Say::Cut,
                _ => elected(asked, 9, 1_000),
            }
        }
        RENEW => term_renewed(9, 30_000),
        _ => released(),
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = told.clone();
    let campaign = client(&stub)
        .election("e")
        .on_standing(move |standing| hears.lock().unwrap().push(standing.clone()));
    let leadership = campaign.campaign().await.unwrap();
    let asked = stub.asked_on(CAMPAIGN);
    assert_eq!((asked.len(), BTreeSet::from_iter(ids(&asked)).len()), (4, 1));
    assert!(leadership.remaining() > secs(25), "after a wait a renewal's figures count");
    let told = told.lock().unwrap();
    assert_eq!(told[0], Standing::Waiting { place: 1 });
    assert!(matches!(told[1], Standing::Unanswered { .. }) && told.len() == 2, "{told:?}");
}

#[tokio::test]
async fn a_wait_that_is_over_is_begun_anew_unless_it_is_bounded() {
    let timed_out =
        || problem_with(409, "WAIT_TIMEOUT", Some("newRequestId"), &json!({"reason": "timedOut"}));
    let mut polls = 0;
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        CAMPAIGN => {
            polls += 1;
            if polls == 1 { timed_out() } else { elected(asked, 9, 30_000) }
        }
        _ => released(),
    });
    let _leadership = client(&stub).election("e").campaign().await.unwrap();
    let ids = ids(&stub.asked_on(CAMPAIGN));
    assert_eq!((ids.len(), BTreeSet::from_iter(ids).len()), (2, 2), "a new place in the queue");

    let stub = Stub::start(move |_| timed_out());
    let bounded = client(&stub).election("e").wait(secs(60)).campaign().await.unwrap_err();
    assert_eq!(bounded.code(), Some(ErrorCode::WaitTimeout));
    assert_eq!(stub.asked().len(), 1);
    let at_once = Stub::start(|_| problem(409, "LOCKED", Some("newRequestId")));
    let taken = client(&at_once).election("e").wait(Duration::ZERO).campaign().await.unwrap_err();
    assert!(taken.is_locked());
    assert!(at_once.asked()[0].body.get("waitTimeout").is_none());
}

#[tokio::test]
async fn a_campaign_that_is_given_up_is_abandoned_where_it_was_asked() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        CAMPAIGN => Say::Silence,
        ABANDON => abandoned(),
        other => panic!("{other}"),
    });
    let client = client(&stub);
    let campaign = tokio::spawn(client.election("e").campaign());
    until_asked_on(&stub, CAMPAIGN).await;
    campaign.abort();
    assert!(campaign.await.unwrap_err().is_cancelled());
    client.settled().await;
    assert_eq!(ids(&stub.asked_on(ABANDON))[0], ids(&stub.asked_on(CAMPAIGN))[0]);
}

#[tokio::test]
async fn an_uncertain_renewal_demotes_and_then_loses_before_the_term_is_over() {
    let stub = Stub::start(leads_and(|asked| match asked.path.as_str() {
        RENEW => Say::Silence,
        _ => released(),
    }));
    let leadership = client(&stub).election("e").campaign().await.unwrap();
    let granted = stub.asked_on(CAMPAIGN)[0].at;
    let mut watch = leadership.watch();
    watch.wait_for(|status| status.state == GuardState::AtRisk).await.unwrap();
    assert_eq!(leadership.check(), Err(NotHeld::AtRisk), "no new step of work");
    assert_eq!(leadership.term(), Ok(7), "what runs goes on");
    let never = std::future::pending::<()>();
    assert_eq!(leadership.run(never).await, Err(RunError::NotBegun(NotHeld::AtRisk)));
    assert_eq!(leadership.lost().await, Loss::Deadline);
    let deadline = watch.borrow().deadline;
    let asked = sereno_client::Moment::now().minus(granted.elapsed());
    assert!(deadline <= asked.plus(Duration::from_millis(970)), "1 s less 1 % and 20 ms");
    until_asked_on(&stub, RESIGN).await;
}

#[tokio::test]
async fn the_work_is_cancelled_when_the_service_says_that_the_term_is_over() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    for (code, more, loss) in [
        ("LEASE_ENDED", json!({"reason": "forced"}), Loss::Ended("forced".into())),
        ("NOT_HOLDER", json!({}), Loss::Unknown),
    ] {
        let stub = Stub::start(leads_and(move |asked| match asked.path.as_str() {
            RENEW => problem_with(409, code, None, &more),
            _ => released(),
        }));
        let leadership = client(&stub).election("e").campaign().await.unwrap();
        let dropped = Arc::new(AtomicBool::new(false));
        let witness = Dropped(dropped.clone());
        let work = async move {
            let _witness = witness;
            std::future::pending::<()>().await;
        };
        let ended = leadership.run(work).await;
        assert_eq!(ended, Err(RunError::Lost { loss, finished: None }));
        assert!(dropped.load(Ordering::SeqCst));
        assert!(stub.asked_on(CAMPAIGN)[0].at.elapsed() < Duration::from_millis(900));
    }
}

#[tokio::test]
async fn renewals_go_over_bad_answers_and_other_nodes() {
    let answers = |mut renew: Box<dyn FnMut() -> Say + Send>| {
        Stub::start(leads_and(move |asked| match asked.path.as_str() {
            RENEW => renew(),
            _ => released(),
        }))
    };
    let bad = answers(Box::new(|| problem(503, "UNAVAILABLE", Some("sameRequestId"))));
    let good = answers(Box::new(|| term_renewed(7, 30_000)));
    let client = Client::new(&format!("{},{}", bad.url, good.url)).unwrap();
    let leadership = client.election("e").campaign().await.unwrap();
    let mut watch = leadership.watch();
    let far = |status: &sereno_client::GuardStatus| {
        status.deadline.since(sereno_client::Moment::now()) > secs(20)
    };
    watch.wait_for(far).await.unwrap();
    assert!(!bad.asked_on(RENEW).is_empty() && !good.asked_on(RENEW).is_empty());
    assert_eq!(leadership.check(), Ok(()));
}

/// Answers proclaims as a service whose record has this version, and loses the answers that `lost` says.
fn proclaims(
    mut version: u64,
    mut lost: impl FnMut(usize) -> bool + Send + 'static,
) -> impl FnMut(&Asked) -> Say + Send + 'static {
    let mut seen = std::collections::BTreeMap::new();
    let mut count = 0;
    move |asked| {
        if asked.path != PROCLAIM {
            return elects_all(30_000)(asked);
        }
        count += 1;
        let id = asked.body["requestId"].as_str().unwrap().to_string();
        let say = seen.entry(id).or_insert_with(|| match asked.body["version"] == version {
            true => {
                version += 1;
                Say::Json(
                    200,
                    json!({"term": 7, "version": version, "replayed": false, "revision": 1, "clusterTimeMs": 1}),
                )
            }
            false => {
                let now = json!({"currentVersion": version});
                problem_with(409, "VERSION_CONFLICT", Some("newRequestId"), &now)
            }
        });
        if lost(count) { Say::Cut } else { say.clone() }
    }
}

#[tokio::test]
async fn a_proclaim_whose_answer_was_lost_is_the_same_request_again() {
    let stub = Stub::start(proclaims(3, |count| count == 1));
    let leadership = client(&stub).election("e").campaign().await.unwrap();
    assert_eq!(leadership.proclaim("new").await, Ok(4));
    assert_eq!(leadership.proclaim("newer").await, Ok(5));
    let asked = stub.asked_on(PROCLAIM);
    let ids = ids(&asked);
    assert!(ids[0] == ids[1] && ids[1] != ids[2]);
    assert_eq!(asked[2].body["value"], "newer");
    assert_eq!((&asked[0].body["version"], &asked[2].body["version"]), (&json!(3), &json!(4)));
}

#[tokio::test]
async fn a_proclaim_that_nobody_answered_does_not_stop_the_next_one() {
    let silent = Arc::new(AtomicBool::new(true));
    let hears = silent.clone();
    let stub = Stub::start(proclaims(3, move |_| hears.load(Ordering::SeqCst)));
    let client =
        Client::builder().servers(&stub.url).call_timeout(Duration::from_millis(200)).build();
    let leadership = client.unwrap().election("e").campaign().await.unwrap();
    assert!(matches!(leadership.proclaim("lost").await, Err(Error::Unknown(_))));
    silent.store(false, Ordering::SeqCst);
    assert_eq!(leadership.proclaim("told").await, Ok(5), "the lost one was version 4");
}

#[tokio::test]
async fn a_proclaim_that_is_told_of_the_end_loses_the_term() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        PROCLAIM => problem_with(409, "LEASE_ENDED", None, &json!({"reason": "forced"})),
        _ => elects_all(30_000)(asked),
    });
    let leadership = client(&stub).election("e").campaign().await.unwrap();
    let error = leadership.proclaim("x").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::LeaseEnded));
    assert_eq!(leadership.check(), Err(NotHeld::Lost(Loss::Ended("forced".into()))));
    until_asked_on(&stub, RESIGN).await;
}

#[tokio::test]
async fn a_hand_off_stops_leading_before_it_is_asked_for() {
    let (asks, go_on) = std::sync::mpsc::channel();
    let go_on = Mutex::new(go_on);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        HANDOFF => {
            go_on.lock().unwrap().recv().unwrap();
            let body = json!({"term": 11, "replayed": false, "revision": 1, "clusterTimeMs": 1});
            Say::Json(200, body)
        }
        _ => elects_all(30_000)(asked),
    });
    let client = client(&stub);
    let leadership = client.election("e").campaign().await.unwrap();
    let lost = leadership.lost();
    let handing = tokio::spawn(leadership.handoff_to("node-2"));
    let asked = until_asked_on(&stub, HANDOFF).await;
    assert_eq!((&asked.body["to"], &asked.body["leaseId"]), (&json!("node-2"), &json!(LEASE_ID)));
    assert_eq!(lost.await, Loss::Released, "the other may lead already");
    asks.send(()).unwrap();
    let done = handing.await.unwrap();
    assert!(matches!(done, Ok(Handoff::Done { term: 11 })), "{done:?}");
    client.settled().await;
    assert!(stub.asked_on(RESIGN).is_empty(), "nothing is left to resign");
}

#[tokio::test]
async fn a_hand_off_to_nobody_leaves_the_term_as_it_was() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        HANDOFF => problem(404, "NOT_FOUND", None),
        _ => elects_all(1_000)(asked),
    });
    let leadership = client(&stub).election("e").campaign().await.unwrap();
    let term = leadership.term();
    let Ok(Handoff::StillLeading { leadership, why }) = leadership.handoff_to("nobody").await
    else {
        panic!("it changed something")
    };
    assert_eq!(why.code(), Some(ErrorCode::NotFound));
    assert_eq!((leadership.term(), leadership.check()), (term, Ok(())));
    until_asked_on(&stub, RENEW).await;
    assert!(stub.asked_on(RESIGN).is_empty());
    leadership.resign().await.unwrap();
}

#[tokio::test]
async fn a_hand_off_without_an_answer_is_resigned() {
    let stub = Stub::start(|asked| match asked.path.as_str() {
        HANDOFF => Say::Cut,
        _ => elects_all(30_000)(asked),
    });
    let client = Client::builder().servers(&stub.url).call_timeout(Duration::from_millis(200));
    let client = client.build().unwrap();
    let leadership = client.election("e").campaign().await.unwrap();
    let error = leadership.handoff_to("node-2").await.unwrap_err();
    assert!(matches!(error, Error::Unknown(_)), "{error}");
    client.settled().await;
    assert_eq!(stub.asked_on(RESIGN).len(), 1);
    assert_eq!(BTreeSet::from_iter(ids(&stub.asked_on(HANDOFF))).len(), 1);
}

#[tokio::test]
async fn who_leads_for_ever_campaigns_again_after_a_loss() {
    let mut renewals = 0;
    let mut leads = elects_all(1_000);
    let stub = Stub::start(move |asked| {
        renewals += u32::from(asked.path == RENEW);
        match (asked.path.as_str(), renewals) {
            (RENEW, 1) => problem_with(409, "LEASE_ENDED", None, &json!({"reason": "forced"})),
            _ => leads(asked),
        }
    });
    let client = client(&stub);
    let campaign = client.election("e");
    // It can be sent to another thread, as all of the library's futures.
    let leads = tokio::spawn(async move {
        let mut times = 0;
        let last = campaign.campaign_forever(|leadership| {
            times += 1;
            async move {
                match times {
                    1 => std::future::pending().await,
                    2 => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(leadership.term().unwrap()),
                }
            }
        });
        last.await
    });
    assert_eq!(leads.await.unwrap(), Ok(9));
    client.settled().await;
    assert_eq!((stub.asked_on(CAMPAIGN).len(), stub.asked_on(RESIGN).len()), (3, 3));
}

/// One event of an observation.
fn event(cursor: &str, leader: Option<(&str, u64)>) -> String {
    let mut record = json!({
        "state": "vacant", "election": "e", "fenceKey": "default/election/e", "waiters": 0, "queue": [],
        "revision": 1, "clusterTimeMs": 1, "ageMs": 0,
    });
    if let Some((candidate, term)) = leader {
        record["state"] = "leading".into();
        record["leader"] = json!({
            "candidate": candidate, "term": term, "value": "v", "version": 1, "leaseHash": "0011223344556677",
            "fencing": "bestEffort", "ledForMs": 1, "renewedAgoMs": 1, "expiresInMs": 1_000,
        });
    }
    format!("event: leader\nid: {cursor}\ndata: {record}\n\n")
}

/// The state, the leader's term, and whether something was missed.
fn told(observed: Observed) -> (ElectionState, Option<u64>, bool) {
    let Observed::Record { record, missed, .. } = observed else { panic!("{observed:?}") };
    (record.state, record.leader.map(|leader| leader.term), missed)
}

#[tokio::test]
async fn an_observation_tells_leaders_and_vacancy_and_goes_on_at_another_node() {
    // The first node is gone after this; the second one goes on, and repeats what was told last.
    let first = Stub::start(|asked| match asked.path.contains("from=") {
        true => Say::Cut,
        false => {
            Say::Events(event("c-1", Some(("a", 5))) + ": still here\n\n" + &event("c-2", None))
        }
    });
    let second = Stub::start(|asked| match asked.path.ends_with("from=c-2") {
        true => Say::EventsThenSilence(event("c-2", None) + &event("c-3", Some(("b", 6)))),
        false => problem(503, "UNAVAILABLE", Some("sameRequestId")),
    });
    let client = Client::new(&format!("{},{}", first.url, second.url)).unwrap();
    let mut observation = client.election("e").observe();
    assert_eq!(told(observation.next().await.unwrap()), (ElectionState::Leading, Some(5), false));
    assert_eq!(told(observation.next().await.unwrap()), (ElectionState::Vacant, None, false));
    assert_eq!(told(observation.next().await.unwrap()), (ElectionState::Leading, Some(6), false));
    let path = &first.asked()[0].path;
    assert_eq!(path, "/v1/elections/e?namespace=default&observe=true");
}

#[tokio::test]
async fn an_observation_that_cannot_be_resumed_begins_anew_and_says_so() {
    let resync = "event: resync\ndata: {\"type\":\"/errors/RESYNC\",\"title\":\"t\",\"status\":410,\"code\":\"RESYNC\",\
                  \"detail\":\"d\",\"outcome\":\"notApplied\",\"cursor\":\"d-9\"}\n\n";
    let stub =
        Stub::start(move |asked| match asked.path.split_once("from=").map(|(_, cursor)| cursor) {
            Some("old") => {
                problem_with(410, "RESYNC", Some("sameRequestId"), &json!({"cursor": "d-5"}))
            }
            Some(other) => panic!("{other}"),
            None if asked.path.contains("/twice") => {
                Say::EventsThenSilence(event("d-5", Some(("a", 5))))
            }
            None => Say::Events(event("d-5", Some(("a", 5))) + resync),
        });
    let client = Client::new(&stub.url).unwrap();
    let mut too_old = client.election("twice").observe_from("old");
    assert_eq!(told(too_old.next().await.unwrap()), (ElectionState::Leading, Some(5), true));
    let mut too_slow = client.election("e").observe();
    assert_eq!(told(too_slow.next().await.unwrap()), (ElectionState::Leading, Some(5), false));
    assert_eq!(told(too_slow.next().await.unwrap()), (ElectionState::Leading, Some(5), true));
}

#[tokio::test]
async fn an_observation_says_once_that_no_node_tells_anything_and_goes_on() {
    let stub = Stub::start(|_| Say::Cut);
    let begun = Instant::now();
    let mut observation = Client::new(&stub.url).unwrap().election("e").observe();
    assert!(matches!(observation.next().await, Ok(Observed::Silent { .. })));
    let asked = stub.clone();
    let again = |asked: &[Asked]| asked.len() >= 3;
    tokio::task::spawn_blocking(move || asked.until("further tries", again)).await.unwrap();
    stub.now(|_| Say::EventsThenSilence(event("c-1", Some(("a", 5)))));
    assert_eq!(told(observation.next().await.unwrap()), (ElectionState::Leading, Some(5), false));
    assert!(begun.elapsed() < secs(20));

    let refusing = Stub::start(|_| problem(404, "NOT_FOUND", None));
    let mut refused = Client::new(&refusing.url).unwrap().election("e").observe();
    assert_eq!(refused.next().await.unwrap_err().code(), Some(ErrorCode::NotFound));
}
