//! Elections over HTTP.

use crate::{
    harness::{Bench, ENGINES, with_id},
    watch::Stream,
};
use serde_json::{Value, json};
use sereno_api::{
    Abandoned, AbandonedWas, CampaignWaiting, Elected, Election, ElectionPage, ElectionState,
    ErrorCode, ForceReleased, HandedOff, Proclaimed, Reason, Released, Renewed, RetryWith,
};

fn campaign(candidate: &str, more: Value) -> Value {
    let mut body = with_id(json!({"election": "a/b", "candidate": candidate, "value": candidate}));
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

async fn lead(bench: &Bench, candidate: &str) -> Elected {
    bench.post("/v1/elections/campaign", campaign(candidate, json!({}))).await.ok()
}

fn by(elected: &Elected) -> Value {
    json!({"election": "a/b", "leaseId": elected.lease_id})
}

fn and(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn a_term_from_campaign_to_resignation() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        let vacant: Election = bench.get("/v1/elections/a/b").await.ok();
        assert_eq!((vacant.state, vacant.leader), (ElectionState::Vacant, None));

        let first = lead(&bench, "n1").await;
        assert_eq!(first.fence_key, "default/election/a/b");
        let refused = bench.post("/v1/elections/campaign", campaign("n2", json!({}))).await;
        let refused = refused.problem(ErrorCode::Locked);
        assert_eq!(refused.holder.unwrap().fencing_token, first.term);
        let renewed: Renewed = bench.post("/v1/elections/renew", by(&first)).await.ok();
        assert_eq!(renewed.fencing_token, first.term);

        let second = campaign("n2", json!({"waitTimeout": "1m"}));
        let short = bench.http.post(format!("{}/v1/elections/campaign", bench.url));
        let short = short.header("Sereno-Timeout", "50ms").json(&second);
        let waiting: CampaignWaiting = bench.send(short).await.ok();
        assert_eq!(waiting.place, 1);
        let resigned: Released = bench.post("/v1/elections/resign", by(&first)).await.ok();
        assert!(resigned.released);
        let elected: Elected = bench.post("/v1/elections/campaign", second).await.ok();
        assert!(elected.term > first.term && elected.value == "n2");

        let read: Election = bench.get("/v1/elections/a/b").await.ok();
        let leader = read.leader.unwrap();
        assert_eq!((leader.candidate.as_str(), leader.term), ("n2", elected.term));
        let page: ElectionPage = bench.get("/v1/elections?prefix=a/").await.ok();
        assert_eq!(page.elections.len(), 1);
        let listed = &page.elections[0].leader;
        assert_eq!((&listed.candidate, listed.term), (&leader.candidate, leader.term));
        bench.stop().await;
    }
}

#[tokio::test]
async fn a_value_is_proclaimed_and_a_successor_named() {
    let bench = Bench::memory().await;
    let first = lead(&bench, "n1").await;
    let proclaim = and(by(&first), with_id(json!({"value": "elsewhere"})));
    let proclaimed: Proclaimed = bench.post("/v1/elections/proclaim", proclaim.clone()).await.ok();
    assert!(proclaimed.version > first.version);
    let again: Proclaimed = bench.post("/v1/elections/proclaim", proclaim).await.ok();
    assert!(again.replayed && again.version == proclaimed.version);
    let stale = with_id(json!({"value": "x", "version": first.version}));
    let conflict = bench.post("/v1/elections/proclaim", and(by(&first), stale)).await;
    let conflict = conflict.problem(ErrorCode::VersionConflict);
    assert_eq!(conflict.current_version, Some(proclaimed.version));

    let to = |to: &str| and(by(&first), with_id(json!({"to": to})));
    bench.post("/v1/elections/handoff", to("n9")).await.problem(ErrorCode::NotFound);
    for candidate in ["n2", "n3"] {
        let body = campaign(candidate, json!({"waitTimeout": "1m"}));
        let short = bench.http.post(format!("{}/v1/elections/campaign", bench.url));
        let short = short.header("Sereno-Timeout", "50ms").json(&body);
        bench.send(short).await.ok::<CampaignWaiting>();
    }
    let handed: HandedOff = bench.post("/v1/elections/handoff", to("n3")).await.ok();
    let ended = bench.post("/v1/elections/renew", by(&first)).await;
    assert_eq!(ended.problem(ErrorCode::LeaseEnded).reason, Some(Reason::HandedOff));
    let read: Election = bench.get("/v1/elections/a/b").await.ok();
    let leader = read.leader.unwrap();
    assert_eq!((leader.candidate.as_str(), leader.term), ("n3", handed.term));

    let force = with_id(json!({"election": "a/b", "term": handed.term, "reason": "stuck"}));
    let forced: ForceReleased = bench.post("/v1/elections/force-release", force).await.ok();
    assert_eq!(forced.fencing_token, handed.term);
    bench.stop().await;
}

