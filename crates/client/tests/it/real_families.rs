//! Elections and holds by the client against the real server, in this process and over real HTTP.

use crate::secs;
use sereno_client::{
    Client, Handoff, HoldError, Leadership, Loss, Moment, NotHeld, Observation, Observed,
    OnUnavailable, Protection, Release,
    api::{ElectionState, ErrorCode, HoldState, Reason},
};
use sereno_server::{Config, Server};
use std::time::Duration;

async fn in_memory() -> (Server, Client) {
    let server = Server::start(Config::in_memory()).await.unwrap();
    server.ready().await;
    let client = Client::new(&server.url()).unwrap();
    (server, client)
}

/// Campaigns in the background.
fn campaigning(client: &Client, candidate: &str) -> tokio::task::JoinHandle<Leadership> {
    let campaign = client.election("e").candidate(candidate).value(candidate).ttl(secs(1));
    tokio::spawn(async move { campaign.campaign().await.unwrap() })
}

async fn until_waiting(client: &Client, count: u64) {
    while client.get_election(None, "e").await.unwrap().waiters != count {
        tokio::task::yield_now().await;
    }
}

/// The next record in which somebody else leads, or nobody: changes of the queue come in between.
async fn next_leader(observation: &mut Observation, before: &Option<String>) -> Option<String> {
    loop {
        let Observed::Record { record, .. } = observation.next().await.unwrap() else { continue };
        let leader = record.leader.map(|leader| leader.candidate);
        if leader != *before {
            return leader;
        }
    }
}

#[tokio::test]
async fn candidates_lead_in_order_and_terms_rise() {
    let (_server, client) = in_memory().await;
    let first = campaigning(&client, "a").await.unwrap();
    let mut waiting = Vec::new();
    for (index, candidate) in ["b", "c", "d"].into_iter().enumerate() {
        waiting.push(campaigning(&client, candidate));
        until_waiting(&client, index as u64 + 1).await;
    }
    let mut last = first.term().unwrap();
    // Renewed, though others wait.
    tokio::time::sleep(secs(2)).await;
    assert_eq!(first.check(), Ok(()));
    assert_eq!(first.resign().await, Ok(Release::Now));
    for (waiting, candidate) in waiting.into_iter().zip(["b", "c", "d"]) {
        let leadership = waiting.await.unwrap();
        let term = leadership.term().unwrap();
        assert!(term > last, "{term} after {last}");
        last = term;
        let leader = client.get_election(None, "e").await.unwrap().leader.unwrap();
        assert_eq!((leader.candidate.as_str(), leader.term), (candidate, term));
        drop(leadership);
    }
    client.settled().await;
    assert_eq!(client.get_election(None, "e").await.unwrap().state, ElectionState::Vacant);
}

#[tokio::test]
async fn what_is_proclaimed_is_observed_and_so_is_the_end() {
    let (_server, client) = in_memory().await;
    let mut observation = client.election("e").observe();
    let Observed::Record { record, .. } = observation.next().await.unwrap() else { panic!() };
    assert_eq!(record.state, ElectionState::Vacant);
    let leadership = campaigning(&client, "a").await.unwrap();
    let leader = next_leader(&mut observation, &None).await;
    assert_eq!(leader.as_deref(), Some("a"));
    let version = leadership.proclaim("new").await.unwrap();
    assert!(leadership.proclaim("newer").await.unwrap() > version);
    let told = loop {
        let Observed::Record { record, .. } = observation.next().await.unwrap() else { continue };
        match record.leader {
            Some(leader) if leader.value == "newer" => break leader,
            _ => {}
        }
    };
    assert_eq!(Ok(told.term), leadership.term());
    client.force_resign(None, "e", told.term, "a test").await.unwrap();
    assert_eq!(leadership.lost().await, Loss::Ended("forced".into()));
    assert_eq!(next_leader(&mut observation, &leader).await, None);
    let late = leadership.proclaim("late").await.unwrap_err();
    assert_eq!(late.code(), Some(ErrorCode::LeaseEnded));
    assert_eq!(leadership.resign().await, Ok(Release::Before(Reason::Forced)));
}

