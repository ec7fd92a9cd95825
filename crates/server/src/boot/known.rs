//! Whether a log is the one that this node has served before. Where nodes share a log, its store can be put back to an
//! earlier state, or emptied, behind their backs: then what was granted since is forgotten there, and would be granted
//! again. A running node sees that; one that is started afterwards knows it only by its audit trail.

use super::ServerError;
use crate::audit::End;
use sereno_core::entry::Head;
use sereno_log::{Log, Read};
use std::{fs, path::Path};

/// What an operator can do.
fn way_out(is_shared: bool) -> &'static str {
    match is_shared {
        true => "see docs/cluster.md, \"When etcd was set back\"",
        false => "restore a backup into another folder with `sereno restore`",
    }
}

/// A refusal is remembered in the data folder by this file: the log may go on until it can no longer be compared, and
/// must not be believed then.
const REFUSED: &str = "log-refused";

/// The check at a start in this data folder.
///
/// # Errors
/// When the trail knows of something that the log does not have, or, where nodes share the log, of another log.
pub(super) async fn check_in(
    folder: &Path,
    log: &dyn Log,
    known: End,
    is_shared: bool,
) -> Result<(), ServerError> {
    let mark = folder.join(REFUSED);
    match check(log, known, is_shared, mark.exists()).await? {
        Verdict::Fits if mark.exists() => Ok(fs::remove_file(&mark)?),
        Verdict::Fits => Ok(()),
        Verdict::Another(why) => Err(ServerError::Failed(why)),
        Verdict::SetBack(why) => {
            fs::write(&mark, &why)?;
            Err(ServerError::Failed(why))
        }
    }
}

/// What comes of comparing a log with what a trail tells of it.
enum Verdict {
    Fits,
    /// Nothing was found out about the log that the trail tells of.
    Another(String),
    /// What was granted since may be granted again.
    SetBack(String),
}

