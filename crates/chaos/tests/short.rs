//! Chaos in small: two minutes of it, on real etcd, in whatever way this machine allows; and a few seconds in the way
//! that every machine allows. What is missing (etcd, `sereno`) fails the test with a message that names it.

use std::{
    process::Command,
    sync::{Mutex, PoisonError},
};

/// One at a time: each is six processes and their clients.
static TURN: Mutex<()> = Mutex::new(());

fn run(arguments: &[&str]) -> String {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(env!("CARGO_BIN_EXE_sereno-chaos")).args(arguments).output();
    let output = output.expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{errors}");
    println!("{printed}");
    printed
}

/// The number before `what`, for a run that has done nothing has not passed.
fn number(printed: &str, what: &str) -> usize {
    let (before, _) = printed.split_once(what).unwrap_or_else(|| panic!("no {what}: {printed}"));
    let digits = before.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no {what}: {printed}"))
}

/// Each kind of fault that was scheduled came about, but for what this machine does not allow.
fn each_fault_bit(printed: &str) {
    let lines: Vec<_> =
        printed.lines().filter_map(|it| it.trim().strip_prefix("fault: ")).collect();
    assert!(lines.len() >= 10, "{printed}");
    for line in lines {
        let (kind, counts) = line.split_once(": ").expect("a kind, and its counts");
        let done = number(counts, " of ");
        let allowed = !counts.contains("not possible on this machine");
        assert!(done > 0 || !allowed, "{kind}: {printed}");
    }
    assert!(printed.contains("holder stopped past its lease"), "{printed}");
}

#[test]
fn two_minutes_of_faults_break_no_promise() {
    let printed = run(&["--seed", "7", "--seconds", "120"]);
    assert!(printed.contains("mode: "), "it says how it ran: {printed}");
    assert!(printed.contains("violations: 0"), "{printed}");
    each_fault_bit(&printed);
    assert!(number(&printed, " answers compared with the log") >= 500, "{printed}");
    for (family, least) in
        [("locks", 500), ("elections", 100), ("holds", 100), ("jobs", 100), ("quotas", 200)]
    {
        assert!(number(&printed, &format!(" of {family}")) >= least, "{family}: {printed}");
    }
    assert!(number(&printed, " moments at which") >= 100, "{printed}");
    assert!(number(&printed, " nodes at the end") >= 8, "{printed}");
    let fenced = printed.lines().find(|line| line.contains("lock and fence: "));
    assert!(number(fenced.expect("it is told"), " written") > 0, "{printed}");
    assert!(number(&printed, " looks at guards that held") > 0, "{printed}");
    for measured in ["L1 holder dies: ", "L2 leader dies: ", "L1 both die: "] {
        assert!(printed.contains(measured), "{measured}is not measured: {printed}");
    }
}

#[test]
fn without_namespaces_it_runs_on_loopback() {
    let printed = run(&["--seed", "3", "--seconds", "15", "--mode", "loopback"]);
    assert!(printed.contains("mode: loopback"), "{printed}");
    assert!(printed.contains("violations: 0"), "{printed}");
    assert!(number(&printed, " answers compared with the log") >= 100, "{printed}");
}
