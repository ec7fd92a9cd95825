//! The happy path of every route on locks, on both logs.

use crate::harness::{Bench, ENGINES, request_id};
use serde_json::{Value, json};
use sereno_api::{
    Abandoned, AbandonedWas, ErrorCode, ForceReleased, Granted, GrantedAll, Lock, LockPage,
    LockState, Outcome, Reason, Released, Renewed, RenewedMany, RetryWith, Waiting,
};

#[tokio::test]
async fn a_lock_is_granted_renewed_read_and_released() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        let granted: Granted = bench
            .acquire("orders/42", json!({"leaseTtl": "20s", "labels": {"pod": "a-1"}}))
            .await
            .ok();
        assert_eq!(granted.fence_key, "default/lock/orders/42");
        assert_eq!((granted.resource.as_str(), granted.expires_in_ms), ("orders/42", 20_000));
        assert!(!granted.replayed && granted.lease_id.len() == 32);

        let json: Value = bench.get("/v1/locks/orders/42").await.ok();
        assert_eq!(json["holder"].get("caller"), None, "anonymous: {json}");
        let lock: Lock = serde_json::from_value(json).unwrap();
        let holder = lock.holder.unwrap();
        assert_eq!((lock.state, holder.fencing_token), (LockState::Held, granted.fencing_token));
        assert_eq!(holder.labels.0["pod"], "a-1");
        assert!(lock.revision >= granted.revision);
        let encoded: Lock = bench.get("/v1/locks/orders%2F42?consistency=stale").await.ok();
        assert_eq!(encoded.resource, "orders/42");

        let lease = json!({"resource": "orders/42", "leaseId": granted.lease_id});
        let mut renewal = lease.clone();
        renewal["leaseTtl"] = json!("1m");
        let renewed: Renewed = bench.post("/v1/locks/renew", renewal).await.ok();
        assert_eq!((renewed.expires_in_ms, renewed.clipped), (60_000, false));
        assert_eq!(renewed.fencing_token, granted.fencing_token);

        let released: Released = bench.post("/v1/locks/release", lease.clone()).await.ok();
        assert_eq!((released.released, released.reason), (true, None));
        let again: Released = bench.post("/v1/locks/release", lease).await.ok();
        assert_eq!((again.released, again.reason), (false, Some(Reason::Released)));

        let free: Lock = bench.get("/v1/locks/orders/42").await.ok();
        assert_eq!((free.state, free.holder, free.waiters), (LockState::Free, None, 0));
        let next = bench.grant("orders/42").await;
        assert!(next.fencing_token > granted.fencing_token);
        bench.stop().await;
    }
}

#[tokio::test]
async fn a_repeated_acquire_gets_the_same_answer() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        let request = json!({"resource": "a", "requestId": request_id(), "owner": "o"});
        let first: Granted = bench.post("/v1/locks/acquire", request.clone()).await.ok();
        let again: Granted = bench.post("/v1/locks/acquire", request).await.ok();
        assert!(again.replayed && again.original_revision == Some(first.revision));
        assert_eq!((&again.lease_id, again.fencing_token), (&first.lease_id, first.fencing_token));
        bench.stop().await;
    }
}

#[tokio::test]
async fn who_waits_is_told_the_place_and_gets_the_lock_in_turn() {
    let bench = Bench::memory().await;
    let holder = bench.grant("a").await;
    let request =
        json!({"resource": "a", "requestId": request_id(), "owner": "w", "waitTimeout": "1m"});
    let url = format!("{}/v1/locks/acquire", bench.url);
    let impatient = bench.http.post(&url).json(&request).header("Sereno-Timeout", "200ms");
    let waiting = bench.send(impatient).await;
    assert_eq!(waiting.status, 202);
    let waiting: Waiting = waiting.ok();
    assert_eq!((waiting.place, waiting.replayed), (1, false));
    assert!(waiting.wait_expires_in_ms <= 60_000);

    let lock: Lock = bench.get("/v1/locks/a").await.ok();
    assert_eq!((lock.waiters, lock.queue[0].place, lock.queue[0].owner.as_str()), (1, 1, "w"));

    let held = bench.post("/v1/locks/acquire", request);
    let release = json!({"resource": "a", "leaseId": holder.lease_id});
    let (granted, released) = tokio::join!(held, bench.post("/v1/locks/release", release));
    released.ok::<Released>();
    let granted: Granted = granted.ok();
    assert!(granted.fencing_token > holder.fencing_token);
    bench.stop().await;
}

#[tokio::test]
async fn several_locks_are_granted_all_or_none() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        let all = |resources: &[&str]| json!({"resources": resources, "requestId": request_id(), "owner": "o"});
        let granted: GrantedAll = bench.post("/v1/locks/acquire-all", all(&["b", "a"])).await.ok();
        let names: Vec<_> = granted.locks.iter().map(|lock| lock.resource.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        assert_ne!(granted.locks[0].fencing_token, granted.locks[1].fencing_token);

        let refused = bench.post("/v1/locks/acquire-all", all(&["c", "a", "b"])).await;
        let problem = refused.problem(ErrorCode::Locked);
        let in_the_way: Vec<_> =
            problem.in_the_way.iter().map(|one| one.resource.as_str()).collect();
        assert_eq!((in_the_way, problem.holder), (vec!["a", "b"], None));
        let lock: Lock = bench.get("/v1/locks/c").await.ok();
        assert_eq!(lock.state, LockState::Free);
        bench.stop().await;
    }
}

