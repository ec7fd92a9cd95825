//! S9 as clients see it, and that what they were told stays: at any moment so much of each node is surely used, counted
//! from what clients were told alone. That is never above limit and burst, and no answer shows less.

use super::known::{Amounts, Known, Node, Reservation, amounts};
use crate::{
    check::Violation,
    clock::Micros,
    history::{Call, Heard, NodeRules, QuotaHeard, QuotaOp},
};
use sereno_api::{Problem, Settlement, Shortage};
use std::collections::BTreeMap;

/// So much of a node is surely used, from a moment to another.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    from: Micros,
    until: Micros,
    amount: u64,
    #[expect(dead_code, reason = "it is printed")]
    who: &'a str,
}

/// By node, those below it counted.
type Lines<'a> = BTreeMap<Node<'a>, Vec<Line<'a>>>;

/// All checks of this kind; and how many moments were looked at.
pub(super) fn check(known: &Known<'_>) -> (Vec<Violation>, usize) {
    let lines = lines(known);
    let (mut violations, mut looks) = (Vec::new(), 0);
    for (node, lines) in &lines {
        let steps = steps(lines);
        looks += steps.len();
        let rules = known.rules.get(node).map_or(&[][..], Vec::as_slice);
        let cap = rules.iter().map(|rules| NodeRules::cap(rules)).max().unwrap_or(0);
        if let Some((at, used)) = steps.iter().find(|(_, used)| *used > cap) {
            let then: Vec<_> = lines.iter().filter(|it| it.from <= *at && *at < it.until).collect();
            let message = format!("{node:?} has {cap}, and at {at} {used} are used: {then:?}");
            violations.push(Violation::new("S9", message));
        }
    }
    for (call, node, shown) in shown(known) {
        looks += 1;
        let steps = lines.get(&node).map(|lines| steps(lines)).unwrap_or_default();
        let least = call.end.map_or(0, |end| least(&steps, call.start, end));
        if shown < least {
            let message =
                format!("{node:?} shows {shown} used, and {least} are since before: {call:?}");
            violations.push(Violation::new("S5 (quota)", message));
        }
    }
    (violations, looks)
}

/// What is used from each change on.
fn steps(lines: &[Line<'_>]) -> Vec<(Micros, u64)> {
    let mut changes: BTreeMap<Micros, (u64, u64)> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.from < line.until) {
        changes.entry(line.from).or_default().0 += line.amount;
        changes.entry(line.until).or_default().1 += line.amount;
    }
    let mut used = 0;
    let step = |(at, (more, less)): (Micros, (u64, u64))| {
        used = used + more - less;
        (at, used)
    };
    changes.into_iter().map(step).collect()
}

/// The least that is used between two moments.
fn least(steps: &[(Micros, u64)], from: Micros, until: Micros) -> u64 {
    let first = steps.partition_point(|(at, _)| *at <= from);
    let before = first.checked_sub(1).map_or(0, |last| steps[last].1);
    let later = steps[first..].iter().take_while(|(at, _)| *at <= until).map(|(_, used)| *used);
    later.fold(before, u64::min)
}

/// What answers say is used: the call, the node, committed and reserved together.
fn shown<'a>(known: &Known<'a>) -> Vec<(&'a Call, Node<'a>, u64)> {
    let read = |&call: &&'a Call| match &call.heard {
        Heard::Quota(QuotaHeard::Node(read)) => {
            let node = &read.node;
            Some((call, (&*node.quota, &*node.path), node.committed + node.reserved))
        }
        _ => None,
    };
    let of_problem = |call: &'a Call, problem: &'a Problem| {
        let layers = problem.layers.iter().filter(|layer| {
            // These two tell of one owner, or of no node.
            ![Shortage::OwnerMax, Shortage::Unknown].contains(&layer.kind)
        });
        let used = move |layer: &'a sereno_api::QuotaLayer| {
            (call, (&*layer.quota, &*layer.path), layer.committed + layer.reserved)
        };
        layers.map(used).collect::<Vec<_>>()
    };
    let refusals = known.reservations.values().flat_map(|of| &of.calls);
    let refusals = refusals.flat_map(|&call| match &call.heard {
        Heard::Problem(problem) => of_problem(call, problem),
        _ => Vec::new(),
    });
    known.reads.iter().filter_map(read).chain(refusals).collect()
}

/// A node and all above it.
pub(super) fn layers<'a>((quota, path): Node<'a>) -> impl Iterator<Item = Node<'a>> {
    let ends =
        path.match_indices('/').map(|(at, _)| at).chain((!path.is_empty()).then_some(path.len()));
    std::iter::once((quota, "")).chain(ends.map(move |end| (quota, &path[..end])))
}

