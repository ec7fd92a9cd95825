//! `sereno cluster dev`, as the README has people try it.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use support::{SERENO, sereno, signal, stdout};

/// The processes that it names.
fn processes(told: &[String]) -> Vec<u32> {
    let of = |line: &String| line.split_once("(process ")?.1.trim_end_matches(')').parse().ok();
    told.iter().filter_map(of).collect()
}

fn is_there(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|text| !text.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

/// What a node's `sereno status` says, once each node has told the others that it is linked, and etcd was looked at.
fn settled_status(server: &str) -> String {
    let begun = Instant::now();
    loop {
        let status = sereno(&["status", "--server", server]);
        let text = stdout(&status);
        let has = |part: &str, times: usize| text.matches(part).count() == times;
        if has("follows, heard of the leader ", 2) && has("etcd member ", 3) {
            assert!(status.status.success(), "{text}");
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{text}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// What an operator sees of all that, whichever node answers.
fn check_status(servers: &str) {
    let (mut leading, mut following) = (0, 0);
    for server in servers.split(',') {
        let text = settled_status(server);
        let row = |name: &str| {
            let found = text.lines().find(|line| line.split("  ").next() == Some(name));
            found.unwrap_or_else(|| panic!("{name} in {text}"))
        };
        assert!(row("serves").ends_with(" yes"), "{text}");
        assert!(row("etcd").ends_with("% of its quota used"), "{text}");
        let members = || text.lines().filter(|line| line.starts_with("etcd member "));
        assert!(members().all(|line| line.contains(": version ")), "{text}");
        assert_eq!(members().filter(|line| line.contains(", leads, ")).count(), 1, "{text}");
        let leader = row("leader");
        let is_leader = leader.contains("(this node)");
        // A standby tells when it heard of the leader, and how far it is behind.
        let is_standby = leader.contains("(heard of ") && leader.ends_with(" behind)");
        assert!(is_leader != is_standby && leader.contains(" at http://127.0.0.1:"), "{text}");
        leading += usize::from(is_leader);
        following += usize::from(is_standby);
        let table: Vec<_> = text.lines().skip_while(|line| !line.starts_with("NODE ")).collect();
        assert_eq!(table.len(), 4, "a head and three nodes: {text}");
        let has = |part: &str| table.iter().filter(|line| line.contains(part)).count();
        assert_eq!((has("; this node answers"), has("leads")), (1, 1), "{text}");
    }
    assert_eq!((leading, following), (1, 2));
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
    assert!(all.iter().all(|&pid| is_there(pid)));
    let export = told.iter().find_map(|line| line.trim().strip_prefix("export SERENO_SERVER="));
    let servers = export.unwrap();
    check_status(servers);
    // A node stops as any `sereno serve` does, though the one that started it has blocked the signal for itself.
    signal("-TERM", all[3]);
    let begun = Instant::now();
    while is_there(all[3]) {
        assert!(begun.elapsed() < Duration::from_secs(20), "a node can be stopped");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(sereno(&["lock", "try", "--server", servers, "--", "true"]).status.success());
    let folder = told.iter().find_map(|line| line.strip_prefix("folder")).unwrap().trim();
    signal("-INT", dev.id());
    let begun = Instant::now();
    let ended = dev.wait().unwrap();
    assert!(ended.success() && begun.elapsed() < Duration::from_secs(20), "{ended:?}");
    assert!(!all.iter().any(|&pid| is_there(pid)), "nothing is left");
    assert!(!std::path::Path::new(folder).exists(), "nor its folder");
}
