//! Everything that can become of an append, planned ahead: a queue of faults, one for each append to come.

use super::Memory;
use crate::{Append, LogError};
use sereno_core::entry::{Head, SealedEntry};
use std::{collections::VecDeque, fmt};

/// Makes the entry of somebody who is faster, given the head that it has to follow.
pub type Rival = Box<dyn FnOnce(Head) -> SealedEntry + Send>;

/// What becomes of one append.
pub enum AppendFault {
    /// Nothing goes wrong: keeps a place in the plan.
    Pass,
    /// The append is carried out, and its answer is lost: *unknown* though it may have landed.
    ReplyLost,
    /// It never reaches the log: *unknown* though it did not land.
    Lost,
    /// *Unknown*, and a copy of it is still under way: it reaches the log after that many further appends have
    /// been answered (or at [`super::MemoryLog::deliver_late`]) and is compared with the head of that moment.
    Late {
        /// Further appends answered before it arrives, at least one (or it would be [`Self::ReplyLost`]).
        after: u32,
    },
    /// Certainly *not appended*.
    Refused,
    /// Another client's entry lands just before: the append meets a *conflict*.
    Overtaken(Rival),
}

impl fmt::Debug for AppendFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("Pass"),
            Self::ReplyLost => f.write_str("ReplyLost"),
            Self::Lost => f.write_str("Lost"),
            Self::Late { after } => write!(f, "Late({after})"),
            Self::Refused => f.write_str("Refused"),
            Self::Overtaken(_) => f.write_str("Overtaken"),
        }
    }
}

#[derive(Default)]
pub(super) struct Plan {
    pub(super) appends: VecDeque<AppendFault>,
    pub(super) reads: VecDeque<LogError>,
    pub(super) writes: VecDeque<LogError>,
    late: Vec<LateCopy>,
}

struct LateCopy {
    /// Further appends to let through first.
    after: u32,
    expected: Head,
    entry: SealedEntry,
}

impl Plan {
    pub(super) fn append(
        &mut self,
        memory: &mut Memory,
        expected: Head,
        entry: SealedEntry,
    ) -> Append {
        let mut late = None;
        let result = match self.appends.pop_front().unwrap_or(AppendFault::Pass) {
            AppendFault::Pass => memory.append(&expected, &entry),
            AppendFault::ReplyLost => {
                memory.append(&expected, &entry);
                Append::Unknown("planned: the answer was lost".into())
            }
            AppendFault::Lost => Append::Unknown("planned: the request was lost".into()),
            AppendFault::Late { after } => {
                late = Some(LateCopy { after, expected, entry });
                Append::Unknown("planned: the request is late".into())
            }
            AppendFault::Refused => Append::NotAppended("planned: refused".into()),
            AppendFault::Overtaken(rival) => {
                let head = memory.head();
                let rivals = rival(head);
                let landed = memory.append(&head, &rivals);
                assert_eq!(landed, Append::Committed, "a planned rival has to fit the head");
                memory.append(&expected, &entry)
            }
        };
        self.deliver_due(memory);
        self.late.extend(late); // After the delivery: this append is not one of the *further* ones.
        result
    }

    fn deliver_due(&mut self, memory: &mut Memory) {
        for copy in std::mem::take(&mut self.late) {
            if copy.after <= 1 {
                memory.append(&copy.expected, &copy.entry);
            } else {
                self.late.push(LateCopy { after: copy.after - 1, ..copy });
            }
        }
    }

    /// Returns how many of them landed.
    pub(super) fn deliver_all(&mut self, memory: &mut Memory) -> usize {
        std::mem::take(&mut self.late)
            .into_iter()
            .filter(|copy| memory.append(&copy.expected, &copy.entry) == Append::Committed)
            .count()
    }
}
