//! `sereno elect` as a process: against a scripted service, above all that the command is gone before its term can end;
//! and several of them with `sereno elections` against a real one.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

#[path = "../../client/tests/stub/mod.rs"]
mod stub;
mod support;

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};
use stub::{
    Asked, Say, Stub, abandoned, elected, elects_all, problem, problem_with, released, waiting,
};
use support::{
    SERENO, Service, signal, stderr, stdout,
    wait::{alive, until},
};

/// For what comes at once on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(20);

const CAMPAIGN: &str = "/v1/elections/campaign";
const RENEW: &str = "/v1/elections/renew";
const RESIGN: &str = "/v1/elections/resign";
const ABANDON: &str = "/v1/elections/abandon";

/// A folder, and a service that does as it is told.
struct Scene {
    folder: tempfile::TempDir,
    stub: Stub,
}

/// Killed when the test ends early.
struct Running(Child);

impl Drop for Running {
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
        let mut command = Command::new(SERENO);
        command
            .args(["elect", "billing", "--server", &self.stub.url])
            .args(options)
            .args(["--", "sh", "-c", shell])
            .current_dir(self.folder.path())
            .env_remove("SERENO_SERVER")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, options: &[&str], shell: &str) -> Output {
        self.command(options, shell).output().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[test]
fn the_command_finds_its_term_and_its_exit_code_is_kept() {
    let scene = Scene::new(elects_all(30_000));
    let options = ["--candidate", "node-1", "--value", "10.0.0.1:80", "--ttl", "30s"];
    let shell = "echo $SERENO_TERM $SERENO_TOKEN $SERENO_ELECTION $SERENO_FENCE_KEY; exit 7";
    let output = scene.run(&options, shell);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "7 7 billing default/election/billing\n");
    let asked = &scene.stub.asked_on(CAMPAIGN)[0].body;
    assert_eq!((&asked["candidate"], &asked["value"]), (&json!("node-1"), &json!("10.0.0.1:80")));
    assert_eq!(scene.stub.asked_on(RESIGN).len(), 1);
}

#[test]
fn in_a_partition_the_command_is_gone_before_the_term_is_over() {
    let scene = Scene::new(|asked| match asked.path.as_str() {
        CAMPAIGN => elected(asked, 7, 2_000),
        _ => Say::Silence,
    });
    let mut command = scene.command(&[], "trap '' TERM; echo $$ > self; while :; do sleep 1; done");
    let mut wrapper = Running(command.stderr(Stdio::piped()).spawn().unwrap());
    let read = || fs::read_to_string(scene.path("self")).ok()?.trim().parse::<i32>().ok();
    until("the command", PATIENCE, || read().is_some());
    let granted = scene.stub.asked_on(CAMPAIGN)[0].at;
    until("its end", PATIENCE, || !alive(read().unwrap()));
    assert!(granted.elapsed() < Duration::from_secs(2), "{:?}", granted.elapsed());
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(123));
}

#[test]
fn a_service_that_is_away_is_waited_for_and_that_is_said_once() {
    let mut calls = 0;
    let mut then = elects_all(30_000);
    let scene = Scene::new(move |asked| {
        calls += 1;
        match calls {
            1..=4 => problem(503, "UNAVAILABLE", Some("sameRequestId")),
            5 => waiting(asked),
            6 => Say::Cut,
            _ => then(asked),
        }
    });
    let output = scene.run(&[], "exit 0");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = stderr(&output);
    assert_eq!(said.matches("answers, and grants nothing now").count(), 1, "{said}");
    assert_eq!(said.matches("does not answer, and is asked until it does").count(), 1, "{said}");
    assert!(said.contains("takes calls again; place 1"), "{said}");
}

#[test]
fn without_again_a_loss_ends_it_and_with_again_it_campaigns_anew() {
    let once = || {
        let mut renewals = 0;
        let mut others = elects_all(1_000);
        move |asked: &Asked| {
            renewals += u32::from(asked.path == RENEW);
            match (asked.path.as_str(), renewals) {
                (RENEW, 1) => problem_with(409, "LEASE_ENDED", None, &json!({"reason": "forced"})),
                _ => others(asked),
            }
        }
    };
    let shell = "echo $SERENO_TERM >> terms; [ $SERENO_TERM = 8 ] && exit 5; sleep 60";
    let scene = Scene::new(once());
    let output = scene.run(&[], shell);
    assert_eq!(output.status.code(), Some(123), "{output:?}");
    assert!(stderr(&output).contains("the term is lost") && stderr(&output).contains("forced"));

    let scene = Scene::new(once());
    let output = scene.run(&["--again"], shell);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!(fs::read_to_string(scene.path("terms")).unwrap(), "7\n8\n");
}

