//! Outcomes and events of quotas in few words.

use super::{
    print::{Names, ms},
    quota_words::{layer, name, said},
};
use sereno_core::{
    event::{LedgerLine, QuotaChange, QuotaEvent},
    ids::{ObjectId, ReservationId},
    outcome::{Committed, Detail, QuotaDone, ReservationState, Reserved},
};

impl Names {
    /// The first name that was drawn for a request is the one that counts.
    pub(super) fn reservation_drawn(&mut self, request: &str, name: ReservationId) {
        self.reservations.entry(request.to_string()).or_insert(name);
    }

    pub(super) fn reservation_named(&self, name: &str) -> ReservationId {
        let request = name.strip_prefix('R').expect("R1");
        self.reservations.get(request).copied().unwrap_or(ReservationId([9; 16]))
    }

    /// Whether this is a reservation's name, which is drawn at random.
    pub(super) fn is_reservation(&self, text: &str) -> bool {
        self.reservations.values().any(|name| name.to_hex() == text)
    }

    fn reservation(&self, id: ReservationId) -> String {
        let known = self.reservations.iter().find(|(_, name)| **name == id);
        known.map_or("R?".into(), |(request, _)| format!("R{request}"))
    }

    pub(super) fn commit_named(&self, name: &str) -> ObjectId {
        let number: usize = name.strip_prefix('C').and_then(|n| n.parse().ok()).expect("C1");
        self.commits.get(number - 1).copied().unwrap_or(ObjectId(1 << 40))
    }

    fn commit(&mut self, commit: ObjectId) -> String {
        let known = self.commits.iter().position(|&known| known == commit);
        let index = known.unwrap_or_else(|| {
            self.commits.push(commit);
            self.commits.len() - 1
        });
        format!("C{}", index + 1)
    }

