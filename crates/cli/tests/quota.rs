//! `sereno quota` against a real service: what is refused and how, the books, and a table of what is really used.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::{Value, json};
use std::{fs, process::Output};
use support::{Service, stderr, stdout};

struct Scene {
    folder: tempfile::TempDir,
    service: Service,
}

impl Scene {
    /// `gpu` 10, `gpu/acme` 8 with 3 guaranteed, `gpu/bolt` 8.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::start(&folder.path().join("data"));
        service.text(&["quota", "set", "gpu", "--limit", "10"]);
        service.text(&["quota", "set", "gpu/acme", "--limit", "8", "--guaranteed", "3"]);
        service.text(&["quota", "set", "gpu/bolt", "--limit", "8"]);
        Self { folder, service }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.service.run(&[&["quota"], arguments].concat())
    }

    fn text(&self, arguments: &[&str]) -> String {
        stdout(&self.run(arguments))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.service.json(&[&["quota"], arguments].concat())
    }

    /// One that has to be refused with this exit code: its problem.
    fn refused(&self, code: i32, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--output", "json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        serde_json::from_str(&stderr(&output)).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// The name of a reservation that has to be made.
    fn reserve(&self, arguments: &[&str]) -> String {
        let reserved = self.json(&[&["reserve"], arguments].concat());
        reserved["reservationId"].as_str().unwrap().to_string()
    }

    /// (committed, reserved, available)
    fn books(&self, node: &str) -> (u64, u64, u64) {
        let read = self.json(&["get", node]);
        let figure = |name: &str| read["node"][name].as_u64().unwrap();
        (figure("committed"), figure("reserved"), figure("available"))
    }

    fn table(&self, text: &str) -> String {
        let path = self.folder.path().join("usage.csv");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().into()
    }
}

#[test]
fn nodes_are_made_from_the_root_down_and_changed_by_version() {
    let scene = Scene::new();
    let tree = scene.text(&["tree"]);
    let rows: Vec<Vec<&str>> = tree.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..4], ["gpu", "10", "-", "-"]);
    assert_eq!(rows[2][..4], ["acme", "8", "-", "3"]);
    assert!(tree.lines().nth(2).unwrap().starts_with("  acme"), "{tree}");
    let set = ["set", "gpu/acme", "--weight", "4", "--burst", "1", "--output", "json"];
    let put: Value = serde_json::from_str(&scene.text(&set)).unwrap();
    assert_eq!((&put["version"], &put["debt"]), (&json!(2), &json!(0)));
    let node = scene.json(&["get", "gpu/acme"])["node"].clone();
    let rules = ["limit", "burst", "guaranteed", "weight"].map(|name| node[name].as_u64().unwrap());
    assert_eq!(rules, [8, 1, 3, 4], "what is not named stays");

    let stale = scene.run(&["set", "gpu/acme", "--limit", "1", "--expected-version", "1"]);
    assert!(stderr(&stale).contains("has version 2, not 1"), "{stale:?}");
    let orphan = scene.run(&["set", "gpu/nobody/x", "--limit", "1"]);
    assert_eq!(orphan.status.code(), Some(2));
    assert!(stderr(&orphan).contains("the node: put"), "{orphan:?}");
    let bare = scene.run(&["set", "gpu/new", "--burst", "1"]);
    assert!(stderr(&bare).contains("give its --limit"), "{bare:?}");
    let never = scene.run(&["get", "disk"]);
    assert!(stderr(&never).contains("sereno quota set"), "{never:?}");
    scene.text(&["rm", "gpu/bolt"]);
    assert_eq!(scene.json(&["tree", "gpu"]).as_array().unwrap().len(), 2);
    let used = scene.refused(2, &["rm", "gpu"]);
    assert_eq!(used["field"], "path");
}

