//! What happens to whom, and when: decided by the seed alone. Who leads is found out when it happens.

use crate::cluster::{CLIENTS, Host, ZONES};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::{fmt, time::Duration};

/// Whom a kill or a pause is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The node that leads.
    Leader,
    /// A node that does not.
    Standby,
    /// The member that leads etcd.
    EtcdLeader,
    /// This member.
    Etcd(usize),
    /// This client.
    Client(usize),
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL, and a restart at the end.
    Kill(Target),
    /// SIGSTOP, and SIGCONT at the end.
    Pause(Target),
    /// SIGSTOP of a client that holds a guarded lock just now, until long after its lease.
    PauseHolder,
    /// A node is cut off from the other nodes and from etcd.
    PartitionNode(usize),
    /// A node and its member are cut off from the other zones.
    PartitionZone(usize),
    /// Nothing comes through from the first to the second.
    OneWay(Host, Host),
    /// What comes in takes longer.
    Delay(Host, u64),
    /// So many percent of the packets that come in are lost.
    Loss(Host, u32),
    /// The disk under one member is full.
    DiskFull,
    /// It stands still, again and again.
    DiskSlow,
    /// One node's wall clock is off by so many seconds.
    Clock(i64),
}

impl Fault {
    /// What it is, without whom it is for by number: for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Kill(Target::Leader) => "leader killed",
            Self::Kill(Target::Standby) => "standby killed",
            Self::Kill(Target::EtcdLeader) => "etcd's leader killed",
            Self::Kill(Target::Etcd(_)) => "member killed",
            Self::Kill(Target::Client(_)) => "client killed",
            Self::Pause(Target::Leader) => "leader stopped",
            Self::Pause(Target::Standby) => "standby stopped",
            Self::Pause(Target::EtcdLeader) => "etcd's leader stopped",
            Self::Pause(Target::Etcd(_)) => "member stopped",
            Self::Pause(Target::Client(_)) => "client stopped",
            Self::PauseHolder => "holder stopped past its lease",
            Self::PartitionNode(_) => "node cut off",
            Self::PartitionZone(_) => "zone cut off",
            Self::OneWay(..) => "one-way cut",
            Self::Delay(..) => "delay",
            Self::Loss(..) => "loss",
            Self::DiskFull => "full disk",
            Self::DiskSlow => "slow disk",
            Self::Clock(_) => "wrong clock",
        }
    }
}

/// One fault of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Since the load began.
    pub at: Duration,
    /// How long.
    pub lasts: Duration,
    /// What.
    pub fault: Fault,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts) = (self.at.as_secs_f64(), self.lasts.as_secs_f64());
        write!(f, "{at:7.1} s  for {lasts:4.1} s  {:?}", self.fault)
    }
}

/// The kinds, dealt out like cards: none comes again before all have been there.
#[derive(Clone, Copy)]
enum Kind {
    Kill(fn(&mut StdRng) -> Target),
    Pause(fn(&mut StdRng) -> Target),
    PauseHolder,
    PartitionNode,
    PartitionZone,
    OneWay,
    Delay,
    Loss,
    DiskFull,
    DiskSlow,
    Clock(i64),
}

fn zone(random: &mut StdRng) -> usize {
    random.random_range(0..ZONES)
}

fn client(random: &mut StdRng) -> Target {
    Target::Client(random.random_range(0..CLIENTS))
}

const DECK: [Kind; 20] = [
    Kind::Kill(|_| Target::Leader),
    Kind::Kill(|_| Target::Leader),
    Kind::Kill(|_| Target::Standby),
    Kind::Kill(|_| Target::EtcdLeader),
    Kind::Kill(|random| Target::Etcd(zone(random))),
    Kind::Kill(client),
    Kind::Pause(|_| Target::Leader),
    Kind::Pause(|_| Target::Standby),
    Kind::Pause(|_| Target::EtcdLeader),
    Kind::Pause(client),
    Kind::PauseHolder,
    Kind::PartitionNode,
    Kind::PartitionZone,
    Kind::OneWay,
    Kind::Delay,
    Kind::Loss,
    Kind::DiskFull,
    Kind::DiskSlow,
    Kind::Clock(3_600),
    Kind::Clock(-3_600),
];

