//! Standard output: text for people, JSON for programs.

use crate::failure::Failure;
use clap::{ArgMatches, Args, ValueEnum};
use serde::Serialize;
use std::io::{self, Write};

/// How answers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people; may change.
    Text,
    /// For programs: the fields of the HTTP interface.
    Json,
}

impl Format {
    /// What the command was told, however deep it is; text where it has no such option.
    pub(crate) fn told(matches: &ArgMatches) -> Self {
        let mut innermost = matches;
        while let Some((_, inner)) = innermost.subcommand() {
            innermost = inner;
        }
        let told = innermost.try_get_one::<Self>("format").ok().flatten();
        told.copied().unwrap_or(Self::Text)
    }
}

/// The option of commands that have an answer.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Output {
    /// How the answer is written.
    #[arg(long = "output", value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub format: Format,
}

impl Output {
    /// One answer: as JSON, or by `text`.
    pub(crate) fn answer<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Text => write(&text(value)),
            Format::Json => write(&json(value, serde_json::to_string_pretty)?),
        }
    }

    /// One of many: a line of JSON, or of text.
    pub(crate) fn line<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Text => write(&text(value)),
            Format::Json => write(&json(value, serde_json::to_string)?),
        }
    }
}

fn json<T: Serialize>(
    value: &T,
    serialise: fn(&T) -> serde_json::Result<String>,
) -> Result<String, Failure> {
    serialise(value).map_err(|error| Failure::new(format!("writing JSON: {error}")))
}

/// Writes `text` and a line end, at once. A reader that has gone away (`| head`) is no failure of ours.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::silent()),
        Err(error) => Err(Failure::io("writing to standard output", &error)),
    }
}

/// A line for people on standard error. If nobody can read it any more that is no reason to stop.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "sereno: {text}");
}

/// The same for programs: one line of JSON.
pub(crate) fn note_json<T: Serialize>(value: &T) {
    if let Ok(line) = serde_json::to_string(value) {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Columns as wide as their widest cell; the last one is not padded.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: Vec<&str>| {
        let pad = |(cell, &width): (&str, &usize)| format!("{cell:width$}");
        let padded: Vec<_> = cells.into_iter().zip(&widths).map(pad).collect();
        padded.join("  ").trim_end().to_string()
    };
    let mut lines = vec![line(head.to_vec())];
    lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
    lines.join("\n")
}

/// A duration for people, with two units at most.
pub(crate) fn human(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..10_000 => format!("{}.{}s", seconds, ms % 1_000 / 100),
        10_000..60_000 => format!("{seconds}s"),
        60_000..3_600_000 => format!("{minutes}m{:02}s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{}d{:02}h", hours / 24, hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let rows = [
            vec!["orders/42".into(), "é".into(), "x".into()],
            vec!["a".into(), "b".into(), "".into()],
        ];
        let text = table(&["NAME", "WHO", "LAST"], &rows);
        assert_eq!(text, "NAME       WHO  LAST\norders/42  é    x\na          b");
    }

    #[test]
    fn durations_have_two_units() {
        for (ms, text) in [
            (0, "0.0s"),
            (1_234, "1.2s"),
            (59_999, "59s"),
            (61_000, "1m01s"),
            (3_661_000, "1h01m"),
            (90_000_000, "1d01h"),
        ] {
            assert_eq!(human(ms), text);
        }
    }
}
