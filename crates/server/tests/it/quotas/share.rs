//! Capacity that other regions may use.

use super::{and, limit, node, same_again};
use crate::harness::{Bench, with_id};
use serde_json::{Value, json};
use sereno_api::{ErrorCode, Shared, Shortage};

fn grant(amount: u64, cap: u64) -> Value {
    let body = json!({"quota": "gpu", "region": "us", "amount": amount, "overdraftCap": cap});
    with_id(body)
}

fn share(share: &Shared, more: Value) -> Value {
    and(with_id(json!({"shareId": share.share_id})), more)
}

#[tokio::test]
async fn a_share_is_lent_reclaimed_and_given_back() {
    let bench = Bench::memory().await;
    limit(&bench, "", 10, json!({})).await;
    let body = grant(6, 2);
    let answer = bench.post("/v1/quotas/share-grant", body.clone()).await;
    same_again(&answer.body, &bench.post("/v1/quotas/share-grant", body).await.body);
    let lent: Shared = answer.ok();
    assert_eq!((lent.amount, lent.kept, lent.reclaimed), (6, 6, false));
    let full = bench.post("/v1/quotas/share-grant", grant(5, 0)).await;
    let full = full.problem(ErrorCode::QuotaExhausted);
    assert_eq!((full.layers[0].kind, full.layers[0].available), (Shortage::Limit, 4));
    let read = node(&bench, "gpu").await;
    assert_eq!((read.node.reserved, read.shares[0].owner.as_str()), (6, "region:us"));
    assert_eq!(read.shares[0].overdraft_cap, 2);

    let body = share(&lent, json!({"reason": "no word from them since Monday"}));
    let answer = bench.post("/v1/quotas/share-reclaim", body.clone()).await;
    same_again(&answer.body, &bench.post("/v1/quotas/share-reclaim", body).await.body);
    let reclaimed: Shared = answer.ok();
    assert_eq!((reclaimed.amount, reclaimed.kept, reclaimed.reclaimed), (6, 4, true));
    let twice = share(&lent, json!({"reason": "again"}));
    let twice = bench.post("/v1/quotas/share-reclaim", twice).await;
    let twice = twice.problem(ErrorCode::InvalidArgument);
    assert_eq!(twice.field.as_deref(), Some("shareId"));

    let back = share(&lent, json!({"returned": 3, "spent": 2}));
    let answer = bench.post("/v1/quotas/share-return", back.clone()).await;
    same_again(&answer.body, &bench.post("/v1/quotas/share-return", back).await.body);
    let left: Shared = answer.ok();
    assert!(left.amount == 1 && left.commit_id.is_some());
    let more = bench.post("/v1/quotas/share-return", share(&lent, json!({"returned": 2}))).await;
    let more = more.problem(ErrorCode::ExceedsReservation).excess.unwrap();
    assert_eq!((more.has, more.asked), (1, 2));
    let nothing = bench.post("/v1/quotas/share-return", share(&lent, json!({}))).await;
    let nothing = nothing.problem(ErrorCode::InvalidArgument);
    assert_eq!(nothing.field.as_deref(), Some("returned"));
    let last = bench.post("/v1/quotas/share-return", share(&lent, json!({"returned": 1}))).await;
    assert_eq!(last.ok::<Shared>().amount, 0);
    let over = bench.post("/v1/quotas/share-return", share(&lent, json!({"returned": 1}))).await;
    over.problem(ErrorCode::NotFound);
    let read = node(&bench, "gpu").await;
    assert_eq!((read.node.committed, read.node.reserved, read.shares.len()), (2, 0, 0));
    bench.stop().await;
}
