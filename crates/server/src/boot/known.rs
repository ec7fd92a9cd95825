//! Whether a log is the one that this node has served before. Where nodes share a log, its store can be put back to an
//! earlier state, or emptied, behind their backs: then what was granted since is forgotten there, and would be granted
//! again. A running node sees that; one that is started afterwards knows it only by its audit trail.

use super::ServerError;
use crate::audit::End;
use sereno_core::entry::Head;
use sereno_log::{Log, Read};

/// What an operator can do.
const WAY_OUT: &str = "Nothing is granted on it before somebody has looked: see docs/cluster.md, \"When etcd was set \
                       back\"";

/// # Errors
/// When the trail knows of something that the log does not have, or, where nodes share the log, of another log.
pub(super) async fn check(log: &dyn Log, known: End, is_shared: bool) -> Result<(), ServerError> {
    let Some(log_id) = known.log_id else { return Ok(()) };
    let head = log.head().await?;
    let refuse = |what: String| Err(ServerError::Failed(what));
    if head == Head::EMPTY {
        return refuse(format!(
            "there is no log, and this data folder has served one: its audit trail tells of the log {log_id} up to \
             position {}. Was the log deleted, or does --log name another one? {WAY_OUT}. For a new service take a new \
             data folder",
            known.position
        ));
    }
    if head.log_id != log_id {
        // One machine's log comes into its folder by `sereno restore` alone, which knows what it does.
        return match is_shared {
            false => Ok(()),
            true => refuse(format!(
                "this data folder has served the log {log_id}, and --log names the log {}. If that is meant (a restored \
                 backup, another service), take a new data folder, and keep this one's audit trail",
                head.log_id
            )),
        };
    }
    if head.position < known.position {
        return refuse(format!(
            "the log was set back: it ends at position {}, and the audit trail here tells of position {}. {WAY_OUT}",
            head.position, known.position
        ));
    }
    if let Some((position, hash)) = known.entry
        && let Read::Entries(entries) = log.read(position, 1).await?
        && let Some(entry) = entries.first()
        && (entry.head.position, entry.head.hash) != (position, hash)
    {
        return refuse(format!(
            "the log was set back and has gone on differently: its entry {position} is not the one that the audit trail \
             here tells of. {WAY_OUT}"
        ));
    }
    Ok(())
}