#[test]
fn who_is_not_elected_does_not_run_it() {
    for (code, wait, expected) in [("LOCKED", "0s", 120), ("WAIT_TIMEOUT", "1s", 120)] {
        let scene = Scene::new(move |_| problem(409, code, Some("newRequestId")));
        let output = scene.run(&["--wait", wait], "touch ran");
        assert_eq!(output.status.code(), Some(expected), "{output:?}");
        assert!(!scene.path("ran").exists());
    }
    let scene = Scene::new(|_| problem(409, "LOCKED", Some("newRequestId")));
    let said = stderr(&scene.run(&["--wait", "0s"], "true"));
    assert!(said.contains("sereno elections get") && !said.contains("locks get"), "{said}");
}

#[test]
fn a_signal_during_the_wait_gives_the_place_up() {
    let scene =
        Scene::new(|asked| if asked.path == CAMPAIGN { waiting(asked) } else { abandoned() });
    let mut command = scene.command(&[], "touch ran");
    let mut wrapper = Running(command.spawn().unwrap());
    scene.stub.until_asked_on(CAMPAIGN);
    signal("-TERM", wrapper.0.id());
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(scene.stub.asked_on(ABANDON).len(), 1);
    assert!(!scene.path("ran").exists());
}

#[test]
fn a_release_that_says_it_was_over_is_noted() {
    let scene = Scene::new(|asked| match asked.path.as_str() {
        CAMPAIGN => elected(asked, 7, 30_000),
        _ => {
            let Say::Json(status, mut body) = released() else { unreachable!() };
            body["released"] = false.into();
            body["reason"] = "forced".into();
            Say::Json(status, body)
        }
    });
    let output = scene.run(&[], "exit 0");
    assert!(output.status.success());
    assert!(stderr(&output).contains("the term had ended before it was resigned (forced)"));
}

/// A real service, and leaders of its election `e`.
struct Town {
    folder: tempfile::TempDir,
    service: Service,
}

impl Town {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::start(&folder.path().join("data"));
        Self { folder, service }
    }

    /// Campaigns with this shell as its command.
    fn elect(&self, candidate: &str, options: &[&str], shell: &str) -> Running {
        let mut command = Command::new(SERENO);
        command
            .env("SERENO_SERVER", &self.service.url)
            .args(["elect", "e", "--candidate", candidate, "--value", candidate, "--ttl", "2s"])
            .args(options)
            .args(["--", "sh", "-c", shell])
            .current_dir(self.folder.path());
        Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn record(&self) -> Value {
        self.service.json(&["elections", "get", "e"])
    }

    fn until_waiting(&self, count: u64) {
        until("waiters", PATIENCE, || self.record()["waiters"] == count);
    }
}

fn first_line(running: &mut Running) -> String {
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().into()
}

const LEAD: &str = "echo $SERENO_TERM; sleep 60";

#[test]
fn one_leads_and_the_next_one_leads_when_it_is_killed() {
    let town = Town::new();
    assert_eq!(town.record()["state"], "vacant");
    let mut first = town.elect("a", &[], &format!("echo $$ > first; {LEAD}"));
    let term: u64 = first_line(&mut first).parse().unwrap();
    let mut second = town.elect("b", &[], LEAD);
    town.until_waiting(1);
    let record = town.record();
    assert_eq!(
        (&record["leader"]["candidate"], &record["leader"]["value"]),
        (&json!("a"), &json!("a"))
    );
    assert_eq!(record["leader"]["term"], term);
    let rows = town.service.json(&["elections", "ls"]);
    assert_eq!((&rows[0]["election"], &rows[0]["waiters"]), (&json!("e"), &json!(1)));
    assert!(town.service.text(&["elections", "get", "e"]).contains("1 waiting"));

    let command: i32 =
        fs::read_to_string(town.folder.path().join("first")).unwrap().trim().parse().unwrap();
    first.0.kill().unwrap();
    let next: u64 = first_line(&mut second).parse().unwrap();
    assert!(next > term);
    assert!(!alive(command), "it was stopped before the next one began");
    assert_eq!(town.record()["leader"]["candidate"], "b");
}

