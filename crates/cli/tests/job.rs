//! Scheduled jobs end to end: the real service, real replicas, and every replica killed at random.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};
use support::{
    SERENO, Service, signal,
    wait::{until, until_some},
};

const SLOTS: usize = 20;
const REPLICAS: usize = 3;
/// Where the replica that was started last says what happens to it.
const NEWS: &str = "news";
const PATIENCE: Duration = Duration::from_secs(60);

/// One replica; killed when dropped.
struct Replica(Child);

impl Replica {
    fn start(service: &Service, folder: &Path, options: &[&str], shell: &str) -> Self {
        let child = Command::new(SERENO)
            .args(["job", "--server", &service.url])
            .args(options)
            .args(["--", "sh", "-c", shell])
            .current_dir(folder)
            .stderr(File::create(folder.join(NEWS)).unwrap())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// SIGKILL, as `Child::kill` does on Unix.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// TERM, and its exit code.
    fn end(mut self) -> Option<i32> {
        signal("-TERM", self.0.id());
        self.0.wait().unwrap().code()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn runs(service: &Service, name: &str) -> Vec<Value> {
    let output = service.run(&["jobs", "get", name, "--output", "json"]);
    let Ok(job) = serde_json::from_slice::<Value>(&output.stdout) else { return Vec::new() };
    job["runs"].as_array().cloned().unwrap_or_default()
}

/// What the commands have written: `begin` or `end`, slot, attempt, token.
fn log(folder: &Path) -> Vec<(String, String, u64, u64)> {
    let text = fs::read_to_string(folder.join("log")).unwrap_or_default();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse().unwrap();
        (words[0].to_string(), words[1].to_string(), number(2), number(3))
    };
    text.lines().map(line).collect()
}

/// Alone, or the overlap is written down; a lock of the kernel ends with its process, however that ends.
const BOOKKEEPING: &str = r#"
    exec 9>alone
    flock -n 9 || { echo "overlap $SERENO_SLOT $SERENO_ATTEMPT $SERENO_TOKEN" >> log; exit 1; }
    echo "begin $SERENO_SLOT $SERENO_ATTEMPT $SERENO_TOKEN" >> log
    sleep 0.2
    echo "end $SERENO_SLOT $SERENO_ATTEMPT $SERENO_TOKEN" >> log
"#;

#[test]
fn twenty_slots_with_random_kills_lose_none_and_double_none() {
    let data = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let service = Service::start(data.path());
    let options = [
        "--name",
        "books",
        "--schedule",
        "* * * * * *",
        "--missed",
        "all",
        "--retries",
        "100",
        "--ttl",
        "1s",
        "--max-run",
        "10s",
    ];
    let start = || Replica::start(&service, work.path(), &options, BOOKKEEPING);
    let mut replicas: Vec<Replica> = (0..REPLICAS).map(|_| start()).collect();
    let mut random = StdRng::seed_from_u64(4_711);
    let begun = Instant::now();
    let mut kills = 0;
    // The moments of the kills are the point of the test.
    while begun.elapsed() < Duration::from_secs(20) || succeeded(&service).len() < SLOTS {
        assert!(begun.elapsed() < Duration::from_secs(120), "{:#?}", runs(&service, "books"));
        thread::sleep(Duration::from_millis(random.random_range(200..1_500)));
        if begun.elapsed() < Duration::from_secs(20) {
            replicas.remove(random.random_range(0..REPLICAS)).kill();
            replicas.push(start());
            kills += 1;
        }
    }
    for replica in replicas {
        assert_eq!(replica.end(), Some(128 + 15));
    }
    let log = log(work.path());
    assert!(log.iter().all(|(what, ..)| what != "overlap"), "{log:#?}");
    check_slots(&succeeded(&service), &log);
    check_tokens(&log);
    assert!(kills >= 10, "{kills}");
}

/// Slots that are done, oldest first, with the number of the attempt that did it.
fn succeeded(service: &Service) -> BTreeMap<String, u64> {
    let runs = runs(service, "books");
    let done = runs.iter().filter(|run| run["state"] == "succeeded");
    done.map(|run| (run["slot"].as_str().unwrap().into(), run["attempt"].as_u64().unwrap()))
        .collect()
}

/// No second is missing between the first slot and the last; the attempt that the ledger took for the slot's end came to
/// its end, and none began after it.
fn check_slots(done: &BTreeMap<String, u64>, log: &[(String, String, u64, u64)]) {
    assert!(done.len() >= SLOTS, "{done:#?}");
    let instants: Vec<u64> =
        done.keys().map(|slot| sereno_client::schedule::instant::parse(slot).unwrap()).collect();
    assert!(instants.windows(2).all(|two| two[1] - two[0] == 1_000), "{done:#?}");
    for (slot, attempt) in done {
        let of = |what: &str| -> Vec<u64> {
            let lines = log.iter().filter(|(kind, at, ..)| kind == what && at == slot);
            lines.map(|(_, _, attempt, _)| *attempt).collect()
        };
        let (begun, ended) = (of("begin"), of("end"));
        assert!(begun.windows(2).all(|two| two[0] < two[1]), "{slot}: {begun:?}");
        assert_eq!(begun.last(), Some(attempt), "{slot}: {begun:?}");
        assert_eq!(ended.last(), Some(attempt), "{slot}: {ended:?}");
    }
}

fn check_tokens(log: &[(String, String, u64, u64)]) {
    let tokens: Vec<u64> =
        log.iter().filter(|(what, ..)| what == "begin").map(|(_, _, _, token)| *token).collect();
    assert!(tokens.windows(2).all(|two| two[0] < two[1]), "tokens rise in the order of the work");
}

#[test]
fn operators_pause_ask_skip_and_end_runs() {
    let data = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let service = Service::start(data.path());
    let name = "yearly";
    service.text(&[
        "jobs",
        "put",
        name,
        "--schedule",
        "@yearly",
        "--tz",
        "Europe/Madrid",
        "--retries",
        "1",
    ]);
    service.text(&["jobs", "pause", name, "--reason", "an audit"]);
    let asked = service.json(&["jobs", "run-now", name, "--reason", "by hand"]);
    assert_eq!(asked["paused"], true);
    let slot = asked["slot"].as_str().unwrap();
    let options = [
        "--name",
        name,
        "--schedule",
        "@yearly",
        "--tz",
        "Europe/Madrid",
        "--retries",
        "1",
        "--ttl",
        "1s",
    ];
    let replica =
        Replica::start(&service, work.path(), &options, "echo $SERENO_TOKEN >> tokens; sleep 30");
    let news = || fs::read_to_string(work.path().join(NEWS)).unwrap();
    until("it knows of the pause", PATIENCE, || news().contains("the job is paused"));
    assert_eq!(runs(&service, name)[0]["state"], "asked", "nothing while it is paused");
    service.text(&["jobs", "resume", name, "--reason", "done"]);
    let row = |state: &str| {
        until_some(state, PATIENCE, || {
            runs(&service, name)
                .into_iter()
                .find(|run| run["slot"] == slot && run["state"] == state)
        })
    };
    let token = row("claimed")["fencingToken"].to_string();
    service.text(&["jobs", "force-release", name, "--token", &token, "--reason", "it hangs"]);
    let second = until_some("a second attempt", PATIENCE, || {
        let row = runs(&service, name).into_iter().find(|run| run["slot"] == slot)?;
        (row["state"] == "claimed" && row["attempt"] == 2).then_some(row)
    });
    assert_ne!(second["fencingToken"].to_string(), token);
    // The replica is told to end while it runs: the run has failed, and no retry is left.
    assert_eq!(replica.end(), Some(128 + 15));
    assert_eq!(row("failed")["attempt"], 2);
    let next = "2090-01-01T00:00:00Z";
    service.text(&["jobs", "skip", name, "--slot", next, "--reason", "a holiday"]);
    let list = service.json(&["jobs", "ls", "year"]);
    assert_eq!((&list[0]["job"], &list[0]["namespace"]), (&name.into(), &"default".into()));
    assert!(service.text(&["jobs", "get", name]).contains("a holiday"));
}

#[test]
fn a_run_outlives_a_restart_of_the_service() {
    let data = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let service = Service::start(data.path());
    let url = service.url.clone();
    let port = url.rsplit(':').next().unwrap().to_string();
    let options = ["--name", "long", "--schedule", "* * * * * *", "--ttl", "10s", "--once"];
    let mut replica =
        Replica::start(&service, work.path(), &options, "echo x > begun; sleep 3; echo x > end");
    until("its begin", PATIENCE, || work.path().join("begun").exists());
    service.stop();
    let at = format!("127.0.0.1:{port}");
    let service = Service::of(
        Command::new(SERENO)
            .args(["serve", "--http", &at, "--log-level", "error", "--data"])
            .arg(data.path()),
    );
    assert!(replica.0.wait().unwrap().success());
    assert!(work.path().join("end").exists());
    let row = runs(&service, "long").into_iter().find(|run| run["state"] == "succeeded").unwrap();
    assert_eq!(row["attempt"], 1);
}
