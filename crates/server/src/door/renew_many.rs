//! `POST /v1/locks/renew-many`: cut into commands that fit into the log.

use super::{
    Door,
    acquire::expires_at,
    answer::{Answer, ok},
    body::Json,
    call::{Asked, Decided, mismatch},
    caller::Caller,
    fields,
    openapi::RenewManyProblems,
    problem::Refused,
    refusal,
    timeout::Timeout,
};
use crate::{
    metrics::{Kind, Mode, OK},
    wire,
};
use axum::extract::State;
use sereno_api::{RenewManyRequest, RenewResult, RenewedMany};
use sereno_core::{
    command::{Family, LeaseRef, Operation, RenewMany},
    limits, names,
    outcome::{self, Detail, Done, Refusal},
};
use std::sync::Arc;

/// Bytes of the leases in one command; what else is in it needs far less than the rest.
const LEASES_BYTES_MAX: usize = limits::COMMAND_BYTES_MAX - 4 * 1_024;
/// Bytes of one lease besides its resource: the length of the name, and the lease id.
const LEASE_BYTES: usize = 20;

/// Renews several leases, each by itself.
///
/// One call per process and namespace, not one per lock. Each result says what became of its lease.
#[utoipa::path(
    post, path = "/v1/locks/renew-many", operation_id = "renewMany", tag = "locks",
    params(super::openapi::TimeoutHeader),
    request_body = RenewManyRequest,
    responses(
        (status = 200, description = "One result per lease, in the order asked for.", body = RenewedMany),
        RenewManyProblems,
    )
)]
pub(super) async fn renew_many(
    State(door): State<Arc<Door>>,
    caller: Caller,
    timeout: Timeout,
    Json(request): Json<RenewManyRequest>,
) -> Result<Answer<RenewedMany>, Refused> {
    let kind = Kind::RenewMany;
    let commands = to_commands(&door, &request).inspect_err(|refused| {
        door.metrics.calls.refused(kind, refused.code());
    })?;
    let caller = caller.name();
    let calls = commands.into_iter().map(|command| {
        let (caller, born_at) = (caller.clone(), request.born_at);
        one_command(&door, Asked { kind, mode: Mode::Now, caller, born_at, timeout }, command)
    });
    let parts = futures_util::future::join_all(calls).await;
    let result = join(parts);
    let code = result.as_ref().map_or_else(|refused| refused.code().as_str(), |_| OK);
    door.metrics.calls.answered(kind, Mode::Now, code, timeout.elapsed());
    let renewed = result?;
    for code in renewed.results.iter().filter_map(|result| result.code) {
        door.metrics.calls.renewal_refused(Family::Lock, code.as_str());
    }
    Ok(ok(renewed))
}

fn to_commands(door: &Door, request: &RenewManyRequest) -> Result<Vec<RenewMany>, Refused> {
    let (count, max) = (request.leases.len(), limits::RENEW_MANY_LEASES_MAX);
    if count == 0 || count > max {
        return Err(Refused::invalid("leases", format!("must be 1 to {max}, are {count}")));
    }
    let namespace = door.namespace(&request.namespace)?;
    let mut leases = Vec::with_capacity(count);
    for (index, lease) in request.leases.iter().enumerate() {
        let field = |name| format!("leases[{index}].{name}");
        let resource = fields::resource(&field("resource"), &lease.resource)?;
        let lease_id = fields::lease_id(&field("leaseId"), &lease.lease_id)?;
        leases.push(LeaseRef { resource, lease_id });
    }
    let command = |leases| RenewMany {
        namespace: namespace.clone(),
        leases,
        lease_ttl_ms: fields::millis(request.lease_ttl),
    };
    Ok(cut(leases).into_iter().map(command).collect())
}

/// Cuts the leases, in order, into pieces that fit into one command each.
fn cut(leases: Vec<LeaseRef>) -> Vec<Vec<LeaseRef>> {
    let mut pieces = vec![Vec::new()];
    let mut bytes = 0;
    for lease in leases {
        let more = lease.resource.as_str().len() + LEASE_BYTES;
        if bytes + more > LEASES_BYTES_MAX {
            pieces.push(Vec::new());
            bytes = 0;
        }
        bytes += more;
        pieces.last_mut().expect("there is always one").push(lease);
    }
    pieces
}

/// What became of one command's leases.
struct Part {
    resources: Vec<names::ResourceName>,
    result: Result<Decided, Refused>,
}

async fn one_command(door: &Door, asked: Asked, command: RenewMany) -> Part {
    let resources = command.leases.iter().map(|lease| lease.resource.clone()).collect();
    let result = door.call_uncounted(asked, Operation::RenewMany(command)).await;
    Part { resources, result }
}

