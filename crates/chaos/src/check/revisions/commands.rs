//! Which command of the log is that of a call.

use super::quotas;
use crate::history::{HoldOf, LeaseOf, Op};
use sereno_core::{
    command::{
        ElectionCommand, ForceRelease, HoldCommand, HoldRef, JobCommand, LeaseRef, Operation,
        RunResult,
    },
    names::{Owner, RequestId},
};

/// Whether the log's command is that of this call.
pub(super) fn is_of(op: &Op, logged: &Operation) -> bool {
    match logged {
        Operation::Election(logged) => is_of_election(op, logged),
        Operation::Hold(logged) => is_of_hold(op, logged),
        Operation::Job(logged) => is_of_job(op, logged),
        Operation::Quota(logged) => matches!(op, Op::Quota(op) if quotas::is_of(op, logged)),
        logged => is_of_lock(op, logged),
    }
}

fn is_lease(ours: &LeaseOf, logged: &LeaseRef) -> bool {
    ours.resource == logged.resource.as_str() && ours.lease == logged.lease_id.to_hex()
}

fn is_force(resource: &str, token: u64, request: &str, logged: &ForceRelease) -> bool {
    logged.resource.as_str() == resource
        && logged.token.0 == token
        && logged.request_id.as_str() == request
}

fn is_of_lock(op: &Op, logged: &Operation) -> bool {
    match (op, logged) {
        (Op::Acquire { resource, request, wait_ms, ttl_ms }, Operation::Acquire(it)) => {
            it.resource.as_str() == resource
                && it.request_id.as_str() == request
                && (it.wait_timeout_ms, it.lease_ttl_ms) == (*wait_ms, Some(*ttl_ms))
        }
        (Op::Renew(lease), Operation::Renew(it)) => is_lease(lease, &it.lease),
        (Op::RenewMany { leases }, Operation::RenewMany(it)) => {
            leases.len() == it.leases.len()
                && leases.iter().zip(&it.leases).all(|(ours, logged)| is_lease(ours, logged))
        }
        (Op::Release(lease), Operation::Release(it)) => is_lease(lease, &it.lease),
        // Of all families.
        (Op::Abandon { family, request, .. }, Operation::Abandon(it)) => {
            it.family == (*family).into() && it.request_id.as_str() == request
        }
        (Op::Force { resource, token, request, .. }, Operation::ForceRelease(it)) => {
            is_force(resource, *token, request, it)
        }
        _ => false,
    }
}

fn is_of_election(op: &Op, logged: &ElectionCommand) -> bool {
    match (op, logged) {
        (
            Op::Campaign { resource, candidate, value, request, wait_ms, ttl_ms },
            ElectionCommand::Campaign(it),
        ) => {
            it.election.as_str() == resource
                && (it.wait_timeout_ms, it.lease_ttl_ms) == (*wait_ms, Some(*ttl_ms))
                && it.candidate.as_str() == candidate
                && it.value.as_str() == value
                && it.request_id.as_str() == request
        }
        (Op::Renew(lease), ElectionCommand::Renew(it)) => is_lease(lease, &it.lease),
        (Op::Proclaim { lease, value, request }, ElectionCommand::Proclaim(it)) => {
            is_lease(lease, &it.lease)
                && it.value.as_str() == value
                && it.request_id.as_str() == request
        }
        (Op::Release(lease), ElectionCommand::Resign(it)) => is_lease(lease, &it.lease),
        (Op::Handoff { lease, to, request }, ElectionCommand::Handoff(it)) => {
            is_lease(lease, &it.lease) && it.to.as_str() == to && it.request_id.as_str() == request
        }
        (Op::Force { resource, token, request, .. }, ElectionCommand::ForceRelease(it)) => {
            is_force(resource, *token, request, it)
        }
        _ => false,
    }
}

fn is_hold(ours: &HoldOf, (hold, owner, request): (&HoldRef, &Owner, &RequestId)) -> bool {
    hold.resource.as_str() == ours.resource
        && hold.fence.map(|fence| fence.0) == ours.fence
        && owner.as_str() == ours.owner
        && request.as_str() == ours.request
}

fn is_of_hold(op: &Op, logged: &HoldCommand) -> bool {
    match (op, logged) {
        (Op::Hold { resources, owner, replaces, request, ttl_ms }, HoldCommand::Hold(it)) => {
            let replaced = |it: &HoldRef| {
                (it.resource.as_str().to_owned(), it.fence.map_or(0, |fence| fence.0))
            };
            it.owner.as_str() == owner
                && it.ttl_ms == *ttl_ms
                && it.request_id.as_str() == request
                && it.resources.iter().map(|name| name.as_str()).eq(resources)
                && it.replaces.iter().map(replaced).eq(replaces.iter().cloned())
        }
        (Op::RenewHold(hold), HoldCommand::Renew(it)) => {
            is_hold(hold, (&it.hold, &it.owner, &it.request_id))
        }
        (Op::Begin { hold, ttl_ms }, HoldCommand::Begin(it)) => {
            it.ttl_ms == *ttl_ms && is_hold(hold, (&it.hold, &it.owner, &it.request_id))
        }
        (Op::ReleaseHold(hold), HoldCommand::Release(it)) => {
            is_hold(hold, (&it.hold, &it.owner, &it.request_id))
        }
        (Op::Force { resource, token, request, .. }, HoldCommand::ForceRelease(it)) => {
            is_force(resource, *token, request, it)
        }
        _ => false,
    }
}

fn is_of_job(op: &Op, logged: &JobCommand) -> bool {
    match (op, logged) {
        (Op::PutJob { resource, retries, .. }, JobCommand::Put(it)) => {
            it.job.as_str() == resource && it.definition.retries == *retries
        }
        (Op::Claim { resource, version, slot, request, ttl_ms }, JobCommand::ClaimRun(it)) => {
            it.job.as_str() == resource
                && it.job_version == *version
                && it.slot.0 == *slot
                && it.lease_ttl_ms == Some(*ttl_ms)
                && it.request_id.as_str() == request
        }
        (Op::Renew(lease), JobCommand::RenewRun(it)) => is_lease(lease, &it.lease),
        (Op::Finish { lease, succeeded, request }, JobCommand::FinishRun(it)) => {
            is_lease(lease, &it.lease)
                && (it.result == RunResult::Succeeded) == *succeeded
                && it.request_id.as_str() == request
        }
        (Op::Force { resource, token, request, .. }, JobCommand::ForceRelease(it)) => {
            is_force(resource, *token, request, it)
        }
        _ => false,
    }
}
