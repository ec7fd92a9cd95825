//! The state of a load: what is held, what waits for a connection, and what each answer changes.

use super::{
    book::{Book, Mark},
    calls::Call,
    holdings::{Holdings, Id},
    line::Line,
    names::{Name, Names},
    settings::{Settings, duration},
};
use crate::{
    stats::{Operation, Verdict},
    target::{LeaseId, RequestIds, SerenoTarget},
};
use rand::{RngExt, rngs::SmallRng};
use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// After the end of a lease that nobody will release: how much later its name is surely free.
const BURIED: Duration = Duration::from_secs(3);

/// Everything that the calls of a load share. One thread; borrowed only between waits.
#[derive(Debug)]
pub(super) struct World {
    pub settings: Settings,
    servers: Vec<SerenoTarget>,
    /// The one that is asked at present.
    current: usize,
    pub ids: RequestIds,
    pub rng: SmallRng,
    pub names: Names,
    pub holdings: Holdings,
    pub book: Book,
    /// Connections without a call, and since when.
    pub idle: Vec<(Line, Instant)>,
    /// Connections that are open or being opened.
    pub connections: usize,
    /// Calls that found no free connection.
    pub queue: VecDeque<Call>,
    /// Calls being carried out.
    pub running: usize,
    /// When the release of a name that somebody waits for was sent.
    handing_over: HashMap<Name, Instant>,
}

impl World {
    pub(super) fn new(
        settings: Settings,
        servers: Vec<SerenoTarget>,
        rng: SmallRng,
        book: Book,
    ) -> Self {
        Self {
            names: Names::new(settings.resources),
            holdings: Holdings::default(),
            ids: RequestIds::default(),
            idle: Vec::new(),
            connections: 0,
            queue: VecDeque::new(),
            running: 0,
            handing_over: HashMap::new(),
            settings,
            servers,
            current: 0,
            rng,
            book,
        }
    }

    /// The server that is asked at present, and its number.
    pub(super) fn server(&self) -> (usize, SerenoTarget) {
        (self.current, self.servers[self.current].clone())
    }

    /// Whether there is another.
    pub(super) fn has_others(&self) -> bool {
        self.servers.len() > 1
    }

    /// The next one is asked from now on, unless somebody has seen to that already.
    pub(super) fn pass_over(&mut self, server: usize) {
        if self.current == server {
            self.current = (server + 1) % self.servers.len();
        }
    }

    /// Where in the order of release a name is that shall be handed over soon.
    pub(super) fn soon(&self) -> std::ops::Range<usize> {
        let mean = self.settings.rates().releases * self.settings.wait_mean.0 as f64 / 1e3;
        0..(mean * 2.0).ceil().max(1.0) as usize
    }

    /// Where a name is that will not be handed over before a waiter has given up.
    pub(super) fn later(&self) -> std::ops::Range<usize> {
        let patience = self.settings.cancel_after.0 as f64 / 1e3;
        (self.settings.rates().releases * patience * 4.0) as usize..usize::MAX
    }

    /// A grant was answered.
    pub(super) fn granted(&mut self, name: Name, lease: LeaseId, now: Instant) {
        if self.rng.random::<f64>() < self.settings.dying {
            self.book.died += 1;
            self.bury(name, now);
        } else {
            self.holdings.add(name, lease);
        }
    }

    /// One who waited was granted.
    pub(super) fn handed_over(&mut self, name: Name, phase: usize, now: Instant) {
        if let Some(due) = self.handing_over.remove(&name) {
            let mark = Mark { operation: Operation::HandOver, phase, due };
            self.book.offer(mark);
            self.book.count(mark, Verdict::Done, now);
        }
    }

    /// The release of a name that somebody waits for is sent.
    pub(super) fn hands_over(&mut self, name: Name, now: Instant) {
        self.handing_over.insert(name, now);
    }

    /// Whatever lease there may be ends by itself.
    pub(super) fn bury(&mut self, name: Name, now: Instant) {
        self.names.bury(name, now + duration(self.settings.ttl) + BURIED);
    }

    /// One lease, held no more as far as this load goes.
    pub(super) fn take_any(&mut self) -> Option<(String, LeaseId)> {
        let holding = self.holdings.take_any()?;
        Some((self.names.text(holding.name).to_owned(), holding.lease))
    }

    /// A renewal was answered: `None` for each that was renewed.
    pub(super) fn renewed(
        &mut self,
        leases: &[(Id, Name, LeaseId)],
        results: &[Option<&'static str>],
        now: Instant,
    ) {
        for (index, (id, name, _)) in leases.iter().enumerate() {
            match results.get(index).copied().unwrap_or(Some("UNRECOGNISED")) {
                None => self.holdings.end_renewal(*id),
                Some(code) => {
                    if self.holdings.remove(*id).is_some() {
                        *self.book.lost.entry(code).or_default() += 1;
                        self.bury(*name, now);
                    }
                }
            }
        }
    }

    /// A renewal has no answer: the leases may go on, and are renewed again when it is their turn.
    pub(super) fn not_renewed(&mut self, leases: &[(Id, Name, LeaseId)]) {
        for (id, ..) in leases {
            self.holdings.end_renewal(*id);
        }
    }
}
