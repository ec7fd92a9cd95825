//! Three etcd members and three nodes as real processes: what breaks costs a pause, and never a second holder.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::{Value, json};
use sereno_core::ids::Position;
use sereno_log::{
    Log, Read,
    etcd::{self, EtcdOptions},
};
use std::{fs, process::Command, time::Instant};
use support::{
    SERENO,
    load::{Load, acquire},
    sereno, signal, stderr, stdout,
    zones::{ZONES, Zones, decide, http, post, wait_until},
};

#[test]
fn whatever_is_killed_or_stopped_costs_a_pause_and_nothing_else() {
    let mut zones = Zones::start();
    let urls = zones.urls();
    let kept = decide(&urls, "acquire", &acquire("kept", "kept-request-1")).1;
    assert_eq!(kept["state"], "granted");
    let load = Load::start(&urls);
    load.goes_on();

    // The leader dies.
    let leader = zones.leader();
    let before: Vec<_> = (0..3).map(|zone| zones.takeover_seconds(zone)).collect();
    let killed_at = Instant::now();
    zones.kill_node(leader);
    let next = zones.leader();
    // What the new one tells of it: since the last heartbeat of the dead one, and not since its own start.
    let told = zones.takeover_seconds(next) - before[next];
    let most = killed_at.elapsed().as_secs_f64() + 1.0;
    assert!((1.0..most).contains(&told), "{told} s of {most} s");
    load.goes_on();
    zones.start_node_at(leader, &urls[leader]);

    // The leader is stopped for longer than anybody waits, and goes on: it must find out by itself.
    let leader = zones.leader();
    signal("-STOP", zones.node(leader).child.id());
    load.goes_on();
    let other = zones.leader_except(leader);
    signal("-CONT", zones.node(leader).child.id());
    let deposed = &zones.node(leader).url;
    wait_until(deposed, "a deposed leader steps down by itself", |it| it["role"] == "follower");
    assert_ne!(other, leader);
    load.goes_on();

    // A member of etcd dies, its leader.
    let member = zones.etcd.leader().unwrap();
    zones.etcd.kill(member);
    load.goes_on();
    zones.etcd.restart(member).unwrap();
    zones.etcd.wait_until_healthy().unwrap();

    // Two members die: nothing is decided any more, and what was goes on when they are back.
    zones.etcd.kill(0);
    zones.etcd.kill(1);
    let client = http();
    let lost = post(&client, &urls[0], "acquire", &acquire("without-quorum", "no-quorum-1"));
    if let Some((status, answer)) = lost {
        assert!(status >= 500, "nothing is granted without a quorum: {answer}");
    }
    zones.etcd.restart(0).unwrap();
    zones.etcd.restart(1).unwrap();
    zones.etcd.wait_until_healthy().unwrap();
    load.goes_on();

    assert!(load.check() > 20);
    // What was granted before all that is answered the same by every node, and from a new process, too (S6).
    for url in zones.urls() {
        let again = decide(&[url], "acquire", &acquire("kept", "kept-request-1")).1;
        match again["state"].as_str() {
            Some("granted") => assert_eq!(again["fencingToken"], kept["fencingToken"]),
            _ => assert_eq!(again["code"], "LEASE_ENDED", "{again}"),
        }
    }
}