/// A holder is stopped for so long at least: guarded locks have leases of 2 s and 3 s.
const PAST_THE_LEASE: Duration = Duration::from_secs(6);
/// In which place of each deck it is: early, for a short run has it too.
const HOLDER_AT: usize = 3;

/// The schedule of a seed, over so long a time.
pub fn schedule(seed: u64, length: Duration) -> Vec<Step> {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut at, mut deck, mut steps) = (Duration::from_secs(3), Vec::new(), Vec::new());
    loop {
        if deck.is_empty() {
            deck = DECK.to_vec();
            deck.shuffle(&mut random);
            let holder = deck.iter().position(|it| matches!(it, Kind::PauseHolder));
            let early = deck.len() - HOLDER_AT;
            deck.swap(holder.expect("every deck has it"), early);
        }
        let kind = deck.pop().expect("it was filled");
        let mut lasts = Duration::from_millis(random.random_range(2_000..10_000));
        if matches!(kind, Kind::PauseHolder) {
            lasts = lasts.max(PAST_THE_LEASE);
        }
        if at + lasts >= length {
            return steps;
        }
        steps.push(Step { at, lasts, fault: deal(kind, &mut random) });
        // Most follow one another; some overlap.
        at += Duration::from_millis(random.random_range(2_000..8_500));
    }
}

fn deal(kind: Kind, random: &mut StdRng) -> Fault {
    let host = |random: &mut StdRng| match random.random_range(0..2 * ZONES) {
        index if index < ZONES => Host::Etcd(index),
        index => Host::Node(index - ZONES),
    };
    match kind {
        Kind::Kill(target) => Fault::Kill(target(random)),
        Kind::Pause(target) => Fault::Pause(target(random)),
        Kind::PauseHolder => Fault::PauseHolder,
        Kind::PartitionNode => Fault::PartitionNode(zone(random)),
        Kind::PartitionZone => Fault::PartitionZone(zone(random)),
        Kind::OneWay => {
            let from = host(random);
            let others: Vec<_> = Host::all().filter(|&it| it != from).collect();
            Fault::OneWay(from, others[random.random_range(0..others.len())])
        }
        Kind::Delay => Fault::Delay(host(random), random.random_range(50..800)),
        Kind::Loss => Fault::Loss(host(random), random.random_range(5..40)),
        Kind::DiskFull => Fault::DiskFull,
        Kind::DiskSlow => Fault::DiskSlow,
        Kind::Clock(seconds) => Fault::Clock(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_schedule_and_no_other_has_it() {
        let length = Duration::from_secs(180);
        assert_eq!(schedule(7, length), schedule(7, length));
        assert_ne!(schedule(7, length), schedule(8, length));
    }

    #[test]
    fn every_kind_comes_within_three_minutes_and_all_are_over_in_time() {
        let length = Duration::from_secs(180);
        for seed in 0..50 {
            let steps = schedule(seed, length);
            let kinds: Vec<_> = steps.iter().map(|it| std::mem::discriminant(&it.fault)).collect();
            let different =
                kinds.iter().enumerate().filter(|(index, kind)| !kinds[..*index].contains(kind));
            assert_eq!(different.count(), 11, "{steps:#?}");
            assert!(steps.iter().all(|it| it.at + it.lasts < length));
        }
    }

    #[test]
    fn a_holder_is_stopped_past_its_lease_in_every_run_of_two_minutes() {
        for seed in 0..200 {
            let steps = schedule(seed, Duration::from_secs(120));
            let mut holders = steps.iter().filter(|it| it.fault == Fault::PauseHolder);
            assert!(holders.any(|it| it.lasts >= PAST_THE_LEASE), "{seed}: {steps:#?}");
        }
    }
}