#[test]
fn a_reservation_is_committed_in_parts_and_its_use_returned() {
    let scene = Scene::new();
    let id = scene.reserve(&["gpu/acme=6", "--owner", "w1", "--ttl", "10m", "--label", "job=7"]);
    assert_eq!(scene.books("gpu/acme"), (0, 6, 2));
    let listed = scene.json(&["reservations", "gpu", "--owner", "w1", "--state", "reserved"]);
    let row = &listed[0];
    assert_eq!((&row["reservationId"], &row["labels"]["job"]), (&json!(id), &json!("7")));
    let fence = row["fence"].to_string();

    let wrong = scene.refused(1, &["extend", &id, "--ttl", "20m", "--fence", "17"]);
    assert_eq!(wrong["code"], "NOT_HOLDER");
    let longer = scene.json(&["extend", &id, "--ttl", "20m", "--fence", &fence]);
    assert!(longer["expiresInMs"].as_u64().unwrap() > 1_190_000, "{longer}");
    scene.text(&["resize", &id, "--to", "gpu/acme=4"]);
    let begun = scene.text(&["begin", &id, "--ttl", "5m", "--on-expiry", "quarantine"]);
    assert!(begun.contains("its work has begun") && begun.contains("left: 6 of gpu"), "{begun}");
    let part = scene.text(&["commit", &id, "--item", "gpu/acme=1", "--part"]);
    assert!(part.contains("gpu/acme=1 is used, gpu/acme=3 stays reserved"), "{part}");
    let much = scene.run(&["commit", &id, "--item", "gpu/acme=4"]);
    assert!(stderr(&much).contains("EXCEEDS_RESERVATION"), "{much:?}");
    let last = scene.json(&["commit", &id, "--item", "gpu/acme=2"]);
    assert_eq!(last["returned"][0]["amount"], 1);
    assert_eq!(scene.books("gpu/acme"), (3, 0, 5));
    assert_eq!(scene.refused(1, &["release", &id])["code"], "RESERVATION_ENDED");

    let commit = last["commitId"].to_string();
    let back = ["return", &commit, "gpu/acme=2", "--owner", "w1"];
    assert!(scene.text(&back).contains("has 0 left there"));
    assert_eq!(scene.refused(1, &back)["code"], "EXCEEDS_RESERVATION");
    let added =
        scene.text(&["adjust", "gpu/acme", "--add", "2", "--owner", "ops", "--reason", "found"]);
    assert!(added.contains("ops uses 2 at gpu/acme now"), "{added}");
    let node = scene.text(&["get", "gpu/acme"]);
    assert!(node.contains("used by ops: 2") && node.contains("used by w1: 1"), "{node}");

    let free = scene.reserve(&["gpu/bolt=1"]);
    assert!(scene.text(&["release", &free]).contains("gpu/bolt=1 is free again"));
    let again = scene.run(&["release", &free]);
    assert_eq!(again.status.code(), Some(1), "it says that it did nothing: {again:?}");
}

