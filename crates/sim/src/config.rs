//! What a seed stands for: how many nodes and clients, which faults, how often. Each seed enables its own part of
//! the faults, for two that always come together would hide what each does alone.

use crate::random::Random;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A node's process is killed, and started again later.
    Crash,
    /// A node's process stands still, and then goes on with everything at once.
    Pause,
    /// A node is stopped as an operator would, and started again later.
    Stop,
    /// One node does not reach the log.
    LogCut,
    /// The log has lost its quorum.
    Outage,
    /// The log takes no more entries, and can be read: its disk is full.
    Full,
    /// Appends are lost, or their answers are, or they are refused.
    LogFlaky,
    /// One node's way to the log is slow.
    LogSlow,
    /// A direction between two nodes is cut.
    LinkCut,
    /// Frames between nodes arrive twice.
    FramesTwice,
    /// A node reaches no other and none reaches it, but the log does.
    Alone,
    /// A wall clock steps.
    WallStep,
    /// A client stands still.
    ClientPause,
    /// A client dies with everything it knew.
    ClientDeath,
    /// A client does not reach one of the nodes.
    ClientCut,
    /// Presence records are neither written nor read.
    PresenceCut,
    /// A rehearsal comes to something else, as after a flipped bit in memory; now and then twice.
    Doubt,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Crash,
        Self::Pause,
        Self::Stop,
        Self::LogCut,
        Self::Outage,
        Self::Full,
        Self::LogFlaky,
        Self::LogSlow,
        Self::LinkCut,
        Self::FramesTwice,
        Self::Alone,
        Self::WallStep,
        Self::ClientPause,
        Self::ClientDeath,
        Self::ClientCut,
        Self::PresenceCut,
        Self::Doubt,
    ];

    /// Whether it can befall a node that has its log to itself. (An engine whose disk fails stops its process.)
    fn is_of_one_machine(&self) -> bool {
        match self {
            Self::Crash
            | Self::Pause
            | Self::Stop
            | Self::LogSlow
            | Self::WallStep
            | Self::ClientPause
            | Self::ClientDeath
            | Self::ClientCut
            | Self::Doubt => true,
            Self::LogCut
            | Self::Outage
            | Self::Full
            | Self::LogFlaky
            | Self::LinkCut
            | Self::FramesTwice
            | Self::Alone
            | Self::PresenceCut => false,
        }
    }
}

/// What else happens in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Faults, and then none.
    Plain,
    /// In the middle all nodes stop and the log is wiped: tokens go on rising (S2).
    Wiped,
    /// In the middle all nodes stop and a backup is restored, as `sereno restore` does, under clients that go on.
    Backup,
    /// At the end the log is put back to an older head under the running nodes: each has to halt.
    PutBack,
    /// The same, and a node that starts afterwards leads, while the others stand still until the log is as long again.
    PutBackAndLed,
}

/// Everything that a run derives from its seed before it begins.
#[derive(Clone, Debug)]
pub struct Config {
    /// The seed.
    pub seed: u64,
    /// Nodes on the log.
    pub nodes: usize,
    /// One node with its own log on its own disk: nobody else writes there, and what it writes ends with its process.
    pub is_embedded: bool,
    /// Clients.
    pub clients: usize,
    /// Names they compete for, in each namespace.
    pub resources: usize,
    /// How long there are faults.
    pub faulty_ms: u64,
    /// Between two faults, on average.
    pub gap_ms: u64,
    /// Which faults there are.
    pub faults: Vec<Fault>,
    /// Calls and writes, in a thousand, of which a network delivers a copy as well.
    pub copies: u64,
    /// Requests, in a thousand, that are for several locks at once.
    pub alls: u64,
    /// Asks, in a thousand, that are for terms, holds and runs.
    pub faces: u64,
    /// Asks, in a thousand, that are for quotas.
    pub quotas: u64,
    /// One tenant hammers a pool with so many times its share, and nothing else happens; 0: not this.
    pub hammered: u64,
    /// Whether an operator raises the floor of tokens. Not where the log is replaced: such a floor is no wall clock's.
    pub raises_floor: bool,
    /// Nodes begin with an older program, which understands levels up to this, and are upgraded one after the other.
    pub upgraded_from: Option<u32>,
    /// Whether leases end by the thousand.
    pub has_crowd: bool,
    /// Clients keep a lock for so long at most.
    pub keeps_ms: u64,
    /// And rest for so long at most.
    pub rests_ms: u64,
    /// Of the nodes.
    pub snapshot_interval_ms: u64,
    /// Wall clocks are off by so much at most.
    pub wall_off_ms: u64,
    /// See there.
    pub scenario: Scenario,
}

