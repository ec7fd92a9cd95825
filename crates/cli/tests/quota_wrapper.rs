//! `sereno quota reserve … -- CMD` as a process: what the command finds, and what becomes of the reservation after it.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

#[path = "../../client/tests/stub/mod.rs"]
mod stub;

use serde_json::json;
use std::{
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};
use stub::{
    Asked, RESERVATION, Say, Stub, abandoned, committed, given_back, problem, problem_with,
    reserved, still_reserved,
};

const RESERVE: &str = "/v1/quotas/reserve";
const EXTEND: &str = "/v1/quotas/extend";
const COMMIT: &str = "/v1/quotas/commit";
const RELEASE: &str = "/v1/quotas/release";

/// A service with room for everything, for this long.
fn has_room(ttl_ms: u64) -> impl FnMut(&Asked) -> Say + Send + 'static {
    move |asked| match asked.path.as_str() {
        RESERVE => reserved(asked, 5, ttl_ms),
        EXTEND => still_reserved("reserved", &[], 5, ttl_ms),
        COMMIT => committed(&json!([{"quota": "gpu", "path": "", "amount": 4}]), &json!([])),
        RELEASE => given_back(),
        "/v1/quotas/abandon" => abandoned(),
        other => panic!("not in the script: {other}"),
    }
}

fn command(url: &str, options: &[&str], shell: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sereno"));
    command
        .args(["quota", "reserve", "gpu=4", "--server", url])
        .args(options)
        .args(["--", "sh", "-c", shell])
        .env_remove("SERENO_SERVER")
        .stdin(Stdio::null());
    command
}

fn run(stub: &Stub, options: &[&str], shell: &str) -> Output {
    command(&stub.url, options, shell).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{output:?}"))
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// How often it was committed, and how often given back.
fn ends(stub: &Stub) -> (usize, usize) {
    (stub.asked_on(COMMIT).len(), stub.asked_on(RELEASE).len())
}

#[test]
fn the_command_finds_its_reservation_and_its_standard_output_is_its_own() {
    let stub = Stub::start(has_room(60_000));
    let output = run(&stub, &[], "echo $SERENO_RESERVATION $SERENO_FENCE $SERENO_FENCE_KEY");
    let expected = format!("{RESERVATION} 5 default/quota/{RESERVATION}\n");
    assert_eq!((code(&output), String::from_utf8(output.stdout.clone()).unwrap()), (0, expected));
    assert!(said(&output).contains("gpu=4 is used"), "{output:?}");
    let refused = run(&stub, &["--output", "json"], "true");
    assert_eq!(code(&refused), 2, "{refused:?}");
}

#[test]
fn it_is_committed_after_success_and_given_back_after_failure() {
    for (shell, own, committed, given_back) in
        [("exit 0", 0, 1, 0), ("exit 7", 7, 0, 1), ("kill -9 $$", 137, 0, 1)]
    {
        let stub = Stub::start(has_room(60_000));
        assert_eq!(code(&run(&stub, &[], shell)), own, "{shell}");
        assert_eq!(ends(&stub), (committed, given_back), "{shell}");
    }
    let stub = Stub::start(has_room(60_000));
    assert_eq!(code(&run(&stub, &["--on-success", "release"], "exit 0")), 0);
    assert_eq!(ends(&stub), (0, 1), "it was only needed meanwhile");
    let stub = Stub::start(has_room(60_000));
    let left = run(&stub, &["--on-failure", "leave", "--on-expiry", "quarantine"], "exit 3");
    assert_eq!((code(&left), ends(&stub)), (3, (0, 0)));
    assert!(said(&left).contains("is left to its deadline"), "{left:?}");
    assert_eq!(stub.asked_on(RESERVE)[0].body["onExpiry"], "quarantine");
}

#[test]
fn what_was_not_begun_is_given_back() {
    let stub = Stub::start(has_room(60_000));
    let mut none = Command::new(env!("CARGO_BIN_EXE_sereno"));
    none.args(["quota", "reserve", "gpu=4", "--server", &stub.url, "--", "no-such-command"]);
    assert_eq!(code(&none.output().unwrap()), 127);
    assert_eq!(ends(&stub), (0, 1));
}

#[test]
fn without_room_or_service_the_command_does_not_run() {
    let layers = json!([{
        "quota": "gpu", "path": "", "limit": 4, "burst": 0, "committed": 1, "reserved": 0, "available": 3, "asked": 4,
        "shortfall": 1, "version": 1, "kind": "limit",
    }]);
    let more = json!({"layers": layers, "retryAfterMs": 1_000});
    let full =
        Stub::start(move |_| problem_with(409, "QUOTA_EXHAUSTED", Some("newRequestId"), &more));
    let output = run(&full, &[], "echo ran");
    assert_eq!((code(&output), output.stdout.len()), (120, 0));
    assert!(said(&output).contains("its limit is used up"), "{output:?}");
    let away = Stub::start(|_| problem_with(421, "WRONG_REGION", None, &json!({"home": "eu"})));
    assert_eq!(code(&run(&away, &[], "echo ran")), 125);
    let gone = command("http://127.0.0.1:1", &[], "echo ran").output().unwrap();
    assert_eq!((code(&gone), gone.stdout.len()), (122, 0));
}

#[test]
fn the_command_is_stopped_before_its_capacity_can_be_somebody_elses() {
    let mut room = has_room(1_500);
    let stub = Stub::start(move |asked| if asked.path == EXTEND { Say::Cut } else { room(asked) });
    let begun = Instant::now();
    let output = run(&stub, &["--ttl", "2s"], "sleep 60");
    assert_eq!(code(&output), 123, "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(ends(&stub), (0, 1));
    // Where it stays taken there is nothing to stop for.
    let mut room = has_room(1_500);
    let stub = Stub::start(move |asked| if asked.path == EXTEND { Say::Cut } else { room(asked) });
    let output = run(&stub, &["--on-expiry", "commit"], "sleep 2; exit 0");
    assert_eq!((code(&output), ends(&stub)), (0, (1, 0)), "{output:?}");
}

#[test]
fn what_was_done_and_could_not_be_committed_is_told() {
    let mut room = has_room(60_000);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        COMMIT => problem_with(409, "RESERVATION_ENDED", None, &json!({"reason": "expired"})),
        _ => room(asked),
    });
    let output = run(&stub, &["--late", "readmit"], "exit 0");
    assert_eq!(code(&output), 125);
    assert!(
        said(&output).contains("the command is done, and what it used is not committed"),
        "{output:?}"
    );
    assert_eq!(stub.asked_on(COMMIT)[0].body["late"], "readmit");
    assert_eq!(ends(&stub), (1, 0), "it is over");
    // A service that is away for a moment is asked until it is back.
    let (mut room, mut away) = (has_room(60_000), 2);
    let stub = Stub::start(move |asked| match asked.path.as_str() {
        COMMIT if away > 0 => {
            away -= 1;
            problem(503, "UNAVAILABLE", Some("sameRequestId"))
        }
        _ => room(asked),
    });
    let output = run(&stub, &[], "exit 0");
    assert_eq!(code(&output), 0, "{output:?}");
    let ids: Vec<_> = stub.asked_on(COMMIT).iter().map(|it| it.body["requestId"].clone()).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}
