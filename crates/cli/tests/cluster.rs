//! Three etcd members and three nodes as real processes: what breaks costs a pause, and never a second holder.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    process::{Command, Stdio},
    time::Instant,
};
use support::{
    SERENO,
    load::{Load, acquire, grow},
    sereno, signal, stderr, stdout,
    zones::{ZONES, Zones, decide, http, post, snapshot_beyond, wait_until},
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
    for part in ["whose log is in etcd", "sereno doctor --log", "the audit trail, and nothing else"]
    {
        assert!(stdout(&doctor).contains(part), "{doctor:?}");
    }
    let without = stdout(&sereno(&["doctor", "--data", folder.to_str().unwrap()]));
    assert!(without.ends_with("nothing was examined\n"), "{without}");
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

/// Overwrites the first chunk of the snapshot that was saved last but `newer`; its key.
fn damage_snapshot(zones: &Zones, newer: usize) -> String {
    let chunks = format!("{}/@chunk/", zones.prefix);
    let newest_first = ["--prefix", "--keys-only", "--sort-by=CREATE", "--order=DESCEND"];
    let keys = zones.etcd.ctl(&[&["get", &chunks], &newest_first[..]].concat()).unwrap();
    let is_first = |key: &&str| key.ends_with("/00000000");
    let key = keys.lines().filter(is_first).nth(newer).unwrap();
    zones.etcd.ctl(&["put", key, "no snapshot"]).unwrap();
    key.to_string()
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
    let first = zones.first_entry();
    assert!(first > slept_at + 1, "the log begins at {first}, it slept at {slept_at}");

    // The newest snapshot is damaged: every node goes on from the one before it.
    (0..3).for_each(|zone| zones.stop_node(zone));
    let newest = damage_snapshot(&zones, 0);
    (0..3).for_each(|zone| zones.start_node_at(zone, &urls[zone]));
    for url in &urls {
        wait_until(url, "it serves without the newest snapshot", |it| it["ready"] == true);
        let again =
            decide(std::slice::from_ref(url), "acquire", &acquire("kept", "kept-request-3"));
        assert_eq!(again.1["fencingToken"], kept["fencingToken"]);
    }
    // That was needed: without either of them no node serves, and the message says why.
    (0..3).for_each(|zone| zones.stop_node(zone));
    assert_ne!(damage_snapshot(&zones, 1), newest);
    let mut command = zones.node_command(0, "127.0.0.1:0");
    let ended = command.stderr(Stdio::piped()).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(
        stderr(&ended).contains("the chunks of a snapshot are not what was saved"),
        "{ended:?}"
    );
}

/// Puts values into etcd, as another user of it would, until `is_enough` of the bytes of its database's file.
fn fill(zones: &Zones, is_enough: impl Fn(u64) -> bool) -> Result<(), String> {
    let value = "x".repeat(100_000);
    for n in 0.. {
        let status = zones.etcd.ctl_member(0, &["endpoint", "status", "-w", "fields"]).unwrap();
        let bytes = status.lines().find_map(|line| line.strip_prefix("\"DBSize\" : "));
        if is_enough(bytes.unwrap().parse().unwrap()) {
            break;
        }
        let put = zones.etcd.ctl(&["put", &format!("other/{n}"), &value]);
        put.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Makes room as docs/cluster.md says.
fn make_room(zones: &Zones) {
    let ctl = |arguments: &[&str]| zones.etcd.ctl(arguments).unwrap();
    ctl(&["del", "--prefix", "other/"]);
    let status = ctl(&["endpoint", "status", "-w", "json"]);
    let revision = status.split("\"revision\":").nth(1).unwrap();
    ctl(&["compact", revision.split(|c: char| !c.is_ascii_digit()).next().unwrap()]);
    ctl(&["defrag", "--command-timeout=60s"]);
    ctl(&["alarm", "disarm"]);
}

#[test]
fn an_etcd_that_fills_up_is_noticed_before_and_when_it_stops_and_goes_on_when_there_is_room() {
    const QUOTA: u64 = 8 << 20;

    let etcd = sereno_etcd_dev::Options {
        arguments: vec!["--quota-backend-bytes".into(), QUOTA.to_string()],
        ..Default::default()
    };
    let zones = Zones::start_over(etcd, &["--etcd-quota", "8MiB"]);
    let urls = zones.urls();
    let mut keep = acquire("kept", "kept-request-4");
    keep["leaseTtl"] = json!("10m"); // Filling takes its time.
    let kept = decide(&urls, "acquire", &keep).1;

    fill(&zones, |bytes| bytes > QUOTA * 85 / 100).unwrap();
    let client = http();
    for url in &urls {
        wait_until(url, "it sees that", |it| it["etcd"]["quotaPercent"].as_u64() > Some(80));
        let (status, answer) =
            post(&client, url, "acquire", &acquire("new", "new-request-1")).unwrap();
        assert_eq!((status, &answer["code"]), (429, &json!("OVERLOADED")), "{answer}");
        assert!(answer["retryAfterMs"].is_u64(), "{answer}");
    }
    let lease = json!({"resource": "kept", "leaseId": kept["leaseId"]});
    assert_eq!(decide(&urls, "renew", &lease).0, 200, "what is left is for those who hold");
    assert_eq!(decide(&urls, "release", &lease).0, 200);

    let full = fill(&zones, |_| false).unwrap_err();
    assert!(full.contains("database space exceeded"), "{full}");
    for url in &urls {
        wait_until(url, "it sees that", |it| it["etcd"]["noSpace"] == true);
        let ready = client.get(format!("{url}/readyz")).send().unwrap();
        assert_eq!(ready.status().as_u16(), 503);
        assert!(ready.text().unwrap().contains("etcd has no space left"));
    }

    make_room(&zones);
    let (status, answer) = decide(&urls, "acquire", &acquire("new", "new-request-1"));
    assert_eq!((status, &answer["state"]), (200, &json!("granted")), "{answer}");
    for url in &urls {
        wait_until(url, "it serves", |it| it["ready"] == true && it["etcd"]["noSpace"] == false);
        assert_eq!(client.get(format!("{url}/readyz")).send().unwrap().status().as_u16(), 200);
    }
}
