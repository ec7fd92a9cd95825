//! Words for a trace.

use sereno_core::{
    command::Operation,
    outcome::{Done, Outcome},
};

pub(super) fn operation(operation: &Operation) -> String {
    match operation {
        Operation::Acquire(op) => format!(
            "acquire {}/{} {} wait {}",
            op.namespace, op.resource, op.request_id, op.wait_timeout_ms
        ),
        Operation::AcquireAll(op) => {
            let names: Vec<_> = op.resources.iter().map(ToString::to_string).collect();
            format!("acquire-all {}/{} {}", op.namespace, names.join(","), op.request_id)
        }
        Operation::Renew(op) => format!("renew {}/{}", op.namespace, op.lease.resource),
        Operation::RenewMany(op) => format!("renew-many {} of {}", op.leases.len(), op.namespace),
        Operation::Release(op) => format!("release {}/{}", op.namespace, op.lease.resource),
        Operation::Abandon(op) => format!("abandon {}:{}", op.namespace, op.request_id),
        Operation::ForceRelease(op) => {
            format!("force-release {}/{} {}", op.namespace, op.resource, op.token)
        }
        other => format!("{other:?}"),
    }
}

pub(super) fn outcome(outcome: &Outcome) -> String {
    let result = match &outcome.result {
        Ok(Done::Granted(grant)) => {
            format!("granted {} for {} ms", grant.holdings[0].1, grant.expires_in_ms)
        }
        Ok(done) => format!("{done:?}"),
        Err(refusal) => format!("{:?}", refusal.code),
    };
    format!("revision {} time {}: {result}", outcome.revision, outcome.time)
}
