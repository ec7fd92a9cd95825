//! Keeping what is reserved, step by step: begin, extend, resize, commit in parts, release, or let it expire and commit
//! it late; then give back what is used. Each step is one request, repeated until it is answered.

use super::{DOING_MS, namespace};
use crate::{
    checks::Belief,
    client::{Job, Open, hold::own_deadline},
    config::Scenario,
    world::World,
};
use sereno_core::{
    command::{
        Begin, Commit, Extend, Item, Late, Operation, QuotaCommand, ReleaseReservation,
        ReservationRef, Resize, ReturnUse,
    },
    ids::{ObjectId, ReservationId, Token},
    names::Owner,
    outcome::{Code, Committed, Done, QuotaDone, Refusal, ReservationState, Reserved},
};
use sereno_node::clock::Mono;

/// Far more than any commit has.
const TOO_MUCH: u64 = 1_000;

/// What one commit has used of one node.
#[derive(Clone, Debug)]
struct Used {
    commit: ObjectId,
    of: ReservationId,
    item: Item,
}

/// What a worker has.
#[derive(Clone, Debug)]
pub(crate) struct Keeping {
    of: ReservationRef,
    owner: Owner,
    fence: Token,
    /// Reserved, as far as it knows.
    items: Vec<Item>,
    /// Used, and not given back.
    used: Vec<Used>,
    has_begun: bool,
    /// It has let it expire.
    has_let_go: bool,
    /// So often does it then say that the work was done.
    late_tries: u64,
    /// After a wait it is sure only once an extension was answered.
    is_confirmed: bool,
    /// So many before it comes to an end.
    steps: u64,
    deadline: Mono,
    /// The request under way.
    doing: Option<(QuotaCommand, Mono)>,
}

impl Keeping {
    pub(super) fn new(
        reserved: &Reserved,
        owner: Owner,
        fence: Option<Token>,
        steps: u64,
        has_waited: bool,
    ) -> Self {
        let reservation = reserved.reservation;
        Self {
            of: ReservationRef { namespace: namespace(), reservation, fence },
            owner,
            fence: reserved.fence,
            items: Vec::new(),
            used: Vec::new(),
            has_begun: false,
            has_let_go: false,
            late_tries: 0,
            is_confirmed: !has_waited,
            steps,
            deadline: Mono(0),
            doing: None,
        }
    }
}

impl World {
    /// An answer has said what it has, and for how long.
    pub(super) fn keeps(
        &mut self,
        client: usize,
        mut keeping: Keeping,
        reserved: &Reserved,
        sent_at: Mono,
    ) {
        keeping.items = reserved.items.iter().map(|reserved| reserved.item.clone()).collect();
        keeping.has_begun |= reserved.state == ReservationState::InFlight;
        keeping.deadline = own_deadline(sent_at, reserved.expires_in_ms).max(keeping.deadline);
        let until = self.clients[client].clock.real(keeping.deadline);
        // A backup does not know of an extension after it.
        if keeping.is_confirmed && self.config.scenario != Scenario::Backup {
            self.truth.checks.told.relies(keeping.fence, Belief { client, until });
        }
        self.works(client, keeping);
    }

    /// It works for a while, and then takes the next step.
    fn works(&mut self, client: usize, keeping: Keeping) {
        let pause_ms = self.random.between(0, self.config.keeps_ms);
        let now = self.mono_of(client);
        let it = &mut self.clients[client];
        it.next_at = if keeping.is_confirmed { now.plus_ms(pause_ms) } else { now };
        it.job = Job::Keeping(keeping);
    }

    pub(in crate::client) fn goes_on_keeping(
        &mut self,
        client: usize,
        mut keeping: Keeping,
        now: Mono,
    ) {
        if let Some((command, until)) = keeping.doing.clone() {
            return match until > now {
                true => self.sends_step(client, command),
                // Nobody knows what has become of it.
                false => self.walks_away(client, &keeping),
            };
        }
        let Some(command) = self.next_step(client, &mut keeping, now) else { return };
        keeping.doing = Some((command.clone(), now.plus_ms(DOING_MS)));
        self.clients[client].job = Job::Keeping(keeping);
        self.sends_step(client, command);
    }

    fn sends_step(&mut self, client: usize, mut command: QuotaCommand) {
        if let QuotaCommand::Commit(commit) = &mut command {
            // By the door, anew for each call.
            commit.readmitted = ReservationId(self.random.id());
        }
        self.send(client, Operation::Quota(command), 1_500, 0);
    }

