//! Quotas by the client against the real server, in this process and over real HTTP.

use crate::secs;
use sereno_client::{
    Client, Commit, Error, LimitChange, Limits, ListNodes, ListReservations, Loss, NotHeld,
    QuotaError, Quotas, Reconciliation, UsageReport,
    api::{ErrorCode, OnExpiry, Reason, ReservationState, Settlement, Shortage},
    last_epoch,
};
use sereno_server::{Config, Server};
use std::time::Duration;

async fn in_memory() -> (Server, Client) {
    let server = Server::start(Config::in_memory()).await.unwrap();
    server.ready().await;
    let client = Client::builder().servers(server.url()).owner("w1").build().unwrap();
    (server, client)
}

/// `gpu` 10, `gpu/acme` 8, `gpu/bolt` 8.
async fn pool(client: &Client) -> Quotas {
    let quota = client.quota();
    for (path, limit) in [("", 10), ("acme", 8), ("bolt", 8)] {
        quota.create("gpu", path, limit).await.unwrap();
    }
    quota
}

async fn available(quota: &Quotas, path: &str) -> u64 {
    quota.get("gpu", path).await.unwrap().node.available
}

#[tokio::test]
async fn capacity_is_reserved_committed_and_returned() {
    let (_server, client) = in_memory().await;
    let quota = pool(&client).await;
    let mut held = quota.reserve("gpu", "acme", 6).reserve().await.unwrap();
    assert_eq!(held.items()[0].available, [4, 2]);
    let error = quota.reserve("gpu", "bolt", 5).reserve().await.unwrap_err();
    let QuotaError::Exhausted(why) = error else { panic!("{error}") };
    let told: Vec<_> =
        why.layers.iter().map(|it| (it.path.as_str(), it.shortfall, it.kind)).collect();
    assert_eq!(told, [("", 1, Shortage::Limit)]);
    assert!(why.retry_after.is_some());

    held.resize([("gpu", "acme", 4)]).await.unwrap();
    held.begin(secs(60), OnExpiry::Quarantine).await.unwrap();
    let part = held.commit_part([("gpu", "acme", 1)]).await.unwrap();
    assert_eq!((part.taken[0].amount, part.left[0].amount), (1, 3));
    let too_much = held.commit_items([("gpu", "acme", 4)]).await.unwrap_err();
    assert!(matches!(too_much, QuotaError::Exceeds(_)), "{too_much}");
    let last = held.commit_items([("gpu", "acme", 2)]).await.unwrap();
    assert_eq!((last.taken[0].amount, last.returned[0].amount), (2, 1));
    let again = held.commit().await.unwrap_err();
    assert!(
        matches!(&again, QuotaError::Over(it) if it.reason == Some(Reason::Committed)),
        "{again:?}"
    );
    let node = quota.get("gpu", "acme").await.unwrap();
    assert_eq!((node.node.committed, node.node.reserved), (3, 0));
    assert_eq!((node.owners[0].owner.as_str(), node.owners[0].commits.len()), ("w1", 2));

    let returned = quota.return_use(last.commit_id, "gpu", "acme", "w1", 2).await.unwrap();
    assert_eq!((returned.amount, returned.left), (2, 0));
    let twice = quota.return_use(last.commit_id, "gpu", "acme", "w1", 1).await.unwrap_err();
    assert_eq!(twice.code(), Some(ErrorCode::ExceedsReservation));
    assert_eq!(available(&quota, "acme").await, 7);
}