fn lines<'a>(known: &Known<'a>) -> Lines<'a> {
    let mut all = Lines::new();
    let mut add = |node: Node<'a>, line: Line<'a>| {
        for layer in layers(node) {
            all.entry(layer).or_default().push(line);
        }
    };
    for of in known.reservations.values() {
        let mut sure = Sure::of(of);
        let asked = of.asked;
        for (from, until, held) in sure.held.drain(..) {
            for (node, amount) in held {
                add(node, Line { from, until, amount, who: asked });
            }
        }
        for (from, commit, used) in sure.used {
            for (node, amount) in used {
                let mut left = amount;
                for (until, returned) in returned(known, commit, node) {
                    let amount = returned.min(left);
                    left -= amount;
                    add(node, Line { from, until, amount, who: asked });
                }
                add(node, Line { from, until: Micros::MAX, amount: left, who: asked });
            }
        }
    }
    all
}

/// What of a commit is given back, or may be, and not before when.
fn returned<'a>(
    known: &Known<'a>,
    commit: u64,
    node: Node<'a>,
) -> impl Iterator<Item = (Micros, u64)> {
    let of = known.returns.values().filter(move |it| it.commit == commit && it.node == node);
    of.filter(|it| it.write.may_be_done()).map(|it| (it.write.sent, it.amount))
}

/// What one reservation surely has.
struct Sure<'a> {
    /// Reserved: from, until, what.
    held: Vec<(Micros, Micros, Amounts<'a>)>,
    /// Used from then on: by which commit, what.
    used: Vec<(Micros, u64, Amounts<'a>)>,
}

impl<'a> Sure<'a> {
    fn of(of: &Reservation<'a>) -> Self {
        let mut sure = Self { held: Vec::new(), used: Vec::new() };
        let Some((since, call)) = of.granted else { return sure };
        let until = if of.may_expire() { of.promised } else { Micros::MAX };
        let mut now = match &call.heard {
            Heard::Quota(QuotaHeard::Reserved(it)) => {
                it.items.iter().map(|item| ((&*item.quota, &*item.path), item.amount)).collect()
            }
            _ => Amounts::new(),
        };
        let mut from = since;
        // What a write without an answer may leave, whenever that happens.
        let mut ceiling: Option<Amounts<'a>> = None;
        for write in of.writes.iter().filter(|write| write.may_be_done()) {
            let before = now.clone();
            let later = match (write.op, write.told()) {
                (Some(QuotaOp::Resize { items, .. }), told) => {
                    let mut new = now.clone();
                    new.extend(amounts(items));
                    if told.is_none() {
                        ceiling = Some(lower(&new, ceiling.as_ref()));
                    }
                    now = lower(&before, Some(&new));
                    write.done.map(|(at, _)| (at, new))
                }
                (Some(QuotaOp::Commit { items, is_final, .. }), told) => {
                    match told {
                        Some(QuotaHeard::Committed(it)) if it.readmits.is_some() => {
                            let at = write.done.map_or(write.sent, |(at, _)| at);
                            sure.used.push((at, it.commit_id, amounts(&it.taken)));
                            now = Amounts::new();
                        }
                        Some(QuotaHeard::Committed(it)) => {
                            sure.used.push((write.sent, it.commit_id, amounts(&it.taken)));
                            now = amounts(&it.left);
                        }
                        // Whether reserved or used: so much of it stays.
                        _ if *is_final => {
                            let taken = items.as_deref().map(amounts);
                            now = taken.map_or(before.clone(), |taken| only(&before, &taken));
                            ceiling = Some(lower(&now, ceiling.as_ref()));
                        }
                        _ => {}
                    }
                    None
                }
                (Some(QuotaOp::Settle { .. }), Some(QuotaHeard::Settled(it))) => {
                    if let (Settlement::Commit, Some(commit)) = (it.settlement, it.commit_id) {
                        sure.used.push((write.sent, commit, now.clone()));
                    }
                    now = Amounts::new();
                    None
                }
                (Some(QuotaOp::Begin { .. } | QuotaOp::Extend { .. }), _) => None,
                // Released, settled, or abandoned.
                _ => {
                    now = Amounts::new();
                    None
                }
            };
            sure.holds(from, write.sent.min(until), before);
            from = write.sent.max(since);
            if let Some((at, new)) = later {
                sure.holds(from, at.min(until), now.clone());
                (from, now) = (at.max(from), lower(&new, ceiling.as_ref()));
            }
        }
        sure.holds(from, until, now);
        sure
    }

    fn holds(&mut self, from: Micros, until: Micros, amounts: Amounts<'a>) {
        if from < until && !amounts.is_empty() {
            self.held.push((from, until, amounts));
        }
    }
}

/// The lower of both, at every node of the first; those that the second does not name stay.
fn lower<'a>(one: &Amounts<'a>, other: Option<&Amounts<'a>>) -> Amounts<'a> {
    let bound = |node: &Node<'a>| other.and_then(|other| other.get(node)).copied();
    one.iter().map(|(node, amount)| (*node, bound(node).unwrap_or(*amount).min(*amount))).collect()
}

/// At most so much; nothing at nodes that are not named.
fn only<'a>(one: &Amounts<'a>, taken: &Amounts<'a>) -> Amounts<'a> {
    let of = |node: &Node<'a>| taken.get(node).copied().unwrap_or(0);
    one.iter().map(|(node, amount)| (*node, of(node).min(*amount))).collect()
}