    fn walks_away(&mut self, client: usize, keeping: &Keeping) {
        self.truth.checks.told.relies_no_more(keeping.fence);
        self.client_rests(client);
    }

    /// `None`: there is nothing to send now.
    fn next_step(
        &mut self,
        client: usize,
        keeping: &mut Keeping,
        now: Mono,
    ) -> Option<QuotaCommand> {
        if keeping.has_let_go {
            return self.late_step(client, keeping);
        }
        if keeping.items.is_empty() {
            return self.return_step(client, keeping);
        }
        if !keeping.is_confirmed {
            return Some(self.extend(keeping));
        }
        let is_last = keeping.steps == 0 || self.clients[client].is_closing;
        keeping.steps = keeping.steps.saturating_sub(1);
        let draw = self.random.between(0, 99);
        Some(match draw {
            _ if is_last && draw < 75 => self.end_step(keeping),
            _ if is_last && draw < 85 => {
                self.walks_away(client, keeping);
                return None;
            }
            _ if is_last => {
                self.lets_go(client, keeping, now);
                return None;
            }
            0..=19 if !keeping.has_begun => self.begin(keeping),
            0..=39 => self.extend(keeping),
            40..=64 => self.resize(keeping),
            65..=69 => self.commit(keeping, Some(vec![too_much(keeping)]), false),
            _ => {
                let items = self.some_of(&keeping.items.clone());
                self.commit(keeping, Some(items), false)
            }
        })
    }

    /// It waits until it has expired.
    fn lets_go(&mut self, client: usize, keeping: &mut Keeping, now: Mono) {
        self.truth.checks.told.relies_no_more(keeping.fence);
        self.is_late(keeping);
        let late_ms = self.random.between(0, 1_500);
        let it = &mut self.clients[client];
        it.next_at = keeping.deadline.max(now).plus_ms(late_ms);
        it.job = Job::Keeping(keeping.clone());
    }

    fn is_late(&mut self, keeping: &mut Keeping) {
        keeping.has_let_go = true;
        keeping.late_tries = 1 + u64::from(self.random.in_1000(350));
    }

    /// The work was done all the same; some say so twice, by other requests.
    fn late_step(&mut self, client: usize, keeping: &mut Keeping) -> Option<QuotaCommand> {
        if keeping.late_tries == 0 || keeping.items.is_empty() {
            keeping.items.clear();
            return self.return_step(client, keeping);
        }
        keeping.late_tries -= 1;
        let items = match self.random.in_1000(300) {
            true => Some(self.some_of(&keeping.items.clone())),
            false => None,
        };
        Some(self.commit(keeping, items, true))
    }

    fn return_step(&mut self, client: usize, keeping: &mut Keeping) -> Option<QuotaCommand> {
        self.truth.checks.told.relies_no_more(keeping.fence);
        let Some(Used { commit, item, .. }) = keeping.used.last().cloned() else {
            self.client_rests(client);
            return None;
        };
        if self.random.in_1000(60) {
            self.client_rests(client);
            return None;
        }
        let amount = match self.random.between(0, 99) {
            0..=2 => item.amount + TOO_MUCH,
            3..=24 => self.random.between(1, item.amount),
            _ => item.amount,
        };
        Some(QuotaCommand::Return(ReturnUse {
            namespace: namespace(),
            commit,
            node: item.node,
            owner: keeping.owner.clone(),
            amount,
            request_id: self.request_id(),
        }))
    }

    fn begin(&mut self, keeping: &Keeping) -> QuotaCommand {
        QuotaCommand::Begin(Begin {
            of: keeping.of.clone(),
            in_flight_ttl_ms: self.random.between(1_500, 6_000),
            on_expiry: self.some_fate(),
            request_id: self.request_id(),
        })
    }

    fn extend(&mut self, keeping: &Keeping) -> QuotaCommand {
        let names_it = self.random.in_1000(400);
        QuotaCommand::Extend(Extend {
            of: keeping.of.clone(),
            ttl_ms: names_it.then(|| self.random.between(1_000, 8_000)),
            request_id: self.request_id(),
        })
    }

    /// Each item up or down; not all of them to nothing.
    fn resize(&mut self, keeping: &Keeping) -> QuotaCommand {
        let mut items = keeping.items.clone();
        for item in &mut items {
            let most = item.amount + self.random.between(0, 6);
            item.amount = self.random.between(0, most);
        }
        if items.iter().all(|item| item.amount == 0) {
            items[0].amount = 1;
        }
        QuotaCommand::Resize(Resize {
            of: keeping.of.clone(),
            items,
            request_id: self.request_id(),
        })
    }

