//! The client against the real server, in this process and over real HTTP.

use crate::secs;
use sereno_client::{
    Client, Error, GuardState, Loss, Moment, Release, WatchFilter, WatchItem,
    api::{ErrorCode, LockState, Reason, WatchKind},
};
use sereno_server::{Config, Server};
use std::{net::SocketAddr, path::Path, time::Duration};

async fn in_memory() -> Server {
    let server = Server::start(Config::in_memory()).await.unwrap();
    server.ready().await;
    server
}

async fn in_folder(folder: &Path, at: Option<SocketAddr>) -> Server {
    let mut config = Config::in_folder(folder);
    if let Some(at) = at {
        config.http = at;
    }
    let server = Server::start(config).await.unwrap();
    server.ready().await;
    server
}

fn client(server: &Server, owner: &str) -> Client {
    Client::builder().servers(server.url()).owner(owner).build().unwrap()
}

async fn waiters(client: &Client, resource: &str) -> u64 {
    client.get_lock(None, resource).await.unwrap().waiters
}

async fn until_waiting(client: &Client, resource: &str, count: u64) {
    while waiters(client, resource).await != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tokens_rise_and_a_release_is_definite() {
    let server = in_memory().await;
    let client = client(&server, "a");
    let mut last = 0;
    for _ in 0..3 {
        let guard = client.lock("x").acquire().await.unwrap();
        let token = guard.token().unwrap();
        assert!(token > last);
        last = token;
        let busy = client.lock("x").acquire().await.unwrap_err();
        assert!(busy.is_locked(), "{busy}");
        assert_eq!(guard.release().await, Ok(Release::Now));
    }
    assert_eq!(client.get_lock(None, "x").await.unwrap().state, LockState::Free);
}

#[tokio::test]
async fn waiters_are_served_in_order_with_fresh_leases() {
    let server = in_memory().await;
    let client = client(&server, "a");
    let first = client.lock("x").acquire().await.unwrap();
    let mut waiting = Vec::new();
    for place in 1..=3 {
        let acquire = client.lock("x").owner(format!("w{place}")).ttl(secs(2)).wait(secs(30));
        waiting.push(tokio::spawn(acquire.acquire()));
        until_waiting(&client, "x", place).await;
    }
    first.release().await.unwrap();
    for (index, waiter) in waiting.into_iter().enumerate() {
        let guard = waiter.await.unwrap().unwrap();
        let holder = client.get_lock(None, "x").await.unwrap().holder.unwrap();
        assert_eq!(holder.owner, format!("w{}", index + 1));
        assert!(guard.remaining() > Duration::from_millis(1_500), "{:?}", guard.remaining());
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_guard_lives_on_renewals_and_a_dropped_wait_leaves_the_queue() {
    let server = in_memory().await;
    let client = client(&server, "a");
    let guard = client.lock("x").ttl(secs(1)).acquire().await.unwrap();
    let waiter = tokio::spawn(client.lock("x").wait(secs(60)).acquire());
    until_waiting(&client, "x", 1).await;
    waiter.abort();
    client.settled().await;
    assert_eq!(waiters(&client, "x").await, 0);
    tokio::time::sleep(secs(2)).await;
    assert_eq!(guard.state(), GuardState::Held, "two TTLs later");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn the_longest_hold_ends_it_and_the_next_one_is_granted_after() {
    let server = in_memory().await;
    let client = client(&server, "a");
    let guard = client.lock("x").ttl(secs(1)).max_hold(secs(2)).acquire().await.unwrap();
    let token = guard.token().unwrap();
    let acquire = client.lock("x").wait(secs(30)).acquire();
    let next = tokio::spawn(async move { (acquire.await.unwrap(), Moment::now()) });
    let mut watch = guard.watch();
    assert_eq!(guard.lost().await, Loss::MaxHold);
    let lost_at = watch.borrow_and_update().deadline;
    let (next, granted_at) = next.await.unwrap();
    assert!(lost_at < granted_at, "{lost_at:?} is not before {granted_at:?}");
    assert!(next.token().unwrap() > token);
}

#[tokio::test]
async fn a_forced_release_is_told_at_the_next_renewal() {
    let server = in_memory().await;
    let client = client(&server, "a");
    let guard = client.lock("x").ttl(secs(1)).acquire().await.unwrap();
    client.force_release(None, "x", guard.token().unwrap(), "a test").await.unwrap();
    assert_eq!(guard.lost().await, Loss::Ended("forced".into()));
    assert_eq!(guard.release().await, Ok(Release::Before(Reason::Forced)));
}

#[tokio::test]
async fn several_locks_all_or_none_and_one_after_the_other() {
    let server = in_memory().await;
    let client = client(&server, "a");
    let all = client.lock_all(["b", "a"]).ttl(secs(1)).acquire().await.unwrap();
    let busy = client.lock_all(["c", "a"]).acquire().await.unwrap_err();
    let Error::Refused(problem) = busy else { panic!("{busy}") };
    assert_eq!(problem.in_the_way[0].resource, "a");
    assert_eq!(client.get_lock(None, "c").await.unwrap().state, LockState::Free);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(all.state(), GuardState::Held, "renewed together");
    assert_eq!(all.release().await, Ok(Release::Now));

    let many = client.lock_many(["b", "a"], |lock| lock.wait(secs(5))).await.unwrap();
    let tokens: Vec<_> = many.guards().iter().map(|guard| guard.token().unwrap()).collect();
    assert!(tokens[0] < tokens[1], "in sorted order");
    assert_eq!(many.release().await, [Ok(Release::Now), Ok(Release::Now)]);
}

#[tokio::test]
async fn one_of_several_locks_forced_away_loses_them_all() {
    let server = in_memory().await;
    let client = client(&server, "a");
    let all = client.lock_all(["a", "b"]).ttl(secs(1)).acquire().await.unwrap();
    let token_of_b = all.grant().holdings[1].fencing_token;
    client.force_release(None, "b", token_of_b, "a test").await.unwrap();
    assert_eq!(all.lost().await, Loss::Ended("forced".into()));
    client.settled().await;
    assert_eq!(client.get_lock(None, "a").await.unwrap().state, LockState::Free, "given back");
}

#[tokio::test]
async fn refusals_by_rule_are_told_as_they_are() {
    let server = in_memory().await;
    let client = client(&server, "a");
    let nowhere = client.lock("x").namespace("nowhere").acquire().await.unwrap_err();
    assert_eq!(nowhere.code(), Some(ErrorCode::NotFound));
    let name = client.lock("a b").acquire().await.unwrap_err();
    assert_eq!(name.code(), Some(ErrorCode::InvalidArgument));
    let ttl = client.lock("x").ttl(Duration::from_millis(1)).acquire().await.unwrap_err();
    assert!(matches!(ttl, Error::Refused(problem) if problem.field.as_deref() == Some("leaseTtl")));
    let waits = client.lock_all(["a", "b"]).wait(secs(1)).acquire().await.unwrap_err();
    assert!(matches!(waits, Error::Invalid(_)), "{waits}");
    assert!(matches!(client.lock_many([""; 0], |lock| lock).await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn guards_and_watches_outlive_a_restart_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let server = in_folder(folder.path(), None).await;
    let at = server.addr();
    let client = client(&server, "a");
    let mut watch = client.watch(WatchFilter::default());
    assert!(matches!(watch.next().await.unwrap(), WatchItem::Started { .. }));
    let guard = client.lock("x").ttl(secs(5)).acquire().await.unwrap();
    server.stop().await.unwrap();
    let acquire = tokio::spawn(client.lock("y").timeout(secs(30)).acquire());
    let server = in_folder(folder.path(), Some(at)).await;
    let other = acquire.await.unwrap().unwrap();
    assert_eq!(guard.state(), GuardState::Held);
    assert!(other.token().unwrap() > guard.token().unwrap());
    assert_eq!(guard.release().await, Ok(Release::Now));
    let mut granted = Vec::new();
    while granted.len() < 2 {
        if let WatchItem::Event { event, .. } = watch.next().await.unwrap()
            && event.kind == WatchKind::Granted
        {
            granted.push(event.resource.unwrap());
        }
    }
    assert_eq!(granted, ["x", "y"]);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_cursor_of_another_log_is_a_resync_and_the_watch_goes_on() {
    let (old, new) = (in_memory().await, in_memory().await);
    let mut watch = client(&old, "a").watch(WatchFilter::default());
    let WatchItem::Started { cursor } = watch.next().await.unwrap() else { panic!() };
    let client = client(&new, "a");
    let mut watch = client.watch(WatchFilter { from: Some(cursor), ..WatchFilter::default() });
    assert!(matches!(watch.next().await.unwrap(), WatchItem::Resync { .. }));
    // Followed again before anything happens: nothing is lost in between.
    let guard = client.lock("x").acquire().await.unwrap();
    let WatchItem::Event { event, .. } = watch.next().await.unwrap() else { panic!() };
    assert_eq!(event.fencing_token, guard.token().ok());
}
