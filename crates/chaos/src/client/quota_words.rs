//! What each operation about quotas is called over HTTP.

use super::{door::NAMESPACE, words::ms};
use crate::history::{NodeRules, QuotaOp, ReservationOf};
use reqwest::Method;
use serde_json::{Value, json};

/// Method, path and body.
pub(super) fn of(op: &QuotaOp) -> (Method, String, Option<Value>) {
    let read = |path: String| (Method::GET, format!("{path}?namespace={NAMESPACE}"), None);
    let (what, mut body) = match op {
        QuotaOp::Node { quota, path } if path.is_empty() => {
            return read(format!("/v1/quotas/{quota}"));
        }
        QuotaOp::Node { quota, path } => return read(format!("/v1/quotas/{quota}/{path}")),
        QuotaOp::Reservation { reservation, .. } => {
            return read(format!("/v1/reservations/{reservation}"));
        }
        op => write(op),
    };
    body["namespace"] = NAMESPACE.into();
    (Method::POST, format!("/v1/quotas/{what}"), Some(body))
}

fn by_name(of: &ReservationOf) -> Value {
    let mut body = json!({ "reservationId": of.reservation, "requestId": of.request });
    if let Some(fence) = of.fence {
        body["fence"] = fence.into();
    }
    body
}

/// A body with some more fields.
fn with(mut body: Value, more: Value) -> Value {
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}

fn write(op: &QuotaOp) -> (&'static str, Value) {
    match op {
        QuotaOp::Reserve { owner, items, request, wait_ms, ttl_ms, on_expiry, priority } => (
            "reserve",
            json!({
                "owner": owner, "items": items, "requestId": request, "ttl": ms(*ttl_ms),
                "waitTimeout": ms(*wait_ms), "onExpiry": on_expiry, "priority": priority,
            }),
        ),
        QuotaOp::Begin { of, ttl_ms, on_expiry } => {
            let more = json!({ "inFlightTtl": ms(*ttl_ms), "onExpiry": on_expiry });
            ("begin", with(by_name(of), more))
        }
        QuotaOp::Commit { of, items, is_final, readmits } => {
            let late = if *readmits { "readmit" } else { "reject" };
            let mut body = with(by_name(of), json!({ "final": is_final, "late": late }));
            if let Some(items) = items {
                body["items"] = json!(items);
            }
            ("commit", body)
        }
        QuotaOp::Extend { of, ttl_ms } => {
            ("extend", with(by_name(of), json!({ "ttl": ms(*ttl_ms) })))
        }
        QuotaOp::Resize { of, items } => ("resize", with(by_name(of), json!({ "items": items }))),
        QuotaOp::Release { of } => ("release", by_name(of)),
        QuotaOp::Settle { of, settlement } => {
            ("settle", with(by_name(of), json!({ "settlement": settlement, "reason": "chaos" })))
        }
        QuotaOp::Return { commit, owner, item, request } => (
            "return",
            json!({
                "commitId": commit, "owner": owner, "quota": item.quota, "path": item.path,
                "amount": item.amount, "requestId": request,
            }),
        ),
        QuotaOp::PutLimit { node, expected_version, request } => {
            let more = json!({ "expectedVersion": expected_version, "requestId": request });
            ("put-limit", with(rules(node), more))
        }
        QuotaOp::Node { .. } | QuotaOp::Reservation { .. } => unreachable!("it has no body"),
    }
}

fn rules(node: &NodeRules) -> Value {
    let mut body = json!({
        "quota": node.quota, "path": node.path, "limit": node.limit, "burst": node.burst,
        "guaranteed": node.guaranteed, "weight": node.weight,
    });
    if let Some(most) = node.owner_reserved_max {
        body["ownerReservedMax"] = most.into();
    }
    body
}
