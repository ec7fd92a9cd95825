//! Commands against a real service.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};
use support::{SERENO, Service, sereno, stderr, stdout};

fn service() -> (tempfile::TempDir, Service) {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(&folder.path().join("data"));
    (folder, service)
}

/// Holds `name` while `shell` runs, and gives what that wrote.
fn locked(service: &Service, name: &str, shell: &str) -> String {
    service.text(&["lock", name, "--owner", "tester", "--label", "k=v", "--", "sh", "-c", shell])
}

#[test]
fn a_lock_is_seen_from_the_inside_and_gone_afterwards() {
    let (_folder, service) = service();
    let get = format!("{SERENO} locks get a/b --output json; echo $SERENO_TOKEN");
    let seen = locked(&service, "a/b", &get);
    let (json, token) = seen.trim().rsplit_once('\n').unwrap();
    let lock: Value = serde_json::from_str(json).unwrap();
    assert_eq!(lock["state"], "held");
    assert_eq!(lock["namespace"], "default");
    assert_eq!(lock["holder"]["owner"], "tester");
    assert_eq!(lock["holder"]["labels"], json!({"k": "v"}));
    assert_eq!(lock["holder"]["fencingToken"].to_string(), token);
    assert_eq!(service.json(&["locks", "get", "a/b"])["state"], "free");
    assert!(service.text(&["locks", "get", "a/b"]).contains("is free"));
}