#[tokio::test]
async fn a_term_is_handed_to_whom_it_was_meant_for() {
    let (_server, client) = in_memory().await;
    let first = campaigning(&client, "a").await.unwrap();
    let b = campaigning(&client, "b");
    until_waiting(&client, 1).await;
    let c = campaigning(&client, "c");
    until_waiting(&client, 2).await;
    let Ok(Handoff::StillLeading { leadership, why }) = first.handoff_to("nobody").await else {
        panic!("nobody of that name waits")
    };
    assert_eq!(why.code(), Some(ErrorCode::NotFound));
    assert_eq!(leadership.check(), Ok(()));
    let Ok(Handoff::Done { term }) = leadership.handoff_to("c").await else { panic!() };
    let third = c.await.unwrap();
    assert_eq!(third.term(), Ok(term));
    assert!(!b.is_finished(), "b stood in front, and waits on");
    drop(third);
    assert!(b.await.unwrap().term().unwrap() > term);
}

#[tokio::test]
async fn a_leader_knows_of_its_end_before_the_next_one_begins() {
    let (_server, client) = in_memory().await;
    let campaign = client.election("e").candidate("a").ttl(secs(1)).max_hold(secs(2));
    let first = campaign.campaign().await.unwrap();
    let next = campaigning(&client, "b");
    let next = tokio::spawn(async move { (next.await.unwrap(), Moment::now()) });
    let mut watch = first.watch();
    assert_eq!(first.lost().await, Loss::MaxHold);
    let lost_at = watch.borrow_and_update().deadline;
    let (_next, elected_at) = next.await.unwrap();
    assert!(lost_at < elected_at, "{lost_at:?} is not before {elected_at:?}");
}

#[tokio::test]
async fn a_hold_is_one_owners_until_it_ends() {
    let (_server, client) = in_memory().await;
    let place = |owner: &str| client.hold("sku/42").owner(owner).ttl(secs(2));
    let mut held = place("cart-7").hold().await.unwrap();
    let again = place("cart-7").hold().await.unwrap();
    assert!(again.is_yours() && again.fence() == held.fence());
    let HoldError::Taken(taken) = place("cart-8").hold().await.unwrap_err() else { panic!() };
    assert_eq!(taken.holder.unwrap().owner, "cart-7");
    assert!(taken.frees_in.unwrap() <= secs(2));
    held.renew(Some(secs(3))).await.unwrap();
    held.begin(secs(2)).await.unwrap();
    assert!(held.is_begun());
    // It ends by itself, and its local deadline comes first.
    let next = loop {
        match place("cart-8").hold().await {
            Ok(next) => break next,
            Err(HoldError::Taken(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(matches!(held.check(), Err(NotHeld::Lost(_))), "the other one has it");
    assert!(next.fence() > held.fence());
    assert!(matches!(held.begin(secs(2)).await, Err(HoldError::Over(_))));
    assert_eq!(held.release().await, Ok(false), "somebody else's hold is not touched");
    assert_eq!(client.get_hold(None, "sku/42").await.unwrap().state, HoldState::Held);
    assert_eq!(next.release().await, Ok(true));
}

#[tokio::test]
async fn several_are_held_or_none_and_replaced_in_one_moment() {
    let (_server, client) = in_memory().await;
    let two = client.hold_all(["b", "a"]).owner("anna").hold().await.unwrap();
    let names: Vec<_> = two.holdings().iter().map(|holding| holding.resource.as_str()).collect();
    assert_eq!(names, ["b", "a"], "in the order asked for");
    let HoldError::Taken(taken) =
        client.hold_all(["c", "a"]).owner("ben").hold().await.unwrap_err()
    else {
        panic!()
    };
    assert_eq!(taken.in_the_way[0].resource, "a");
    let moved = client.hold("c").owner("anna").replaces(&two).hold().await.unwrap();
    for resource in ["a", "b"] {
        assert_eq!(client.get_hold(None, resource).await.unwrap().state, HoldState::Free);
    }
    assert_eq!(moved.release().await, Ok(true));
}

#[tokio::test]
async fn without_the_service_a_sale_goes_on() {
    let (server, client) = in_memory().await;
    server.stop().await.unwrap();
    let place = client.hold("sku/42").timeout(Duration::from_millis(300));
    assert!(place.clone().hold().await.unwrap_err().is_unavailable());
    let degraded = place.on_unavailable(OnUnavailable::Degrade).hold().await;
    assert!(matches!(degraded, Ok(Protection::Unprotected { .. })), "{degraded:?}");
}
