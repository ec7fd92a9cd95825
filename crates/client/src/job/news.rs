//! What a runner has to tell people, each thing once.

use crate::error::Error;
use sereno_api::ErrorCode;
use std::{fmt, sync::Arc};

/// Something that changed for a runner. Nothing of this ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobNews {
    /// The service does not answer, or takes no calls: nothing is claimed until it does.
    Unreachable(String),
    /// It answers again, and takes calls.
    Reachable,
    /// It answers, and grants nothing now, as in the pause after a restore. It is asked until it does.
    NothingGranted(String),
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
                let what = match ErrorCode::leading(why) {
                    Some(_) => "answers, and takes no calls now",
                    None => "does not answer",
                };
                write!(f, "the service {what}, and nothing is claimed until it does: {why}")
            }
            Self::Reachable => f.write_str("the service takes calls again"),
            Self::NothingGranted(why) => {
                write!(
                    f,
                    "the service answers, and grants nothing now; it is asked until it does: {why}"
                )
            }
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

/// What was heard last: what it means for the call goes without saying here.
pub(super) fn why(error: &Error) -> String {
    match error {
        Error::Unavailable(why) | Error::Unknown(why) => why.clone(),
        error => error.to_string(),
    }
}

/// Who is told.
pub(super) type Listener = Arc<dyn Fn(&JobNews) + Send + Sync>;

/// Remembers what was told, so that it is told once.
#[derive(Clone, Default)]
pub(super) struct Teller {
    listener: Option<Listener>,
    unreachable: bool,
    nothing_granted: bool,
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

    /// Of what is read or put.
    pub(super) fn unreachable(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.unreachable, true) {
            self.tell(&JobNews::Unreachable(why(error)));
        }
    }

    pub(super) fn reachable(&mut self) {
        if std::mem::replace(&mut self.unreachable, false) {
            self.tell(&JobNews::Reachable);
        }
    }

    /// Of a claim. That the service answers other calls ends nothing of this.
    pub(super) fn nothing_granted(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.nothing_granted, true) {
            self.tell(&JobNews::NothingGranted(why(error)));
        }
    }

    /// A claim was decided.
    pub(super) fn claims_are_decided(&mut self) {
        self.nothing_granted = false;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_pause_of_granting_is_told_once_however_often_the_record_is_read() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let hears = said.clone();
        let listener: Listener = Arc::new(move |news| hears.lock().unwrap().push(news.to_string()));
        let mut teller = Teller::new(Some(listener));
        let paused = Error::Unavailable("UNAVAILABLE: granting is paused, for 9 ms more".into());
        for _ in 0..3 {
            teller.nothing_granted(&paused);
            teller.reachable();
        }
        let told = "the service answers, and grants nothing now; it is asked until it does: \
                    UNAVAILABLE: granting is paused, for 9 ms more";
        assert_eq!(*said.lock().unwrap(), [told]);
        teller.claims_are_decided();
        teller.nothing_granted(&paused);
        assert_eq!(*said.lock().unwrap(), [told, told], "another pause is news");
    }

    #[test]
    fn who_answers_is_not_said_to_be_silent() {
        let told = |why: &str| JobNews::Unreachable(why.into()).to_string();
        assert!(told("connection refused").starts_with("the service does not answer"));
        let level = "UNAVAILABLE: this belongs to level 3, which is not in force yet";
        assert!(told(level).starts_with("the service answers, and takes no calls now"));
    }
}
