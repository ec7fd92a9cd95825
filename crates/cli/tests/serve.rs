//! `sereno serve` as a process: how it ends when it cannot go on.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use std::{fs, io::Read, process::Stdio};
use support::{Service, stdout};

#[test]
fn a_data_folder_taken_away_ends_the_service_with_one_line_and_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut service = Service::of(Service::command(&data).stderr(Stdio::piped()));
    stdout(&service.run(&["lock", "a", "--", "true"]));
    fs::remove_dir_all(&data).unwrap();
    let status = service.child.wait().unwrap();
    assert_eq!(status.code(), Some(1), "it ends by itself, and not by a signal");
    let mut said = String::new();
    service.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("sereno: ") && last.contains("was deleted, moved"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}
