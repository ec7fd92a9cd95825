//! Each command that needs one server at most, once, small, against the real `sereno` program. Those over three zones are
//! in `zones.rs`.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::Value;
use support::{count, run};

/// Everything offered ended somehow.
fn is_complete(figures: &Value) {
    let refused: u64 =
        figures["refused"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let ends = ["done", "dropped", "unknown", "cancelled", "skipped"];
    let ended: u64 = ends.iter().map(|end| count(figures, end)).sum();
    assert_eq!(count(figures, "offered"), ended + refused, "{figures}");
}

#[test]
fn closed_counts_cycles() {
    let report = run("closed --serve memory --clients 8 --seconds 1 --warm-up 0");
    assert!(report["cyclesPerSecond"].as_f64().unwrap() > 0.0, "{report}");
    for name in ["acquire", "release"] {
        let figures = &report["operations"][name];
        is_complete(figures);
        assert_eq!(count(figures, "done"), count(figures, "offered"), "{report}");
        assert_eq!(count(&figures["latency"], "count"), count(figures, "done"));
    }
    assert!(report["serverCpu"]["cores"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn closed_waits_for_shared_names() {
    let report =
        run("closed --serve memory --clients 8 --seconds 1 --warm-up 0 --resources 2 --wait 5s");
    let figures = &report["operations"]["acquire"];
    assert_eq!(count(figures, "done"), count(figures, "offered"), "{report}");
}

#[test]
fn open_tells_what_became_of_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("latency.svg");
    let report = run(&format!(
        "open --serve memory --acquires 200 --resources 1000 --active 100 --renew-every 500ms --renew-batch 10 \
         --dying 0.05 --warm-up 1s --phase steady:2s --phase double:1s:2 --picture {}",
        picture.display()
    ));
    let phases = report["phases"].as_array().unwrap();
    assert_eq!(phases.iter().map(|phase| &phase["name"]).collect::<Vec<_>>(), ["steady", "double"]);
    for phase in phases {
        for (name, figures) in phase["operations"].as_object().unwrap() {
            is_complete(figures);
            assert_eq!(
                count(figures, "unknown") + count(figures, "dropped"),
                0,
                "{name}: {figures}"
            );
        }
    }
    let offered = |phase: usize| {
        let of = |name: &str| count(&phases[phase]["operations"][name], "offered");
        of("acquire") + of("acquireWaiting")
    };
    assert_eq!([offered(0), offered(1)], [400, 400], "the schedule, whatever the answers");
    for name in ["acquireWaiting", "handOver", "renewMany", "release", "abandon"] {
        assert!(phases[0]["operations"][name].is_object(), "{name}: {report}");
    }
    assert_eq!(report["lostLeases"], serde_json::json!({}), "{report}");
    assert!(std::fs::read_to_string(picture).unwrap().contains("acquire: latency"));
}

#[test]
fn memory_is_read_after_a_snapshot_of_the_full_state() {
    let report = run("memory --resources 1000 --active 20 --requests 1200 --snapshot-every 1s");
    assert_eq!(report["leases"], 20, "{report}");
    assert_eq!(report["replyRecords"], 1200, "{report}");
    let bytes = |when: &str, what: &str| report[when][what].as_u64().unwrap();
    assert!(bytes("rehearsed", "peakBytes") >= bytes("filled", "residentBytes"), "{report}");
}

#[test]
fn snapshots_are_running_when_they_should_be() {
    let report = run(
        "snapshot-impact --resources 1000 --active 20 --requests 1200 --acquires 100 --seconds 3 --rounds 1",
    );
    let saved: Vec<bool> = report["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| count(found, "saved") > 0)
        .collect();
    assert_eq!(saved, [false, true], "{report}");
    assert!(report["ratio"].as_f64().unwrap() > 0.0, "{report}");
}
