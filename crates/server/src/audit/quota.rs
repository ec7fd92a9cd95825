//! A change of a quota's books, as a line of the trail tells it.

use sereno_api::{
    Drift, LedgerEntry, LedgerLayer, LedgerLimits, LedgerLine, LedgerNode, OnExpiry, QuotaChange,
};
use sereno_core::{
    command::{self, NodeLimits, NodeRef},
    event::{self, LayerChange, QuotaEvent},
    outcome,
};

/// All that is told of an event, besides whose it was and why.
pub(super) fn entry(event: &QuotaEvent) -> LedgerEntry {
    LedgerEntry {
        reservation_id: event.reservation.map(|(name, _)| name.to_hex()),
        lines: event.lines.iter().map(line).collect(),
        ..change(&event.change)
    }
}

fn change(change: &event::QuotaChange) -> LedgerEntry {
    use event::QuotaChange as Core;
    match change {
        Core::LimitPut { node, limits, version, debt } => LedgerEntry {
            node: Some(named(node)),
            limits: Some(rules(limits, *version, *debt)),
            ..LedgerEntry::of(QuotaChange::LimitPut)
        },
        Core::NodeRemoved { node } => {
            LedgerEntry { node: Some(named(node)), ..LedgerEntry::of(QuotaChange::NodeRemoved) }
        }
        Core::Reserved { waited_ms } => {
            LedgerEntry { waited_ms: *waited_ms, ..LedgerEntry::of(QuotaChange::Reserved) }
        }
        Core::Begun { on_expiry } => {
            LedgerEntry { on_expiry: Some(fate(*on_expiry)), ..LedgerEntry::of(QuotaChange::Begun) }
        }
        Core::Resized => LedgerEntry::of(QuotaChange::Resized),
        Core::Committed { commit, is_final, readmits, by_expiry } => LedgerEntry {
            commit_id: Some(commit.0),
            is_final: Some(*is_final),
            readmits: readmits.map(|old| old.to_hex()),
            by_expiry: *by_expiry,
            ..LedgerEntry::of(QuotaChange::Committed)
        },
        Core::Released => LedgerEntry::of(QuotaChange::Released),
        Core::Expired => LedgerEntry::of(QuotaChange::Expired),
        Core::Quarantined => LedgerEntry::of(QuotaChange::Quarantined),
        Core::Returned { commit } => {
            LedgerEntry { commit_id: Some(commit.0), ..LedgerEntry::of(QuotaChange::Returned) }
        }
        Core::Reported { node, reporter, epoch, drift } => LedgerEntry {
            node: Some(named(node)),
            reporter: Some(reporter.to_string()),
            epoch: Some(*epoch),
            drift: Some(told(drift)),
            ..LedgerEntry::of(QuotaChange::Reported)
        },
        Core::Reconciled { reporter, epoch } => LedgerEntry {
            reporter: Some(reporter.to_string()),
            epoch: Some(*epoch),
            ..LedgerEntry::of(QuotaChange::Reconciled)
        },
        Core::Adjusted => LedgerEntry::of(QuotaChange::Adjusted),
        Core::ShareGranted { share, overdraft_cap } => LedgerEntry {
            share_id: Some(share.to_hex()),
            overdraft_cap: Some(*overdraft_cap),
            ..LedgerEntry::of(QuotaChange::ShareGranted)
        },
        Core::ShareReturned { share, commit } => LedgerEntry {
            share_id: Some(share.to_hex()),
            commit_id: commit.map(|commit| commit.0),
            ..LedgerEntry::of(QuotaChange::ShareReturned)
        },
        Core::ShareReclaimed { share, lent } => LedgerEntry {
            share_id: Some(share.to_hex()),
            lent: Some(*lent),
            ..LedgerEntry::of(QuotaChange::ShareReclaimed)
        },
    }
}

fn named(node: &NodeRef) -> LedgerNode {
    LedgerNode { quota: node.quota.to_string(), path: node.path.to_string() }
}

fn rules(limits: &NodeLimits, version: u64, debt: u64) -> LedgerLimits {
    LedgerLimits {
        limit: limits.limit,
        burst: limits.burst,
        guaranteed: limits.guaranteed,
        weight: limits.weight,
        owner_reserved_max: limits.owner_reserved_max,
        patience_ms: limits.patience_ms,
        home: limits.home.as_ref().map(ToString::to_string),
        version,
        debt,
    }
}