/// Whether the log has what the trail knows of.
async fn check(
    log: &dyn Log,
    known: End,
    is_shared: bool,
    was_refused: bool,
) -> Result<Verdict, ServerError> {
    let Some(log_id) = known.log_id else { return Ok(Verdict::Fits) };
    let head = log.head().await?;
    let another = |what: String| Ok(Verdict::Another(what));
    let set_back = |what: String| Ok(Verdict::SetBack(what));
    let way_out = way_out(is_shared);
    if head == Head::EMPTY {
        return another(format!(
            "there is no log, and this data folder has served one: its audit trail tells of the log {log_id} up to \
             position {}. Does --log name another one? Or was the log deleted: {way_out}. For a new service take a new \
             data folder",
            known.position
        ));
    }
    if head.log_id != log_id {
        // One machine's log comes into its folder by `sereno restore` alone, which knows what it does.
        return match is_shared {
            false => Ok(Verdict::Fits),
            true => another(format!(
                "this data folder has served the log {log_id}, and --log names the log {}. If that is meant (a restored \
                 backup, another service), take a new data folder, and keep this one's audit trail",
                head.log_id
            )),
        };
    }
    if head.position < known.position {
        return set_back(format!(
            "the log was set back: it ends at position {}, and the audit trail here tells of position {}: {way_out}",
            head.position, known.position
        ));
    }
    if let Some((position, hash)) = known.entry {
        match log.read(position, 1).await? {
            Read::Entries(entries) => {
                let entry = entries.first().map(|entry| (entry.head.position, entry.head.hash));
                if entry.is_some_and(|entry| entry != (position, hash)) {
                    return set_back(format!(
                        "the log was set back and has gone on differently: its entry {position} is not the one that the \
                         audit trail here tells of: {way_out}"
                    ));
                }
            }
            // Whoever was away for long finds it so: only a refusal that is remembered stands against it.
            Read::Trimmed { .. } if was_refused => {
                return set_back(format!(
                    "the log was found to be set back at an earlier start, and can no longer be compared with the audit \
                     trail here, which tells of position {position}: {way_out}"
                ));
            }
            Read::Trimmed { .. } => {}
        }
    }
    Ok(Verdict::Fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_core::{
        entry::{Body, EntryHash},
        ids::{LogId, Position},
        testing::Scribe,
    };
    use sereno_log::{
        Snapshot,
        memory::{Memory, MemoryLog},
    };

    /// A log of three entries, and the hashes of its entries.
    fn log() -> (Memory, Vec<EntryHash>) {
        let (mut memory, mut scribe) = (Memory::default(), Scribe::new());
        let genesis = Scribe::genesis().seal(scribe.state.log_id());
        memory.append(&Head::EMPTY, &genesis);
        let mut hashes = vec![genesis.head.hash];
        for _ in 0..2 {
            let entry = scribe.entry(1, Body::Batch(Vec::new()));
            let sealed = entry.seal(scribe.state.log_id());
            memory.append(&memory.head(), &sealed);
            scribe.push(entry, sealed.head.hash);
            hashes.push(sealed.head.hash);
        }
        (memory, hashes)
    }

    async fn refusal(memory: &Memory, known: End, is_shared: bool) -> Option<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let log = MemoryLog::of(memory.clone());
        let checked = check_in(folder.path(), &log, known, is_shared).await;
        checked.err().map(|error| error.to_string())
    }

    #[tokio::test]
    async fn what_the_trail_tells_of_has_to_be_in_the_log() {
        let (memory, hashes) = log();
        let log_id = Some(memory.head().log_id);
        let end = |position, hash| End {
            log_id,
            position: Position(position),
            entry: Some((Position(position), hash)),
        };
        let none = End { log_id: None, position: Position(0), entry: None };
        let other = End { log_id: Some(LogId([8; 16])), ..end(2, hashes[1]) };
        for is_shared in [false, true] {
            assert_eq!(refusal(&memory, none, is_shared).await, None, "it has served nothing");
            assert_eq!(
                refusal(&Memory::default(), none, is_shared).await,
                None,
                "nor is there a log"
            );
            for at in 1..=3 {
                let known = end(at as u64, hashes[at - 1]);
                assert_eq!(refusal(&memory, known, is_shared).await, None, "{at}");
            }
            let shorter =
                refusal(&memory, end(4, hashes[2]), is_shared).await.expect("it is refused");
            assert!(shorter.contains("ends at position 3"), "{shorter}");
            let differs =
                refusal(&memory, end(2, hashes[2]), is_shared).await.expect("it is refused");
            assert!(differs.contains("its entry 2"), "{differs}");
            let gone = refusal(&Memory::default(), end(2, hashes[1]), is_shared).await;
            assert!(gone.is_some_and(|why| why.contains("there is no log")));
        }
        assert!(refusal(&memory, other, true).await.is_some_and(|why| why.contains("--log names")));
        assert_eq!(refusal(&memory, other, false).await, None, "`sereno restore` has put it there");
    }
    #[tokio::test]
    async fn a_refusal_stands_when_the_log_can_no_longer_be_compared() {
        let (memory, hashes) = log();
        let folder = tempfile::tempdir().expect("a folder");
        let known = End {
            log_id: Some(memory.head().log_id),
            position: Position(2),
            entry: Some((Position(2), hashes[2])),
        };
        let start = async |memory: &Memory, known| {
            let log = MemoryLog::of(memory.clone());
            check_in(folder.path(), &log, known, true).await.map_err(|error| error.to_string())
        };
        assert!(start(&memory, known).await.is_err_and(|why| why.contains("its entry 2")));
        let snapshot = Snapshot { head: memory.head(), bytes: Default::default() };
        let trimmed = Memory::from_snapshot(snapshot);
        assert!(start(&trimmed, known).await.is_err_and(|why| why.contains("an earlier start")));
        // The right log is back: that can be seen, and is believed.
        let right = End { entry: Some((Position(2), hashes[1])), ..known };
        assert_eq!(start(&memory, right).await, Ok(()));
        assert_eq!(start(&trimmed, right).await, Ok(()), "who was away for long finds it trimmed");
    }
}
