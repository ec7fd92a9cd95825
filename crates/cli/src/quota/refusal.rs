//! What quotas say when they say no: every exhausted layer, as a small table.

use super::node::Node;
use crate::{exit, failure::Failure, output::table};
use sereno_client::api::{ErrorCode, Problem, QuotaLayer, Reason, Shortage};

/// What helps with quotas where something else helps with locks.
const HINTS: [(ErrorCode, &str); 6] = [
    (
        ErrorCode::NotFound,
        "See what there is: nodes with `sereno quota tree` (made by `sereno quota set`, from the root down), reservations \
         with `sereno quota reservations`, namespaces with `sereno namespace get`.",
    ),
    (
        ErrorCode::NotHolder,
        "The reservation has another fence: see it with `sereno quota reservations`.",
    ),
    (
        ErrorCode::ExceedsReservation,
        "See what is there with `sereno quota reservations`, `sereno quota get` and `sereno quota ledger`.",
    ),
    (ErrorCode::ExpiredNoCapacity, "Its capacity is somebody else's: undo the work (refund)."),
    (
        ErrorCode::WaitTimeout,
        "See what is in the way with `sereno quota explain`, or wait longer with --wait.",
    ),
    (
        ErrorCode::StaleReport,
        "Count again and report with the next --epoch, right after a read that is under an hour old.",
    ),
];

/// The failure in words of quotas: with a table of what is exhausted, and the exit code for that.
pub(super) fn worded(failure: Failure) -> Failure {
    let Some(problem) = failure.problem.clone() else { return failure };
    let failure = failure.hints(&HINTS);
    match problem.code {
        ErrorCode::QuotaExhausted => {
            let hint = hint(&problem);
            exhausted(failure, &problem).hint(hint)
        }
        ErrorCode::ExpiredNoCapacity => exhausted(failure, &problem),
        ErrorCode::WaitTimeout => with_exit(failure),
        ErrorCode::ReservationEnded => {
            let hint = ended_hint(problem.reason.as_ref());
            failure.hint(hint)
        }
        _ => failure,
    }
}

/// What to do depends on how it ended: to commit once more what is on the books would book it twice.
fn ended_hint(how: Option<&Reason>) -> &'static str {
    match how {
        Some(Reason::Committed) => {
            "It is on the books: see `sereno quota ledger`. Use that is over is given back with `sereno quota return`."
        }
        Some(Reason::Quarantined) => {
            "It keeps its capacity until an operator says how its work ended: `sereno quota settle`."
        }
        Some(Reason::Expired) => {
            "Unless `sereno quota ledger` shows that it was committed late already: what was done under it is not on the \
             books. Within the hour commit it with --late readmit, or reserve anew."
        }
        _ => "It holds nothing: reserve anew.",
    }
}

fn exhausted(failure: Failure, problem: &Problem) -> Failure {
    let rows = layers(&problem.layers);
    let rows: String = rows.lines().map(|row| format!("\n  {row}")).collect();
    let what = match problem.layers.is_empty() {
        // Asked again, and by now there would be room.
        true => failure.what.clone(),
        false => format!("{}: not enough is free{rows}", problem.code),
    };
    with_exit(Failure { what, ..failure })
}

/// One that has its own way of saying it keeps that.
fn with_exit(failure: Failure) -> Failure {
    match failure.exit {
        exit::FAILED => failure.exit(exit::NOT_ACQUIRED),
        _ => failure,
    }
}

fn hint(problem: &Problem) -> String {
    let has = |kind| problem.layers.iter().any(|layer| layer.kind == kind);
    if has(Shortage::Unknown) {
        return "A node that nobody has made has the limit 0: make it with `sereno quota set`, from the root down."
            .into();
    }
    match (problem.retry_after_ms, problem.sweep_pending) {
        (None, _) if has(Shortage::OwnerMax) => {
            "That is as much as one owner may have reserved there at once.".into()
        }
        (None, _) => {
            "As the limits are it could never be had: ask for less, or raise them with `sereno quota set`.".into()
        }
        (_, Some(true)) => "Reservations that have ended are still being cleared away: try again at once.".into(),
        _ => "Queue for it with --wait, ask for less, or see who has it with `sereno quota explain`.".into(),
    }
}

