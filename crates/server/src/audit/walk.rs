//! Going through whole files of the trail: line by line, with little memory.

use super::{
    files::TrailFile,
    line::{LineHash, Link},
};
use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
};

/// Read at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Longer than any line: names, words and reasons are bounded.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Where a chain breaks: the line in its file (from 1; 0: the file as a whole), and how.
#[derive(Debug)]
pub(super) struct Break {
    pub(super) line: usize,
    pub(super) what: String,
}

/// Goes through a file that is full, and so has no torn end: each line has its check, its number and the hash of the
/// one before. What a line says is not looked at: its check says that it is what was written. `before`: of the line
/// that stands before this file; `None` where there is none. Gives the last line's hash and the number due next.
pub(super) fn whole_file(
    file: &TrailFile,
    mut before: Option<LineHash>,
) -> io::Result<Result<(Option<LineHash>, u64), Break>> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, File::open(&file.path)?);
    let (mut line, mut number, mut due) = (Vec::new(), 0, file.first);
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(Ok((before, due)));
        }
        number += 1;
        let broken = |what: &str| Ok(Err(Break { line: number, what: what.into() }));
        let Some(line) = line.strip_suffix(b"\n") else { return broken("has no end") };
        let Some(hash) = LineHash::of_whole(line) else {
            return broken("is not what was written: its check does not fit");
        };
        match Link::of(line) {
            Some(link) if link.seq != due => {
                return broken(&format!("has number {} where {due} was due", link.seq));
            }
            Some(link) if before.is_none_or(|before| link.names(before)) => {}
            _ => return broken("names another line than stands before it"),
        }
        before = Some(hash);
        due += 1;
    }
}

/// The last whole line of a file, without reading the rest.
pub(super) fn last_line(file: &TrailFile) -> io::Result<Option<Vec<u8>>> {
    let mut reader = File::open(&file.path)?;
    let length = reader.seek(SeekFrom::End(0))?;
    let mut tail = Vec::new();
    reader.seek(SeekFrom::Start(length.saturating_sub(2 * LINE_BYTES_MAX)))?;
    reader.read_to_end(&mut tail)?;
    let Some(end) = memchr::memrchr(b'\n', &tail) else { return Ok(None) };
    let start = memchr::memrchr(b'\n', &tail[..end]).map_or(0, |at| at + 1);
    Ok(Some(tail[start..end].to_vec()))
}
