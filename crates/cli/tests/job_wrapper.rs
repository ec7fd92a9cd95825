//! `sereno job` as a process, against a scripted service: the environment, results, exit codes, signals, and that the
//! command is gone before its lease can end.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

#[path = "../../client/tests/stub/mod.rs"]
mod stub;
#[path = "support/wait.rs"]
mod wait;

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};
use stub::{Asked, Say, Stub, abandoned, problem};
use wait::{alive, until};

const CLAIM: &str = "/v1/jobs/claim-run";
const RENEW: &str = "/v1/jobs/renew-run";
const FINISH: &str = "/v1/jobs/finish-run";

/// A job whose slots have passed since 2026-01-01 and of which the latest is wanted, so that one is due at once.
fn record() -> Value {
    json!({
        "job": "books", "version": 3, "schedule": "* * * * *", "zone": "Europe/Madrid", "missed": "latest",
        "overlap": "forbid", "retries": 0, "maxRun": "1h", "paused": false, "watermark": "2026-01-01T00:00:00Z",
        "runs": [], "revision": 1, "clusterTimeMs": 5, "ageMs": 1,
    })
}

fn claimed(asked: &Asked, expires_in_ms: u64, final_in_ms: u64) -> Say {
    let body = json!({
        "state": "claimed", "job": "books", "slot": asked.body["slot"], "attempt": 2,
        "fenceKey": "default/job/books", "leaseId": stub::LEASE_ID, "fencingToken": 77,
        "expiresAt": "2026-11-30T22:00:30Z", "expiresInMs": expires_in_ms, "finalDeadlineInMs": final_in_ms,
        "replayed": false, "revision": 3, "clusterTimeMs": 7,
    });
    Say::Json(200, body)
}

fn renewed(expires_in_ms: u64) -> Say {
    let body = json!({
        "fencingToken": 77, "expiresAt": "2026-11-30T22:00:30Z", "expiresInMs": expires_in_ms, "clipped": false,
        "finalDeadlineInMs": 3_600_000, "revision": 4, "clusterTimeMs": 8,
    });
    Say::Json(200, body)
}

fn finished(asked: &Asked) -> Say {
    let body = json!({
        "job": "books", "slot": "2026-05-04T12:00:00Z", "attempt": 2, "state": asked.body["result"],
        "replayed": false, "revision": 5, "clusterTimeMs": 9,
    });
    Say::Json(200, body)
}

fn good(ttl_ms: u64) -> impl FnMut(&Asked) -> Say + Send + 'static {
    move |asked| match asked.path.as_str() {
        CLAIM => claimed(asked, ttl_ms, 3_600_000),
        RENEW => renewed(ttl_ms),
        FINISH => finished(asked),
        "/v1/jobs/abandon" => abandoned(),
        "/v1/jobs/books?namespace=default" => Say::Json(200, record()),
        other => panic!("not in the script: {other}"),
    }
}

struct Scene {
    folder: tempfile::TempDir,
    stub: Stub,
}

/// Killed when the test ends early.
struct Wrapper(Child);

impl Drop for Wrapper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Scene {
    fn new(script: impl FnMut(&Asked) -> Say + Send + 'static) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), stub: Stub::start(script) }
    }

    fn command(&self, options: &[&str], shell: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sereno"));
        command
            .args(["job", "--name", "books", "--schedule", "* * * * *", "--tz", "Europe/Madrid"])
            .args(["--server", &self.stub.url])
            .args(options)
            .args(["--", "sh", "-c", shell])
            .current_dir(self.folder.path())
            .env_remove("SERENO_SERVER")
            .stderr(Stdio::piped());
        command
    }

