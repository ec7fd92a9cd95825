//! `sereno cluster dev`, as the README has people try it.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use support::{
    SERENO, sereno, signal, stdout,
    wait::{alive, until},
    zones::wait_until,
};

/// The processes that it names.
fn processes(told: &[String]) -> Vec<u32> {
    let of = |line: &String| line.split_once("(process ")?.1.trim_end_matches(')').parse().ok();
    told.iter().filter_map(of).collect()
}

/// `host:port` of the members of etcd that it names.
fn members(told: &[String]) -> Vec<&str> {
    let lines = told.iter().filter(|line| line.starts_with("etcd "));
    lines.map(|line| line.split_whitespace().nth(1).unwrap()).collect()
}

/// Whether a node has seen all the others, and each of them, itself included, has heard of the leader.
fn sees_all(status: &Value) -> bool {
    let leader = &status["leader"]["nodeId"];
    let peers = status["peers"].as_array().unwrap();
    let hears = |node: &Value| node["nodeId"] == *leader || node["leaderHeardMs"].is_u64();
    let answers = |member: &Value| member.get("fault").is_none();
    let etcd = status["etcd"]["members"].as_array();
    peers.len() == 2
        && hears(status)
        && peers.iter().all(hears)
        && etcd.is_some_and(|members| members.len() == 3 && members.iter().all(answers))
}

/// A node's status as JSON once it is as it should be, and in words: of a time when the same node led.
fn settled(node: &str) -> (Value, String) {
    loop {
        let status = wait_until(node, "it knows of all", sees_all);
        let text = stdout(&sereno(&["status", "--server", node]));
        let after = wait_until(node, "it answers", |_| true);
        if sees_all(&after) && after["leader"] == status["leader"] {
            return (status, text);
        }
    }
}

/// Every row of a service of several nodes is there and says what is.
fn check_status(node: &str, members: &[&str]) {
    let (status, text) = settled(node);
    let lines = |start: &str| -> Vec<&str> {
        text.lines().filter(|line| line.split("  ").next() == Some(start)).collect()
    };
    let row = |start: &str| match lines(start)[..] {
        [line] => line,
        _ => panic!("one row {start:?} in {text}"),
    };
    let own = status["nodeId"].as_str().unwrap();
    assert!(row("node").contains(own) && row("serves").ends_with("yes"), "{text}");
    let leader = |field: &str| status["leader"][field].as_str().unwrap();
    let named = format!("{} at {}, epoch ", leader("nodeId"), leader("address"));
    let heard = if own == leader("nodeId") { "(this node)" } else { " behind)" };
    assert!(row("leader").contains(&named) && row("leader").ends_with(heard), "{text}");
    // The others, each with its address and what it does.
    for peer in status["peers"].as_array().unwrap() {
        let field = |name: &str| peer[name].as_str().unwrap();
        let does = match field("nodeId") == leader("nodeId") {
            true => "leads",
            false => "heard of the leader ",
        };
        let is_shown = |line: &&str| {
            [field("nodeId"), field("address"), field("version"), does]
                .iter()
                .all(|part| line.contains(part))
        };
        let rows = text.lines().filter(|line| !line.starts_with("leader ")).filter(is_shown);
        assert_eq!(rows.count(), 1, "{peer} in {text}");
    }
    // The etcd below.
    assert!(row("etcd").ends_with(" % of its quota used"), "{text}");
    let rows = lines("etcd member");
    assert_eq!(rows.len(), 3, "{text}");
    for (row, member) in rows.iter().zip(members) {
        assert!(row.contains(&format!("{member}: version 3.")), "{text}");
        assert!(row.contains(" bytes (") && row.ends_with(" in use)"), "{text}");
    }
    assert_eq!(rows.iter().filter(|row| row.contains(", leads, ")).count(), 1, "{text}");
}

#[test]
fn one_signal_stops_all_of_it() {
    let mut command = Command::new(SERENO);
    let mut dev = command.args(["cluster", "dev"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = Vec::new();
    for line in BufReader::new(dev.stdout.take().unwrap()).lines() {
        told.push(line.unwrap());
        if told.last().unwrap().contains("Ctrl-C") {
            break;
        }
    }
    let all = processes(&told);
    assert_eq!(all.len(), 6, "three members and three nodes: {told:?}");
    assert!(all.iter().all(|&pid| alive(pid)));
    let export = told.iter().find_map(|line| line.trim().strip_prefix("export SERENO_SERVER="));
    let servers = export.unwrap();
    servers.split(',').for_each(|node| check_status(node, &members(&told)));
    // A node stops as any `sereno serve` does, though the one that started it has blocked the signal for itself.
    signal("-TERM", all[3]);
    until("a node can be stopped", Duration::from_secs(20), || !alive(all[3]));
    assert!(sereno(&["lock", "try", "--server", servers, "--", "true"]).status.success());
    let folder = told.iter().find_map(|line| line.strip_prefix("folder")).unwrap().trim();
    signal("-INT", dev.id());
    let begun = Instant::now();
    let ended = dev.wait().unwrap();
    assert!(ended.success() && begun.elapsed() < Duration::from_secs(20), "{ended:?}");
    assert!(!all.iter().any(|&pid| alive(pid)), "nothing is left");
    assert!(!std::path::Path::new(folder).exists(), "nor its folder");
}