#[test]
fn tokens_rise_from_lock_to_lock() {
    let (_folder, service) = service();
    let token = || locked(&service, "a", "echo $SERENO_TOKEN").trim().parse::<u64>().unwrap();
    let tokens = [token(), token(), token()];
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

#[test]
fn a_held_lock_is_listed_skipped_waited_for_and_handed_over() {
    let (folder, service) = service();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let holder = format!("echo held; read line < {}", fifo.display());
    let mut first = Command::new(SERENO)
        .env("SERENO_SERVER", &service.url)
        .args(["lock", "x", "--", "sh", "-c", &holder])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();

    let rows = service.json(&["locks", "ls"]);
    assert_eq!((&rows[0]["resource"], &rows[0]["namespace"]), (&json!("x"), &json!("default")));
    assert!(service.text(&["locks", "ls", "x"]).contains("RESOURCE"));
    assert_eq!(service.json(&["locks", "ls", "y"]), json!([]));
    assert_eq!(service.run(&["lock", "x", "--", "true"]).status.code(), Some(120));
    assert_eq!(
        service.run(&["lock", "x", "--skip-if-held", "--", "true"]).status.code(),
        Some(121)
    );
    let timed_out = service.run(&["lock", "x", "--wait", "100ms", "--", "true"]);
    assert_eq!(timed_out.status.code(), Some(120));
    assert!(stderr(&timed_out).contains("WAIT_TIMEOUT"), "{timed_out:?}");

    let second = Command::new(SERENO)
        .env("SERENO_SERVER", &service.url)
        .args(["lock", "x", "--wait", "1m", "--", "sh", "-c", "exit 9"])
        .spawn()
        .unwrap();
    while service.json(&["locks", "get", "x"])["waiters"] != 1 {}
    assert!(service.text(&["locks", "get", "x"]).contains("1 waiting"));
    std::fs::write(&fifo, "go\n").unwrap();
    assert!(first.wait().unwrap().success());
    assert_eq!(second.wait_with_output().unwrap().status.code(), Some(9));
}

#[test]
fn a_forced_release_needs_the_present_token_and_stops_the_command() {
    let (_folder, service) = service();
    let mut wrapper = Command::new(SERENO)
        .env("SERENO_SERVER", &service.url)
        .args(["lock", "x", "--ttl", "3s", "--", "sh", "-c", "echo held; sleep 60"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(wrapper.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let wrong = service.run(&["locks", "force-release", "x", "--token", "5", "--reason", "test"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr(&wrong).contains("NOT_HOLDER") && stderr(&wrong).contains("sereno locks get"));
    service.text(&["locks", "force-release", "x", "--whoever-holds-it", "--reason", "a test"]);
    assert_eq!(wrapper.wait().unwrap().code(), Some(123));
    let audit = service.text(&["audit"]);
    assert!(audit.contains("end=forced") && audit.contains("\"a test\""), "{audit}");
}

#[test]
fn a_lease_is_released_by_its_secret() {
    let (_folder, service) = service();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let body = json!({"resource": "x", "requestId": "0123456789", "owner": "me"}).to_string();
    let granted = runtime.block_on(async {
        let url = format!("{}/v1/locks/acquire", service.url);
        let request = reqwest::Client::new().post(url).header("content-type", "application/json");
        request.body(body).send().await.unwrap().text().await.unwrap()
    });
    let granted: Value = serde_json::from_str(&granted).unwrap();
    let lease_id = granted["leaseId"].as_str().unwrap();
    let release = ["locks", "release", "x", "--lease-id", lease_id];
    assert_eq!(service.json(&release), json!({"released": true}));
    assert_eq!(service.run(&release).status.code(), Some(1), "it says that it did nothing");
    let stranger = service.run(&["locks", "release", "x", "--lease-id", &"0".repeat(32)]);
    assert_eq!(stranger.status.code(), Some(1));
    let said = String::from_utf8_lossy(&stranger.stdout).into_owned();
    assert!(said.contains("no such lease of x is known"), "{said}");
}

#[test]
fn namespaces_are_created_changed_and_guarded_by_their_version() {
    let (_folder, service) = service();
    let missing = service.run(&["namespace", "get", "money"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("NOT_FOUND") && stderr(&missing).contains("namespace set"));
    service.text(&["namespace", "set", "money", "--max-hold", "1h", "--lock-delay", "2s"]);
    service.text(&[
        "namespace",
        "set",
        "money",
        "--fencing",
        "enforced",
        "--fencing-required",
        "true",
    ]);
    let namespace = service.json(&["namespace", "get", "money"]);
    assert_eq!(namespace["version"], 2);
    let policy = &namespace["policy"];
    assert_eq!((&policy["maxHold"], &policy["lockDelay"]), (&json!("1h"), &json!("2s")));
    assert_eq!(policy["fencingRequired"], true);
    let stale = service.run(&["namespace", "set", "money", "--expected-version", "1"]);
    assert_eq!(stale.status.code(), Some(1));
    let stale = stderr(&stale);
    assert!(stale.contains("VERSION_CONFLICT") && stale.contains("version 2, not 1"), "{stale}");
    let exists = stderr(&service.run(&["namespace", "set", "money", "--expected-version", "0"]));
    assert!(exists.contains("exists already, with version 2"), "{exists}");
    let none = stderr(&service.run(&["namespace", "set", "none", "--expected-version", "4"]));
    assert!(none.contains("there is no none"), "{none}");
    service.text(&["namespace", "set", "money", "--max-hold", "none"]);
    assert_eq!(service.json(&["namespace", "get", "money"])["policy"].get("maxHold"), None);
    let names = service.json(&["namespace", "ls"]);
    assert_eq!(
        (&names[0]["namespace"], &names[1]["namespace"]),
        (&json!("default"), &json!("money"))
    );
    let refused = service.run(&[
        "lock",
        "x",
        "--namespace",
        "money",
        "--fencing",
        "best-effort",
        "--",
        "true",
    ]);
    assert_eq!(refused.status.code(), Some(125));
    let used = service.text(&[
        "lock",
        "x",
        "--namespace",
        "money",
        "--",
        "sh",
        "-c",
        "echo $SERENO_FENCE_KEY",
    ]);
    assert_eq!(used, "money/lock/x\n");
}

#[test]
fn a_namespace_is_shown_in_the_words_in_which_it_is_set() {
    let (_folder, service) = service();
    service.text(&["namespace", "set", "n", "--min-ttl", "2500ms", "--fencing", "best-effort"]);
    let text = service.text(&["namespace", "get", "n"]);
    let value = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
        line.unwrap().trim_start()[name.len()..].trim().to_owned()
    };
    for (option, set) in [
        ("min-ttl", "2500ms"),
        ("default-ttl", "30s"),
        ("max-ttl", "1h"),
        ("max-hold", "none"),
        ("lock-delay", "0s"),
        ("fencing", "best-effort"),
        ("fencing-required", "false"),
        ("max-leases", "1000000"),
        ("requests-per-second", "none"),
        ("remember-refusals", "90s"),
        ("remember-endings", "5m"),
        ("remember-records", "2000000"),
    ] {
        assert_eq!(value(option), set, "{option} in {text}");
        // And it is taken so; nothing changes, so nothing is written.
        let same = service.text(&["namespace", "set", "n", &format!("--{option}"), set]);
        assert!(same.contains("nothing was written, it stays at version 1"), "{option}: {same}");
    }
    let nothing = service.json(&["namespace", "set", "n"]);
    assert_eq!(nothing["version"], 1);
    assert_eq!(
        service.text(&["namespace", "set", "n", "--lock-delay", "1s"]),
        "n has version 2 now\n"
    );
    let kinds = service.text(&["audit", "--output", "json"]);
    assert_eq!(kinds.matches("namespacePut").count(), 2, "{kinds}");
}

#[test]
fn errors_speak_of_options_and_in_their_units() {
    let (_folder, service) = service();
    for (arguments, said) in [
        (&["lock", "a", "--ttl", "500ms", "--", "true"][..], "--ttl: must be 1s to 1h, is 500ms"),
        (
            &["namespace", "set", "n", "--lock-delay", "90s"][..],
            "--lock-delay: must be 0s to 1m, is 90s",
        ),
        (
            &["namespace", "set", "n", "--remember-records", "0"][..],
            "--remember-records: must be 1 to 2000000, is 0",
        ),
        (
            &["namespace", "set", "n", "--min-ttl", "1m", "--max-ttl", "30s"][..],
            "--min-ttl: must not be above --max-ttl",
        ),
    ] {
        let output = service.run(arguments);
        let errors = stderr(&output);
        assert!(errors.contains(said), "{arguments:?}: {errors}");
        assert!(!errors.contains("durations in ms") && !errors.contains("Ttl"), "{errors}");
    }
    let long = sereno(&["lock", "a", "--wait", "2h", "--", "true"]);
    assert_eq!(long.status.code(), Some(2));
    assert!(stderr(&long).contains("must be at most 10m"), "{long:?}");
    let holder = "sereno=$0; $sereno lock a -- true; exit 0".replace("$sereno", SERENO);
    let held = service.run(&["lock", "a", "--", "sh", "-c", &holder]);
    let errors = stderr(&held);
    assert!(errors.contains("for at most 29s more"), "{errors}");
}

#[test]
fn a_list_of_nothing_is_refused_before_it_is_asked_for() {
    for arguments in [&["locks", "ls", "--limit", "0"], &["locks", "ls", "--limit", "1000001"]] {
        let output = sereno(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("must be 1 to 1000000"), "{output:?}");
    }
    assert_eq!(sereno(&["audit", "--limit", "0"]).status.code(), Some(2));
}

#[test]
fn the_audit_trail_is_shown_in_lines() {
    let (_folder, service) = service();
    locked(&service, "a", "true");
    let text = service.text(&["audit", "--output", "json"]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert!(kinds.ends_with(&["granted", "ended"]), "{kinds:?}");
    let last = lines.last().unwrap()["seq"].to_string();
    assert_eq!(service.text(&["audit", "--from", &last, "--limit", "1"]).lines().count(), 1);
}

#[test]
fn what_happens_is_followed() {
    let (_folder, service) = service();
    let mut watch = Command::new(SERENO)
        .env("SERENO_SERVER", &service.url)
        .args(["locks", "watch", "job/", "--output", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let started = next();
    assert_eq!(started["type"], "started");
    locked(&service, "other", "true");
    locked(&service, "job/1", "true");
    let (granted, ended) = (next(), next());
    assert_eq!(granted["event"]["kind"], "granted");
    assert_eq!(granted["event"]["resource"], "job/1");
    assert_eq!(ended["event"]["end"], "released");
    watch.kill().unwrap();
    watch.wait().unwrap();

    let cursor = started["cursor"].as_str().unwrap();
    let mut again = Command::new(SERENO)
        .env("SERENO_SERVER", &service.url)
        .args(["locks", "watch", "job/", "--from", cursor])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = BufReader::new(again.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(text.contains("granted") && text.contains("job/1"), "{text}");
    again.kill().unwrap();
    again.wait().unwrap();
}

#[test]
fn the_status_and_the_floor() {
    let (_folder, service) = service();
    let status = service.json(&["status"]);
    assert_eq!((&status["ready"], &status["role"]), (&json!(true), &json!("leader")));
    assert!(service.text(&["status"]).contains("serves        yes"));
    let token = || locked(&service, "a", "echo $SERENO_TOKEN").trim().parse::<u64>().unwrap();
    let floor = token() + 1_000_000_000;
    let raised = service.json(&["token-floor", "--set", &floor.to_string()]);
    assert_eq!((&raised["changed"], &raised["floor"]), (&json!(true), &json!(floor)));
    assert!(token() >= floor);
    let lower = service.text(&["token-floor", "--set", &(floor - 5_000).to_string()]);
    let unchanged = service.json(&["token-floor", "--set", "5"]);
    assert_eq!((&unchanged["changed"], unchanged["floor"].is_u64()), (&json!(false), true));
    let stays = lower.strip_prefix("the floor stays at ").unwrap_or_else(|| panic!("{lower}"));
    let stays: u64 = stays.split(',').next().unwrap().parse().unwrap();
    assert!(stays > floor && token() >= stays, "{lower}");
    let beyond = (1_u64 << 53).to_string();
    assert_eq!(service.run(&["token-floor", "--set", &beyond]).status.code(), Some(2));
}

#[test]
fn without_a_service_commands_say_what_to_do() {
    let output = sereno(&["status", "--server", "http://127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("sereno serve"), "{output:?}");
    let output = sereno(&["status", "--server", "localhost:7480"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("http://"), "{output:?}");
}

#[test]
fn wrong_usage_exits_with_2_whoever_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    for (arguments, said) in [
        (&["lock", "a", "--server", "127.0.0.1:7480", "--", "true"][..], "http://"),
        (&["lock", "a b", "--", "true"], "' ' at byte 1"),
        (&["lock", "a", "--namespace", "Pay", "--", "true"], "'P' at byte 0"),
        (
            &["lock", "a", "--hold-at-least", "1m", "--max-hold", "30s", "--", "true"],
            "--hold-at-least 1m is longer than --max-hold 30s",
        ),
        (&["lock", "a", "--output", "json", "--", "true"], "has no --output"),
        (&["namespace", "set", "Pay Ments"], "<NAME>': has 'P'"),
        (&["namespace", "set", "n", "--max-leases", "many"], "must be a whole number"),
        (&["namespace", "set", "n", "--requests-per-second", "many"], "must be a whole number"),
        (&["audit", "--from", "first"], "must be a whole number"),
        (&["locks", "release", "a", "--lease-id", "abc"], "must be the leaseId of a grant"),
        (&["locks", "force-release", "a", "--reason", "r"], "--whoever-holds-it"),
        (&["locks", "force-release", "a", "--token", "x", "--reason", "r"], "a whole number"),
        (&["serve", "--data", data, "--http", "0.0.0.0:0"], "--insecure"),
        (&["serve", "--data", data, "--http", "127.0.0.1:0", "--log-level", "loud"], "--log-level"),
        (&["serve", "--config", "/nowhere/sereno.toml"], "/nowhere/sereno.toml"),
    ] {
        let output = sereno(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(stderr(&output).contains(said), "{arguments:?}: {output:?}");
    }
    // What only the service knows.
    let (_folder, service) = service();
    for arguments in [
        &["lock", "a", "--ttl", "2h", "--", "true"][..],
        &["namespace", "set", "n", "--lock-delay", "2m"],
    ] {
        let output = service.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("INVALID_ARGUMENT: --"), "{output:?}");
    }
}

#[test]
fn programs_get_the_problem_of_a_refused_call() {
    let (_folder, service) = service();
    let problem = |arguments: &[&str]| -> Value {
        let output = service.run(&[arguments, &["--output", "json"]].concat());
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
        serde_json::from_str(&stderr(&output)).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let nobody = problem(&["locks", "force-release", "x", "--token", "5", "--reason", "r"]);
    assert_eq!((&nobody["code"], &nobody["status"]), (&json!("NOT_HOLDER"), &json!(409)));
    assert_eq!(nobody["outcome"], "notApplied");
    assert_eq!(problem(&["locks", "ls", "--namespace", "nope"])["code"], "NOT_FOUND");
    let conflict = problem(&["namespace", "set", "default", "--expected-version", "7"]);
    assert_eq!(
        (&conflict["code"], conflict["currentVersion"].is_number()),
        (&json!("VERSION_CONFLICT"), true)
    );
}

#[test]
fn a_watch_of_a_namespace_that_is_not_there_says_so() {
    let (_folder, service) = service();
    let output = service.run(&["locks", "watch", "--namespace", "nope"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("NOT_FOUND"), "{output:?}");
}

#[test]
fn help_is_a_command_too() {
    for (arguments, said) in [
        (&["help", "lock"][..], "SERENO_TOKEN"),
        (&["help", "locks", "ls"], "--limit"),
        (&["locks", "help", "get"], "--namespace"),
    ] {
        assert!(stdout(&sereno(arguments)).contains(said), "{arguments:?}");
    }
}

#[test]
fn a_limit_is_the_namespaces_and_no_option_of_lock() {
    let (_folder, service) = service();
    service.text(&["namespace", "set", "n", "--max-leases", "0"]);
    let output = service.run(&["lock", "a", "--namespace", "n", "--", "true"]);
    let said = stderr(&output);
    assert!(said.contains("the namespace's max-leases: 0") && !said.contains("--max"), "{said}");
}

#[test]
fn completions_are_written_for_each_shell_without_what_is_hidden() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&sereno(&["completions", shell]));
        assert!(script.contains("force-release") && !script.contains("__watchdog"), "{shell}");
        for of_quotas in ["reconcile", "owner-reserved-max", "overdraft-cap", "quarantine"] {
            // What clap_complete writes for fish ends at the second level of commands, and that is at the third.
            if (shell, of_quotas) == ("fish", "overdraft-cap") {
                continue;
            }
            assert!(script.contains(of_quotas), "{of_quotas} for {shell}");
        }
    }
    let help = stdout(&sereno(&["--help"]));
    for command in [
        "serve",
        "lock",
        "locks",
        "namespace",
        "audit",
        "status",
        "backup",
        "restore",
        "doctor",
        "demo",
        "elect",
        "elections",
        "job",
        "jobs",
        "hold",
        "holds",
        "quota",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
    }
    let what = "locks, elections, holds, quotas and scheduled jobs";
    assert!(help.contains(what), "{help}");
    assert!(stdout(&sereno(&["serve", "--help"])).contains(&format!("Serve {what}")));
    assert!(!help.contains("__"), "{help}");
}

/// A zone that has gone without a word: connections to it are not refused, and nobody answers.
#[test]
fn a_silent_address_is_passed_over() {
    let (_folder, service) = service();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let servers = format!("http://{},{}", silent.local_addr().unwrap(), service.url);
    let run = |arguments: &[&str]| sereno(&[arguments, &["--server", &servers]].concat());
    assert!(stdout(&run(&["status"])).contains("serves"));
    stdout(&run(&["namespace", "set", "shop", "--max-ttl", "1m"]));
    // All are silent: what only reads has certainly changed nothing.
    drop(service);
    let read = run(&["locks", "get", "a"]);
    assert_eq!(read.status.code(), Some(3));
    assert!(!stderr(&read).contains("carried out"), "{read:?}");
}

#[test]
fn the_demo_ends_well_and_tells_the_story() {
    let text = stdout(&sereno(&["demo"]));
    for part in ["SIGSTOP", "B is granted the lock", "The register refuses A", "written by B"] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = Command::new(SERENO)
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}