#[test]
fn a_refusal_names_every_layer_and_has_an_exit_code_of_its_own() {
    let scene = Scene::new();
    scene.reserve(&["gpu/bolt=6", "--owner", "w1"]);
    let told = scene.run(&["reserve", "gpu/acme=5", "gpu/bolt=3"]);
    assert_eq!((told.status.code(), stdout_of(&told)), (Some(120), String::new()));
    let text = stderr(&told);
    for part in ["QUOTA_EXHAUSTED", "LAYER", "gpu       10", "gpu/bolt  8", "--wait"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("gpu/acme  8"), "that one has room: {text}");
    let problem = scene.refused(120, &["reserve", "gpu/bolt=2"]);
    let layer = &problem["layers"][0];
    assert_eq!(
        (&layer["path"], &layer["kind"], &layer["shortfall"]),
        (&json!(""), &json!("guarantee"), &json!(1))
    );
    let never = scene.run(&["reserve", "gpu/bolt=9", "--wait", "1m"]);
    assert!(stderr(&never).contains("could never be had"), "{never:?}");
    let unknown = scene.run(&["reserve", "gpu/bolt/x=1"]);
    assert!(stderr(&unknown).contains("there is no such node"), "{unknown:?}");
    assert_eq!(unknown.status.code(), Some(120));
    let over = scene.run(&["reserve", "gpu/bolt=2", "--wait", "1s"]);
    assert_eq!(over.status.code(), Some(120), "{over:?}");

    let why = scene.text(&["explain", "gpu/bolt"]);
    for part in ["can be reserved now", "The last refusal", "The oldest reservations", "w1"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    for (wrong, why) in [("gpu/bolt", "NODE=AMOUNT"), ("gpu/bolt=0", "1 to"), ("gpu//a=1", "path")]
    {
        let usage = scene.run(&["reserve", wrong]);
        assert_eq!(usage.status.code(), Some(2));
        assert!(stderr(&usage).contains(why), "{usage:?}");
    }
}

fn stdout_of(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_ledger_tells_every_change_with_its_sums() {
    let scene = Scene::new();
    let id = scene.reserve(&["gpu/acme=4", "--owner", "w1"]);
    scene.text(&["commit", &id]);
    let text = scene.text(&["ledger", "gpu/acme", "--owner", "w1"]);
    assert!(text.contains("reserved 0 -> 4") && text.contains("used 0 -> 4"), "{text}");
    let lines = scene.run(&["ledger", "--output", "json"]);
    let lines: Vec<Value> =
        stdout(&lines).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let changes: Vec<_> =
        lines.iter().map(|line| line["quota"]["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["limitPut", "limitPut", "limitPut", "reserved", "committed"]);
    let one = scene.run(&["ledger", "--output", "json", "--limit", "1"]);
    assert_eq!(stdout(&one).lines().count(), 1);
}

#[test]
fn a_table_of_real_use_sets_the_books_right_once() {
    let scene = Scene::new();
    let id = scene.reserve(&["gpu/acme=4", "--owner", "w1"]);
    scene.text(&["commit", &id]);
    // One is in flight, which explains one of what was seen.
    scene.reserve(&["gpu/acme=1", "--ttl", "10m"]);
    let table = scene.table("observed,quota,path\n7,gpu,acme\n7,gpu,\n");
    let reconcile = |more: &[&str]| scene.json(&[&["reconcile", "--from", &table], more].concat());
    let row = |answer: &Value, at: usize, name: &str| answer[at][name].clone();

    let dry = reconcile(&[]);
    assert_eq!((row(&dry, 0, "path"), row(&dry, 0, "drift")), (json!("acme"), json!(2)));
    assert_eq!((row(&dry, 0, "explained"), row(&dry, 0, "change")), (json!(1), json!(0)));
    assert_eq!(reconcile(&["--at-once"])[0]["change"], 2);
    assert_eq!(scene.json(&["get", "gpu/acme"])["reports"], json!([]), "nothing was written");

    let first = reconcile(&["--apply", "--reporter", "nodes"]);
    assert_eq!(
        (row(&first, 0, "waitsForAnother"), row(&first, 0, "epoch")),
        (json!(true), json!(1))
    );
    assert_eq!(scene.books("gpu/acme").0, 4);
    let would = reconcile(&["--reporter", "nodes"]);
    assert_eq!((row(&would, 0, "change"), row(&would, 0, "applied")), (json!(2), json!(false)));
    // The one below is set right first, and explains what was missing above.
    assert_eq!(row(&would, 1, "change"), json!(0));
    let second = reconcile(&["--apply", "--reporter", "nodes"]);
    assert_eq!((row(&second, 0, "change"), row(&second, 0, "applied")), (json!(2), json!(true)));
    assert!(row(&second, 0, "commitId").is_number(), "{second}");
    assert_eq!(row(&second, 1, "change"), json!(0));
    assert_eq!((scene.books("gpu/acme").0, scene.books("gpu").0), (6, 6));
    // The same evidence once more changes nothing, whichever way it is said.
    for more in [
        &["--apply", "--epoch", "2", "--reporter", "nodes"][..],
        &["--apply", "--reporter", "nodes"],
    ] {
        assert_eq!(row(&reconcile(more), 0, "change"), json!(0));
    }
    assert_eq!(scene.books("gpu/acme").0, 6);
    let text = scene.text(&["reconcile", "--from", &table]);
    assert!(text.contains("nothing was written"), "{text}");

    let strange = scene.table("quota,path,observed\ngpu,nobody,1\ngpu,bolt,0\n");
    let partly = scene.run(&["reconcile", "--from", &strange, "--apply"]);
    assert_eq!(partly.status.code(), Some(1));
    let told = stdout_of(&partly);
    assert!(told.contains("NOT_FOUND") && told.contains("in order"), "{told}");
    let broken = scene.table("quota,path\ngpu,acme\n");
    let usage = scene.run(&["reconcile", "--from", &broken]);
    assert_eq!(usage.status.code(), Some(2));
    assert!(stderr(&usage).contains("no column observed"), "{usage:?}");
    assert_eq!(scene.run(&["reconcile", "--from", "nowhere.csv"]).status.code(), Some(1));
}

#[test]
fn one_count_is_reported_against_a_read() {
    let scene = Scene::new();
    let read = scene.json(&["get", "gpu/acme"]);
    let figure = |name: &str| read[name].to_string();
    let id = scene.reserve(&["gpu/acme=2"]);
    scene.text(&["commit", &id]);
    let report = ["report", "gpu/acme", "--observed", "2", "--reporter", "nodes"];
    let then = [
        "--as-of-revision",
        &figure("revision"),
        "--committed-then",
        "0",
        "--cluster-time-ms",
        &figure("clusterTimeMs"),
    ];
    let of_then = scene.text(&[&report[..], &then].concat());
    assert!(of_then.contains("2 explained, no drift"), "{of_then}");
    let three = ["report", "gpu/acme", "--observed", "3", "--reporter", "nodes"];
    let of_now = scene.text(&three);
    assert!(of_now.contains("report 2 of nodes") && of_now.contains("drift +1"), "{of_now}");
    let stale = scene.refused(1, &[&three[..], &["--epoch", "2"]].concat());
    assert_eq!(stale["code"], "STALE_REPORT");
    let half = scene.run(&[&report[..], &["--as-of-revision", "1"]].concat());
    assert_eq!(half.status.code(), Some(2), "all three or none");
}

#[test]
fn what_is_lent_comes_back_or_is_lent_again() {
    let scene = Scene::new();
    let grant = ["share", "grant", "gpu=4", "--region", "us", "--overdraft-cap", "1"];
    let share = scene.json(&grant)["shareId"].as_str().unwrap().to_string();
    assert!(scene.text(&["get", "gpu"]).contains("region:us: 4, 4 kept, overdraft cap 1"));
    let reclaim = ["share", "reclaim", &share, "--reason", "no word"];
    assert!(scene.text(&reclaim).contains("3 are kept; it is reclaimed"));
    assert_eq!(scene.refused(2, &reclaim)["code"], "INVALID_ARGUMENT");
    let nothing = scene.run(&["share", "return", &share]);
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
    let ended = scene.text(&["share", "return", &share, "--returned", "3", "--spent", "1"]);
    assert!(ended.contains("has ended") && ended.contains("is commit"), "{ended}");
    assert_eq!(
        scene.refused(120, &["share", "grant", "gpu=99", "--region", "us"])["code"],
        "QUOTA_EXHAUSTED"
    );
}
