//! Backup, restore and doctor on the folder of a real service.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};
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
    for part in ["restored from a backup", "until about", "UTC", "sereno status"] {
        assert!(stderr(&paused).contains(part), "{part} is missing in {paused:?}");
    }
    assert!(!stderr(&paused).contains("sereno serve"), "it runs: {paused:?}");
    assert!(service.text(&["status"]).contains("nothing is granted for "));
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
    assert!(stderr(&output).contains("is no backup of Sereno"), "{output:?}");
    assert!(!new.exists());
    let output = sereno(&["backup", "--data", text(&new), "--to", text(&file), "--replace"]);
    assert!(stderr(&output).contains("the folder does not exist"), "{output:?}");
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
    assert!(text.contains("\nsound: "), "{text}");
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
    assert!(report.contains("DAMAGED  log.db") && report.contains("\nDAMAGED: keep"), "{report}");
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

/// The one file of a short trail.
fn trail_of(data: &Path) -> PathBuf {
    fs::read_dir(data.join("audit")).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_trail_that_was_shortened_or_taken_away_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    used(&data);
    let file = trail_of(&data);
    let trail = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = trail.split_inclusive('\n').collect();
    let doctor = || json_of(&["doctor", "--data", text(&data), "--audit"]);
    let what =
        |report: &Value| report["findings"][0]["what"].as_str().unwrap_or_default().to_owned();
    for kept in [0, 1, 3, lines.len() - 1] {
        fs::write(&file, lines[..kept].concat()).unwrap();
        let report = doctor();
        assert_eq!((&report["sound"], kept), (&json!(false), kept), "{report}");
        assert!(what(&report).contains("lacks"), "{report}");
    }
    fs::remove_file(&file).unwrap();
    assert!(what(&doctor()).contains("lacks"), "no file");
    fs::remove_dir(data.join("audit")).unwrap();
    let gone = sereno(&["doctor", "--data", text(&data), "--audit"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gone.stdout).contains("lacks"), "no folder");

    // A start makes it good from the log, as after a crash.
    Service::start(&data).stop();
    assert_eq!(doctor()["sound"], true);
    let lines = fs::read_to_string(trail_of(&data)).unwrap().lines().count();
    assert!(lines > 6, "{lines}");
}

#[test]
fn after_a_kill_what_is_only_in_the_log_is_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = Service::start(&data);
    token(&service);
    drop(service); // Killed.
    let file = trail_of(&data);
    let trail = fs::read_to_string(&file).unwrap();
    let last = trail[..trail.len() - 1].rfind('\n').unwrap() + 1;
    fs::write(&file, &trail[..last]).unwrap();
    let report = json_of(&["doctor", "--data", text(&data), "--audit"]);
    assert_eq!((&report["sound"], &report["findings"][0]["damage"]), (&json!(true), &json!(false)));
    let what = report["findings"][0]["what"].as_str().unwrap();
    assert!(what.contains("the last 1 events are only in the log"), "{what}");
}

#[test]
fn a_trail_without_its_first_files_is_found_unless_rotation_removed_them() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut service = Command::new(support::SERENO);
    service.args(["serve", "--http", "127.0.0.1:0", "--log-level", "error"]);
    service.args(["--audit-file-bytes", "64KiB", "--audit-files", "2", "--data"]).arg(&data);
    let service = Service::of(&mut service);
    // Refusals by an operator's rule leave lines and cost little: about a hundred to a file.
    let long = "r".repeat(250);
    while fs::read_dir(data.join("audit")).unwrap().count() < 2
        || data.join("audit/audit-00000000000000000001.jsonl").exists()
    {
        service.text(&["lock", &long, "--owner", &"o".repeat(120), "--", "true"]);
    }
    service.stop();
    let doctor = |files: &str| {
        json_of(&["doctor", "--data", text(&data), "--audit", "--audit-files", files])
    };
    let rotated = doctor("2");
    assert_eq!(rotated["sound"], true, "{rotated}");
    assert!(rotated["findings"][0]["what"].as_str().unwrap().contains("rotation has removed"));
    // A line that was changed in a file that is not written any more: nothing goes on after it.
    let oldest =
        fs::read_dir(data.join("audit")).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
    let trail = fs::read_to_string(&oldest).unwrap();
    fs::write(&oldest, trail.replacen("\"granted\"", "\"Granted\"", 1)).unwrap();
    let refused = sereno(&["serve", "--http", "127.0.0.1:0", "--data", text(&data)]);
    assert_eq!(refused.status.code(), Some(1));
    let errors = stderr(&refused);
    assert!(
        errors.contains("audit trail is damaged") && errors.contains("move it away"),
        "{errors}"
    );
    assert_eq!(doctor("2")["sound"], false);
    fs::write(&oldest, trail).unwrap();
    let removed = doctor("16");
    assert_eq!(removed["sound"], false, "{removed}");
    assert!(removed["findings"][0]["what"].as_str().unwrap().contains("taken away"), "{removed}");
}

