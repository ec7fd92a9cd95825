//! The core's views of quotas as the interface has them.

use crate::door::views::fence_key_of;
use sereno_api as api;
use sereno_core::{
    command::{Family, Item, OnExpiry},
    ids::ReservationId,
    names::NamespaceName,
    outcome::{self, Layer, ReservationState, Shortage},
    query::{AccountView, NodeView, RefusalView, ReportView, ReservationView, ShareView},
};

pub(super) fn fence_key(namespace: &NamespaceName, reservation: ReservationId) -> String {
    fence_key_of(namespace, Family::Quota, &reservation.to_hex())
}

pub(super) fn item(item: &Item) -> api::QuotaItem {
    api::QuotaItem {
        quota: item.node.quota.to_string(),
        path: item.node.path.to_string(),
        amount: item.amount,
    }
}

pub(super) fn reserved_item(of: &outcome::ReservedItem) -> api::ReservedItem {
    let api::QuotaItem { quota, path, amount } = item(&of.item);
    api::ReservedItem { quota, path, amount, available: of.available.clone() }
}

pub(super) fn state(state: ReservationState) -> api::ReservationState {
    match state {
        ReservationState::Waiting => api::ReservationState::Waiting,
        ReservationState::Reserved => api::ReservationState::Reserved,
        ReservationState::InFlight => api::ReservationState::InFlight,
        ReservationState::Quarantined => api::ReservationState::Quarantined,
    }
}

fn on_expiry(fate: OnExpiry) -> api::OnExpiry {
    match fate {
        OnExpiry::Release => api::OnExpiry::Release,
        OnExpiry::Commit => api::OnExpiry::Commit,
        OnExpiry::Quarantine => api::OnExpiry::Quarantine,
    }
}

pub(super) fn drift(drift: &outcome::Drift) -> api::Drift {
    api::Drift {
        observed: drift.observed,
        committed_then: drift.committed_then,
        explained: drift.explained,
        drift: drift.drift,
        in_a_row: drift.in_a_row,
    }
}

pub(super) fn layer(layer: &Layer) -> api::QuotaLayer {
    api::QuotaLayer {
        quota: layer.node.quota.to_string(),
        path: layer.node.path.to_string(),
        limit: layer.limit,
        burst: layer.burst,
        committed: layer.committed,
        reserved: layer.reserved,
        available: layer.available,
        asked: layer.asked,
        shortfall: layer.shortfall,
        version: layer.version,
        kind: match layer.kind {
            Shortage::Limit => api::Shortage::Limit,
            Shortage::Burst => api::Shortage::Burst,
            Shortage::Guarantee => api::Shortage::Guarantee,
            Shortage::Waiting => api::Shortage::Waiting,
            Shortage::OwnerMax => api::Shortage::OwnerMax,
            Shortage::Unknown => api::Shortage::Unknown,
        },
    }
}

pub(super) fn node(view: &NodeView) -> api::QuotaNode {
    let limits = &view.limits;
    api::QuotaNode {
        quota: view.node.quota.to_string(),
        path: view.node.path.to_string(),
        limit: limits.limit,
        burst: limits.burst,
        guaranteed: limits.guaranteed,
        weight: limits.weight,
        owner_reserved_max: limits.owner_reserved_max,
        patience: limits.patience_ms.map(api::Millis),
        home: limits.home.as_ref().map(ToString::to_string),
        version: view.version,
        updated_ago_ms: view.updated_ago_ms,
        updated_in_revision: view.updated_in.0,
        committed: view.committed,
        reserved: view.reserved,
        direct_committed: view.direct_committed,
        direct_reserved: view.direct_reserved,
        available: view.available,
        debt: view.debt,
        effective_guaranteed: view.effective_guaranteed,
        waiters: view.waiters,
        sweep_pending: view.sweep_pending,
    }
}

pub(super) fn owner_use(view: &AccountView) -> api::OwnerUse {
    let commits = view.commits.iter();
    api::OwnerUse {
        owner: view.owner.to_string(),
        committed: view.committed,
        commits: commits
            .map(|&(commit, left)| api::OwnerCommit { commit_id: commit.0, left })
            .collect(),
        folded: view.folded,
    }
}

pub(super) fn report(view: &ReportView) -> api::QuotaReport {
    api::QuotaReport {
        reporter: view.reporter.to_string(),
        epoch: view.epoch,
        age_ms: view.age_ms,
        drift: drift(&view.drift),
        compensated: view.is_compensated,
    }
}

pub(super) fn share(view: &ShareView) -> api::Share {
    api::Share {
        share_id: view.share.to_hex(),
        owner: view.owner.to_string(),
        amount: view.amount,
        kept: view.kept,
        overdraft_cap: view.overdraft_cap,
        reclaimed: view.is_reclaimed,
    }
}

pub(super) fn refusal(view: &RefusalView) -> api::QuotaRefusal {
    api::QuotaRefusal {
        ago_ms: view.ago_ms,
        revision: view.revision.0,
        owner: view.owner.to_string(),
        amount: view.amount,
        layers: view.layers.iter().map(layer).collect(),
    }
}

pub(super) fn reservation(namespace: &NamespaceName, view: &ReservationView) -> api::Reservation {
    api::Reservation {
        reservation_id: view.reservation.to_hex(),
        state: state(view.state),
        fence_key: fence_key(namespace, view.reservation),
        fence: (view.fence.0 > 0).then_some(view.fence.0),
        owner: view.owner.to_string(),
        caller: view.caller.to_string(),
        items: view.items.iter().map(item).collect(),
        on_expiry: on_expiry(view.on_expiry),
        priority: view.priority,
        age_ms: view.age_ms,
        held_for_ms: view.held_for_ms,
        expires_in_ms: view.expires_in_ms,
        labels: view.labels.iter().collect(),
    }
}
