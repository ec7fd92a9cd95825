//! The table of what is really used.

use crate::{
    failure::Failure,
    quota::node::{self, Node},
};
use serde::Deserialize;
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// One count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub node: Node,
    pub observed: u64,
    pub reporter: Option<String>,
    pub epoch: Option<u64>,
}

/// As it stands in the file.
#[derive(Debug, Deserialize)]
struct Record {
    quota: String,
    #[serde(default)]
    path: String,
    observed: u64,
    #[serde(default)]
    reporter: Option<String>,
    #[serde(default)]
    epoch: Option<u64>,
}

const COLUMNS: [&str; 5] = ["quota", "path", "observed", "reporter", "epoch"];

/// All rows, the deepest nodes first.
pub(super) fn read(file: &Path) -> Result<Vec<Row>, Failure> {
    let name = file.display();
    let rows = match file.as_os_str() == "-" {
        true => parse(io::stdin().lock()),
        false => parse(
            File::open(file).map_err(|error| Failure::io(&format!("reading {name}"), &error))?,
        ),
    };
    rows.map_err(|wrong| Failure::usage(format!("{name}: {wrong}")))
}

fn parse(text: impl Read) -> Result<Vec<Row>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    let head = reader.headers().map_err(|error| error.to_string())?.clone();
    check(&head)?;
    let mut rows: Vec<(u64, Row)> = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| error.to_string())? {
        let line = record.position().map_or(0, csv::Position::line);
        let row = row(&record, &head).map_err(|wrong| format!("line {line}: {wrong}"))?;
        if let Some((before, _)) = rows.iter().find(|(_, other)| other.node == row.node) {
            return Err(format!("line {line}: {} was on line {before} already", row.node));
        }
        rows.push((line, row));
    }
    let mut rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.node.layers().len()));
    match rows.is_empty() {
        true => Err("has no rows".into()),
        false => Ok(rows),
    }
}

fn check(head: &csv::StringRecord) -> Result<(), String> {
    let columns = COLUMNS.join(", ");
    if let Some(other) = head.iter().find(|name| !COLUMNS.contains(name)) {
        return Err(format!("has the column {other:?}; there are {columns}"));
    }
    for needed in ["quota", "observed"] {
        if !head.iter().any(|name| name == needed) {
            return Err(format!("has no column {needed}; there are {columns}"));
        }
    }
    Ok(())
}

fn row(record: &csv::StringRecord, head: &csv::StringRecord) -> Result<Row, String> {
    let record: Record = record.deserialize(Some(head)).map_err(|error| wrong(&error, head))?;
    let Record { quota, path, observed, reporter, epoch } = record;
    let text = if path.is_empty() { quota } else { format!("{quota}/{path}") };
    let node = node::node(&text)?;
    node::units(&observed.to_string()).map_err(|rule| format!("observed: {rule}"))?;
    Ok(Row { node, observed, reporter: reporter.filter(|name| !name.is_empty()), epoch })
}

/// The field and the rule, without where in the file's bytes.
fn wrong(error: &csv::Error, head: &csv::StringRecord) -> String {
    let csv::ErrorKind::Deserialize { err, .. } = error.kind() else { return error.to_string() };
    let column = err.field().and_then(|at| head.get(usize::try_from(at).ok()?));
    match column {
        Some(column) => format!("{column}: {}", err.kind()),
        None => err.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(String, u64)>, String> {
        let rows = parse(text.as_bytes())?;
        Ok(rows.into_iter().map(|row| (row.node.to_string(), row.observed)).collect())
    }

    #[test]
    fn columns_come_in_any_order_and_the_deepest_rows_first() {
        let text = "observed, path ,quota\n12,,gpu\n4,acme/vision,gpu\n7,\"acme\",gpu\n";
        let expected = [("gpu/acme/vision", 4), ("gpu/acme", 7), ("gpu", 12)];
        assert_eq!(rows(text), Ok(expected.map(|(name, seen)| (name.into(), seen)).into()));
        assert_eq!(rows("quota,observed\nbytes,0\n"), Ok(vec![("bytes".into(), 0)]));
    }

    #[test]
    fn a_row_can_say_which_report_it_is() {
        let text = "quota,path,observed,reporter,epoch\ngpu,,1,nodes,7\nbytes,,2,,\n";
        let rows = parse(text.as_bytes()).unwrap();
        let of = |row: &Row| (row.reporter.clone(), row.epoch);
        assert_eq!(of(&rows[0]), (Some("nodes".into()), Some(7)));
        assert_eq!(of(&rows[1]), (None, None));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, why) in [
            ("quota,path\ngpu,\n", "no column observed"),
            ("quota,observed,used\ngpu,1,2\n", "the column \"used\""),
            ("quota,path,observed\ngpu,acme,many\n", "line 2"),
            ("quota,path,observed\ngpu,acme,-1\n", "line 2"),
            ("quota,path,observed\ngpu,a//b,1\n", "line 2: the path"),
            ("quota,observed\ngpu,1\ngpu,2\n", "line 3: gpu was on line 2 already"),
            ("quota,observed\n", "has no rows"),
            ("quota,path,observed\ngpu,1\n", "2 fields"),
        ] {
            let error = rows(text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