/// Every exhausted layer, root first.
pub(super) fn layers(layers: &[QuotaLayer]) -> String {
    let cells = |layer: &QuotaLayer| {
        let burst = if layer.burst > 0 { format!("+{}", layer.burst) } else { String::new() };
        vec![
            Node::of(&layer.quota, &layer.path).to_string(),
            format!("{}{burst}", layer.limit),
            layer.committed.to_string(),
            layer.reserved.to_string(),
            layer.available.to_string(),
            layer.asked.to_string(),
            layer.shortfall.to_string(),
            why(layer.kind).into(),
        ]
    };
    let head = ["LAYER", "LIMIT", "USED", "RESERVED", "AVAILABLE", "ASKED", "SHORT", "WHY"];
    table(&head, &layers.iter().map(cells).collect::<Vec<_>>())
}

fn why(kind: Shortage) -> &'static str {
    match kind {
        Shortage::Limit => "its limit is used up",
        Shortage::Burst => "its limit and burst are used up",
        Shortage::Guarantee => "the rest is guaranteed to others",
        Shortage::Waiting => "the rest is kept for those who wait",
        Shortage::OwnerMax => "one owner may not reserve more",
        Shortage::Unknown => "there is no such node",
        _ => "for a reason of a later version",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_client::Error;

    fn layer(path: &str, kind: Shortage) -> QuotaLayer {
        QuotaLayer {
            quota: "gpu".into(),
            path: path.into(),
            limit: 10,
            burst: 2,
            committed: 3,
            reserved: 6,
            available: 3,
            asked: 4,
            shortfall: 1,
            version: 7,
            kind,
        }
    }

    fn refused(code: ErrorCode, more: impl FnOnce(&mut Problem)) -> Failure {
        let mut problem = Problem::new(code, "because");
        more(&mut problem);
        worded(Failure::from(Error::Refused(Box::new(problem))))
    }

    #[test]
    fn every_exhausted_layer_is_a_row() {
        let failure = refused(ErrorCode::QuotaExhausted, |it| {
            it.layers = vec![layer("", Shortage::Guarantee), layer("acme", Shortage::Burst)];
            it.retry_after_ms = Some(1_000);
        });
        let text = failure.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "QUOTA_EXHAUSTED: not enough is free");
        assert!(lines[1].starts_with("  LAYER     LIMIT  USED  RESERVED"), "{text}");
        assert!(lines[2].starts_with("  gpu       10+2   3     6"), "{text}");
        assert!(lines[3].ends_with("its limit and burst are used up"), "{text}");
        assert!(lines[4].contains("--wait"), "{text}");
        assert_eq!(failure.exit, exit::NOT_ACQUIRED);
    }

    #[test]
    fn the_hint_says_what_would_help() {
        let told = |kind, more: fn(&mut Problem)| {
            let of = |it: &mut Problem| {
                it.layers = vec![layer("", kind)];
                more(it);
            };
            refused(ErrorCode::QuotaExhausted, of).hint.unwrap()
        };
        assert!(told(Shortage::Limit, |_| {}).contains("could never be had"));
        assert!(told(Shortage::OwnerMax, |_| {}).contains("one owner"));
        assert!(told(Shortage::Unknown, |_| {}).contains("sereno quota set"));
        let swept = told(Shortage::Limit, |it| {
            it.retry_after_ms = Some(1_000);
            it.sweep_pending = Some(true);
        });
        assert!(swept.contains("cleared away"), "{swept}");
    }

    #[test]
    fn no_capacity_is_one_exit_code_and_other_failures_keep_theirs() {
        for code in [ErrorCode::ExpiredNoCapacity, ErrorCode::WaitTimeout] {
            assert_eq!(refused(code, |_| {}).exit, exit::NOT_ACQUIRED, "{code}");
        }
        assert_eq!(refused(ErrorCode::NotFound, |_| {}).exit, exit::FAILED);
        assert!(refused(ErrorCode::NotFound, |_| {}).to_string().contains("quota tree"));
    }
}