#[test]
fn a_backup_of_a_log_in_etcd_begins_a_new_one_with_larger_tokens() {
    let mut zones = Zones::start();
    let before = decide(&zones.urls(), "acquire", &acquire("kept", "kept-request-2")).1;
    let (old, new) = (zones.etcd.log_url("test"), zones.etcd.log_url("restored"));
    let file = zones.dir.join("backup");
    let file = file.to_str().unwrap();
    // Whoever serves from a folder has its name in the environment, too.
    let mut backup = Command::new(SERENO);
    backup.args(["backup", "--log", &old, "--to", file, "--output", "json"]);
    let written = backup.env("SERENO_DATA", zones.dir.join(ZONES[0])).output().unwrap();
    let written: Value = serde_json::from_str(&stdout(&written)).unwrap();
    assert_eq!(written["leases"], 1);
    (0..3).for_each(|zone| zones.stop_node(zone));
    // The folder of such a node has its trail and no log.
    let folder = zones.dir.join(ZONES[0]);
    let doctor = sereno(&["doctor", "--audit", "--data", folder.to_str().unwrap()]);
    assert!(stdout(&doctor).contains("whose log is in etcd"), "{doctor:?}");
    let restore = ["restore", "--from", file, "--log", &new, "--pause", "1s"];
    assert!(stdout(&sereno(&restore)).contains("--log etcd://"));
    let twice = sereno(&restore);
    assert!(stderr(&twice).contains("there is a log already"), "{twice:?}");
    zones.prefix = "restored";
    (0..3).for_each(|zone| {
        fs::remove_dir_all(zones.dir.join(ZONES[zone])).unwrap();
        zones.start_node(zone);
    });
    zones.leader();
    let after = decide(&zones.urls(), "acquire", &acquire("other", "other-request-1")).1;
    assert!(after["fencingToken"].as_u64() > before["fencingToken"].as_u64(), "{after}");
    // The lease that the backup knows is still that of its holder.
    let lease = json!({"resource": "kept", "leaseId": before["leaseId"]});
    assert_eq!(decide(&zones.urls(), "renew", &lease).0, 200);
}

/// Entries of 100 KiB that change nothing, so that the log grows and is trimmed.
fn grow(urls: &[String], entries: usize) {
    let lease = json!({"resource": "r".repeat(250), "leaseId": "0".repeat(32)});
    let renewals = json!({"leases": vec![lease; 350]});
    for _ in 0..entries {
        assert_eq!(decide(urls, "renew-many", &renewals).0, 200);
    }
}

/// The newest snapshot, once there is one beyond `position`.
fn snapshot_beyond(url: &str, position: u64) -> u64 {
    let is_beyond = |it: &Value| it["snapshotPosition"].as_u64().is_some_and(|at| at > position);
    let status = wait_until(url, "snapshots are made and known", is_beyond);
    status["snapshotPosition"].as_u64().unwrap()
}

/// Where a log in etcd begins.
fn first_entry(url: &str) -> u64 {
    let read = async {
        let log = etcd::open(&url.parse().unwrap(), EtcdOptions::default()).await.unwrap();
        log.read(Position(1), 1).await.unwrap()
    };
    match tokio::runtime::Runtime::new().unwrap().block_on(read) {
        Read::Trimmed { first } => first.0,
        Read::Entries(_) => 1,
    }
}

#[test]
fn a_node_that_fell_behind_the_trim_and_an_empty_one_catch_up() {
    let mut zones = Zones::start_with(&["--snapshot-bytes", "1MiB"]);
    let urls = zones.urls();
    let leader = zones.leader();
    let (behind, empty) = ((leader + 1) % 3, (leader + 2) % 3);
    let kept = decide(&urls, "acquire", &acquire("kept", "kept-request-3")).1;

    // One sleeps while the others go on over two snapshots, and so over a trim.
    signal("-STOP", zones.node(behind).child.id());
    let (there, maker) = ([urls[leader].clone()], &urls[empty]);
    let slept_at = wait_until(maker, "it answers", |_| true)["position"].as_u64().unwrap();
    let mut newest = slept_at;
    for _ in 0..3 {
        grow(&there, 12);
        newest = snapshot_beyond(maker, newest);
    }
    signal("-CONT", zones.node(behind).child.id());

    // Another has lost its disk.
    zones.kill_node(empty);
    fs::remove_dir_all(zones.dir.join(ZONES[empty])).unwrap();
    zones.start_node_at(empty, &urls[empty]);

    let status = wait_until(&urls[leader], "it answers", |_| true);
    let head = status["position"].as_u64().unwrap();
    for zone in [behind, empty] {
        let caught_up = |it: &Value| it["ready"] == true && it["position"].as_u64() >= Some(head);
        wait_until(&urls[zone], "it catches up", caught_up);
        let there = [urls[zone].clone()];
        let again = decide(&there, "acquire", &acquire("kept", "kept-request-3")).1;
        assert_eq!(
            again["fencingToken"], kept["fencingToken"],
            "it knows what was before: {again}"
        );
    }
    // The log does not lead there any more: it did go on from a snapshot.
    let first = first_entry(&zones.etcd.log_url(zones.prefix));
    assert!(first > slept_at + 1, "the log begins at {first}, it slept at {slept_at}");
}
