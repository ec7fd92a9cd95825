//! Families of names, and what is called what in which.

use serde::{Deserialize, Serialize};
use sereno_core::command;

/// A family of names. Families do not see each other's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Family {
    /// Locks.
    Lock,
    /// Elections.
    Election,
    /// Holds.
    Hold,
    /// Scheduled jobs.
    Job,
    /// Quotas: a reservation is no lease of a name, and has checkers of its own.
    Quota,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Lock, Self::Election, Self::Hold, Self::Job, Self::Quota];

    /// As it stands in a fence key.
    pub fn as_str(self) -> &'static str {
        command::Family::from(self).as_str()
    }

    /// `None`: what operators do, and quotas, which are about no leased name.
    pub fn leased(family: command::Family) -> Option<Self> {
        match family {
            command::Family::Lock => Some(Self::Lock),
            command::Family::Election => Some(Self::Election),
            command::Family::Hold => Some(Self::Hold),
            command::Family::Job => Some(Self::Job),
            command::Family::Admin | command::Family::Quota => None,
        }
    }

    /// Family and name: `lock/hot/1`. A fence key without its namespace.
    pub fn place(self, name: &str) -> String {
        format!("{}/{name}", self.as_str())
    }
}

impl From<Family> for command::Family {
    fn from(family: Family) -> Self {
        match family {
            Family::Lock => Self::Lock,
            Family::Election => Self::Election,
            Family::Hold => Self::Hold,
            Family::Job => Self::Job,
            Family::Quota => Self::Quota,
        }
    }
}
