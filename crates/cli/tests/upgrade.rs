//! A rolling upgrade between two levels: the versions run side by side under load, the level is raised once all
//! understand it, and a version that does not never serves again.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::Value;
use std::process::Stdio;
use support::{
    load::Load,
    sereno, stderr, stdout,
    zones::{Zones, wait_until},
};

/// Makes a node what its older version was.
const OLD: [&str; 2] = ["--level-max", "1"];

fn raise(url: &str) -> std::process::Output {
    sereno(&["raise-level", "--to", "3", "--server", url])
}

/// Sets a floor that changes nothing: level 1 tells of it in every node's audit trail, the later ones do not.
fn is_told_of_no_floor(urls: &[String]) -> bool {
    let told = |url: &String| {
        let trail = stdout(&sereno(&["audit", "--output", "json", "--server", url]));
        trail.matches("tokenFloorSet").count()
    };
    let before: Vec<_> = urls.iter().map(told).collect();
    let set =
        stdout(&sereno(&["token-floor", "--set", "1", "--output", "json", "--server", &urls[0]]));
    let revision = serde_json::from_str::<Value>(&set).unwrap()["revision"].as_u64();
    let rises = |url: &String, before: usize| {
        wait_until(url, "it has applied that", |it| it["revision"].as_u64() >= revision);
        told(url) > before
    };
    let rise: Vec<_> = urls.iter().zip(before).map(|(url, before)| rises(url, before)).collect();
    assert!(rise.iter().all(|&it| it == rise[0]), "all nodes go by the same level: {rise:?}");
    rise[0]
}

#[test]
fn a_level_is_raised_once_all_understand_it() {
    let mut zones = Zones::start_with(&OLD);
    let urls = zones.urls();
    let load = Load::start(&urls);
    load.goes_on();

    for zone in 0..3 {
        assert!(is_told_of_no_floor(&urls), "old and new versions go by level 1");
        let refused = raise(&urls[zone]);
        assert!(!refused.status.success());
        assert!(stderr(&refused).contains("understands no higher one"), "{refused:?}");
        // One after the other, as docs/cluster.md says.
        zones.stop_node(zone);
        zones.start_node_at(zone, &urls[zone]);
        wait_until(&urls[zone], "the new version serves", |it| {
            it["ready"] == true && it["levelMax"] == 3 && it["level"] == 1
        });
        load.goes_on();
    }
    let all_new =
        |it: &Value| it["peers"].as_array().unwrap().iter().all(|peer| peer["levelMax"] == 3);
    urls.iter().for_each(|url| {
        wait_until(url, "every node knows that all are new", all_new);
    });
    assert_eq!(stdout(&raise(&urls[0])), "level 3 is in force\n");
    for url in &urls {
        wait_until(url, "every node goes by the new level", |it| it["level"] == 3);
    }
    assert!(!is_told_of_no_floor(&urls));
    load.goes_on();
    // There is no way back, and whoever asks for it is told so.
    let lower = sereno(&["raise-level", "--to", "2", "--server", &urls[0]]);
    assert_eq!(lower.status.code(), Some(1));
    let says = "asked for level 2, and level 3 is in force: a level is never lowered";
    assert!(stderr(&lower).contains(says), "{lower:?}");
    assert_eq!(stdout(&raise(&urls[1])), "level 3 is in force\n", "repeating does no harm");

    // An old version comes back: it says why not, and ends.
    zones.stop_node(2);
    let mut old = zones.node_command(2, "127.0.0.1:0");
    let ended = old.args(OLD).stderr(Stdio::piped()).output().unwrap();
    assert!(!ended.status.success());
    assert!(stderr(&ended).contains("level 3") && stderr(&ended).contains("upgrade"), "{ended:?}");
    zones.start_node_at(2, &urls[2]);
    load.goes_on();
    assert!(load.check() > 20);
}
