//! `sereno guard file`, as processes.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Output, Stdio},
};
use support::{SERENO, Service, signal, stderr};

const KEY: &str = "default/lock/report";

/// `sereno guard file report --token TOKEN -- COMMAND`.
fn guard(folder: &Path, token: u64, options: &[&str], command: &[&str]) -> Command {
    let mut guard = Command::new(SERENO);
    guard.current_dir(folder).args(["guard", "file", "report", "--fence-key", KEY, "--token"]);
    guard.arg(token.to_string()).args(options).arg("--").args(command);
    for variable in ["SERENO_SERVER", "SERENO_TOKEN", "SERENO_FENCE_KEY"] {
        guard.env_remove(variable);
    }
    guard
}

fn run(folder: &Path, token: u64, options: &[&str], command: &[&str]) -> Output {
    guard(folder, token, options, command).output().unwrap()
}

/// A command that says when it runs, and ends when its standard input does.
struct Working {
    child: Child,
}

impl Working {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "works\n");
        Self { child }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

const WORK: [&str; 3] = ["sh", "-c", "echo works; cat >/dev/null"];

#[test]
fn an_older_token_is_refused_with_a_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let output =
        run(folder, 7, &[], &["sh", "-c", "echo $SERENO_TOKEN $SERENO_FENCE_KEY >report; exit 5"]);
    assert_eq!(output.status.code(), Some(5), "the command's own code: {}", stderr(&output));
    assert_eq!(fs::read_to_string(folder.join("report")).unwrap(), format!("7 {KEY}\n"));
    let output = run(folder, 6, &[], &["sh", "-c", "echo late >report"]);
    assert_eq!(output.status.code(), Some(117));
    let said = stderr(&output);
    assert!(said.contains(KEY) && said.contains('6') && said.contains('7'), "{said}");
    assert_eq!(fs::read_to_string(folder.join("report")).unwrap(), format!("7 {KEY}\n"));
    assert!(run(folder, 7, &[], &["true"]).status.success(), "the same owner again");
    let record = fs::read_to_string(folder.join("report.sereno-fence/token")).unwrap();
    assert_eq!(record, format!("sereno-fence 1\nkey {KEY}\ntoken 7\nend\n"));
}

#[test]
fn a_newer_one_waits_for_the_older_command_and_then_it_is_over_for_older_ones() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let old = Working::start(guard(folder, 5, &[], &WORK));
    let output = run(folder, 7, &["--wait", "0ms"], &["true"]);
    assert_eq!(output.status.code(), Some(118), "{}", stderr(&output));
    assert!(stderr(&output).contains("token 5, process"), "{}", stderr(&output));
    // It counts all the same.
    assert_eq!(run(folder, 6, &[], &["true"]).status.code(), Some(117));
    let mut newer =
        guard(folder, 7, &[], &["cat", "report"]).stdout(Stdio::piped()).spawn().unwrap();
    fs::write(folder.join("report"), "by the old one").unwrap();
    assert!(newer.try_wait().unwrap().is_none());
    old.end();
    let output = newer.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "by the old one");
}

/// The right belongs to the command and what it has started, not to whoever started it.
#[test]
fn children_of_a_killed_command_still_count() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let script = "cat >/dev/null & echo works; wait";
    // A background process of a shell gets no standard input unless it is told to.
    let script = script.replacen("cat", "cat <&3", 1);
    let script = format!("exec 3<&0; {script}");
    let mut old = Working::start(guard(folder, 5, &[], &["sh", "-c", &script]));
    // Waiting would close it.
    let input = old.child.stdin.take();
    signal("-KILL", old.child.id());
    old.child.wait().unwrap();
    let output = run(folder, 7, &["--wait", "0ms"], &["true"]);
    assert_eq!(output.status.code(), Some(118), "{}", stderr(&output));
    drop(input);
    assert!(run(folder, 7, &[], &["true"]).status.success());
}

