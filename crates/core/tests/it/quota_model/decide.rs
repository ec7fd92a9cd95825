//! What the rules say to each command, in few words, and what it does to the books.

use super::books::{Amounts, Books, Lot, Phase, Reservation, parent};
use sereno_core::command::{NodeLimits, NodeRef, OnExpiry};
use std::collections::BTreeMap;

/// The books, and what is remembered besides.
#[derive(Default)]
pub(super) struct Reference {
    pub(super) books: Books,
    /// Expired ones that may be committed late, and until when.
    pub(super) late: BTreeMap<u64, (Reservation, u64)>,
    /// How others have ended.
    pub(super) ended: BTreeMap<u64, &'static str>,
    /// Commits made so far.
    pub(super) commits: usize,
    /// In this step: who was told what after a wait, in order.
    pub(super) settled: Vec<(u64, &'static str)>,
}

fn nodes(nodes: &[NodeRef]) -> String {
    let names: Vec<_> = nodes.iter().map(super::compare::name).collect();
    format!("exhausted {}", names.join(" "))
}

impl Reference {
    /// Time has come to this: what is due ends, then those who wait are looked at.
    pub(super) fn pass(&mut self, now: u64) {
        self.books.now = now;
        let mut due: Vec<_> = self.books.reservations.iter().filter(|of| of.is_due(now)).collect();
        due.sort_by_key(|of| (of.deadline, of.number));
        let due: Vec<_> = due.into_iter().map(|of| of.number).collect();
        due.into_iter().for_each(|number| self.end_due(number));
        self.look();
    }

    fn end_due(&mut self, number: u64) {
        let of = self.find(number).expect("it is due").clone();
        match (of.phase, of.on_expiry) {
            (Phase::Waiting, _) => {
                self.take_out(number);
                self.settled.push((number, "WaitTimeout"));
            }
            (_, OnExpiry::Release) => {
                let of = self.take_out(number);
                let until = of.deadline + 3_600_000;
                self.late.insert(number, (of, until));
            }
            (_, OnExpiry::Commit) => self.commit_all(number, "committed"),
            (_, OnExpiry::Quarantine) => self.get(number).phase = Phase::Quarantined,
        }
    }

    pub(super) fn look(&mut self) {
        while let Some(number) = self.books.next_waiting() {
            self.grant(number);
            self.settled.push((number, "granted"));
        }
    }

    fn grant(&mut self, number: u64) {
        let now = self.books.now;
        let of = self.get(number);
        of.phase = Phase::Reserved;
        of.end_of_life = now + of.lifetime_ms;
        of.deadline = (now + of.ttl_ms).min(of.end_of_life);
        let items = of.items.clone();
        for node in Books::layers(&items) {
            let (committed, reserved) = self.books.used(&node);
            assert!(committed + reserved <= self.books.cap(&node), "S9 at {node:?}");
        }
    }

    fn find(&self, number: u64) -> Option<&Reservation> {
        self.books.reservations.iter().find(|of| of.number == number)
    }

    fn get(&mut self, number: u64) -> &mut Reservation {
        let mut all = self.books.reservations.iter_mut();
        all.find(|of| of.number == number).expect("it lives")
    }

    fn take_out(&mut self, number: u64) -> Reservation {
        let at = self.books.reservations.iter().position(|of| of.number == number);
        self.books.reservations.remove(at.expect("it lives"))
    }

    fn add_lots(&mut self, owner: &str, taken: &Amounts) {
        let commit = self.commits;
        self.commits += 1;
        for (node, &left) in taken.iter().filter(|(_, amount)| **amount > 0) {
            let (node, owner) = (node.clone(), owner.to_string());
            self.books.lots.push(Lot { commit, node, owner, left });
        }
    }

    fn commit_all(&mut self, number: u64, how: &'static str) {
        let of = self.take_out(number);
        self.add_lots(&of.owner, &of.items);
        self.ended.insert(number, how);
    }

    pub(super) fn put_limit(&mut self, node: &NodeRef, limits: &NodeLimits) -> String {
        let before = self.books.limits[node].0.guaranteed;
        if let Some(above) = parent(node) {
            let promised = self.books.promised(&above) - before + limits.guaranteed;
            let of = &self.books.limits[&above].0;
            let own = if parent(&above).is_none() { of.limit } else { of.guaranteed };
            if promised > own && limits.guaranteed > before {
                return "InvalidArgument".into();
            }
        }
        let row = self.books.limits.get_mut(node).expect("it is there");
        *row = (limits.clone(), row.1 + 1);
        let version = row.1;
        self.look();
        format!("version {version}")
    }

