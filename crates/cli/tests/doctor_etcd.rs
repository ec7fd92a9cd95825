//! `sereno doctor --log` on the log of real nodes in a real etcd.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::Value;
use std::{fmt::Write as _, fs, path::Path, process::Output};
use support::{
    load::acquire,
    sereno, stderr, stdout,
    zones::{ZONES, Zones, decide},
};

fn doctor(zones: &Zones, more: &[&str]) -> Output {
    let log = zones.etcd.log_url(zones.prefix);
    sereno(&[&["doctor", "--log", &log], more].concat())
}

fn report(zones: &Zones, exit: i32) -> Value {
    let output = doctor(zones, &["--output", "json"]);
    assert_eq!(output.status.code(), Some(exit), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_log_in_etcd_is_examined_in_use_stopped_and_damaged() {
    let mut zones = Zones::start_with(&["--snapshot-every", "1s"]);
    let mut granted = 0;
    let has_two_snapshots = |report: &Value| report["snapshots"].as_array().unwrap().len() == 2;
    let in_use = loop {
        let (resource, request) = (format!("r-{granted}"), format!("request-of-{granted}"));
        let answer = decide(&zones.urls(), "acquire", &acquire(&resource, &request)).1;
        assert_eq!(answer["state"], "granted", "{answer}");
        granted += 1;
        // While the nodes write, trim and replace snapshots.
        let report = report(&zones, 0);
        if has_two_snapshots(&report) && report["first"].as_u64() > Some(1) {
            break report;
        }
    };
    assert_eq!((&in_use["sound"], &in_use["inUse"]), (&Value::from(true), &Value::from(true)));
    let mistyped = format!("{}-mistyped", zones.etcd.log_url(zones.prefix));
    for output in ["text", "json"] {
        let output = sereno(&["doctor", "--log", &mistyped, "--output", output]);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(stderr(&output).contains(&format!("there is no log at {mistyped}")), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    check_trails(&mut zones);
    (1..3).for_each(|zone| zones.stop_node(zone));
    let stopped = report(&zones, 0);
    assert_eq!(stopped["inUse"], false, "{stopped}");
    assert!(stopped["position"].as_u64() >= in_use["position"].as_u64());
    assert!(stopped["replayed"].as_u64() > Some(0) && stopped["entries"].as_u64() > Some(0));
    assert!(stdout(&doctor(&zones, &[])).contains("sound: everything is as it was written"));

    // The last but one entry is another one's bytes now: the key says where, and the entry does not chain.
    let slot = |position: u64| format!("{}/@slot/{position:016x}", zones.prefix);
    let position = stopped["position"].as_u64().unwrap();
    zones.etcd.ctl(&["put", &slot(position - 1), "what somebody wrote there"]).unwrap();
    let damaged = report(&zones, 1);
    let told = damaged["findings"].to_string();
    assert!(told.contains(&format!("entry {}", position - 1)), "{told}");
    let text = doctor(&zones, &[]);
    for part in ["DAMAGED", "etcdctl snapshot save", "sereno restore", "docs/cluster.md"] {
        let said = String::from_utf8_lossy(&text.stdout);
        assert!(said.contains(part), "{part} in {said}");
    }
    zones.etcd.ctl(&["del", &format!("{}/@head", zones.prefix)]).unwrap();
    assert!(report(&zones, 1)["findings"].to_string().contains("no head"));
}

/// Of a node that is stopped while the others go on.
fn check_trails(zones: &mut Zones) {
    let folder = zones.dir.join(ZONES[0]);
    let folder = folder.to_str().unwrap().to_owned();
    let audit = ["--audit", "--data", &folder, "--output", "json"];
    let running = doctor(zones, &audit);
    assert_eq!(running.status.code(), Some(4), "{running:?}");
    assert!(stderr(&running).contains("stop it first"), "{running:?}");

    zones.stop_node(0);
    decide(&zones.urls(), "acquire", &acquire("meanwhile", "while-a-is-away"));
    let of_trail = |output: Output, exit: i32| {
        assert_eq!(output.status.code(), Some(exit), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let sound = of_trail(doctor(zones, &audit), 0);
    assert_eq!(sound["audit"]["compared"], true, "{sound}");
    assert!(sound["audit"]["lines"].as_u64() > Some(0), "{sound}");
    assert!(sound["findings"].to_string().contains("Other nodes go on"), "{sound}");

    forge(Path::new(&folder));
    let by_itself = sereno(&["doctor", "--audit", "--data", &folder]);
    assert_eq!(by_itself.status.code(), Some(0), "{by_itself:?}");
    let forged = of_trail(doctor(zones, &audit), 1);
    assert!(forged["findings"].to_string().contains("is not what the log says"), "{forged}");
}

/// Another owner in each grant, and all hashes made anew: whole by itself.
fn forge(data: &Path) {
    let mut files: Vec<_> =
        fs::read_dir(data.join("audit")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut previous = "0".repeat(64);
    for file in files {
        let mut forged = String::new();
        for line in fs::read_to_string(&file).unwrap().lines() {
            let (body, _) = line.rsplit_once(",\"previous\":").unwrap();
            let body = body.replace("\"owner\":\"", "\"owner\":\"not-");
            let body = format!("{body},\"previous\":\"{previous}");
            previous = blake3::hash(body.as_bytes()).to_hex().to_string();
            writeln!(forged, "{body}\",\"check\":\"{}\"}}", &previous[..16]).unwrap();
        }
        fs::write(&file, forged).unwrap();
    }
}

#[test]
fn what_is_not_there_is_not_damaged() {
    let output = sereno(&["doctor", "--log", "etcd://127.0.0.1:1/sereno"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("could not be examined"), "{output:?}");
    let audit = ["doctor", "--audit", "--log", "etcd://127.0.0.1:1/sereno", "--data", "/nowhere"];
    let output = sereno(&audit);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("/nowhere"), "no trail was named: {output:?}");
}