/// Killed at any moment, it leaves a fence that never goes back.
#[test]
fn kill_9_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut highest = 0;
    for token in 1..=60_u64 {
        let mut child = guard(folder, token, &[], &["sh", "-c", &format!("echo {token} >>report")])
            .spawn()
            .unwrap();
        // From before it has done anything until it is done.
        std::thread::sleep(std::time::Duration::from_micros(token * 100));
        let _ = child.kill();
        child.wait().unwrap();
        let record =
            fs::read_to_string(folder.join("report.sereno-fence/token")).unwrap_or_default();
        let seen = record
            .lines()
            .find_map(|line| line.strip_prefix("token "))
            .map_or(0, |it| it.parse().unwrap());
        assert!(seen >= highest, "{record}");
        let effects = fs::read_to_string(folder.join("report")).unwrap_or_default();
        let last = effects.lines().last().map_or(0, |line| line.parse().unwrap());
        assert!(last <= seen, "the token is remembered before the effect: {last} {seen}");
        highest = seen;
    }
    assert!(run(folder, 100, &[], &["true"]).status.success());
    assert_eq!(run(folder, 99, &[], &["true"]).status.code(), Some(117));
}

#[test]
fn it_takes_token_and_key_from_sereno_lock() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(&folder.path().join("data"));
    let output = Command::new(SERENO)
        .current_dir(folder.path())
        .env("SERENO_SERVER", &service.url)
        .args(["lock", "report", "--", SERENO, "guard", "file", "report", "--"])
        .args(["sh", "-c", "echo $SERENO_TOKEN >report"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let token = fs::read_to_string(folder.path().join("report")).unwrap();
    let record = fs::read_to_string(folder.path().join("report.sereno-fence/token")).unwrap();
    assert_eq!(record, format!("sereno-fence 1\nkey {KEY}\ntoken {}\nend\n", token.trim()));
    let late = run(folder.path(), 1, &[], &["true"]);
    assert_eq!(late.status.code(), Some(117));
}

#[test]
fn the_service_is_told_that_it_checks_and_what_it_refused() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(&folder.path().join("data"));
    let proven = || service.json(&["namespace", "get", "default"])["fencingProven"].clone();
    assert_eq!(proven(), false);
    let report = |token| {
        guard(folder.path(), token, &[], &["true"])
            .env("SERENO_SERVER", &service.url)
            .output()
            .unwrap()
    };
    assert!(report(7).status.success());
    assert_eq!(proven(), true);
    assert_eq!(report(6).status.code(), Some(117));
    let audit = service.text(&["audit", "--output", "json"]);
    let refusal = audit.lines().find(|line| line.contains("fenceRefused")).expect(&audit);
    let refusal: serde_json::Value = serde_json::from_str(refusal).unwrap();
    assert_eq!(refusal["fenceKey"], KEY);
    assert_eq!((&refusal["fencingToken"], &refusal["highest"]), (&6.into(), &7.into()));
    // A service that is away changes nothing.
    let url = service.url.clone();
    service.stop();
    let away = guard(folder.path(), 8, &[], &["true"]).env("SERENO_SERVER", url).output().unwrap();
    assert!(away.status.success(), "{}", stderr(&away));
}

#[test]
fn what_makes_no_sense_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(run(folder, 0, &[], &["true"]).status.code(), Some(2));
    assert_eq!(run(folder, 7, &["--fence-key", "a b"], &["true"]).status.code(), Some(2));
    assert_eq!(run(folder, 7, &[], &["/does/not/exist"]).status.code(), Some(127));
    assert_eq!(run(folder, 7, &[], &["/etc/passwd"]).status.code(), Some(126));
    let mut no_token = Command::new(SERENO);
    no_token.args(["guard", "file", "report", "--", "true"]).env_remove("SERENO_TOKEN");
    assert_eq!(no_token.output().unwrap().status.code(), Some(2));
    let other = Command::new(SERENO)
        .current_dir(folder)
        .args([
            "guard",
            "file",
            "report",
            "--token",
            "8",
            "--fence-key",
            "default/lock/b",
            "--",
            "true",
        ])
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(119), "{}", stderr(&other));
    let mut record = fs::File::create(folder.join("report.sereno-fence/token")).unwrap();
    record.write_all(b"garbage").unwrap();
    let damaged = run(folder, 9, &[], &["true"]);
    assert_eq!(damaged.status.code(), Some(119));
    assert!(stderr(&damaged).contains("damaged"), "{}", stderr(&damaged));
}

#[test]
fn the_sql_and_the_script_are_printed() {
    let text = |what| support::stdout(&support::sereno(&["guard", what]));
    assert!(text("postgres-sql").contains("FUNCTION sereno_fence(fence_key text, token bigint)"));
    assert!(text("redis-script").contains("redis.error_reply('FENCED"));
}