    pub(super) fn reserve(&mut self, asked: Reservation, wait_ms: u64) -> String {
        let number = asked.number;
        let is_unknown = |node: &&NodeRef| !self.books.limits.contains_key(*node);
        let unknown: Vec<_> = asked.items.keys().filter(is_unknown).cloned().collect();
        if !unknown.is_empty() {
            return nodes(&unknown);
        }
        let none = Amounts::new();
        let kept = self.books.kept();
        let short = self.books.short(&asked.items, &kept);
        let is_full = self.books.is_owner_full(&asked.items, &asked.owner);
        if short.is_empty() && !is_full {
            self.books.reservations.push(asked);
            self.grant(number);
            self.look();
            return "granted".into();
        }
        let never = is_full || !self.books.idle().short(&asked.items, &none).is_empty();
        if never || wait_ms == 0 {
            return nodes(&short);
        }
        self.books.reservations.push(asked);
        self.look();
        "waiting".into()
    }

    /// What a write about a reservation that is not held any more is told.
    fn not_live(&self, number: u64) -> Option<String> {
        match self.find(number).map(|of| of.phase) {
            Some(Phase::Reserved | Phase::InFlight) => None,
            Some(Phase::Waiting) => Some("InvalidArgument".into()),
            Some(Phase::Quarantined) => Some("ReservationEnded".into()),
            None if self.late.contains_key(&number) => Some("ReservationEnded".into()),
            None if self.ended.contains_key(&number) => Some("ReservationEnded".into()),
            None => Some("NotFound".into()),
        }
    }

    pub(super) fn commit(
        &mut self,
        number: u64,
        parts: Option<&[(NodeRef, u64)]>,
        is_final: bool,
        readmit: bool,
    ) -> String {
        if self.late.get(&number).is_some_and(|(_, until)| *until > self.books.now) {
            return self.commit_late(number, parts, is_final, readmit);
        }
        if let Some(refused) = self.not_live(number) {
            return refused;
        }
        let of = self.find(number).expect("it lives").clone();
        let Some(taken) = taken(&of.items, parts) else { return "ExceedsReservation".into() };
        let rest = |(node, &had): (&NodeRef, &u64)| (node.clone(), had - taken[node]);
        let mut rest: Amounts = of.items.iter().map(rest).collect();
        rest.retain(|_, amount| *amount > 0);
        self.add_lots(&of.owner, &taken);
        if is_final || rest.is_empty() {
            self.take_out(number);
            self.ended.insert(number, "committed");
        } else {
            self.get(number).items = rest;
        }
        self.look();
        format!("committed {}", taken.values().sum::<u64>())
    }

    fn commit_late(
        &mut self,
        number: u64,
        parts: Option<&[(NodeRef, u64)]>,
        is_final: bool,
        readmit: bool,
    ) -> String {
        if !readmit {
            return "ReservationEnded".into();
        }
        if !is_final {
            return "InvalidArgument".into();
        }
        let of = self.late[&number].0.clone();
        let Some(mut taken) = taken(&of.items, parts) else { return "ExceedsReservation".into() };
        taken.retain(|_, amount| *amount > 0);
        if taken.is_empty() {
            return "InvalidArgument".into();
        }
        let is_full = self.books.is_owner_full(&taken, &of.owner);
        if is_full || !self.books.short(&taken, &self.books.kept()).is_empty() {
            return "ExpiredNoCapacity".into();
        }
        self.late.remove(&number);
        self.ended.insert(number, "expired");
        self.add_lots(&of.owner, &taken);
        self.look();
        format!("committed {}", taken.values().sum::<u64>())
    }

    pub(super) fn release(&mut self, number: u64) -> String {
        let refused = self.not_live(number);
        match (refused, self.ended.get(&number)) {
            (None, _) => {
                self.take_out(number);
                self.ended.insert(number, "released");
                self.look();
                "released".into()
            }
            (Some(_), _) if self.late.contains_key(&number) => "already expired".into(),
            (Some(refused), Some(&"committed")) => refused,
            (Some(_), Some(end)) => format!("already {end}"),
            (Some(refused), None) => refused,
        }
    }

    pub(super) fn extend(&mut self, number: u64, ttl_ms: u64) -> String {
        if let Some(refused) = self.not_live(number) {
            return refused;
        }
        let now = self.books.now;
        let of = self.get(number);
        if of.deadline == of.end_of_life {
            return "MaxHoldReached".into();
        }
        of.ttl_ms = ttl_ms;
        of.deadline = of.deadline.max((now + ttl_ms).min(of.end_of_life));
        format!("held for {}", of.deadline - now)
    }

    pub(super) fn begin(&mut self, number: u64, ttl_ms: u64, on_expiry: OnExpiry) -> String {
        if let Some(refused) = self.not_live(number) {
            return refused;
        }
        let now = self.books.now;
        let of = self.get(number);
        if of.phase == Phase::Reserved {
            (of.phase, of.on_expiry, of.ttl_ms) = (Phase::InFlight, on_expiry, ttl_ms);
            of.deadline = of.deadline.max(now + ttl_ms);
            of.end_of_life = of.end_of_life.max(of.deadline);
        }
        format!("held for {}", of.deadline - now)
    }

