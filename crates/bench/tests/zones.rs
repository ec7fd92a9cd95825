//! Each command over three members of etcd and three nodes, once, small, against the real programs (Debian: etcd-server,
//! etcd-client). They tell what they should; whether a figure is good enough is asked on a quiet machine.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::Value;
use sereno_bench::{
    target::{Ask, EtcdTarget, Leases, RequestIds, Target},
    zones::Scrape,
};
use sereno_etcd_dev::{Cluster, Options};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use support::{count, run};

/// Seven processes each: one after the other.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed has left nothing behind.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn names<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|it| it[field].as_str().unwrap()).collect()
}

fn tells_where_it_comes_from(report: &Value, seed: Option<u64>) {
    let machine = &report["machine"];
    assert!(machine["commit"].as_str().is_some_and(|commit| !commit.is_empty()), "{machine}");
    assert!(machine["loadBefore"].as_f64().is_some(), "{machine}");
    assert_eq!(machine["seed"].as_u64(), seed, "{machine}");
}

#[test]
fn capacity_kills_a_node_and_a_member_between_two_phases() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("capacity.svg");
    let report = run(&format!(
        "capacity --acquires 100 --resources 2000 --active 100 --seconds 3 --every 1s --seed 9 --picture {}",
        picture.display()
    ));
    tells_where_it_comes_from(&report, Some(9));
    assert_eq!(names(&report["phases"], "name"), ["steady", "takeover", "degraded"]);
    assert_eq!(report["commandsPerSecond"], 210.0, "100 acquires, 100 releases, 10 renewals");
    let phases = report["phases"].as_array().unwrap();
    for phase in phases {
        assert!(count(&phase["operations"]["acquire"], "done") > 0, "{phase}");
        assert!(count(&phase["generatorLag"], "count") > 0, "{phase}");
    }
    let processes = |number: usize| count(&report["did"][number], "processes");
    assert_eq!([processes(0), processes(1)], [6, 4], "the leader and a member are gone");
    // Nobody announces before a second of silence.
    let slowest = count(&phases[1]["operations"]["acquire"]["latency"], "maxUs");
    assert!(slowest > 500_000, "somebody waited for the next leader: {slowest} µs");
    for number in [0, 1] {
        assert!(count(&report["did"][number], "commands") > 0, "{report}");
        assert!(report["did"][number]["othersCores"].as_f64().is_some(), "{report}");
    }
    let asked = names(&report["bounds"], "what");
    assert_eq!(asked.len(), 13, "{asked:?}");
    let drawn = std::fs::read_to_string(picture).unwrap();
    for text in ["steady", "leader and one etcd member killed", "degraded", "acquire: latency"] {
        assert!(drawn.contains(text), "{text}");
    }
}

