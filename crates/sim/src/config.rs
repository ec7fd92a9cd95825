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
    /// Appends are lost, or their answers are, or they are refused.
    LogFlaky,
    /// One node's way to the log is slow.
    LogSlow,
    /// A direction between two nodes is cut.
    LinkCut,
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
    pub const ALL: [Self; 15] = [
        Self::Crash,
        Self::Pause,
        Self::Stop,
        Self::LogCut,
        Self::Outage,
        Self::LogFlaky,
        Self::LogSlow,
        Self::LinkCut,
        Self::Alone,
        Self::WallStep,
        Self::ClientPause,
        Self::ClientDeath,
        Self::ClientCut,
        Self::PresenceCut,
        Self::Doubt,
    ];
}

/// What else happens in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Faults, and then none.
    Plain,
    /// In the middle all nodes stop and the log is wiped: tokens go on rising (S2).
    Wiped,
    /// At the end the log is put back to an older head under the running nodes: each has to halt.
    Restored,
}

/// Everything that a run derives from its seed before it begins.
#[derive(Clone, Debug)]
pub struct Config {
    /// The seed.
    pub seed: u64,
    /// Nodes on the log.
    pub nodes: usize,
    /// Clients.
    pub clients: usize,
    /// Names they compete for.
    pub resources: usize,
    /// How long there are faults.
    pub faulty_ms: u64,
    /// Between two faults, on average.
    pub gap_ms: u64,
    /// Which faults there are.
    pub faults: Vec<Fault>,
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
            14 => Scenario::Wiped,
            15 => Scenario::Restored,
            _ => Scenario::Plain,
        };
        let few = [150, 350, 600][random.below(3)];
        let mut faults: Vec<_> = Fault::ALL.into_iter().filter(|_| random.in_1000(few)).collect();
        if scenario == Scenario::Wiped {
            // Steps of wall clocks would break the assumption that S2 rests on here.
            faults.retain(|fault| *fault != Fault::WallStep);
        }
        let calm = scenario == Scenario::Wiped || random.in_1000(700);
        Self {
            seed,
            nodes: [3, 3, 3, 3, 3, 2, 5, 3][random.below(8)],
            clients: random.between(3, 9) as usize,
            resources: random.between(1, 4) as usize,
            faulty_ms: random.between(20_000, 45_000),
            gap_ms: [400, 1_200, 4_000][random.below(3)],
            faults,
            keeps_ms: [300, 3_000, 15_000][random.below(3)],
            rests_ms: [30, 400, 1_500][random.below(3)],
            snapshot_interval_ms: [800, 3_000, 20_000][random.below(3)],
            wall_off_ms: if calm { 25_000 } else { 400_000 },
            scenario,
        }
    }
}