#[tokio::test]
async fn a_drop_gives_back_and_whoever_waits_has_it() {
    let (_server, client) = in_memory().await;
    let quota = pool(&client).await;
    let held = quota.reserve("gpu", "acme", 8).reserve().await.unwrap();
    let waiting =
        tokio::spawn(quota.reserve("gpu", "bolt", 5).ttl(secs(5)).wait(secs(20)).reserve());
    let in_line = ListReservations { state: Some(ReservationState::Waiting), ..Default::default() };
    while quota.reservations(&in_line).await.unwrap().reservations.is_empty() {
        tokio::task::yield_now().await;
    }
    let behind = quota.reserve("gpu", "bolt", 1).reserve().await.unwrap_err();
    let QuotaError::Exhausted(why) = behind else { panic!("{behind}") };
    assert_eq!(why.layers[0].kind, Shortage::Waiting, "nobody passes who waits");
    drop(held);
    let next = waiting.await.unwrap().unwrap();
    assert_eq!(next.check(), Ok(()));
    assert!(next.remaining() > secs(4), "all of its time is left");
    let explained = quota.explain("gpu", "bolt").await.unwrap();
    assert_eq!(
        (explained.layers.len(), explained.holders[0].reservation_id.as_str()),
        (2, next.id())
    );
    assert_eq!(explained.last_refusal.unwrap().amount, 1);
    let fence = next.fence();
    assert!(next.release().await.unwrap().released);
    let later = quota.reserve("gpu", "bolt", 1).reserve().await.unwrap();
    assert!(later.fence() > fence);
    // A wait that is over.
    let all = quota.reserve("gpu", "bolt", 8).wait(Duration::from_millis(300)).reserve().await;
    let over = all.unwrap_err();
    assert!(over.is_exhausted() && over.code() == Some(ErrorCode::WaitTimeout), "{over}");
    drop(later);
    client.settled().await;
    assert_eq!(available(&quota, "").await, 10);
}

#[tokio::test]
async fn what_could_never_be_had_is_not_waited_for() {
    let (_server, client) = in_memory().await;
    let quota = pool(&client).await;
    for (path, amount, kind) in [("acme", 9, Shortage::Limit), ("nobody", 1, Shortage::Unknown)] {
        let error = quota.reserve("gpu", path, amount).wait(secs(20)).reserve().await.unwrap_err();
        let QuotaError::Exhausted(why) = error else { panic!("{error}") };
        let last = why.layers.last().unwrap();
        assert_eq!((last.path.as_str(), last.kind, why.retry_after), (path, kind, None));
    }
    // All or none, over several quotas.
    quota.create("bytes", "", 5).await.unwrap();
    let both = quota.reserve("gpu", "acme", 1).and("bytes", "", 6).reserve().await;
    assert!(both.unwrap_err().is_exhausted());
    assert_eq!(available(&quota, "acme").await, 8);
}

#[tokio::test]
async fn kept_extended_it_outlives_its_time_and_left_alone_it_does_not() {
    let (_server, client) = in_memory().await;
    let quota = pool(&client).await;
    let kept =
        quota.reserve("gpu", "acme", 1).ttl(secs(1)).keep_extended().reserve().await.unwrap();
    let mut alone = quota.reserve("gpu", "acme", 2).ttl(secs(1)).reserve().await.unwrap();
    let mut fated = quota
        .reserve("gpu", "acme", 3)
        .ttl(secs(1))
        .on_expiry(OnExpiry::Quarantine)
        .reserve()
        .await
        .unwrap();
    assert_eq!(alone.lost().await, Loss::Deadline);
    // The loss comes before the service ends it, so the log may still take a commit; after that it does not.
    while quota.get_reservation(alone.id()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let late = alone.commit().await.unwrap_err();
    assert!(
        matches!(&late, QuotaError::Over(it) if it.reason == Some(Reason::Expired)),
        "{late:?}"
    );
    let readmitted = alone.commit_with(Commit::all().or_readmit()).await.unwrap();
    assert_eq!(readmitted.readmits.as_deref(), Some(alone.id()));
    assert_eq!(kept.check(), Ok(()));

    let fate = quota.get_reservation(fated.id()).await.unwrap().reservation;
    assert_eq!(fate.state, ReservationState::Quarantined);
    let over = fated.commit().await.unwrap_err();
    assert!(matches!(over, QuotaError::Over(_)), "{over:?}");
    assert!(matches!(fated.check(), Err(NotHeld::Lost(_))));
    let settled = quota.settle(fated.id(), Settlement::Commit, "seen running").await.unwrap();
    assert!(settled.commit_id.is_some());
    assert_eq!(quota.get("gpu", "acme").await.unwrap().node.committed, 5);
    assert!(kept.release().await.unwrap().released);
}

#[tokio::test]
async fn limits_have_versions_and_a_cut_shows_a_debt() {
    let (_server, client) = in_memory().await;
    let quota = pool(&client).await;
    let held = quota.reserve("gpu", "acme", 6).reserve().await.unwrap();
    let read = quota.get("gpu", "acme").await.unwrap();
    let mut change = LimitChange {
        quota: "gpu".into(),
        path: "acme".into(),
        limits: Limits { limit: 4, ..Limits::from(&read.node) },
        expected_version: read.node.version,
        refuse_debt: true,
    };
    let refused = quota.put_limit(change.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::InvalidArgument));
    change.refuse_debt = false;
    let put = quota.put_limit(change.clone()).await.unwrap();
    assert_eq!((put.version, put.debt), (2, 2));
    let Error::Refused(stale) = quota.put_limit(change).await.unwrap_err() else { panic!() };
    assert_eq!((stale.code, stale.current_version), (ErrorCode::VersionConflict, Some(2)));
    drop(held);
    client.settled().await;
    quota.create("gpu", "acme", 99).await.unwrap();
    assert_eq!(quota.get("gpu", "acme").await.unwrap().node.limit, 4, "it was there");
    quota.remove_node("gpu", "acme", 2).await.unwrap();
    let gone = quota.get("gpu", "acme").await.unwrap_err();
    assert_eq!(gone.code(), Some(ErrorCode::NotFound));
    let rows =
        quota.list(&ListNodes { quota: Some("gpu".into()), ..Default::default() }).await.unwrap();
    let paths: Vec<_> = rows.nodes.iter().map(|node| node.path.as_str()).collect();
    assert_eq!(paths, ["", "bolt"]);
    let roots = quota.list(&ListNodes::default()).await.unwrap();
    assert_eq!((roots.nodes.len(), roots.nodes[0].quota.as_str()), (1, "gpu"));
}

