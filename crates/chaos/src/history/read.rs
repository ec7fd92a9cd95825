//! Reading the histories of all processes of a run.

use super::{Heard, Line, Op};
use crate::clock::Micros;
use std::{collections::BTreeMap, fs, path::Path};

/// One call, with what was heard of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Process and number, for messages.
    pub name: String,
    /// Who called.
    pub worker: String,
    /// Which node was asked.
    pub node: usize,
    /// What was asked.
    pub op: Op,
    /// Before it was sent.
    pub start: Micros,
    /// After the answer came; `None`: it never did.
    pub end: Option<Micros>,
    /// The answer.
    pub heard: Heard,
}

/// A guard of the SDK said that it held.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// What, with its family.
    pub place: String,
    /// Its token.
    pub token: u64,
    /// From when on.
    pub since: Micros,
    /// Until when at least.
    pub until: Micros,
}

/// All that clients did and saw.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In the order of their starts.
    pub calls: Vec<Call>,
    /// What guards said.
    pub guards: Vec<Held>,
}

/// Reads every `*.jsonl` of a folder.
///
/// # Errors
/// A file or a line that cannot be read. A last line that a killed process has begun is none.
pub fn read_folder(folder: &Path) -> Result<History, String> {
    let mut history = History::default();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|it| it == "jsonl")) {
        let text = fs::read_to_string(path).map_err(|error| format!("{path:?}: {error}"))?;
        let process = path.file_stem().unwrap_or_default().to_string_lossy();
        history.add(&process, &text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    history.calls.sort_by_key(|call| call.start);
    Ok(history)
}

impl History {
    fn add(&mut self, process: &str, text: &str) -> Result<(), String> {
        let mut open = BTreeMap::new();
        // What stands after the last line end was being written when its process was killed.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            match serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))? {
                Line::Start { call, worker, node, at, op } => {
                    let (name, heard) =
                        (format!("{process}#{call}"), Heard::Nothing { sent: true });
                    open.insert(call, Call { name, worker, node, op, start: at, end: None, heard });
                }
                Line::End { call, at, answer } => {
                    let started = open.remove(&call);
                    let mut call = started.ok_or(format!("an end without a start: {line}"))?;
                    call.heard = Heard::of(&call.op, &answer)?;
                    call.end = Some(at);
                    self.calls.push(call);
                }
                Line::Guard { place, token, since, until } => {
                    self.guards.push(Held { place, token, since, until });
                }
            }
        }
        self.calls.extend(open.into_values());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Answer, Family, Recorder};

    #[test]
    fn a_call_that_was_never_answered_is_pending_and_a_torn_line_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c0.jsonl");
        let recorder = Recorder::create(&path).unwrap();
        let op = Op::Get { family: Family::Lock, resource: "a".into() };
        let first = recorder.start("w", 1, &op);
        recorder.start("w", 2, &op);
        recorder.end(first, Answer::Silence { silence: "refused".into(), sent: false });
        let torn = fs::read_to_string(&path).unwrap() + "{\"line\":\"sta";
        fs::write(&path, torn).unwrap();
        let history = read_folder(folder.path()).unwrap();
        let ends: Vec<_> = history.calls.iter().map(|call| call.end.is_some()).collect();
        assert_eq!(ends, [true, false]);
        assert_eq!(history.calls[0].heard, Heard::Nothing { sent: false });
        assert!(history.calls[1].heard.is_unknown());
    }
}