#[test]
fn peers_on_one_etcd_are_compared_round_by_round() {
    let _turn = turn();
    let report = run(
        "peers --clients 4 --peers sereno-etcd,etcd-lock-shared-lease,etcd-lock-lease-per-lock \
                      --rounds 1 --seconds 1 --waiters 1",
    );
    tells_where_it_comes_from(&report, Some(1));
    let peers = ["sereno-etcd", "etcd-lock-shared-lease", "etcd-lock-lease-per-lock"];
    assert_eq!(names(&report["rows"], "peer"), peers);
    for row in report["rows"].as_array().unwrap() {
        assert!(row["cyclesPerSecond"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(count(row, "notDone"), 0, "{row}");
    }
    assert_eq!(names(&report["ratios"], "below"), peers[1..]);
    for ratio in report["ratios"].as_array().unwrap() {
        assert_eq!((count(ratio, "clients"), &ratio["above"]), (4, &"sereno-etcd".into()));
        for figure in ["cycles", "p99"] {
            assert!(ratio[figure]["median"].as_f64().unwrap() > 0.0, "{ratio}");
            assert_eq!(ratio[figure]["rounds"].as_array().unwrap().len(), 1, "{ratio}");
        }
    }
    let waits = report["waits"].as_array().unwrap();
    let timed: Vec<u64> = waits.iter().map(|wait| count(&wait["latency"], "count")).collect();
    assert!(timed[0] >= 200 && timed[1] >= 200, "hand-overs: {report}");
    assert_eq!(timed[2..], [20, 20], "dead holders: {report}");
    assert_eq!(report["waitRatios"].as_array().unwrap().len(), 2, "{report}");
}

#[test]
fn takeover_times_each_kill() {
    let _turn = turn();
    let report = run("takeover --tries 2");
    tells_where_it_comes_from(&report, None);
    let away = report["awayMs"].as_array().unwrap();
    assert_eq!(away.len(), 2, "{report}");
    assert!(away.iter().all(|ms| ms.as_u64().unwrap() > 0), "{report}");
}

#[test]
fn takeover_asks_a_leader_that_was_stopped_and_resumed() {
    let _turn = turn();
    let report = run("takeover --tries 1 --pause 5s");
    let resumed = &report["resumed"].as_array().unwrap()[0];
    assert!(count(resumed, "acknowledged") > 5, "{resumed}");
    assert_eq!((count(resumed, "lost"), count(resumed, "double")), (0, 0), "{resumed}");
}

#[test]
fn upkeep_is_there_only_when_it_should_be() {
    let _turn = turn();
    let report = run(
        "upkeep --acquires 100 --resources 2000 --active 100 --warm-up 2s --seconds 12 --rounds 1 \
                      --every 2s --minutes 0 --seed 3",
    );
    tells_where_it_comes_from(&report, Some(3));
    let found = report["measurements"].as_array().unwrap();
    let upkeep: Vec<bool> = found.iter().map(|it| it["upkeep"].as_bool().unwrap()).collect();
    assert_eq!(upkeep, [false, true], "{report}");
    for measurement in found {
        assert!(count(&measurement["acquire"], "count") > 0, "{measurement}");
        assert!(!measurement["sizes"].as_array().unwrap().is_empty(), "{measurement}");
    }
}

#[test]
fn restart_brings_a_standby_back_three_times() {
    let _turn = turn();
    let report = run("restart --commands 10000 --snapshot-every 20s --acquires 100");
    tells_where_it_comes_from(&report, Some(1));
    assert!(count(&report, "commands") >= 10_000, "{report}");
    assert_eq!(names(&report["restarts"], "when"), ["wholeLog", "halfway", "justBefore"]);
    for restart in report["restarts"].as_array().unwrap() {
        assert!(count(restart, "answeredMs") >= count(restart, "readyMs"), "{restart}");
        assert!(count(restart, "readyMs") > 0, "{restart}");
    }
}

/// Calls that a member has answered, by what etcd counts itself.
async fn calls(cluster: &Cluster) -> [u64; 4] {
    let address = cluster.endpoints()[0].parse().unwrap();
    let scrape = Scrape::of(address).await.unwrap();
    ["LeaseGrant", "Lock", "Unlock", "LeaseRevoke"].map(|method| {
        let label = format!("grpc_method=\"{method}\"");
        scrape.value("grpc_server_handled_total", &label) as u64
    })
}

/// A peer that makes more calls than it needs would make Sereno look better than it is.
#[test]
fn etcds_own_locks_make_no_call_too_many() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path(), Options { members: 1, ..Options::default() });
    let cluster = cluster.unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Grants, locks, unlocks, revokes; one lease more is granted when a client connects.
    let wanted = [
        (Leases::PerLock, [CYCLES + 1, CYCLES, 0, CYCLES]),
        (Leases::Shared, [1, CYCLES, CYCLES, 0]),
    ];
    for (leases, wanted) in wanted {
        let cycles = async { tokio::time::timeout(PATIENCE, cycle(&cluster, leases)).await };
        let made = runtime.block_on(cycles);
        assert_eq!(made.expect("each release has freed the lock"), wanted, "{leases:?}");
    }
}

const CYCLES: u64 = 5;
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes one name and gives it back, again and again; the calls that this took.
async fn cycle(cluster: &Cluster, leases: Leases) -> Vec<u64> {
    let before = calls(cluster).await;
    let endpoint = cluster.endpoints()[0].clone();
    let target = Target::Etcd(EtcdTarget { endpoint, leases, ttl_seconds: 60 });
    let (mut client, ids) = (target.connect().await.unwrap(), RequestIds::default());
    for _ in 0..CYCLES {
        let request_id = ids.next();
        let ask = Ask { resource: "one", request_id: &request_id, wait: None };
        client.acquire(&ask).await.unwrap();
        client.release("one", &request_id).await.unwrap();
    }
    let after = calls(cluster).await;
    after.iter().zip(before).map(|(now, then)| now - then).collect()
}