    pub(super) fn quota_done(&mut self, done: &QuotaDone) -> String {
        match done {
            QuotaDone::LimitPut { version, debt: 0 } => format!("limit version {version}"),
            QuotaDone::LimitPut { version, debt } => {
                format!("limit version {version}, debt {debt}")
            }
            QuotaDone::NodeRemoved => "removed".into(),
            QuotaDone::Reserved(reserved) => self.reserved(reserved),
            QuotaDone::Committed(committed) => self.committed(committed),
            QuotaDone::Released { items, already: None } => format!("released {}", said(items)),
            QuotaDone::Released { already: Some(end), .. } => {
                format!("nothing to release: {}", end.as_str())
            }
            QuotaDone::Returned { commit, amount, left } => {
                format!("returned {amount} of {}, {left} left", self.commit(*commit))
            }
            QuotaDone::Settled { settlement, commit } => {
                let commit = commit.map_or(String::new(), |id| format!(" {}", self.commit(id)));
                format!("settled: {settlement:?}{commit}")
            }
            QuotaDone::Reported(drift) => format!(
                "{} seen, {} committed then, {} explained, drift {}, {} in a row",
                drift.observed, drift.committed_then, drift.explained, drift.drift, drift.in_a_row
            ),
            QuotaDone::Reconciled(done) => {
                let commit =
                    done.commit.map_or(String::new(), |id| format!(" {}", self.commit(id)));
                let words = [
                    (done.dry_run, " dry"),
                    (done.already, " already"),
                    (done.waits_for_another, " waits for another report"),
                ];
                let words = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word);
                format!("reconciled by {}{commit}{}", done.change, words.collect::<String>())
            }
            QuotaDone::Adjusted { committed, commit } => {
                let commit = commit.map_or(String::new(), |id| format!(" {}", self.commit(id)));
                format!("adjusted to {committed}{commit}")
            }
            QuotaDone::Shared(shared) => {
                let commit =
                    shared.commit.map_or(String::new(), |id| format!(" {}", self.commit(id)));
                let reclaimed = if shared.is_reclaimed { ", reclaimed" } else { "" };
                let (amount, kept) = (shared.amount, shared.kept);
                let name = self.reservation(shared.share);
                format!("share {name} of {amount}, {kept} kept{reclaimed}{commit}")
            }
        }
    }

    fn reserved(&mut self, reserved: &Reserved) -> String {
        let item = |item: &sereno_core::outcome::ReservedItem| {
            let left: Vec<_> = item.available.iter().map(ToString::to_string).collect();
            format!("{} ({} left)", said(std::slice::from_ref(&item.item)), left.join("/"))
        };
        let items: Vec<_> = reserved.items.iter().map(item).collect();
        let state = match reserved.state {
            ReservationState::Reserved => "reserved",
            ReservationState::InFlight => "in flight",
            ReservationState::Quarantined => "quarantined",
            ReservationState::Waiting => "waiting",
        };
        let name = self.reservation(reserved.reservation);
        let (fence, left) = (self.token(reserved.fence), ms(reserved.expires_in_ms));
        let at_most = ms(reserved.final_deadline_in_ms);
        let clipped = if reserved.clipped { ", clipped" } else { "" };
        format!(
            "{state} {name} {fence} {} for {left} of at most {at_most}{clipped}",
            items.join(", ")
        )
    }

    fn committed(&mut self, done: &Committed) -> String {
        let mut text = format!("{} took {}", self.commit(done.commit), said(&done.taken));
        for (word, items) in [("returned", &done.returned), ("left", &done.left)] {
            if !items.is_empty() {
                text += &format!(", {word} {}", said(items));
            }
        }
        if let Some(old) = done.readmits {
            text +=
                &format!(", {} for {}", self.reservation(done.reservation), self.reservation(old));
        }
        text
    }

    pub(super) fn quota_detail(&mut self, detail: &Detail) -> String {
        match detail {
            Detail::Exhausted(of) => {
                let layers: Vec<_> = of.layers.iter().map(layer).collect();
                let pending = if of.sweep_pending { ", sweep pending" } else { "" };
                format!(" [{}]{pending}", layers.join("; "))
            }
            Detail::Quarantined { fence } => format!(" quarantined {}", self.token(*fence)),
            Detail::Excess(of) => {
                format!(" {} of {} has {}, {} asked", name(&of.node), of.owner, of.has, of.asked)
            }
            Detail::Home { home } => format!(" home is {home}"),
            Detail::Report { epoch, age_ms } => format!(" last epoch {epoch}, {} old", ms(*age_ms)),
            other => panic!("not about a quota: {other:?}"),
        }
    }

    pub(super) fn quota_event(&mut self, event: &QuotaEvent) -> String {
        let mut text = match &event.change {
            QuotaChange::LimitPut { version, debt, .. } => {
                format!("limit put, version {version}, debt {debt}")
            }
            QuotaChange::NodeRemoved { .. } => "node removed".into(),
            QuotaChange::Reserved { waited_ms: None } => "reserved".into(),
            QuotaChange::Reserved { waited_ms: Some(waited) } => {
                format!("reserved after {}", ms(*waited))
            }
            QuotaChange::Begun { on_expiry } => format!("begun, at expiry {on_expiry:?}"),
            QuotaChange::Resized => "resized".into(),
            QuotaChange::Committed { commit, is_final, readmits, by_expiry } => {
                let mut text = format!("committed {}", self.commit(*commit));
                for (is, word) in [(!is_final, " in part"), (*by_expiry, " by expiry")] {
                    text += if is { word } else { "" };
                }
                if let Some(old) = readmits {
                    text += &format!(" late for {}", self.reservation(*old));
                }
                text
            }
            QuotaChange::Released => "released".into(),
            QuotaChange::Expired => "expired".into(),
            QuotaChange::Quarantined => "quarantined".into(),
            QuotaChange::Returned { commit } => format!("returned of {}", self.commit(*commit)),
            QuotaChange::Reported { epoch, drift, .. } => {
                format!("report {epoch}, drift {}", drift.drift)
            }
            QuotaChange::Reconciled { reporter, epoch } => {
                format!("reconciled by report {epoch} of {reporter}")
            }
            QuotaChange::Adjusted => "adjusted".into(),
            QuotaChange::ShareGranted { share, overdraft_cap } => {
                format!("share {} granted, cap {overdraft_cap}", self.reservation(*share))
            }
            QuotaChange::ShareReturned { share, commit } => {
                let commit = commit.map_or(String::new(), |id| format!(" {}", self.commit(id)));
                format!("share {} returned{commit}", self.reservation(*share))
            }
            QuotaChange::ShareReclaimed { share, lent } => {
                format!("share {} reclaimed, {lent} lent", self.reservation(*share))
            }
        };
        if let Some((of, fence)) = event.reservation {
            text += &format!(" {} {}", self.reservation(of), self.token(fence));
        }
        if let Some(reason) = &event.reason {
            text += &format!(": {reason}");
        }
        event.lines.iter().for_each(|line| text += &ledger_line(line));
        text
    }
}

fn ledger_line(line: &LedgerLine) -> String {
    let layer = |layer: &sereno_core::event::LayerChange| {
        let part = |(before, after): (u64, u64)| match before == after {
            true => before.to_string(),
            false => format!("{before}>{after}"),
        };
        format!("{}+{}", part(layer.committed), part(layer.reserved))
    };
    let layers: Vec<_> = line.layers.iter().map(layer).collect();
    format!(" [{} {}]", name(&line.node), layers.join(" "))
}
