//! What a read shows of a name, without its times: as the state has it, and as an answer tells it.

use crate::history::{Family, Heard};
use sereno_core::{
    State,
    names::{NamespaceName, ResourceName},
    query::{FaceView, HolderView, JobView, LockView},
};
use sereno_schedule::instant;

/// What there is to see of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// Of a lock, an election, a thing on hold.
    Leased {
        /// Who has it.
        holder: Option<Holder>,
        /// Who waits, first the next one.
        queue: Vec<String>,
    },
    /// Of a job.
    Ledger {
        /// Of its definition.
        version: u64,
        /// Slots before this one that are not shown count as finished; in milliseconds since 1970.
        watermark: Option<u64>,
        /// Newest slot first.
        runs: Vec<Run>,
    },
}

/// Who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    owner: String,
    token: u64,
    /// Of a leader: its value, and the record's version.
    value: Option<(String, u64)>,
    /// Of a hold: its payment has begun.
    begun: bool,
}

/// One slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// In milliseconds since 1970.
    slot: Option<u64>,
    state: String,
    attempt: u32,
    token: Option<u64>,
    owner: Option<String>,
}

impl View {
    /// Of a name that nobody has asked for. A job is there once it was put.
    pub(super) fn unknown() -> Self {
        Self::Leased { holder: None, queue: Vec::new() }
    }

    /// As the state has it.
    pub(super) fn of(
        state: &State,
        family: Family,
        namespace: &NamespaceName,
        name: &ResourceName,
    ) -> Option<Self> {
        match family {
            Family::Job => state.job_view(namespace, name)?.as_ref().map(ledger),
            _ => state.leased(family.into(), namespace, name).as_ref().map(leased),
        }
    }

    /// As a read tells it.
    pub fn told(heard: &Heard) -> Option<Self> {
        let holder = |owner: &str, token| (owner.to_owned(), token);
        let (holder, value, begun, queue) = match heard {
            Heard::Read(lock) => {
                let of = lock.holder.as_ref();
                (of.map(|it| holder(&it.owner, it.fencing_token)), None, false, &lock.queue[..])
            }
            Heard::Leader(election) => {
                let of = election.leader.as_ref();
                let value = of.map(|it| (it.value.clone(), it.version));
                let leader = of.map(|it| holder(&it.candidate, it.term));
                (leader, value, false, &election.queue[..])
            }
            Heard::Shelf(hold) => {
                let of = hold.holder.as_ref();
                let begun = of.is_some_and(|it| it.begun);
                (of.map(|it| holder(&it.owner, it.fence)), None, begun, &[][..])
            }
            Heard::Ledger(job) => return Some(told_ledger(job)),
            _ => return None,
        };
        let holder = holder.map(|(owner, token)| Holder { owner, token, value, begun });
        let queue = queue.iter().map(|waiter| waiter.owner.clone()).collect();
        Some(Self::Leased { holder, queue })
    }
}

fn leased(view: &LockView) -> View {
    let holder = |it: &HolderView| Holder {
        owner: it.holder.owner.to_string(),
        token: it.holder.token.0,
        value: match &it.face {
            FaceView::Leader { value, version } => Some((value.to_string(), *version)),
            _ => None,
        },
        begun: it.face == FaceView::Hold { begun: true },
    };
    let queue = view.queue.iter().map(|waiter| waiter.owner.to_string()).collect();
    View::Leased { holder: view.holder.as_ref().map(holder), queue }
}

fn ledger(view: &JobView) -> View {
    let run = |run: &sereno_core::query::RunView| Run {
        slot: Some(run.slot.0),
        state: format!("{:?}", run.state),
        attempt: run.attempt,
        token: run.last.as_ref().map(|last| last.token.0),
        owner: run.last.as_ref().map(|last| last.owner.to_string()),
    };
    View::Ledger {
        version: view.version,
        watermark: Some(view.watermark.0),
        runs: view.runs.iter().map(run).collect(),
    }
}

/// Door and core name the states of runs alike.
fn told_ledger(job: &sereno_api::Job) -> View {
    let run = |run: &sereno_api::Run| Run {
        slot: instant::parse(&run.slot),
        state: format!("{:?}", run.state),
        attempt: run.attempt,
        token: run.fencing_token,
        owner: run.owner.clone(),
    };
    View::Ledger {
        version: job.version,
        watermark: instant::parse(&job.watermark),
        runs: job.runs.iter().map(run).collect(),
    }
}