    fn once(&self, options: &[&str], shell: &str) -> Output {
        self.command(&[&["--once"], options].concat(), shell).output().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn pid(&self, name: &str) -> i32 {
        let path = self.path(name);
        let read = || fs::read_to_string(&path).ok()?.trim().parse().ok();
        until(name, Duration::from_secs(10), || read().is_some());
        read().unwrap()
    }

    fn result(&self) -> Value {
        self.stub.until_asked_on(FINISH).body["result"].clone()
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{output:?}"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into()
}

fn signal(name: &str, pid: u32) {
    let done = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn the_command_is_told_what_it_runs_for() {
    let scene = Scene::new(good(30_000));
    let shell =
        r#"echo "$SERENO_JOB $SERENO_ATTEMPT $SERENO_TOKEN $SERENO_FENCE_KEY $SERENO_SLOT"; cat"#;
    let output = scene.once(&[], shell);
    let slot = scene.stub.asked_on(CLAIM)[0].body["slot"].as_str().unwrap().to_string();
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(said.trim(), format!("books 2 77 default/job/books {slot}"), "and an empty input");
    assert_eq!((code(&output), scene.result()), (0, json!("succeeded")));
    assert!(stderr(&output).contains(&format!("slot {slot}, attempt 2: succeeded")), "{output:?}");
}

#[test]
fn anything_but_zero_is_a_failure_and_the_code_of_a_single_run() {
    for (shell, expected) in [("exit 3", 3), ("kill -9 $$", 128 + 9)] {
        let scene = Scene::new(good(30_000));
        let output = scene.once(&[], shell);
        assert_eq!((code(&output), scene.result()), (expected, json!("failed")), "{output:?}");
    }
}

#[test]
fn it_goes_on_with_the_next_slot_until_a_signal_says_to_end() {
    let scene = Scene::new(good(30_000));
    let mut wrapper =
        Wrapper(scene.command(&[], "echo run").stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(wrapper.0.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        assert_eq!(lines.next().unwrap().unwrap(), "run");
    }
    signal("-TERM", wrapper.0.id());
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn a_signal_reaches_the_command_and_its_end_is_told() {
    for (trap, expected) in [("exit 9", "failed"), ("exit 0", "succeeded")] {
        let scene = Scene::new(good(30_000));
        let shell = format!("trap '{trap}' TERM; echo $$ > self; while :; do sleep 0.05; done");
        let mut wrapper = Wrapper(scene.command(&[], &shell).spawn().unwrap());
        let pid = scene.pid("self");
        signal("-TERM", wrapper.0.id());
        assert_eq!(wrapper.0.wait().unwrap().code(), Some(128 + 15));
        assert!(!alive(pid));
        assert_eq!(scene.result(), expected);
    }
}

#[test]
fn without_renewals_the_command_is_gone_before_its_lease_can_end() {
    let mut rest = good(1_500);
    let scene = Scene::new(move |asked| match asked.path.as_str() {
        RENEW => Say::Silence,
        _ => rest(asked),
    });
    let output = scene.once(&[], "trap '' TERM; echo $$ > self; while :; do sleep 0.05; done");
    let claimed = scene.stub.asked_on(CLAIM)[0].at;
    let finished = scene.stub.asked_on(FINISH)[0].at;
    assert!(finished - claimed < Duration::from_millis(1_500), "{:?}", finished - claimed);
    assert!(!alive(scene.pid("self")));
    assert_eq!((code(&output), scene.result()), (123, json!("failed")), "{output:?}");
}

#[test]
fn a_command_that_is_kept_goes_on_without_its_lease_and_its_end_is_told() {
    let mut rest = good(1_000);
    let scene = Scene::new(move |asked| match asked.path.as_str() {
        RENEW => problem(409, "LEASE_ENDED", None),
        _ => rest(asked),
    });
    let output = scene.once(&["--on-loss", "keep"], "sleep 2; echo through > end");
    assert!(scene.path("end").exists());
    assert_eq!((code(&output), scene.result()), (0, json!("succeeded")), "{output:?}");
    assert!(stderr(&output).contains("the command goes on"), "{output:?}");
}

#[test]
fn the_longest_run_stops_it_even_where_it_is_kept() {
    for on_loss in ["kill", "keep"] {
        let mut rest = good(1_000);
        let scene = Scene::new(move |asked| match asked.path.as_str() {
            CLAIM => claimed(asked, 1_000, 1_000),
            _ => rest(asked),
        });
        let output = scene.once(&["--on-loss", on_loss], "sleep 30");
        assert_eq!((code(&output), scene.result()), (124, json!("failed")), "{output:?}");
        assert!(stderr(&output).contains("--max-run"), "{output:?}");
    }
}

#[test]
fn a_killed_wrapper_leaves_no_command_behind() {
    let scene = Scene::new(good(30_000));
    let mut wrapper = Wrapper(scene.command(&[], "echo $$ > self; exec sleep 60").spawn().unwrap());
    let pid = scene.pid("self");
    wrapper.0.kill().unwrap();
    wrapper.0.wait().unwrap();
    until("the end of the command", Duration::from_secs(10), || !alive(pid));
}

#[test]
fn wrong_words_are_wrong_usage_and_nothing_is_asked() {
    let scene = Scene::new(|asked| panic!("{asked:?}"));
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sereno"));
        command.args(["job", "--server", &scene.stub.url]).args(arguments);
        command.args(["--", "true"]).output().unwrap()
    };
    for (arguments, said) in [
        (&["--name", "x", "--schedule", "0 25 * * *"][..], "--schedule: hours (field 2 of 5)"),
        (&["--name", "x", "--schedule", "0 0 30 2 *"], "never comes"),
        (
            &["--name", "x", "--schedule", "@daily", "--tz", "Madrid"],
            "--tz: \"Madrid\" is no time zone",
        ),
        (&["--name", "x y", "--schedule", "@daily"], "' '"),
        (&["--name", "x", "--schedule", "@daily", "--retries", "101"], "0 to 100"),
        (&["--name", "x", "--schedule", "@daily", "--missed", "some"], "latest"),
        (&["--name", "x"], "--schedule"),
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{output:?}");
        assert!(stderr(&output).contains(said), "{output:?}");
    }
    assert!(scene.stub.asked().is_empty());
}

#[test]
fn a_service_that_is_not_there_is_waited_for_and_told_of_once() {
    let stub = Stub::start(|_| problem(503, "UNAVAILABLE", Some("sameRequestId")));
    let scene = Scene { folder: tempfile::tempdir().unwrap(), stub };
    let mut wrapper = Wrapper(scene.command(&["--once"], "true").spawn().unwrap());
    scene.stub.until("many reads", |asked| asked.len() >= 20);
    scene.stub.now(good(30_000));
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(0));
    let mut told = String::new();
    wrapper.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(told.matches("answers, and takes no calls now").count(), 1, "{told}");
    assert_eq!(told.matches("does not answer").count(), 0, "{told}");
    assert_eq!(told.matches("takes calls again").count(), 1, "{told}");
}