fn line(line: &event::LedgerLine) -> LedgerLine {
    let LedgerNode { quota, path } = named(&line.node);
    LedgerLine { quota, path, layers: line.layers.iter().map(layer).collect() }
}

fn layer(&LayerChange { committed, reserved }: &LayerChange) -> LedgerLayer {
    LedgerLayer { committed: committed.into(), reserved: reserved.into() }
}

fn fate(fate: command::OnExpiry) -> OnExpiry {
    match fate {
        command::OnExpiry::Release => OnExpiry::Release,
        command::OnExpiry::Commit => OnExpiry::Commit,
        command::OnExpiry::Quarantine => OnExpiry::Quarantine,
    }
}

fn told(drift: &outcome::Drift) -> Drift {
    let outcome::Drift { observed, committed_then, explained, drift, in_a_row } = *drift;
    Drift { observed, committed_then, explained, drift, in_a_row }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{
        line::{LineHash, Record, write},
        testing::{batch, booked, changed, node},
    };
    use event::QuotaChange as Core;
    use sereno_api::{AuditKind, AuditLine};
    use sereno_core::{
        ids::{ObjectId, ReservationId},
        names::{Owner, RegionName},
    };

    fn all() -> Vec<Core> {
        let (reporter, name) = (Owner::new("counter").unwrap(), ReservationId([2; 16]));
        let limits = NodeLimits {
            owner_reserved_max: Some(3),
            patience_ms: Some(10_000),
            home: Some(RegionName::new("eu").unwrap()),
            ..NodeLimits::of(8)
        };
        let drift =
            outcome::Drift { observed: 9, committed_then: 5, explained: 1, drift: -3, in_a_row: 2 };
        let committed = |is_final, readmits, by_expiry| Core::Committed {
            commit: ObjectId(4),
            is_final,
            readmits,
            by_expiry,
        };
        vec![
            Core::LimitPut { node: node("acme"), limits, version: 2, debt: 1 },
            Core::NodeRemoved { node: node("acme/vision") },
            Core::Reserved { waited_ms: Some(5) },
            Core::Begun { on_expiry: command::OnExpiry::Release },
            Core::Begun { on_expiry: command::OnExpiry::Commit },
            Core::Begun { on_expiry: command::OnExpiry::Quarantine },
            Core::Resized,
            committed(false, None, false),
            committed(true, Some(name), false),
            committed(true, None, true),
            Core::Released,
            Core::Expired,
            Core::Quarantined,
            Core::Returned { commit: ObjectId(4) },
            Core::Reported { node: node(""), reporter: reporter.clone(), epoch: 3, drift },
            Core::Reconciled { reporter, epoch: 3 },
            Core::Adjusted,
            Core::ShareGranted { share: name, overdraft_cap: 2 },
            Core::ShareReturned { share: name, commit: Some(ObjectId(9)) },
            Core::ShareReturned { share: name, commit: None },
            Core::ShareReclaimed { share: name, lent: 2 },
        ]
    }

    #[test]
    fn every_change_is_a_line_that_is_read_as_it_was_written() {
        let mut told = Vec::new();
        let changes = all().into_iter().map(|change| changed(change, Vec::new()));
        for event in changes.chain([booked(0, 4)]) {
            let batch = batch(7, vec![event]);
            let mut out = Vec::new();
            write(&mut out, 3, Record::Event(&batch, 1), LineHash::ZERO);
            let text = std::str::from_utf8(&out).unwrap();
            let line: AuditLine = serde_json::from_str(text).unwrap();
            assert_eq!(line.kind, AuditKind::QuotaChanged);
            let again = serde_json::to_value(&line).unwrap();
            assert_eq!(again, serde_json::from_str::<serde_json::Value>(text).unwrap());
            assert_eq!(line.fencing_token, Some(7));
            assert_eq!(line.reason.as_deref(), Some("a \"test\""));
            told.push(line.quota.unwrap());
        }
        let words: std::collections::BTreeSet<_> = told.iter().map(|entry| entry.change).collect();
        assert_eq!(words.len(), QuotaChange::ALL.len(), "{words:?}");
        let put = &told[0];
        assert_eq!(put.limits.as_ref().unwrap().home.as_deref(), Some("eu"));
        assert_eq!(put.reservation_id.as_deref(), Some("01".repeat(16).as_str()));
        let booked = told.last().unwrap();
        assert_eq!(booked.lines[0].layers[0].reserved, [0, 4]);
    }
}