#[tokio::test]
async fn a_campaign_is_abandoned() {
    let bench = Bench::memory().await;
    let body = campaign("n1", json!({}));
    let abandon = json!({"requestId": body["requestId"]});
    bench.post("/v1/elections/campaign", body.clone()).await.ok::<Elected>();
    // A lock's request of the same id is another request.
    let of_locks: Abandoned = bench.post("/v1/locks/abandon", abandon.clone()).await.ok();
    assert_eq!(of_locks.was, AbandonedWas::Unseen);
    let abandoned: Abandoned = bench.post("/v1/elections/abandon", abandon).await.ok();
    assert_eq!(abandoned.was, AbandonedWas::Granted);
    let spent = bench.post("/v1/elections/campaign", body).await.problem(ErrorCode::LeaseEnded);
    assert_eq!(spent.retry_with, Some(RetryWith::NewRequestId));
    bench.stop().await;
}

#[tokio::test]
async fn an_observer_is_told_of_every_leader_and_of_none() {
    let bench = Bench::memory().await;
    let mut stream = Stream::open_path(&bench, "/v1/elections/a/b?observe=true").await;
    let mut next = async || {
        let frame = stream.next().await.unwrap();
        assert_eq!(frame.event, "leader");
        let election: Election = serde_json::from_str(&frame.data).unwrap();
        (election.leader.map(|leader| (leader.candidate, leader.value)), frame.id.unwrap())
    };
    let leader = |candidate: &str, value: &str| Some((candidate.to_owned(), value.to_owned()));
    assert_eq!(next().await.0, None);
    let first = lead(&bench, "n1").await;
    assert_eq!(next().await.0, leader("n1", "n1"));
    let proclaim = and(by(&first), with_id(json!({"value": "more"})));
    bench.post("/v1/elections/proclaim", proclaim).await.ok::<Proclaimed>();
    assert_eq!(next().await.0, leader("n1", "more"));
    // What happens elsewhere is not told.
    bench.grant("a/b").await;
    bench.post("/v1/elections/resign", by(&first)).await.ok::<Released>();
    let (vacant, cursor) = next().await;
    assert_eq!(vacant, None);
    lead(&bench, "n2").await;
    assert_eq!(next().await.0, leader("n2", "n2"));

    // Whoever comes back is told of the present first.
    let path = format!("/v1/elections/a/b?observe=true&from={cursor}");
    let mut resumed = Stream::open_path(&bench, &path).await;
    let frame = resumed.next().await.unwrap();
    let election: Election = serde_json::from_str(&frame.data).unwrap();
    assert_eq!(election.leader.unwrap().candidate, "n2");
    let other_log = format!("{}-1", "ab".repeat(16));
    let path = format!("/v1/elections/a/b?observe=true&from={other_log}");
    bench.get(&path).await.problem(ErrorCode::Resync);
    bench.stop().await;
}