/// Puts the parts together. Where none was decided the call as a whole has failed.
fn join(parts: Vec<Part>) -> Result<RenewedMany, Refused> {
    let mut joined = RenewedMany { results: Vec::new(), revision: 0, cluster_time_ms: 0 };
    let mut decided_any = false;
    let mut first_refusal = None;
    for Part { resources, result } in parts {
        match result {
            Ok(decided) => {
                let Done::RenewedMany(results) = decided.done else { mismatch(Kind::RenewMany) };
                let named = resources.iter().zip(results);
                joined.results.extend(named.map(|(resource, result)| one_result(resource, result)));
                joined.revision = joined.revision.max(decided.revision);
                joined.cluster_time_ms = joined.cluster_time_ms.max(decided.time);
                decided_any = true;
            }
            Err(refused) => {
                joined
                    .results
                    .extend(resources.iter().map(|resource| undecided(resource, &refused)));
                first_refusal.get_or_insert(refused);
            }
        }
    }
    match first_refusal {
        Some(refused) if !decided_any => Err(refused),
        _ => Ok(joined),
    }
}

fn blank(resource: &names::ResourceName) -> RenewResult {
    RenewResult {
        resource: resource.to_string(),
        ok: false,
        code: None,
        outcome: None,
        retry_with: None,
        reason: None,
        fencing_token: None,
        expires_at: None,
        expires_in_ms: None,
        final_deadline_in_ms: None,
        clipped: false,
    }
}

fn undecided(resource: &names::ResourceName, refused: &Refused) -> RenewResult {
    RenewResult {
        code: Some(refused.code()),
        outcome: Some(refused.outcome()),
        retry_with: refused.0.retry_with,
        ..blank(resource)
    }
}

fn one_result(
    resource: &names::ResourceName,
    result: Result<outcome::Renewed, Refusal>,
) -> RenewResult {
    match result {
        Ok(renewed) => RenewResult {
            ok: true,
            fencing_token: Some(renewed.token.0),
            expires_at: Some(expires_at(renewed.expires_in_ms)),
            expires_in_ms: Some(renewed.expires_in_ms),
            final_deadline_in_ms: renewed.final_deadline_in_ms,
            clipped: renewed.clipped,
            ..blank(resource)
        },
        Err(refusal) => refused_result(resource, &refusal),
    }
}

fn refused_result(resource: &names::ResourceName, refusal: &Refusal) -> RenewResult {
    let base = RenewResult {
        code: Some(wire::code(refusal.code)),
        outcome: Some(refusal::effect(Kind::Renew, refusal.code)),
        retry_with: refusal::retry_with(Kind::Renew, refusal.code),
        ..blank(resource)
    };
    match refusal.detail {
        Detail::Ended { end, token } => {
            RenewResult { reason: Some(wire::end(end)), fencing_token: Some(token.0), ..base }
        }
        Detail::FinalDeadline { in_ms, token } => {
            RenewResult { final_deadline_in_ms: Some(in_ms), fencing_token: Some(token.0), ..base }
        }
        _ => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_core::ids::LeaseId;

    #[test]
    fn the_largest_call_is_cut_into_commands_that_fit() {
        let namespace =
            names::NamespaceName::new(&"n".repeat(limits::NAMESPACE_BYTES_MAX)).unwrap();
        let long = names::ResourceName::new(&"r".repeat(limits::RESOURCE_BYTES_MAX)).unwrap();
        let lease = |n: u16| {
            let mut id = [0; 16];
            id[..2].copy_from_slice(&n.to_be_bytes());
            LeaseRef { resource: long.clone(), lease_id: LeaseId(id) }
        };
        let leases: Vec<_> = (0..limits::RENEW_MANY_LEASES_MAX as u16).map(lease).collect();
        let pieces = cut(leases.clone());
        assert_eq!(pieces.concat(), leases);
        assert!(pieces.len() > 1);
        for leases in pieces {
            let operation = Operation::RenewMany(RenewMany {
                namespace: namespace.clone(),
                leases,
                lease_ttl_ms: Some(1),
            });
            let caller = names::Caller::new(&"c".repeat(limits::CALLER_BYTES_MAX)).unwrap();
            let born_at = sereno_core::ids::ClusterTime(1);
            let command = sereno_core::command::Command { caller, born_at, operation };
            assert!(borsh::to_vec(&command).unwrap().len() <= limits::COMMAND_BYTES_MAX);
        }
    }
}
