//! `sereno cluster dev`, as the README has people try it.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use support::{SERENO, sereno, signal};

/// The processes that it names.
fn processes(told: &[String]) -> Vec<u32> {
    let of = |line: &String| line.split_once("(process ")?.1.trim_end_matches(')').parse().ok();
    told.iter().filter_map(of).collect()
}

fn is_there(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|text| !text.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
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
