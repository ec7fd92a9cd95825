//! The books of quotas, made again from the trail's own lines: what a line says was there before is what the line before
//! it has left.

use sereno_api::{AuditKind, AuditLine, LedgerLayer, LedgerLine};
use std::collections::HashMap;

/// A node of a quota: namespace, quota, path.
type Node = (String, String, String);

/// What the lines so far have left at each node; of one that no line has named, nothing is known.
#[derive(Default)]
pub(super) struct Books {
    log_id: Option<String>,
    sums: HashMap<Node, Sums>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    committed: u64,
    reserved: u64,
    /// The number of the line that has left it so.
    seq: u64,
}

impl Books {
    /// Takes the next line.
    ///
    /// # Errors
    /// What it says that cannot be.
    pub(super) fn take(&mut self, line: &AuditLine) -> Result<(), String> {
        // Another log has other books, and in a gap everything may have happened.
        if line.kind == AuditKind::Log && self.log_id != line.log_id {
            self.log_id.clone_from(&line.log_id);
            self.forget();
        }
        if line.kind == AuditKind::Gap {
            self.forget();
        }
        let Some(entry) = &line.quota else { return Ok(()) };
        let namespace = line.namespace.clone().unwrap_or_default();
        entry.lines.iter().try_for_each(|change| self.post(&namespace, line.seq, change))
    }

    /// Something is missing here.
    pub(super) fn forget(&mut self) {
        self.sums.clear();
    }

    fn post(&mut self, namespace: &str, seq: u64, change: &LedgerLine) -> Result<(), String> {
        let paths = layers_of(&change.path);
        if paths.len() != change.layers.len() {
            let (has, due) = (change.layers.len(), paths.len());
            let node = name(&change.quota, &change.path);
            return Err(format!("has {has} layers for {node}, which has {due}"));
        }
        let moved = change.layers.last().map(difference);
        for (path, layer) in paths.into_iter().zip(&change.layers) {
            if Some(difference(layer)) != moved {
                let (node, own) = (name(&change.quota, path), name(&change.quota, &change.path));
                return Err(format!("changes {node} by something else than {own} below it"));
            }
            self.follow(namespace, &change.quota, path, seq, layer)?;
        }
        Ok(())
    }

    fn follow(
        &mut self,
        namespace: &str,
        quota: &str,
        path: &str,
        seq: u64,
        layer: &LedgerLayer,
    ) -> Result<(), String> {
        let ([committed, now_committed], [reserved, now_reserved]) =
            (layer.committed, layer.reserved);
        let sums = Sums { committed: now_committed, reserved: now_reserved, seq };
        let before = self.sums.insert((namespace.into(), quota.into(), path.into()), sums);
        match before {
            Some(left) if (left.committed, left.reserved) != (committed, reserved) => Err(format!(
                "finds {committed} committed and {reserved} reserved at {} in {namespace}, where line {} has left {} \
                 and {}",
                name(quota, path),
                left.seq,
                left.committed,
                left.reserved
            )),
            _ => Ok(()),
        }
    }
}

/// The paths of a node's layers, root first.
fn layers_of(path: &str) -> Vec<&str> {
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    let own = Some(path).filter(|path| !path.is_empty());
    std::iter::once("").chain(above).chain(own).collect()
}

fn difference(layer: &LedgerLayer) -> (i128, i128) {
    let of = |[before, after]: [u64; 2]| i128::from(after) - i128::from(before);
    (of(layer.committed), of(layer.reserved))
}

fn name(quota: &str, path: &str) -> String {
    match path {
        "" => quota.to_owned(),
        path => format!("{quota}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_api::{LedgerEntry, QuotaChange};

    /// Of each layer, root first: committed and reserved.
    type Layers<'a> = &'a [([u64; 2], [u64; 2])];

    fn line(seq: u64, changes: &[(&str, Layers)]) -> AuditLine {
        let layer =
            |&(committed, reserved): &([u64; 2], [u64; 2])| LedgerLayer { committed, reserved };
        let line = |(path, layers): &(&str, Layers)| LedgerLine {
            quota: "gpu".into(),
            path: (*path).into(),
            layers: layers.iter().map(layer).collect(),
        };
        let lines = changes.iter().map(line).collect();
        let entry = LedgerEntry { lines, ..LedgerEntry::of(QuotaChange::Reserved) };
        let base = serde_json::json!({
            "seq": seq, "kind": "quotaChanged", "position": seq, "namespace": "default", "previous": "", "check": "",
        });
        let base: AuditLine = serde_json::from_value(base).unwrap();
        AuditLine { quota: Some(Box::new(entry)), ..base }
    }

    const NONE: [u64; 2] = [0, 0];

    #[test]
    fn each_line_goes_on_from_what_was_left() {
        let mut books = Books::default();
        let both = [(NONE, [0, 2]), (NONE, [0, 2]), (NONE, [0, 2])];
        assert_eq!(books.take(&line(1, &[("a/b", &both)])), Ok(()));
        assert_eq!(books.take(&line(2, &[("a", &[(NONE, [2, 5]), (NONE, [2, 5])])])), Ok(()));
        // Two nodes in one command: the layers that they share change twice.
        let used: Layers = &[([0, 1], [5, 4]), ([0, 1], [5, 4]), ([0, 1], [2, 1])];
        assert_eq!(
            books.take(&line(3, &[("a/b", used), ("c", &[([1, 1], [4, 6]), (NONE, [0, 2])])])),
            Ok(())
        );
        let wrong = books.take(&line(4, &[("c", &[(NONE, NONE), (NONE, NONE)])])).unwrap_err();
        assert!(wrong.contains("finds 0 committed and 0 reserved at gpu in default"), "{wrong}");
        assert!(wrong.contains("line 3 has left 1 and 6"), "{wrong}");
        let lost: Layers = &[([1, 1], [4, 3]), ([1, 1], [4, 3]), ([1, 1], [0, 0])];
        let lost = books.take(&line(5, &[("a/b", lost)]));
        assert!(lost.unwrap_err().contains("something else than gpu/a/b below it"));
        assert!(
            books.take(&line(6, &[("a/b", &[(NONE, NONE)])])).unwrap_err().contains("1 layers")
        );
    }

    #[test]
    fn after_a_gap_and_in_another_log_nothing_is_known() {
        let mut books = Books::default();
        let taken = |from, to| line(1, &[("", &[(NONE, [from, to])])]);
        assert_eq!(books.take(&taken(0, 3)), Ok(()));
        assert!(books.take(&taken(1, 2)).is_err());
        let gap = AuditLine { kind: AuditKind::Gap, quota: None, ..taken(0, 0) };
        assert_eq!(books.take(&gap), Ok(()));
        assert_eq!(books.take(&taken(7, 9)), Ok(()));
        let of_log = |id: &str| AuditLine {
            kind: AuditKind::Log,
            log_id: Some(id.into()),
            quota: None,
            ..taken(0, 0)
        };
        assert_eq!(books.take(&of_log("a")), Ok(()));
        assert_eq!(books.take(&taken(0, 1)), Ok(()));
        // As at the head of each file.
        assert_eq!(books.take(&of_log("a")), Ok(()));
        assert!(books.take(&taken(0, 1)).is_err());
        assert_eq!(books.take(&of_log("b")), Ok(()));
        assert_eq!(books.take(&taken(0, 1)), Ok(()));
    }
}