#[test]
fn a_damaged_line_is_not_given_out() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = Service::start(&data);
    token(&service);
    let file = trail_of(&data);
    let trail = fs::read_to_string(&file).unwrap();
    fs::write(&file, trail.replacen(OWNER, "somebody-else-entirely", 1)).unwrap();
    let shown = service.run(&["audit"]);
    let (out, errors) = (String::from_utf8_lossy(&shown.stdout).into_owned(), stderr(&shown));
    assert!(!out.contains("somebody-else-entirely"), "{out}");
    assert!(!shown.status.success() && errors.contains("not what was written"), "{errors}");
    service.stop();
    // It is not the last line, so no crash has left it so. Nobody goes on after it, and the evidence stays.
    let edited = fs::read(&file).unwrap();
    let refused = sereno(&["serve", "--http", "127.0.0.1:0", "--data", text(&data)]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("move it away"), "{refused:?}");
    assert_eq!(fs::read(&file).unwrap(), edited);
    // The log is sound, so there is nothing to restore.
    let doctor = sereno(&["doctor", "--data", text(&data), "--audit"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(1));
    assert!(said.contains("the log is sound") && !said.contains("sereno restore"), "{said}");
    fs::rename(data.join("audit"), folder.path().join("evidence")).unwrap();
    let service = Service::start(&data);
    token(&service);
    assert!(service.text(&["audit"]).contains(OWNER));
}

#[test]
fn a_torn_end_is_cut_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = Service::start(&data);
    token(&service);
    drop(service); // Killed.
    let file = trail_of(&data);
    let trail = fs::read(&file).unwrap();
    fs::write(&file, &trail[..trail.len() - 10]).unwrap();
    let log = folder.path().join("said");
    let mut serve = Command::new(support::SERENO);
    serve.args(["serve", "--http", "127.0.0.1:0", "--log-level", "warn", "--data"]);
    serve.arg(&data).stderr(fs::File::create(&log).unwrap());
    Service::of(&mut serve).stop();
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("WARN") && said.contains("ends in a torn line"), "{said}");
    assert!(fs::read(&file).unwrap().starts_with(&trail), "it is written again from the log");
}

#[test]
fn what_cannot_be_examined_is_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (data, missing) = (folder.path().join("data"), folder.path().join("missing"));
    used(&data);
    let doctor = |data: &Path| {
        let output = sereno(&["doctor", "--data", text(data), "--audit"]);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(output.stdout.is_empty(), "no verdict: {output:?}");
        let errors = stderr(&output);
        assert!(
            errors.contains("could not be examined") && !errors.contains("damaged"),
            "{errors}"
        );
    };
    doctor(&missing);
    assert!(stderr(&sereno(&["doctor", "--data", text(&missing)])).contains("does not exist"));
    // For root everything can be read, so a folder in a file's place has to do.
    fs::rename(data.join("audit"), data.join("aside")).unwrap();
    fs::write(data.join("audit"), "").unwrap();
    doctor(&data);
    for name in ["HEAD", "log.db"] {
        fs::rename(data.join(name), data.join("kept")).unwrap();
        fs::create_dir(data.join(name)).unwrap();
        doctor(&data);
        fs::remove_dir(data.join(name)).unwrap();
        fs::rename(data.join("kept"), data.join(name)).unwrap();
    }
}

