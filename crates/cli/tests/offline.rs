//! Backup, restore and doctor on the folder of a real service.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt, path::Path};
use support::{Service, sereno, stderr, stdout};

/// Stands in entries of the log, where it can be found again.
const OWNER: &str = "somebody-in-particular";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn json_of(arguments: &[&str]) -> Value {
    let output = sereno(&[arguments, &["--output", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn token(service: &Service) -> u64 {
    let echo = ["lock", "a", "--owner", OWNER, "--", "sh", "-c", "echo $SERENO_TOKEN"];
    service.text(&echo).trim().parse().unwrap()
}

#[test]
fn a_backup_of_a_running_service_is_restored_with_larger_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file, new) =
        (folder.path().join("data"), folder.path().join("backup"), folder.path().join("new"));
    let service = Service::start(&data);
    service.text(&["namespace", "set", "kept", "--max-ttl", "10m"]);
    let before = token(&service);
    let backup = ["backup", "--data", text(&data), "--to", text(&file)];
    let written = json_of(&backup);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(written["logId"], service.json(&["status"])["logId"]);
    let again = sereno(&backup);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("--replace"));
    stdout(&sereno(&[&backup[..], &["--replace"]].concat()));
    let after = token(&service);
    service.stop();

    let restore = ["restore", "--from", text(&file), "--data", text(&new)];
    let restored = json_of(&restore);
    assert_eq!(restored["pauseMs"], 3_600_000, "the longest that `default` allows");
    assert_ne!(restored["logId"], written["logId"]);
    assert!(restored["tokenFloor"].as_u64().unwrap() > after.max(before));
    let twice = sereno(&restore);
    assert!(stderr(&twice).contains("not empty"), "{twice:?}");

    let service = Service::start(&new);
    assert!(service.json(&["status"])["pausedMs"].as_u64().unwrap() > 3_000_000);
    assert_eq!(service.json(&["namespace", "get", "kept"])["policy"]["maxTtl"], "10m");
    let paused = service.run(&["lock", "a", "--", "true"]);
    assert_eq!(paused.status.code(), Some(122));
    assert!(stderr(&paused).contains("paused"), "{paused:?}");
    service.stop();
    assert_eq!(json_of(&["doctor", "--data", text(&new), "--audit"])["sound"], true);
}

#[test]
fn a_restore_can_grant_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file, new) =
        (folder.path().join("data"), folder.path().join("backup"), folder.path().join("new"));
    let service = Service::start(&data);
    let before = token(&service);
    stdout(&sereno(&["backup", "--data", text(&data), "--to", text(&file)]));
    drop(service);
    stdout(&sereno(&["restore", "--no-pause", "--from", text(&file), "--data", text(&new)]));
    let service = Service::start(&new);
    assert!(token(&service) > before);
}

#[test]
fn a_restore_passes_tokens_granted_after_the_backup_above_a_raised_floor() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file, new) =
        (folder.path().join("data"), folder.path().join("backup"), folder.path().join("new"));
    let service = Service::start(&data);
    let floor = (token(&service) + 11 * 86_400_000_000).to_string();
    service.text(&["token-floor", "--set", &floor]);
    assert!(token(&service) >= floor.parse().unwrap());
    stdout(&sereno(&["backup", "--data", text(&data), "--to", text(&file)]));
    let last = (0..3).map(|_| token(&service)).max().unwrap();
    drop(service);
    stdout(&sereno(&["restore", "--no-pause", "--from", text(&file), "--data", text(&new)]));
    assert!(token(&Service::start(&new)) > last);
}

#[test]
fn what_is_no_backup_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (file, new) = (folder.path().join("backup"), folder.path().join("new"));
    fs::write(&file, "not a backup").unwrap();
    let output = sereno(&["restore", "--from", text(&file), "--data", text(&new)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!new.exists());
    let output = sereno(&["backup", "--data", text(&new), "--to", text(&file), "--replace"]);
    assert!(stderr(&output).contains("no log"), "{output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a backup");
}

/// A folder with a snapshot and entries after it, and its audit trail.
fn used(data: &Path) {
    let service = Service::start(data);
    for _ in 0..3 {
        token(&service);
    }
    service.stop();
}

#[test]
fn a_sound_folder_is_found_sound_running_or_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    used(&data);
    let stopped = json_of(&["doctor", "--data", text(&data), "--audit"]);
    assert_eq!((&stopped["sound"], &stopped["findings"]), (&json!(true), &json!([])), "{stopped}");
    assert_eq!(stopped["audit"]["compared"], true);
    assert_eq!(stopped["replayed"], stopped["position"], "all of it");
    let service = Service::start(&data);
    token(&service);
    let running = json_of(&["doctor", "--data", text(&data), "--audit"]);
    assert_eq!((&running["sound"], &running["inUse"]), (&json!(true), &json!(true)), "{running}");
    assert_eq!(running["audit"]["compared"], false);
    let text = stdout(&sereno(&["doctor", "--data", text(&data)]));
    assert!(text.ends_with("sound\n"), "{text}");
}

#[test]
fn damage_is_named_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    used(&data);
    // One bit of a name inside an entry, which is in the database or still in its write-ahead log.
    let is_flipped = ["log.db", "log.db-wal"].into_iter().any(|name| {
        let path = data.join(name);
        let mut bytes = fs::read(&path).unwrap_or_default();
        let found = bytes.windows(OWNER.len()).position(|window| window == OWNER.as_bytes());
        found.is_some_and(|at| {
            bytes[at] ^= 1;
            fs::write(&path, &bytes).is_ok()
        })
    });
    assert!(is_flipped);
    let output = sereno(&["doctor", "--data", text(&data)]);
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("DAMAGED  log.db") && report.ends_with("DAMAGED\n"), "{report}");
    let backup = folder.path().join("backup");
    let refused = sereno(&["backup", "--data", text(&data), "--to", text(&backup)]);
    assert!(!refused.status.success() && !backup.exists());
}

#[test]
fn an_audit_line_that_was_changed_or_cut_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    used(&data);
    let audit = data.join("audit");
    let file = fs::read_dir(&audit).unwrap().next().unwrap().unwrap().path();
    let trail = fs::read_to_string(&file).unwrap();
    let doctor = || json_of(&["doctor", "--data", text(&data), "--audit"]);
    assert_eq!(doctor()["sound"], true);

    fs::write(&file, trail.replacen("\"granted\"", "\"ended\"", 1)).unwrap();
    let changed = doctor();
    assert_eq!(changed["sound"], false);
    assert_eq!(changed["findings"][0]["place"], "audit", "{changed}");

    let without_one: String = {
        let lines = trail.lines().enumerate().filter(|(number, _)| *number != 2);
        lines.map(|(_, line)| line.to_owned() + "\n").collect()
    };
    fs::write(&file, without_one).unwrap();
    let cut = doctor();
    let first = &cut["findings"][0]["place"];
    assert_eq!((&cut["sound"], first), (&json!(false), &json!("audit")), "{cut}");
}