#[tokio::test]
async fn many_leases_are_renewed_each_by_itself() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        let long = "x".repeat(250);
        let mut leases = Vec::new();
        for n in 0..3 {
            let resource = format!("{long}/{n}");
            leases.push(
                json!({"resource": resource, "leaseId": bench.grant(&resource).await.lease_id}),
            );
        }
        // A thousand long names need more than one command.
        while leases.len() < 1_000 {
            leases.push(json!({"resource": format!("{long}/0"), "leaseId": "0".repeat(31) + "1"}));
        }
        leases.swap(1, 999);
        let body = json!({"leases": leases, "leaseTtl": "40s"});
        let renewed: RenewedMany = bench.post("/v1/locks/renew-many", body).await.ok();
        assert_eq!(renewed.results.len(), 1_000);
        let ok: Vec<_> = (0..1_000).filter(|&n| renewed.results[n].ok).collect();
        assert_eq!(ok, [0, 2, 999]);
        assert_eq!(renewed.results[999].expires_in_ms, Some(40_000));
        assert!(renewed.results[999].resource.ends_with("/1"));
        let stranger = &renewed.results[500];
        assert_eq!(
            (stranger.code, stranger.outcome),
            (Some(ErrorCode::NotHolder), Some(Outcome::NotApplied))
        );
        bench.stop().await;
    }
}

#[tokio::test]
async fn a_request_is_abandoned_before_while_and_after_it_is_granted() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        let id = request_id();
        let abandon = |id: &str| json!({"requestId": id});
        let unseen: Abandoned = bench.post("/v1/locks/abandon", abandon(&id)).await.ok();
        assert_eq!(unseen.was, AbandonedWas::Unseen);
        let late = bench.acquire("a", json!({"requestId": id})).await.problem(ErrorCode::Abandoned);
        assert_eq!(late.retry_with, Some(RetryWith::NewRequestId));

        let id = request_id();
        bench.acquire("a", json!({"requestId": id})).await.ok::<Granted>();
        let held: Abandoned = bench.post("/v1/locks/abandon", abandon(&id)).await.ok();
        assert_eq!(held.was, AbandonedWas::Granted);
        let again: Abandoned = bench.post("/v1/locks/abandon", abandon(&id)).await.ok();
        assert_eq!((again.was, again.reason), (AbandonedWas::Ended, Some(Reason::Abandoned)));
        bench.grant("a").await;
        bench.stop().await;
    }
}

#[tokio::test]
async fn an_operator_ends_exactly_the_lease_with_the_token() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        let granted = bench.grant("a").await;
        let mut body = json!({
            "resource": "a", "fencingToken": granted.fencing_token - 1, "requestId": request_id(),
            "reason": "its machine is gone",
        });
        bench.post("/v1/locks/force-release", body.clone()).await.problem(ErrorCode::NotHolder);
        body["fencingToken"] = json!(granted.fencing_token);
        body["requestId"] = json!(request_id());
        let forced: ForceReleased = bench.post("/v1/locks/force-release", body.clone()).await.ok();
        assert_eq!((forced.released, forced.fencing_token), (true, granted.fencing_token));
        let again: ForceReleased = bench.post("/v1/locks/force-release", body).await.ok();
        assert!(again.replayed && again.original_revision == Some(forced.revision));
        let lease = json!({"resource": "a", "leaseId": granted.lease_id});
        let ended = bench.post("/v1/locks/renew", lease).await.problem(ErrorCode::LeaseEnded);
        assert_eq!((ended.reason, ended.outcome), (Some(Reason::Forced), Outcome::NotApplied));
        bench.stop().await;
    }
}

#[tokio::test]
async fn lists_are_paged_and_filtered() {
    for engine in ENGINES {
        let bench = Bench::start(engine).await;
        for n in 0..5 {
            bench
                .acquire(&format!("list/{n}"), json!({"owner": format!("o {}", n % 2)}))
                .await
                .ok::<Granted>();
        }
        bench.grant("other").await;
        let names = |page: &LockPage| -> Vec<String> {
            page.locks.iter().map(|row| row.resource.clone()).collect()
        };
        let first: LockPage = bench.get("/v1/locks?prefix=list/&limit=3").await.ok();
        assert_eq!(names(&first), ["list/0", "list/1", "list/2"]);
        let cursor = first.next_cursor.unwrap();
        let rest: LockPage =
            bench.get(&format!("/v1/locks?prefix=list%2F&cursor={cursor}")).await.ok();
        assert_eq!(
            (names(&rest), rest.next_cursor),
            (vec!["list/3".into(), "list/4".into()], None)
        );
        let owned: LockPage = bench.get("/v1/locks?owner=o+1&consistency=stale").await.ok();
        assert_eq!(names(&owned), ["list/1", "list/3"]);
        bench.stop().await;
    }
}

#[tokio::test]
async fn a_resource_may_be_called_like_a_verb() {
    let bench = Bench::memory().await;
    for verb in ["acquire", "release", "renew-many"] {
        bench.grant(verb).await;
        let lock: Lock = bench.get(&format!("/v1/locks/{verb}")).await.ok();
        assert_eq!((lock.resource.as_str(), lock.state), (verb, LockState::Held));
    }
    bench.stop().await;
}

#[tokio::test]
async fn the_token_floor_rises_and_never_falls() {
    let bench = Bench::memory().await;
    let granted = bench.grant("a").await;
    let floor = granted.fencing_token + 1_000_000_000;
    let set = |floor: u64| json!({"requestId": request_id(), "floor": floor});
    let answer: Value = bench.post("/v1/admin/token-floor", set(floor)).await.ok();
    assert_eq!(answer["floor"], floor);
    let lower: Value = bench.post("/v1/admin/token-floor", set(5)).await.ok();
    assert_eq!(lower["floor"], floor);
    assert!(bench.grant("b").await.fencing_token >= floor);
    bench
        .post("/v1/admin/token-floor", set((1 << 53) - 1))
        .await
        .problem(ErrorCode::InvalidArgument);
    bench.stop().await;
}
