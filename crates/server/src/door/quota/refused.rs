//! What a refusal says about quotas, to programs and to people.

use super::views;
use crate::{metrics::Kind, wire};
use sereno_api::{Problem, QuotaExcess, QuotaStale};
use sereno_core::{
    command::NodeRef,
    ids::Token,
    outcome::{Code, End, Excess, Exhausted, Layer, Shortage},
};

pub(in crate::door) fn exhausted(problem: &mut Problem, of: &Exhausted) {
    problem.sweep_pending = Some(of.sweep_pending);
    problem.layers = of.layers.iter().map(views::layer).collect();
}

pub(in crate::door) fn excess(problem: &mut Problem, of: &Excess) {
    problem.excess = Some(QuotaExcess {
        quota: of.node.quota.to_string(),
        path: of.node.path.to_string(),
        owner: of.owner.to_string(),
        has: of.has,
        asked: of.asked,
    });
}

pub(in crate::door) fn stale(problem: &mut Problem, epoch: u64, age_ms: u64) {
    problem.last_report = Some(QuotaStale { epoch, age_ms });
}

/// `gpu`, `gpu/acme/vision`.
fn name(node: &NodeRef) -> String {
    match node.path.as_str() {
        "" => node.quota.to_string(),
        path => format!("{}/{path}", node.quota),
    }
}

pub(in crate::door) fn exhausted_sentence(code: Code, of: &Exhausted) -> String {
    let layers: Vec<_> = of.layers.iter().map(layer_sentence).collect();
    let head = match code {
        Code::ExpiredNoCapacity => "the reservation has expired, and is not admitted again: ",
        _ => "",
    };
    format!("{head}{}", layers.join("; "))
}

fn layer_sentence(layer: &Layer) -> String {
    let (name, asked, available) = (name(&layer.node), layer.asked, layer.available);
    match layer.kind {
        Shortage::Unknown => format!("{name} has no limit, which is a limit of 0"),
        Shortage::OwnerMax => {
            let (max, reserved) = (layer.limit, layer.reserved);
            format!(
                "{asked} of {name} were asked for: one owner may reserve {max} there, and has {reserved}"
            )
        }
        Shortage::Waiting => {
            format!(
                "{asked} of {name} were asked for, {available} are left by those who wait in front"
            )
        }
        Shortage::Guarantee => {
            format!(
                "{asked} of {name} were asked for, {available} are left by the guarantees of others"
            )
        }
        Shortage::Limit | Shortage::Burst => {
            format!("{asked} of {name} were asked for, {available} are available")
        }
    }
}

pub(in crate::door) fn excess_sentence(of: &Excess) -> String {
    let (asked, has, owner) = (of.asked, of.has, &of.owner);
    format!("{asked} of {} were named, and {owner:?} has {has} there", name(&of.node))
}

pub(in crate::door) fn stale_sentence(kind: Kind, epoch: u64, age_ms: u64) -> String {
    match (kind, epoch) {
        (Kind::Reconcile, 0) => "that reporter has reported nothing here".into(),
        (Kind::Reconcile, _) => format!(
            "the reporter's last report is number {epoch}, {age_ms} ms old: only the last one of at most an hour is \
             compensated"
        ),
        _ => format!(
            "the read is {age_ms} ms old, of at most an hour, and the reporter's last report is number {epoch}: the next \
             has a higher one"
        ),
    }
}

pub(in crate::door) fn ended_sentence(end: End, fence: Token) -> String {
    format!("the reservation with fence {fence} has ended: {}", wire::end(end))
}
