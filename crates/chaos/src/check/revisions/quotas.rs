//! Quotas: which command of the log is that of a call, and whether an answer says what the log has decided.

use super::{is, outcomes::replays};
use crate::{
    client::door::NAMESPACE,
    history::{NodeRules, QuotaHeard, QuotaOp, ReservationOf},
};
use sereno_api::{Problem, QuotaItem, QuotaLayer};
use sereno_core::{
    command::{self, Item, NodeRef, QuotaCommand, ReservationRef},
    outcome::{self, Excess, Exhausted, Layer, Outcome, QuotaDone},
};

/// Whether the log's command is that of this call.
pub(super) fn is_of(op: &QuotaOp, logged: &QuotaCommand) -> bool {
    op.request() == Some(logged.request_id().as_str()) && is_content_of(op, logged)
}

/// Door and core name fates, settlements and the like alike.
fn is_word(told: &impl std::fmt::Debug, logged: &impl std::fmt::Debug) -> bool {
    format!("{told:?}") == format!("{logged:?}")
}

fn is_content_of(op: &QuotaOp, logged: &QuotaCommand) -> bool {
    match (op, logged) {
        (
            QuotaOp::Reserve { owner, items, wait_ms, ttl_ms, on_expiry, priority, .. },
            QuotaCommand::Reserve(it),
        ) => {
            it.owner.as_str() == owner
                && are_items(items, &it.items)
                && (it.wait_timeout_ms, it.ttl_ms, it.priority) == (*wait_ms, *ttl_ms, *priority)
                && is_word(on_expiry, &it.on_expiry)
        }
        (QuotaOp::Begin { of, ttl_ms, on_expiry }, QuotaCommand::Begin(it)) => {
            is_named(of, &it.of)
                && it.in_flight_ttl_ms == *ttl_ms
                && is_word(on_expiry, &it.on_expiry)
        }
        (QuotaOp::Commit { of, items, is_final, readmits }, QuotaCommand::Commit(it)) => {
            let same_items = match (items, &it.items) {
                (Some(ours), Some(logged)) => are_items(ours, logged),
                (ours, logged) => ours.is_none() && logged.is_none(),
            };
            let readmitted = it.late == command::Late::Readmit;
            is_named(of, &it.of)
                && same_items
                && (it.is_final, readmitted) == (*is_final, *readmits)
        }
        (QuotaOp::Extend { of, ttl_ms }, QuotaCommand::Extend(it)) => {
            is_named(of, &it.of) && it.ttl_ms == Some(*ttl_ms)
        }
        (QuotaOp::Resize { of, items }, QuotaCommand::Resize(it)) => {
            is_named(of, &it.of) && are_items(items, &it.items)
        }
        (QuotaOp::Release { of }, QuotaCommand::Release(it)) => is_named(of, &it.of),
        (QuotaOp::Settle { of, settlement }, QuotaCommand::Settle(it)) => {
            is_named(of, &it.of) && is_word(settlement, &it.settlement)
        }
        (QuotaOp::Return { commit, owner, item, .. }, QuotaCommand::Return(it)) => {
            it.commit.0 == *commit
                && it.owner.as_str() == owner
                && is_node((&item.quota, &item.path), &it.node)
                && it.amount == item.amount
        }
        (QuotaOp::PutLimit { node, expected_version, .. }, QuotaCommand::PutLimit(it)) => {
            is_node((&node.quota, &node.path), &it.node)
                && are_rules(node, &it.limits)
                && it.expected_version == *expected_version
        }
        _ => false,
    }
}

fn is_named(ours: &ReservationOf, logged: &ReservationRef) -> bool {
    ours.reservation == logged.reservation.to_hex()
        && ours.fence == logged.fence.map(|fence| fence.0)
}

fn is_node((quota, path): (&str, &str), node: &NodeRef) -> bool {
    node.quota.as_str() == quota && node.path.as_str() == path
}

fn are_rules(ours: &NodeRules, logged: &command::NodeLimits) -> bool {
    let same = [ours.limit, ours.burst, ours.guaranteed, ours.weight]
        == [logged.limit, logged.burst, logged.guaranteed, logged.weight];
    same && ours.owner_reserved_max == logged.owner_reserved_max
}

fn are_items(told: &[QuotaItem], logged: &[Item]) -> bool {
    let same = |(told, logged): (&QuotaItem, &Item)| {
        is_node((&told.quota, &told.path), &logged.node) && told.amount == logged.amount
    };
    told.len() == logged.len() && told.iter().zip(logged).all(same)
}

