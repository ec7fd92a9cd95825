//! The core's views as the interface has them.

use crate::wire;
use sereno_api as api;
use sereno_core::{
    command::Family,
    names::NamespaceName,
    policy::{HoldPolicy, Policy},
    query::{FaceView, HolderView, LockView, NamespaceView, WaiterView},
};

pub(super) fn fence_key(namespace: &NamespaceName, resource: &str) -> String {
    fence_key_of(namespace, Family::Lock, resource)
}

pub(super) fn fence_key_of(namespace: &NamespaceName, family: Family, resource: &str) -> String {
    [namespace.as_str(), family.as_str(), resource].join("/")
}

pub(super) fn state(view: &LockView) -> api::LockState {
    match (&view.holder, view.lock_delay_ms) {
        (Some(_), _) => api::LockState::Held,
        (None, 0) => api::LockState::Free,
        (None, _) => api::LockState::Delayed,
    }
}

pub(super) fn holder(view: &HolderView) -> api::LockHolder {
    let labels = view.labels.iter().collect();
    api::LockHolder {
        owner: view.holder.owner.to_string(),
        caller: view.caller.to_string(),
        fencing_token: view.holder.token.0,
        lease_hash: wire::lease_hash(view.lease_hash),
        fencing: wire::fencing(view.fencing),
        labels,
        held_for_ms: view.holder.held_for_ms,
        renewed_ago_ms: view.renewed_ago_ms,
        expires_in_ms: view.holder.expires_in_ms,
        final_deadline_in_ms: view.final_deadline_in_ms,
    }
}

pub(super) fn election_state(view: &LockView) -> api::ElectionState {
    match (&view.holder, view.lock_delay_ms) {
        (Some(_), _) => api::ElectionState::Leading,
        (None, 0) => api::ElectionState::Vacant,
        (None, _) => api::ElectionState::Delayed,
    }
}

pub(super) fn term_holder(view: &HolderView) -> api::TermHolder {
    let FaceView::Leader { value, version } = &view.face else {
        unreachable!("an election is held by a candidate")
    };
    api::TermHolder {
        candidate: view.holder.owner.to_string(),
        caller: view.caller.to_string(),
        term: view.holder.token.0,
        value: value.to_string(),
        version: *version,
        lease_hash: wire::lease_hash(view.lease_hash),
        fencing: wire::fencing(view.fencing),
        labels: view.labels.iter().collect(),
        led_for_ms: view.holder.held_for_ms,
        renewed_ago_ms: view.renewed_ago_ms,
        expires_in_ms: view.holder.expires_in_ms,
        final_deadline_in_ms: view.final_deadline_in_ms,
    }
}

pub(super) fn hold_holder(view: &HolderView) -> api::HoldHolder {
    let FaceView::Hold { begun } = view.face else { unreachable!("a hold has its face") };
    api::HoldHolder {
        owner: view.holder.owner.to_string(),
        caller: view.caller.to_string(),
        fence: view.holder.token.0,
        begun,
        lease_hash: wire::lease_hash(view.lease_hash),
        labels: view.labels.iter().collect(),
        held_for_ms: view.holder.held_for_ms,
        renewed_ago_ms: view.renewed_ago_ms,
        expires_in_ms: view.holder.expires_in_ms,
        final_deadline_in_ms: view.final_deadline_in_ms,
    }
}

pub(super) fn waiter(view: &WaiterView) -> api::Waiter {
    api::Waiter {
        place: view.place,
        owner: view.owner.to_string(),
        waited_ms: view.waited_ms,
        wait_expires_in_ms: view.wait_expires_in_ms,
    }
}

/// One row; `None` for a resource that nobody holds.
pub(super) fn row(namespace: &NamespaceName, view: &LockView) -> Option<api::LockRow> {
    Some(api::LockRow {
        resource: view.resource.to_string(),
        fence_key: fence_key(namespace, view.resource.as_str()),
        holder: holder(view.holder.as_ref()?),
        waiters: view.waiters,
    })
}

