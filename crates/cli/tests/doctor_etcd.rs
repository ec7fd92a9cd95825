//! `sereno doctor --log` on the log of real nodes in a real etcd.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::Value;
use std::process::Output;
use support::{
    load::acquire,
    sereno, stderr, stdout,
    zones::{Zones, decide},
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
    (0..3).for_each(|zone| zones.stop_node(zone));
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

#[test]
fn what_is_not_there_is_not_damaged() {
    let output = sereno(&["doctor", "--log", "etcd://127.0.0.1:1/sereno"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("could not be examined"), "{output:?}");
    let output = sereno(&["doctor", "--audit", "--log", "etcd://127.0.0.1:1/sereno"]);
    assert_eq!(output.status.code(), Some(2), "the trail is in data folders: {output:?}");
}