impl Config {
    /// The run of this seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xc0f1_6000);
        let scenario = match seed % 16 {
            11 => Scenario::Backup,
            13 => Scenario::PutBackAndLed,
            14 => Scenario::Wiped,
            15 => Scenario::PutBack,
            _ => Scenario::Plain,
        };
        let is_embedded = match scenario {
            Scenario::Plain => random.in_1000(80),
            Scenario::Wiped | Scenario::Backup => random.in_1000(300),
            Scenario::PutBack | Scenario::PutBackAndLed => false,
        };
        let is_replaced = matches!(scenario, Scenario::Wiped | Scenario::Backup);
        let calm = is_replaced || random.in_1000(700);
        let is_long = scenario == Scenario::Plain && random.in_1000(60);
        Self {
            seed,
            nodes: if is_embedded { 1 } else { [3, 3, 3, 3, 3, 2, 5, 3][random.below(8)] },
            is_embedded,
            clients: random.between(3, 9) as usize,
            resources: random.between(1, 4) as usize,
            faulty_ms: if is_long { 160_000 } else { random.between(20_000, 45_000) },
            gap_ms: [400, 1_200, 4_000][random.below(3)],
            faults: faults(&mut random, is_embedded, is_replaced),
            copies: if is_long { 120 } else { [0, 30, 120][random.below(3)] },
            alls: [0, 100, 400][random.below(3)],
            faces: [0, 350, 750][random.below(3)],
            quotas: 0,
            hammered: 0,
            raises_floor: !is_replaced,
            upgraded_from: random.in_1000(300).then(|| [1, 2][random.below(2)]),
            has_crowd: random.in_1000(150),
            keeps_ms: [300, 3_000, 15_000][random.below(3)],
            rests_ms: [30, 400, 1_500][random.below(3)],
            snapshot_interval_ms: [800, 3_000, 20_000][random.below(3)],
            wall_off_ms: if calm { 25_000 } else { 400_000 },
            scenario,
        }
    }

    /// The history of this seed in which clients use quotas. Its draws are its own: what [`Self::of`] stands for does
    /// not depend on them.
    pub fn quotas(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x0a07_a5ee);
        let of = Self::of(seed);
        Self {
            clients: random.between(4, 10) as usize,
            faulty_ms: random.between(8_000, 20_000),
            quotas: 900,
            upgraded_from: random.in_1000(150).then_some(3),
            has_crowd: false,
            keeps_ms: [100, 600, 2_500][random.below(3)],
            rests_ms: [30, 200, 800][random.below(3)],
            scenario: match of.scenario {
                Scenario::PutBack | Scenario::PutBackAndLed => Scenario::Plain,
                scenario => scenario,
            },
            ..of
        }
    }

    /// The run in which one tenant hammers a pool with so many times its share.
    pub fn hammered(seed: u64, times: u64) -> Self {
        Self {
            nodes: 3,
            is_embedded: false,
            clients: 0,
            faults: Vec::new(),
            copies: 0,
            upgraded_from: None,
            has_crowd: false,
            hammered: times,
            snapshot_interval_ms: 3_600_000,
            wall_off_ms: 0,
            scenario: Scenario::Plain,
            ..Self::of(seed)
        }
    }

    /// Whether it is one of [`Self::quotas`].
    pub fn is_of_quotas(&self) -> bool {
        self.quotas > 0
    }
}

fn faults(random: &mut Random, is_embedded: bool, is_replaced: bool) -> Vec<Fault> {
    let few = [150, 350, 600][random.below(3)];
    let mut faults: Vec<_> = Fault::ALL.into_iter().filter(|_| random.in_1000(few)).collect();
    if is_replaced {
        // Steps of wall clocks would break the assumption that S2 rests on here.
        faults.retain(|fault| *fault != Fault::WallStep);
    }
    if is_embedded {
        faults.retain(Fault::is_of_one_machine);
    }
    faults
}
