//! etcd put back to an earlier state, or another log named, behind the nodes' backs, and a supervisor that starts whatever
//! has ended: what was granted since must not be granted again.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use std::{fs, process::Stdio, time::Instant};
use support::{
    load::{acquire, grow},
    stderr,
    zones::{PATIENCE, ZONES, Zones, decide, snapshot_beyond, status},
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

/// Fills the log at this node until what it had up to `position`, and all that a stop adds, is trimmed.
fn go_on_until_trimmed(zones: &Zones, url: &str, position: u64) {
    /// Each node's last words and another leader's first ones.
    const STOPPING: u64 = 30;
    let (begun, mut newest) = (Instant::now(), 0);
    while zones.first_entry() <= position + STOPPING {
        assert!(begun.elapsed() < PATIENCE, "the log is not trimmed");
        grow(&[url.to_string()], 12);
        newest = snapshot_beyond(url, newest);
    }
}

#[test]
fn a_node_does_not_serve_a_log_that_was_set_back() {
    let mut zones = Zones::start();
    grant(&zones, "before");
    let backup = zones.dir.join("etcd-backup");
    zones.etcd.ctl_member(0, &["snapshot", "save", backup.to_str().unwrap()]).unwrap();
    grant(&zones, "after");
    let ended_at = status(&zones.node(0).url).unwrap()["position"].as_u64().unwrap();
    // Stopped in good order: nothing runs that could notice.
    (0..3).for_each(|zone| zones.stop_node(zone));
    zones.etcd.restore(&backup).unwrap();
    for zone in 0..3 {
        let why = refused(&zones, zone);
        assert!(why.contains("was set back") && why.contains("docs/cluster.md"), "{why}");
    }
    // A node that has lost its folder believes it, and so the log goes on until nothing is left to compare it with.
    fs::remove_dir_all(zones.dir.join(ZONES[0])).unwrap();
    zones.start_node_with(0, "127.0.0.1:0", &["--snapshot-bytes", "1MiB"]);
    zones.leader();
    go_on_until_trimmed(&zones, &zones.node(0).url, ended_at);
    for zone in 1..3 {
        let why = refused(&zones, zone);
        let says = ["at an earlier start", "can no longer be compared", "docs/cluster.md"];
        assert!(says.iter().all(|part| why.contains(part)), "{why}");
    }
    // In a new folder there is nothing to compare with, and nothing that was refused.
    fs::remove_dir_all(zones.dir.join(ZONES[1])).unwrap();
    zones.start_node(1);
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
