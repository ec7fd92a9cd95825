//! What a runner has to tell people, each thing once.

use crate::error::Error;
use std::{fmt, sync::Arc};

/// Something that changed for a runner. Nothing of this ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobNews {
    /// The service does not answer, or takes no calls: nothing is claimed until it does.
    Unreachable(String),
    /// It answers again.
    Reachable,
    /// The job's definition is another than this replica's own, and is followed.
    Adopted {
        /// Its version.
        version: u64,
        /// When it runs.
        schedule: String,
        /// In which time zone.
        zone: String,
    },
    /// An operator has paused the job.
    Paused,
    /// It goes on.
    Resumed,
    /// This machine's clock is ahead of the service's: slots run later than its clock says.
    ClockAhead,
    /// The record in the service cannot be followed by this version, so nothing is claimed.
    NotUnderstood(String),
    /// What an attempt has come to was not accepted: its slot has gone on without it.
    NotAccepted(String),
}

impl fmt::Display for JobNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => {
                write!(
                    f,
                    "the service does not answer, and nothing is claimed until it does: {why}"
                )
            }
            Self::Reachable => f.write_str("the service answers again"),
            Self::Adopted { version, schedule, zone } => write!(
                f,
                "the job has another definition than this replica's, which is followed: version {version}, {schedule:?} in {zone}"
            ),
            Self::Paused => f.write_str("the job is paused"),
            Self::Resumed => f.write_str("the job goes on"),
            Self::ClockAhead => {
                f.write_str("this machine's clock is over 5 s ahead of the service's")
            }
            Self::NotUnderstood(why) => {
                write!(f, "the job cannot be followed, and nothing is claimed: {why}")
            }
            Self::NotAccepted(why) => write!(f, "the end of the run was not accepted: {why}"),
        }
    }
}

/// Who is told.
pub(super) type Listener = Arc<dyn Fn(&JobNews) + Send + Sync>;

/// Remembers what was told, so that it is told once.
#[derive(Clone, Default)]
pub(super) struct Teller {
    listener: Option<Listener>,
    unreachable: bool,
    paused: bool,
    clock_ahead: bool,
    adopted: u64,
    not_understood: u64,
}

impl Teller {
    pub(super) fn new(listener: Option<Listener>) -> Self {
        Self { listener, ..Self::default() }
    }

    pub(super) fn tell(&self, news: &JobNews) {
        if let Some(listener) = &self.listener {
            listener(news);
        }
    }

    pub(super) fn unreachable(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.unreachable, true) {
            self.tell(&JobNews::Unreachable(error.to_string()));
        }
    }

    pub(super) fn reachable(&mut self) {
        if std::mem::replace(&mut self.unreachable, false) {
            self.tell(&JobNews::Reachable);
        }
    }

    pub(super) fn paused(&mut self, is_paused: bool) {
        if std::mem::replace(&mut self.paused, is_paused) != is_paused {
            self.tell(if is_paused { &JobNews::Paused } else { &JobNews::Resumed });
        }
    }

    pub(super) fn clock(&mut self, is_ahead: bool) {
        if !std::mem::replace(&mut self.clock_ahead, is_ahead) && is_ahead {
            self.tell(&JobNews::ClockAhead);
        }
    }

    /// Once for each version.
    pub(super) fn adopted(&mut self, version: u64, schedule: &str, zone: &str) {
        if std::mem::replace(&mut self.adopted, version) != version {
            let (schedule, zone) = (schedule.into(), zone.into());
            self.tell(&JobNews::Adopted { version, schedule, zone });
        }
    }

    /// Once for each version.
    pub(super) fn not_understood(&mut self, version: u64, why: &str) {
        if std::mem::replace(&mut self.not_understood, version) != version {
            self.tell(&JobNews::NotUnderstood(why.into()));
        }
    }
}
