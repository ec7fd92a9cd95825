//! etcd put back to an earlier state, or another log named, behind the nodes' backs, and a supervisor that starts whatever
//! has ended: what was granted since must not be granted again.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use std::{fs, process::Stdio};
use support::{
    load::acquire,
    stderr,
    zones::{ZONES, Zones, decide},
};

/// Why a node that is started again does not serve.
fn refused(zones: &Zones, zone: usize) -> String {
    let mut command = zones.node_command(zone, "127.0.0.1:0");
    let ended = command.stderr(Stdio::piped()).output().unwrap();
    assert!(!ended.status.success(), "it must not serve: {ended:?}");
    stderr(&ended)
}

fn grant(zones: &Zones, resource: &str) {
    let request = format!("request-{resource}");
    let answer = decide(&zones.urls(), "acquire", &acquire(resource, &request)).1;
    assert_eq!(answer["state"], "granted", "{answer}");
}

#[test]
fn a_node_does_not_serve_a_log_that_was_set_back() {
    let mut zones = Zones::start();
    grant(&zones, "before");
    let backup = zones.dir.join("etcd-backup");
    zones.etcd.ctl_member(0, &["snapshot", "save", backup.to_str().unwrap()]).unwrap();
    grant(&zones, "after");
    // Stopped in good order: nothing runs that could notice.
    (0..3).for_each(|zone| zones.stop_node(zone));
    zones.etcd.restore(&backup).unwrap();
    for zone in 0..3 {
        let why = refused(&zones, zone);
        assert!(why.contains("was set back") && why.contains("docs/cluster.md"), "{why}");
    }
}

#[test]
fn a_node_serves_no_other_log_than_it_has_served() {
    let mut zones = Zones::start();
    grant(&zones, "a");
    (0..3).for_each(|zone| zones.stop_node(zone));
    zones.prefix = "tset"; // A slip of the pen.
    for zone in 0..3 {
        let why = refused(&zones, zone);
        assert!(why.contains("there is no log") && why.contains("--log"), "{why}");
    }
    // There is one, by a node that has not served before.
    fs::remove_dir_all(zones.dir.join(ZONES[0])).unwrap();
    zones.start_node(0);
    zones.leader();
    let why = refused(&zones, 1);
    assert!(why.contains("has served the log") && why.contains("a new data folder"), "{why}");
    zones.stop_node(0);
    // With the right name it serves as before.
    zones.prefix = "test";
    zones.start_node(1);
    zones.leader();
}