/// # Errors
/// In words: it says something else.
pub(super) fn told(heard: &QuotaHeard, done: &QuotaDone, outcome: &Outcome) -> Result<(), String> {
    match (heard, done) {
        (QuotaHeard::Reserved(it), QuotaDone::Reserved(reserved)) => is_reserved(it, reserved)?,
        (QuotaHeard::Committed(it), QuotaDone::Committed(commit)) => is_committed(it, commit)?,
        (QuotaHeard::Released(it), QuotaDone::Released { items, already }) => {
            is(are_items(&it.items, items), "other amounts given back")?;
            let reason = it.reason.map(|reason| reason.as_str());
            let same = it.released == already.is_none() && reason == already.map(|it| it.as_str());
            is(same, "another release")?;
        }
        (QuotaHeard::Settled(it), QuotaDone::Settled { settlement, commit }) => {
            let same = it.commit_id == commit.map(|commit| commit.0);
            is(same && is_word(&it.settlement, settlement), "another settlement")?;
        }
        (QuotaHeard::Returned(it), QuotaDone::Returned { commit, amount, left }) => {
            let same = (it.commit_id, it.amount, it.left) == (commit.0, *amount, *left);
            is(same, "another return")?;
        }
        (QuotaHeard::Put(it), QuotaDone::LimitPut { version, debt }) => {
            is((it.version, it.debt) == (*version, *debt), "another version or debt")?;
        }
        _ => return Err("another outcome".into()),
    }
    let (replayed, original) = heard.replays();
    replays(replayed, original, outcome)
}

fn is_reserved(told: &sereno_api::Reserved, logged: &outcome::Reserved) -> Result<(), String> {
    let same_name = told.reservation_id == logged.reservation.to_hex();
    is(same_name && told.fence == logged.fence.0, "another reservation")?;
    let key = format!("{NAMESPACE}/quota/{}", told.reservation_id);
    is(told.fence_key == key, "another fence key")?;
    is(is_word(&told.state, &logged.state), "another state")?;
    let same = |(told, logged): (&sereno_api::ReservedItem, &outcome::ReservedItem)| {
        is_node((&told.quota, &told.path), &logged.item.node)
            && told.amount == logged.item.amount
            && told.available == logged.available
    };
    let mut pairs = told.items.iter().zip(&logged.items);
    is(told.items.len() == logged.items.len() && pairs.all(same), "other items")?;
    let same = (told.expires_in_ms, told.final_deadline_in_ms, told.clipped)
        == (logged.expires_in_ms, logged.final_deadline_in_ms, logged.clipped);
    is(same, "another deadline")
}

fn is_committed(told: &sereno_api::Committed, logged: &outcome::Committed) -> Result<(), String> {
    let names = (told.commit_id, told.reservation_id.as_str(), told.readmits.as_deref());
    let (reservation, readmits) =
        (logged.reservation.to_hex(), logged.readmits.map(|it| it.to_hex()));
    is(names == (logged.commit.0, &reservation, readmits.as_deref()), "another commit")?;
    let same = are_items(&told.taken, &logged.taken)
        && are_items(&told.returned, &logged.returned)
        && are_items(&told.left, &logged.left);
    is(same, "other amounts")
}

/// Every layer that is exhausted, with all its figures.
pub(super) fn exhausted(problem: &Problem, due: &Exhausted) -> Result<(), String> {
    let same = |(told, due): (&QuotaLayer, &Layer)| {
        let figures = |it: &QuotaLayer| {
            let used = [it.limit, it.burst, it.committed, it.reserved];
            (used, [it.available, it.asked, it.shortfall, it.version])
        };
        let due_figures = (
            [due.limit, due.burst, due.committed, due.reserved],
            [due.available, due.asked, due.shortfall, due.version],
        );
        is_node((&told.quota, &told.path), &due.node)
            && figures(told) == due_figures
            && is_word(&told.kind, &due.kind)
    };
    let all = problem.layers.len() == due.layers.len();
    is(all && problem.layers.iter().zip(&due.layers).all(same), "other exhausted layers")
}

pub(super) fn exceeds(problem: &Problem, due: &Excess) -> Result<(), String> {
    let same = problem.excess.as_ref().is_some_and(|told| {
        is_node((&told.quota, &told.path), &due.node)
            && told.owner == due.owner.as_str()
            && (told.has, told.asked) == (due.has, due.asked)
    });
    is(same, "another excess")
}