    /// It ends: used, in part or whole, or not.
    fn end_step(&mut self, keeping: &mut Keeping) -> QuotaCommand {
        match self.random.between(0, 9) {
            0..=3 => self.commit(keeping, None, true),
            4..=6 => {
                let items = self.some_of(&keeping.items.clone());
                self.commit(keeping, Some(items), true)
            }
            _ => {
                self.truth.checks.told.relies_no_more(keeping.fence);
                let (of, request_id) = (keeping.of.clone(), self.request_id());
                QuotaCommand::Release(ReleaseReservation { of, request_id })
            }
        }
    }

    fn commit(
        &mut self,
        keeping: &Keeping,
        items: Option<Vec<Item>>,
        is_final: bool,
    ) -> QuotaCommand {
        let late = match keeping.has_let_go || self.random.in_1000(300) {
            true if self.random.in_1000(850) => Late::Readmit,
            _ => Late::Reject,
        };
        // Any commit may turn out to be of all there is.
        self.truth.checks.told.relies_no_more(keeping.fence);
        QuotaCommand::Commit(Commit {
            of: keeping.of.clone(),
            items,
            is_final,
            late,
            readmitted: ReservationId::default(),
            request_id: self.request_id(),
        })
    }

    /// A part of each.
    fn some_of(&mut self, items: &[Item]) -> Vec<Item> {
        let mut part = |item: &Item| {
            let amount = self.random.between(0, item.amount);
            Item { node: item.node.clone(), amount }
        };
        items.iter().map(&mut part).collect()
    }

    /// The step under way is answered.
    pub(in crate::client) fn step_answered(
        &mut self,
        client: usize,
        mut keeping: Keeping,
        open: &Open,
        result: &Result<Done, Refusal>,
    ) {
        let Some((command, _)) = keeping.doing.take() else {
            return self.works(client, keeping);
        };
        match result {
            Ok(Done::Quota(QuotaDone::Reserved(reserved))) => {
                assert!(
                    reserved.fence == keeping.fence
                        && reserved.reservation == keeping.of.reservation,
                    "S4: a step is about the reservation that it names: {reserved:?}"
                );
                keeping.is_confirmed = true;
                return self.keeps(client, keeping, reserved, open.sent_at);
            }
            Ok(Done::Quota(QuotaDone::Committed(committed))) => used(&mut keeping, committed),
            Ok(Done::Quota(QuotaDone::Released { .. })) => keeping.items.clear(),
            Ok(Done::Quota(QuotaDone::Returned { amount, .. })) => {
                if let Some(Used { commit, of, item }) = keeping.used.last() {
                    self.truth.checks.of_log.quotas.came_back(*commit, &item.node, *of);
                }
                returned(&mut keeping, *amount);
            }
            Ok(other) => panic!("{command:?} is not answered with {other:?}"),
            Err(refusal) => self.step_refused(&mut keeping, &command, refusal),
        }
        self.works(client, keeping);
    }

    fn step_refused(&mut self, keeping: &mut Keeping, command: &QuotaCommand, refusal: &Refusal) {
        match (refusal.code, command) {
            // Of a commit that is gone nothing is left to give back.
            (_, QuotaCommand::Return(back)) => {
                if refusal.code != Code::ExceedsReservation || back.amount < TOO_MUCH {
                    keeping.used.pop();
                }
            }
            (Code::QuotaExhausted | Code::ExceedsReservation | Code::MaxHoldReached, _) => {}
            (Code::ReservationEnded, _) if !keeping.has_let_go && self.random.in_1000(500) => {
                self.is_late(keeping);
            }
            _ => keeping.items.clear(),
        }
        keeping.is_confirmed = true;
    }
}

fn too_much(keeping: &Keeping) -> Item {
    let mut item = keeping.items[0].clone();
    item.amount += TOO_MUCH;
    item
}

/// What a commit has left.
fn used(keeping: &mut Keeping, committed: &Committed) {
    let (commit, of) = (committed.commit, committed.reservation);
    let taken = committed.taken.iter().map(|item| Used { commit, of, item: item.clone() });
    keeping.used.extend(taken);
    if committed.readmits.is_none() {
        keeping.items.clone_from(&committed.left);
    }
}

fn returned(keeping: &mut Keeping, amount: u64) {
    if let Some(Used { item, .. }) = keeping.used.last_mut() {
        item.amount -= amount.min(item.amount);
        if item.amount == 0 {
            keeping.used.pop();
        }
    }
}
