//! Quotas over HTTP.

mod books;
mod ends;
mod limits;
mod reads;
mod region;
mod reserve;
mod share;
mod waits;
mod words;

use crate::harness::{Bench, with_id};
use serde_json::{Value, json};
use sereno_api::{LimitPut, QuotaNodeRead, Reserved};

/// `body` with what `more` says.
fn and(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Puts a new node of the quota `gpu`.
async fn limit(bench: &Bench, path: &str, limit: u64, more: Value) -> LimitPut {
    let body = json!({"quota": "gpu", "path": path, "limit": limit, "expectedVersion": 0});
    bench.post("/v1/quotas/put-limit", and(with_id(body), more)).await.ok()
}

/// A reserve of the quota `gpu`.
fn ask(path: &str, amount: u64, more: Value) -> Value {
    let items = json!([{"quota": "gpu", "path": path, "amount": amount}]);
    and(with_id(json!({"owner": "anna", "items": items, "ttl": "30s"})), more)
}

async fn reserve(bench: &Bench, path: &str, amount: u64, more: Value) -> Reserved {
    bench.post("/v1/quotas/reserve", ask(path, amount, more)).await.ok()
}

/// A write about a reservation.
fn of(reserved: &Reserved, more: Value) -> Value {
    let named = json!({"reservationId": reserved.reservation_id, "fence": reserved.fence});
    and(with_id(named), more)
}

async fn node(bench: &Bench, path: &str) -> QuotaNodeRead {
    bench.get(&format!("/v1/quotas/{path}")).await.ok()
}

/// Repeats a write, and checks that it is answered as before.
#[track_caller]
fn same_again(first: &Value, again: &Value) {
    assert_eq!(again["replayed"], true, "{again}");
    assert_eq!(again["originalRevision"], first["revision"], "{again}");
    let figures = ["replayed", "originalRevision", "revision", "clusterTimeMs", "expiresAt"];
    let figures = figures.iter().chain(&["expiresInMs", "finalDeadlineInMs"]);
    let (mut first, mut again) = (first.clone(), again.clone());
    for name in figures {
        for body in [&mut first, &mut again] {
            body.as_object_mut().unwrap().remove(*name);
        }
    }
    assert_eq!(first, again);
}