    pub(super) fn resize(&mut self, number: u64, amounts: &[(NodeRef, u64)]) -> String {
        if let Some(refused) = self.not_live(number) {
            return refused;
        }
        let of = self.find(number).expect("it lives").clone();
        let mut items = of.items.clone();
        for (node, amount) in amounts {
            if !items.contains_key(node) {
                return "InvalidArgument".into();
            }
            items.insert(node.clone(), *amount);
        }
        if items.values().all(|amount| *amount == 0) {
            return "InvalidArgument".into();
        }
        let grown = |(node, &new): (&NodeRef, &u64)| {
            let more = new.saturating_sub(of.items[node]);
            (more > 0).then(|| (node.clone(), more))
        };
        let grown: Amounts = items.iter().filter_map(grown).collect();
        let mut shrunk = Self { books: self.books.clone(), ..Self::default() };
        for (node, amount) in &mut shrunk.get(number).items {
            *amount = items[node].min(*amount);
        }
        let shrunk = shrunk.books;
        let short = shrunk.short(&grown, &shrunk.kept());
        if !short.is_empty() || shrunk.is_owner_full(&grown, &of.owner) {
            return nodes(&short);
        }
        items.retain(|_, amount| *amount > 0);
        self.get(number).items = items;
        self.look();
        format!("held for {}", of.deadline - self.books.now)
    }

    pub(super) fn give_back(&mut self, lot: &Lot, amount: u64) -> String {
        let is_it = |own: &&mut Lot| {
            own.commit == lot.commit && own.node == lot.node && own.owner == lot.owner
        };
        let Some(own) = self.books.lots.iter_mut().find(is_it) else {
            return "ExceedsReservation".into();
        };
        if own.left < amount {
            return "ExceedsReservation".into();
        }
        own.left -= amount;
        let left = own.left;
        self.books.lots.retain(|lot| lot.left > 0);
        self.look();
        format!("returned, {left} left")
    }

    pub(super) fn settle(&mut self, number: u64, commits: bool) -> String {
        match self.find(number).map(|of| of.phase) {
            Some(Phase::Quarantined) if commits => self.commit_all(number, "committed"),
            Some(Phase::Quarantined) => {
                self.take_out(number);
                self.ended.insert(number, "released");
            }
            Some(_) => return "InvalidArgument".into(),
            None => return self.not_live(number).expect("it does not live"),
        }
        self.look();
        "settled".into()
    }

    pub(super) fn adjust(
        &mut self,
        node: &NodeRef,
        owner: &str,
        adds: bool,
        amount: u64,
    ) -> String {
        let is_own = |lot: &&Lot| lot.node == *node && lot.owner == owner;
        let total: u64 = self.books.lots.iter().filter(is_own).map(|lot| lot.left).sum();
        if adds {
            self.add_lots(owner, &Amounts::from([(node.clone(), amount)]));
            self.look();
            return format!("adjusted to {}", total + amount);
        }
        if total < amount {
            return "ExceedsReservation".into();
        }
        let mut wanted = amount;
        for lot in &mut self.books.lots {
            if lot.node == *node && lot.owner == owner {
                let part = lot.left.min(wanted);
                (lot.left, wanted) = (lot.left - part, wanted - part);
            }
        }
        self.books.lots.retain(|lot| lot.left > 0);
        self.look();
        format!("adjusted to {}", total - amount)
    }

    /// Whether it is given back: only an operator ends what is quarantined.
    pub(super) fn abandon(&mut self, number: u64) -> bool {
        match self.find(number).map(|of| of.phase) {
            Some(Phase::Waiting) => {
                self.take_out(number);
                self.settled.push((number, "Abandoned"));
            }
            Some(Phase::Reserved | Phase::InFlight) => {
                self.take_out(number);
                self.ended.insert(number, "abandoned");
            }
            Some(Phase::Quarantined) => return false,
            None => {}
        }
        self.look();
        true
    }
}

/// What is taken of each item; `None`: more than there is.
fn taken(had: &Amounts, parts: Option<&[(NodeRef, u64)]>) -> Option<Amounts> {
    let Some(parts) = parts else { return Some(had.clone()) };
    let mut taken: Amounts = had.keys().map(|node| (node.clone(), 0)).collect();
    for (node, amount) in parts {
        match taken.get_mut(node) {
            Some(own) if *own + amount <= had[node] => *own += amount,
            None if *amount == 0 => {}
            _ => return None,
        }
    }
    Some(taken)
}