#[test]
fn who_is_done_resigns_and_observers_see_every_change() {
    let town = Town::new();
    let mut observer = Command::new(SERENO)
        .env("SERENO_SERVER", &town.service.url)
        .args(["elections", "observe", "e", "--output", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .map(Running)
        .unwrap();
    let lines = BufReader::new(observer.0.stdout.take().unwrap()).lines();
    let mut leaders = lines.map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let leader = &line["record"]["leader"];
        (line["record"]["state"].as_str().unwrap().to_string(), leader["candidate"].clone())
    });
    let mut next_leader = |expected: (&str, Value)| {
        let expected = (expected.0.to_string(), expected.1);
        // Changes of the queue come in between.
        leaders.find(|leader| *leader == expected).unwrap();
    };
    next_leader(("vacant", Value::Null));
    let fifo = town.folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut first = town.elect("a", &[], "echo $SERENO_TERM; read line < fifo");
    first_line(&mut first);
    next_leader(("leading", json!("a")));
    let mut second = town.elect("b", &[], "exit 3");
    town.until_waiting(1);
    fs::write(&fifo, "go\n").unwrap();
    assert!(first.0.wait().unwrap().success());
    assert_eq!(second.0.wait().unwrap().code(), Some(3));
    next_leader(("leading", json!("b")));
    next_leader(("vacant", Value::Null));
}

#[test]
fn an_operator_ends_the_term_that_was_named_and_no_other() {
    let town = Town::new();
    let mut leader = town.elect("a", &[], LEAD);
    let term = first_line(&mut leader);
    let end = |more: &[&str]| {
        let arguments = ["elections", "force-release", "e", "--reason", "a test"];
        town.service.run(&[&arguments[..], more].concat())
    };
    let wrong = end(&["--term", "5"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr(&wrong).contains("NOT_HOLDER") && stderr(&wrong).contains("elections get"));
    assert!(stdout(&end(&["--term", &term])).contains("is ended"));
    assert_eq!(leader.0.wait().unwrap().code(), Some(123));
    let nobody = end(&["--whoever-leads"]);
    assert!(stderr(&nobody).contains("nobody leads e"), "{nobody:?}");
    assert!(town.service.text(&["audit"]).contains("default/election/e"));
}

#[test]
fn a_term_is_handed_to_a_named_candidate_and_resigned_by_its_secret() {
    let town = Town::new();
    let campaign = json!({
        "election": "e", "candidate": "by-hand", "requestId": "a-request-1", "leaseTtl": "30s",
    });
    let url = format!("{}/v1/elections/campaign", town.service.url);
    let client = reqwest::blocking::Client::new();
    let call = client.post(url).header("content-type", "application/json");
    let elected = call.body(campaign.to_string()).send().unwrap().text().unwrap();
    let elected: Value = serde_json::from_str(&elected).unwrap();
    let lease = elected["leaseId"].as_str().unwrap();

    let _third = town.elect("c", &[], "true");
    town.until_waiting(1);
    let mut second = town.elect("b", &[], LEAD);
    town.until_waiting(2);
    let hand = |to: &str| {
        town.service.run(&["elections", "handoff", "e", "--to", to, "--lease-id", lease])
    };
    let nobody = hand("nobody");
    assert_eq!(nobody.status.code(), Some(1));
    assert!(
        stderr(&nobody).contains("NOT_FOUND") && stderr(&nobody).contains("Nothing has changed")
    );
    assert!(stdout(&hand("b")).contains("b leads e now"));
    let term: u64 = first_line(&mut second).parse().unwrap();
    assert!(Some(term) > elected["term"].as_u64(), "before c, who stood in front");
    let resigned = town.service.run(&["elections", "resign", "e", "--lease-id", lease]);
    assert_eq!(resigned.status.code(), Some(1));
    let said = String::from_utf8_lossy(&resigned.stdout).into_owned();
    assert!(said.contains("handedOff"), "{said}");
}