#[tokio::test]
async fn the_books_are_held_against_reality() {
    let (_server, client) = in_memory().await;
    let quota = pool(&client).await;
    quota.reserve("gpu", "acme", 3).reserve().await.unwrap().commit().await.unwrap();
    for (epoch, change) in [(1, 0), (2, 2)] {
        let read = quota.get("gpu", "acme").await.unwrap();
        assert_eq!(last_epoch(&read, "nodes"), epoch - 1);
        let report = UsageReport::against(&read, "nodes", epoch, 5);
        assert_eq!(quota.report_usage(report).await.unwrap().drift.drift, 2);
        let reconciliation = Reconciliation {
            quota: "gpu".into(),
            path: "acme".into(),
            reporter: "nodes".into(),
            epoch,
            dry_run: false,
            at_once: false,
        };
        let done = quota.reconcile(reconciliation.clone()).await.unwrap();
        assert_eq!((done.change, done.waits_for_another), (change, change == 0));
        let again = quota.reconcile(reconciliation).await.unwrap();
        assert_eq!(again.change, 0);
    }
    assert_eq!(quota.adjust("gpu", "acme", "w1", -1, "one is broken").await.unwrap().committed, 2);
    assert_eq!(quota.get("gpu", "").await.unwrap().node.committed, 4);
}

#[tokio::test]
async fn a_share_is_lent_and_given_back() {
    let (_server, client) = in_memory().await;
    let quota = pool(&client).await;
    let share = quota.grant_share("gpu", "", "us", 6, 2).await.unwrap();
    assert_eq!((share.amount, available(&quota, "").await), (6, 4));
    let reclaimed = quota.reclaim_share(&share.share_id, "no word from us").await.unwrap();
    assert_eq!((reclaimed.kept, reclaimed.reclaimed, available(&quota, "").await), (4, true, 6));
    let lent = quota.get("gpu", "").await.unwrap().shares;
    assert_eq!((lent[0].owner.as_str(), lent[0].overdraft_cap), ("region:us", 2));
    let ended = quota.return_share(&share.share_id, 5, 1).await.unwrap();
    assert_eq!((ended.amount, ended.commit_id.is_some()), (0, true));
    assert_eq!(quota.get("gpu", "").await.unwrap().node.committed, 1);
}
