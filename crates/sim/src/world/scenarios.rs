//! Logs that are not what they were: wiped, restored from a backup, put back under running nodes.

use super::World;
use crate::{
    checks::OfLog,
    clock::{MS, S, wall_us},
    event::{Event, Healing},
};
use sereno_core::{
    State,
    ids::{LogId, Position, Token},
    limits::TOKEN_HEADROOM_US,
};
use sereno_log::{Snapshot, memory::Memory};

/// Nothing is granted for so long after a restore: the longest TTL that clients here ask for, and a lock delay.
const PAUSE_MS: u64 = 16_000;
/// Every node that knew more than a log that was put back has halted within this.
const HALT_NS: u64 = 30 * S;
/// As long as it was is a log that was put back within this.
const AS_LONG_NS: u64 = 90 * S;

/// Above every token that can have been granted since the backup, as `sereno restore` has it. (No operator raises the
/// floor here.)
fn token_floor(now_us: u64, backup: &State) -> Token {
    const MINUTE_US: u64 = 60_000_000;
    let floor = Token(now_us + TOKEN_HEADROOM_US + 2 * MINUTE_US);
    assert!(backup.last_token().0 + MINUTE_US <= floor.0, "tokens are made of clocks here");
    floor
}

impl World {
    /// Everybody stops, the log is gone, and everybody comes back; clients are others.
    pub(super) fn wipe(&mut self) {
        self.say(|| "** the log is wiped".into());
        self.mark("the log is wiped");
        self.kill_all();
        for client in 0..self.clients.len() {
            self.client_dies(client);
        }
        self.truth.checks.told.all_are_others();
        self.replace_log(Memory::default(), State::new(), OfLog::default());
        self.start_all();
    }

    /// A backup is made, the service goes on for a while, and all stops: the backup is restored, as `sereno restore`
    /// does, while those who were granted something since live on.
    pub(super) fn back_up_and_restore(&mut self) {
        let (backup, _, _) = self.log.recover();
        let of_log = self.truth.checks.of_log.clone();
        let goes_on = self.random.between(S, 12 * S);
        self.run_until(self.agenda.now + goes_on);
        self.say(|| format!("** the backup of {} is restored", backup.head().position));
        self.mark("a backup is restored");
        self.kill_all();
        // Of an empty log `sereno backup` makes none: it goes on.
        if backup.head().position > Position(0) {
            let floor = token_floor(wall_us(self.agenda.now), &backup);
            let state = backup.restored(LogId(self.random.id()), floor, PAUSE_MS);
            let snapshot = Snapshot { head: state.head(), bytes: state.to_snapshot().into() };
            self.replace_log(Memory::from_snapshot(snapshot), state, of_log.restored());
        }
        self.start_all();
    }

    fn kill_all(&mut self) {
        for node in 0..self.hosts.len() {
            self.kill(node);
        }
    }

    /// What was on its way to the log before would meet another one: those nodes are gone.
    fn start_all(&mut self) {
        for node in 0..self.hosts.len() {
            let at = self.agenda.now + self.random.between(S, 3 * S);
            self.agenda.at(at, Event::Heal(Healing::Start(node)));
        }
    }

    fn replace_log(&mut self, memory: Memory, state: State, of_log: OfLog) {
        self.log.memory = memory;
        self.logs += 1;
        self.truth.begins_anew(state, of_log);
        self.tell_waiting();
    }

    /// The log is put back under running nodes: every one of them halts.
    pub(super) fn put_back(&mut self) {
        let older = self.log.memory.clone();
        self.run_until(self.agenda.now + 4 * S);
        self.say(|| "** the log is put back".into());
        self.hosts.iter_mut().for_each(|host| host.is_of_old_log = true);
        self.log.memory = older;
        self.log.was_put_back = true;
        self.tell_waiting();
        self.run_until(self.agenda.now + HALT_NS);
        self.check_halted(|_| true);
    }

    /// The log is put back while nodes stand still, and one that starts afterwards leads: when the log is as long as
    /// the others knew it, they go on. Each has to halt (unless all that it would have to read was trimmed by then, so
    /// that it goes on from a snapshot), and nothing of theirs may land.
    pub(super) fn put_back_and_led(&mut self) {
        for client in 0..self.clients.len() {
            self.clients[client].is_closing = true;
            self.client_dies(client);
        }
        let (older, of_log) = (self.log.memory.clone(), self.truth.checks.of_log.clone());
        let Some(leader) = self.leader_now() else { return };
        let fresh = (leader + 1) % self.hosts.len();
        self.run_until(self.agenda.now + 6 * S);
        self.kill(fresh);
        for host in &mut self.hosts {
            host.is_paused = host.process.is_some();
            host.is_of_old_log = true;
        }
        // What is under way lands, or is answered, before.
        self.run_until(self.agenda.now + 5 * S);
        let known = self.log.memory.head().position;
        self.say(|| format!("** the log is put back, and n{fresh} starts"));
        self.log.was_put_back = true;
        self.log.memory = older;
        let (state, _, _) = self.log.recover();
        self.replace_log(self.log.memory.clone(), state, of_log);
        self.truth.checks.forgets_grants();
        self.start(fresh);
        let end = self.agenda.now + AS_LONG_NS;
        while self.log.memory.head().position < known && !self.is_over() {
            assert!(self.agenda.now < end, "liveness: the log that was put back grows");
            self.run_until(self.agenda.now + MS);
        }
        self.resume_old(leader);
        self.run_until(self.agenda.now + HALT_NS);
        self.check_halted(|node| node != fresh);
    }

    /// The old leader goes on, and then the others.
    fn resume_old(&mut self, leader: usize) {
        self.mark("an old leader meets a log that was put back and is as long");
        self.resume(leader);
        self.run_until(self.agenda.now + S);
        for node in 0..self.hosts.len() {
            self.resume(node);
        }
    }

    fn check_halted(&self, has_to: impl Fn(usize) -> bool) {
        for (node, host) in self.hosts.iter().enumerate().filter(|&(node, _)| has_to(node)) {
            let is_old = host.process.is_some() && host.is_of_old_log;
            assert!(
                !is_old || self.is_over(),
                "a node that has applied what is not in the log any more halts: n{node}"
            );
        }
    }
}
