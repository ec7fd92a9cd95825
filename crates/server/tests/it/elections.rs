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
    let path = format!("/v1/elections/a/b?from={cursor}");
    let problem = bench.get(&path).await.problem(ErrorCode::InvalidArgument);
    assert!(problem.detail.contains("from: is only for observe=true"), "{}", problem.detail);
    bench.stop().await;
}

/// The records of an observation.
struct Records(Stream);

impl Records {
    async fn open(bench: &Bench, from: Option<&str>) -> Self {
        let from = from.map(|cursor| format!("&from={cursor}")).unwrap_or_default();
        let path = format!("/v1/elections/a/b?observe=true{from}");
        Self(Stream::open_path(bench, &path).await)
    }

    async fn next(&mut self) -> (Election, String) {
        let frame = self.0.next().await.unwrap();
        assert_eq!(frame.event, "leader");
        (serde_json::from_str(&frame.data).unwrap(), frame.id.unwrap())
    }

    /// Who leads, and whether something is missing before it.
    async fn leader(&mut self) -> (Option<String>, bool) {
        let (record, _) = self.next().await;
        (record.leader.map(|leader| leader.candidate), record.missed)
    }
}

async fn resign(bench: &Bench, elected: &Elected) {
    bench.post("/v1/elections/resign", by(elected)).await.ok::<Released>();
}

fn led_by(candidate: &str) -> Option<String> {
    Some(candidate.to_owned())
}

/// a leads, nobody, b, nobody, and a again.
#[tokio::test]
async fn a_resumed_observer_is_told_of_each_loss_and_that_a_leader_is_missing() {
    let bench = Bench::memory().await;
    let first = lead(&bench, "a").await;
    let (record, cursor) = Records::open(&bench, None).await.next().await;
    assert_eq!(record.leader.unwrap().term, first.term);
    resign(&bench, &first).await;
    let second = lead(&bench, "b").await;
    resign(&bench, &second).await;
    let third = lead(&bench, "a").await;

    let mut resumed = Records::open(&bench, Some(&cursor)).await;
    assert_eq!(resumed.leader().await, (None, false), "a is gone");
    let (vacant, between) = resumed.next().await;
    assert_eq!(vacant.state, ElectionState::Vacant, "b is gone");
    assert!(vacant.missed, "that b led was not told");
    let (last, now) = resumed.next().await;
    assert_eq!((last.leader.unwrap().term, last.missed), (third.term, false));

    // Each of them can be resumed from.
    let mut from_between = Records::open(&bench, Some(&between)).await;
    assert_eq!(from_between.leader().await, (led_by("a"), false));
    // Where nothing has changed the record is told all the same: whoever comes back knows that it holds.
    let mut from_now = Records::open(&bench, Some(&now)).await;
    assert_eq!(from_now.leader().await, (led_by("a"), false));
    bench.stop().await;
}

#[tokio::test]
async fn a_hand_over_is_one_change_and_a_folded_value_is_said_to_be_missing() {
    let bench = Bench::memory().await;
    let first = lead(&bench, "a").await;
    let (_, cursor) = Records::open(&bench, None).await.next().await;
    let body = campaign("b", json!({"waitTimeout": "1m"}));
    let short = bench.http.post(format!("{}/v1/elections/campaign", bench.url));
    let short = short.header("Sereno-Timeout", "50ms").json(&body);
    bench.send(short).await.ok::<CampaignWaiting>();
    resign(&bench, &first).await;
    let mut resumed = Records::open(&bench, Some(&cursor)).await;
    assert_eq!(resumed.leader().await, (led_by("b"), false), "somebody leads throughout");

    let second: Elected = bench.post("/v1/elections/campaign", body).await.ok();
    for value in ["x", "y"] {
        let proclaim = and(by(&second), with_id(json!({"value": value})));
        bench.post("/v1/elections/proclaim", proclaim).await.ok::<Proclaimed>();
    }
    let mut resumed = Records::open(&bench, Some(&cursor)).await;
    let (record, _) = resumed.next().await;
    assert_eq!((record.leader.unwrap().value.as_str(), record.missed), ("y", true));
    bench.stop().await;
}

#[tokio::test]
async fn a_live_observer_misses_no_loss_and_no_change_silently() {
    let bench = Bench::memory().await;
    let mut records = Records::open(&bench, None).await;
    assert_eq!(records.leader().await, (None, false));
    // Read one by one nothing is folded.
    for candidate in ["a", "b", "a"] {
        let elected = lead(&bench, candidate).await;
        assert_eq!(records.leader().await, (led_by(candidate), false));
        resign(&bench, &elected).await;
        assert_eq!(records.leader().await, (None, false));
    }
    // Faster than it is read each vacancy is told still.
    const TERMS: usize = 30;
    for _ in 0..TERMS {
        let elected = lead(&bench, "a").await;
        resign(&bench, &elected).await;
    }
    let (mut losses, mut told) = (0, false);
    while losses < TERMS {
        match records.leader().await {
            (Some(_), missed) => {
                assert!(!missed && !told, "between two leaders nobody led");
                told = true;
            }
            (None, missed) => {
                assert_eq!(missed, !told, "what was not told is said to be missing");
                (losses, told) = (losses + 1, false);
            }
        }
    }
    // Many values at once: each gap of versions is said.
    let elected = lead(&bench, "a").await;
    assert_eq!(records.leader().await, (led_by("a"), false));
    let proclaims = (0..200).map(|n| {
        let proclaim = and(by(&elected), with_id(json!({"value": n.to_string()})));
        bench.post("/v1/elections/proclaim", proclaim)
    });
    futures_util::future::join_all(proclaims).await;
    let mut version = elected.version;
    while version < elected.version + 200 {
        let (record, _) = records.next().await;
        let next = record.leader.unwrap().version;
        assert_eq!(record.missed, next > version + 1, "from version {version} to {next}");
        version = next;
    }
    bench.stop().await;
}