pub(super) fn namespace(view: &NamespaceView) -> api::Namespace {
    api::Namespace {
        namespace: view.namespace.to_string(),
        version: view.version,
        policy: policy(&view.policy, &view.holds),
        home: view.home.as_ref().map(ToString::to_string),
        fencing_proven: view.is_proven,
        leases: view.leases,
        waiters: view.waiters,
        reply_records: view.reply_records,
        revision: None,
        cluster_time_ms: None,
        age_ms: None,
    }
}

fn policy(policy: &Policy, holds: &HoldPolicy) -> api::Policy {
    let ms = |ms| Some(api::Millis(ms));
    api::Policy {
        min_ttl: policy.min_ttl_ms.map(api::Millis),
        default_ttl: ms(policy.default_ttl_ms),
        max_ttl: ms(policy.max_ttl_ms),
        max_hold: policy.max_hold_ms.map(api::Millis),
        lock_delay: ms(policy.lock_delay_ms),
        fencing: Some(wire::fencing(policy.fencing)),
        fencing_required: Some(policy.fencing_required),
        max_leases: Some(policy.max_leases),
        max_waiters: Some(policy.max_waiters),
        requests_per_second: policy.requests_per_second,
        holds_per_owner: holds.per_owner,
        hold_cooldown: ms(holds.cooldown_ms),
        reply_memory: Some(api::ReplyMemory {
            refusals: ms(policy.reply_refusals_ms),
            endings: ms(policy.reply_endings_ms),
            records: Some(policy.reply_records),
        }),
    }
}

/// What a PUT asks for; a field left out takes its default.
pub(super) fn to_policies(asked: api::Policy) -> (Policy, HoldPolicy) {
    let holds = HoldPolicy {
        per_owner: asked.holds_per_owner,
        cooldown_ms: asked.hold_cooldown.map_or(0, |millis| millis.0),
    };
    (to_policy(asked), holds)
}

fn to_policy(asked: api::Policy) -> Policy {
    let default = Policy::default();
    let memory = asked.reply_memory.unwrap_or_default();
    let ms = |asked: Option<api::Millis>, default| asked.map_or(default, |millis| millis.0);
    Policy {
        min_ttl_ms: asked.min_ttl.map(|millis| millis.0),
        default_ttl_ms: ms(asked.default_ttl, default.default_ttl_ms),
        max_ttl_ms: ms(asked.max_ttl, default.max_ttl_ms),
        max_hold_ms: asked.max_hold.map(|millis| millis.0),
        lock_delay_ms: ms(asked.lock_delay, default.lock_delay_ms),
        fencing: asked.fencing.map_or(default.fencing, wire::to_fencing),
        fencing_required: asked.fencing_required.unwrap_or(default.fencing_required),
        max_leases: asked.max_leases.unwrap_or(default.max_leases),
        max_waiters: asked.max_waiters.unwrap_or(default.max_waiters),
        requests_per_second: asked.requests_per_second,
        reply_refusals_ms: ms(memory.refusals, default.reply_refusals_ms),
        reply_endings_ms: ms(memory.endings, default.reply_endings_ms),
        reply_records: memory.records.unwrap_or(default.reply_records),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_was_read_can_be_put_back() {
        let all = Policy {
            min_ttl_ms: Some(2_000),
            max_hold_ms: Some(60_000),
            requests_per_second: Some(5),
            ..Policy::default()
        };
        let some = HoldPolicy { per_owner: Some(3), cooldown_ms: 5_000 };
        for original in [(Policy::default(), HoldPolicy::default()), (all, some)] {
            let text = serde_json::to_string(&policy(&original.0, &original.1)).unwrap();
            assert_eq!(to_policies(serde_json::from_str(&text).unwrap()), original);
        }
        assert_eq!(to_policies(api::Policy::default()), Default::default());
    }
}
