//! What each operation is called over HTTP.

use super::{door::NAMESPACE, quota_words};
use crate::history::{Family, HoldOf, LeaseOf, Op};
use reqwest::Method;
use serde_json::{Value, json};
use sereno_schedule::instant;

/// Every second: which slots are run the replicas decide.
const SCHEDULE: &str = "* * * * * *";
/// The longest that an attempt may take.
const MAX_RUN: &str = "20s";

/// Method, path and body.
pub(super) fn of(op: &Op) -> (Method, String, Option<Value>) {
    if let Op::Get { family, resource } = op {
        let path = format!("/v1/{}/{resource}?namespace={NAMESPACE}", folder(*family));
        return (Method::GET, path, None);
    }
    if let Op::Quota(op) = op {
        return quota_words::of(op);
    }
    let (family, what, mut body) = match op {
        Op::Get { .. } => unreachable!("it has no body"),
        Op::Campaign { .. } | Op::Proclaim { .. } | Op::Handoff { .. } => election(op),
        Op::Hold { .. } | Op::RenewHold(_) | Op::Begin { .. } | Op::ReleaseHold(_) => hold(op),
        Op::PutJob { .. } | Op::Claim { .. } | Op::Finish { .. } => job(op),
        _ => lease(op),
    };
    body["namespace"] = NAMESPACE.into();
    (Method::POST, format!("/v1/{}/{what}", folder(family)), Some(body))
}

fn folder(family: Family) -> &'static str {
    match family {
        Family::Lock => "locks",
        Family::Election => "elections",
        Family::Hold => "holds",
        Family::Job => "jobs",
        Family::Quota => "quotas",
    }
}

/// What a name is called in a body.
fn field(family: Family) -> &'static str {
    match family {
        Family::Lock | Family::Hold => "resource",
        Family::Election => "election",
        Family::Job => "job",
        Family::Quota => "quota",
    }
}

pub(super) fn ms(ms: u64) -> String {
    format!("{ms}ms")
}

fn by_lease(lease: &LeaseOf) -> Value {
    json!({ field(lease.family): lease.resource, "leaseId": lease.lease })
}

/// What all families have, or locks alone.
fn lease(op: &Op) -> (Family, &'static str, Value) {
    match op {
        Op::Acquire { resource, request, wait_ms, ttl_ms } => (
            Family::Lock,
            "acquire",
            json!({
                "resource": resource, "requestId": request, "owner": request,
                "leaseTtl": ms(*ttl_ms), "waitTimeout": ms(*wait_ms),
            }),
        ),
        Op::Renew(lease) if lease.family == Family::Job => {
            (lease.family, "renew-run", by_lease(lease))
        }
        Op::Renew(lease) => (lease.family, "renew", by_lease(lease)),
        Op::RenewMany { leases } => {
            let leases: Vec<_> = leases.iter().map(by_lease).collect();
            (Family::Lock, "renew-many", json!({ "leases": leases }))
        }
        Op::Release(lease) if lease.family == Family::Election => {
            (lease.family, "resign", by_lease(lease))
        }
        Op::Release(lease) => (lease.family, "release", by_lease(lease)),
        Op::Abandon { family, request, .. } => {
            (*family, "abandon", json!({ "requestId": request }))
        }
        Op::Force { family, resource, token, request } => {
            let name = match family {
                Family::Lock | Family::Job => "fencingToken",
                Family::Election => "term",
                Family::Hold | Family::Quota => "fence",
            };
            let body = json!({
                field(*family): resource, name: token, "requestId": request, "reason": "chaos",
            });
            (*family, "force-release", body)
        }
        other => unreachable!("another family's: {other:?}"),
    }
}

fn election(op: &Op) -> (Family, &'static str, Value) {
    let (what, body) = match op {
        Op::Campaign { resource, candidate, value, request, wait_ms, ttl_ms } => (
            "campaign",
            json!({
                "election": resource, "candidate": candidate, "value": value,
                "requestId": request, "leaseTtl": ms(*ttl_ms), "waitTimeout": ms(*wait_ms),
            }),
        ),
        Op::Proclaim { lease, value, request } => {
            let mut body = by_lease(lease);
            body["value"] = value.as_str().into();
            body["requestId"] = request.as_str().into();
            ("proclaim", body)
        }
        Op::Handoff { lease, to, request } => {
            let mut body = by_lease(lease);
            body["to"] = to.as_str().into();
            body["requestId"] = request.as_str().into();
            ("handoff", body)
        }
        other => unreachable!("another family's: {other:?}"),
    };
    (Family::Election, what, body)
}

fn by_owner(hold: &HoldOf) -> Value {
    let mut body =
        json!({ "resource": hold.resource, "owner": hold.owner, "requestId": hold.request });
    if let Some(fence) = hold.fence {
        body["fence"] = fence.into();
    }
    body
}

fn hold(op: &Op) -> (Family, &'static str, Value) {
    let (what, body) = match op {
        Op::Hold { resources, owner, replaces, request, ttl_ms } => {
            let replaced =
                |(resource, fence): &(String, u64)| json!({ "resource": resource, "fence": fence });
            let replaces: Vec<_> = replaces.iter().map(replaced).collect();
            let mut body = json!({
                "owner": owner, "requestId": request, "ttl": ms(*ttl_ms), "replaces": replaces,
            });
            match resources.as_slice() {
                [one] => {
                    body["resource"] = one.as_str().into();
                    ("hold", body)
                }
                several => {
                    body["resources"] = several.into();
                    ("hold-all", body)
                }
            }
        }
        Op::RenewHold(hold) => ("renew", by_owner(hold)),
        Op::Begin { hold, ttl_ms } => {
            let mut body = by_owner(hold);
            body["ttl"] = ms(*ttl_ms).into();
            ("begin", body)
        }
        Op::ReleaseHold(hold) => ("release", by_owner(hold)),
        other => unreachable!("another family's: {other:?}"),
    };
    (Family::Hold, what, body)
}

fn job(op: &Op) -> (Family, &'static str, Value) {
    let (what, body) = match op {
        Op::PutJob { resource, all, retries } => (
            "put",
            json!({
                "job": resource, "schedule": SCHEDULE, "expectedVersion": 0, "retries": retries,
                "missed": if *all { "all" } else { "latest" }, "maxRun": MAX_RUN,
            }),
        ),
        Op::Claim { resource, version, slot, request, ttl_ms } => (
            "claim-run",
            json!({
                "job": resource, "jobVersion": version, "slot": instant::format(*slot),
                "requestId": request, "owner": request, "leaseTtl": ms(*ttl_ms),
            }),
        ),
        Op::Finish { lease, succeeded, request } => {
            let mut body = by_lease(lease);
            body["result"] = if *succeeded { "succeeded" } else { "failed" }.into();
            body["requestId"] = request.as_str().into();
            ("finish-run", body)
        }
        other => unreachable!("another family's: {other:?}"),
    };
    (Family::Job, what, body)
}