#[test]
fn an_examination_changes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = Service::start(&data);
    token(&service);
    drop(service); // Killed: SQLite's index is as it was then.
    let files = || {
        let mut files: Vec<_> = fs::read_dir(&data)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| {
                (fs::metadata(&path).unwrap().modified().unwrap(), fs::read(&path).unwrap(), path)
            })
            .collect();
        files.sort_by(|a, b| a.2.cmp(&b.2));
        files
    };
    let before = files();
    assert_eq!(json_of(&["doctor", "--data", text(&data), "--audit"])["sound"], true);
    assert!(files() == before, "a file was changed");
    fs::remove_file(data.join("log.db-shm")).unwrap();
    let before = files();
    assert_eq!(json_of(&["doctor", "--data", text(&data), "--audit"])["sound"], true);
    assert!(files() == before, "a file was changed or made");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_a_service_writes_is_for_its_owner_only_whatever_the_umask() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file, new) =
        (folder.path().join("data"), folder.path().join("backup"), folder.path().join("new"));
    for umask in ["000", "022"] {
        let _ = (fs::remove_dir_all(&data), fs::remove_dir_all(&new));
        let under = |arguments: &str| {
            let mut shell = Command::new("sh");
            let line = format!("umask {umask}; exec {} {arguments}", support::SERENO);
            shell.args(["-c", &line]);
            shell
        };
        let serve = format!("serve --http 127.0.0.1:0 --log-level error --data {}", text(&data));
        let service = Service::of(&mut under(&serve));
        token(&service);
        let backup = format!("backup --replace --data {} --to {}", text(&data), text(&file));
        assert!(under(&backup).output().unwrap().status.success());
        service.stop();
        let restore = format!("restore --from {} --data {}", text(&file), text(&new));
        assert!(under(&restore).output().unwrap().status.success());
        assert_eq!(mode(&file), 0o600);
        for dir in [&data, &data.join("audit"), &new] {
            assert_eq!(mode(dir), 0o700, "{}", dir.display());
            let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
            for file in files.filter(|path| path.is_file()) {
                assert_eq!(mode(&file), 0o600, "{}", file.display());
            }
        }
    }
}

#[test]
fn a_folder_that_others_can_enter_is_warned_of_and_served() {
    let folder = tempfile::tempdir().unwrap();
    for (mode, is_warned) in [(0o755, true), (0o700, false)] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let log = folder.path().join("log");
        let mut serve = Command::new(support::SERENO);
        serve.args(["serve", "--http", "127.0.0.1:0", "--log-level", "warn", "--data"]);
        serve.arg(folder.path()).stderr(fs::File::create(&log).unwrap());
        Service::of(&mut serve).stop();
        let said = fs::read_to_string(&log).unwrap();
        assert_eq!(said.contains("others than its owner"), is_warned, "{said}");
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, mode);
    }
}

/// A backup that replaced a file of the log would be the end of both.
#[test]
fn a_backup_is_not_written_into_the_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let service = Service::start(&data);
    token(&service);
    service.stop();
    for file in ["HEAD", "log.db", "sereno.lock", "audit/new", "new"] {
        let to = data.join(file);
        let backup = ["backup", "--data", text(&data), "--to", text(&to), "--replace"];
        let refused = sereno(&backup);
        assert_eq!(refused.status.code(), Some(1), "{file}: {refused:?}");
        assert!(stderr(&refused).contains("is in the data folder itself"), "{refused:?}");
    }
    // By another way to the same folder, too.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&data, &link).unwrap();
    let to = link.join("HEAD");
    let refused = sereno(&["backup", "--data", text(&data), "--to", text(&to), "--replace"]);
    assert!(stderr(&refused).contains("is in the data folder itself"), "{refused:?}");
    Service::start(&data).stop();
}

#[test]
fn without_a_folder_it_is_the_one_of_serve_and_a_restore_has_to_name_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(support::SERENO);
        command.env_remove("SERENO_DATA").current_dir(folder.path());
        command.args(arguments).output().unwrap()
    };
    let doctor = run(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(4), "{doctor:?}");
    assert!(stderr(&doctor).contains("./sereno-data"), "{doctor:?}");
    let backup = run(&["backup", "--to", "file"]);
    assert_eq!(backup.status.code(), Some(1), "{backup:?}");
    assert!(stderr(&backup).contains("./sereno-data"), "{backup:?}");
    let restore = run(&["restore", "--from", "file"]);
    assert_eq!(restore.status.code(), Some(2), "{restore:?}");
    for option in ["--data", "--log"] {
        assert!(stderr(&restore).contains(option), "{restore:?}");
    }
}
