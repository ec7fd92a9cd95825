//! What a log in etcd holds, for `sereno doctor`. Nothing is changed.

use super::{EtcdLog, pointer::Stored};
use crate::{LogError, Snapshot};
use sereno_core::{entry::Head, ids::Position};

/// Others may save snapshots, and remove old ones, only so often while one looks.
const LOOKS: usize = 5;

/// A log at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdReport {
    /// The head; [`Head::EMPTY`] for a log without entries.
    pub head: Head,
    /// First position that can be read; one past the head where nothing can.
    pub first: Position,
    /// The snapshots that are kept, oldest first.
    pub snapshots: Vec<KeptSnapshot>,
}

/// A snapshot that the log names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// The head whose state it is.
    pub head: Head,
    /// `None`: its chunks are not what was saved.
    pub snapshot: Option<Snapshot>,
}

impl EtcdLog {
    /// Looks at head, first entry and snapshots, also while nodes use the log. The entries are for the caller to read.
    ///
    /// # Errors
    /// [`LogError::Damaged`] where these cannot be parts of one log.
    pub async fn inspect(&self) -> Result<EtcdReport, LogError> {
        for _ in 0..LOOKS {
            let log = self.shared.survey().await?;
            let kept = log.pointer.as_ref().map(|pointer| [pointer.older, Some(pointer.newest)]);
            let mut snapshots = Vec::new();
            for stored in kept.into_iter().flatten().flatten() {
                snapshots.push(self.kept(&stored).await?);
            }
            let is_whole = snapshots.iter().all(|it| it.snapshot.is_some());
            // Chunks that are not there under a pointer that stays are damaged; else they were replaced meanwhile.
            let stays = async || {
                let now = self.shared.pointer().await?;
                Ok::<_, LogError>(now.map(|(_, value)| value) == log.pointer_value)
            };
            if is_whole || stays().await? {
                return Ok(EtcdReport { head: log.head, first: log.first, snapshots });
            }
        }
        Err(LogError::Unreachable("others are saving snapshots".into()))
    }

    async fn kept(&self, stored: &Stored) -> Result<KeptSnapshot, LogError> {
        let head = stored.head;
        let bytes = self.shared.load(stored).await?;
        Ok(KeptSnapshot { head, snapshot: bytes.map(|bytes| Snapshot { head, bytes }) })
    }
}
