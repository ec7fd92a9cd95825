//! A rolling upgrade between two levels: the versions run side by side under load, the level is raised once all
//! understand it, and a version that does not never serves again.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::Value;
use std::{process::Stdio, time::Duration};
use support::{
    load::Load,
    sereno, stderr, stdout,
    wait::until_some,
    zones::{Zones, wait_until},
};

/// The level that this version knows.
const NEW: u64 = 4;

fn raise(url: &str) -> std::process::Output {
    sereno(&["raise-level", "--to", &NEW.to_string(), "--server", url])
}

/// Whether what came with level 4 is refused, on every node alike.
fn knows_no_regions(urls: &[String]) -> bool {
    let http = reqwest::blocking::Client::new();
    // A node that has just lost its leader answers neither so nor so.
    let is_refused = |url: &String| {
        until_some("it answers", Duration::from_secs(20), || {
            let put = http.put(format!("{url}/v1/namespaces/away"));
            let put = put.header("content-type", "application/json");
            let answer = put.body(r#"{"expectedVersion":0,"home":"eu"}"#).send().unwrap();
            let (status, text) = (answer.status().as_u16(), answer.text().unwrap());
            let is_unknown = status == 503 && text.contains("belongs to level 4");
            // Made just now, or there already.
            (is_unknown || [201, 409].contains(&status)).then_some(is_unknown)
        })
    };
    let refused: Vec<_> = urls.iter().map(is_refused).collect();
    assert!(
        refused.iter().all(|&it| it == refused[0]),
        "all nodes go by the same level: {refused:?}"
    );
    refused[0]
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
    upgrade_from(1, is_told_of_no_floor);
}

/// The version before this one, under load: what is new is refused until the level is raised, and works from then on.
#[test]
fn the_version_before_is_upgraded_while_it_works() {
    upgrade_from(3, knows_no_regions);
}

/// `goes_by_old`: something that is so at the old level, and not at the new one.
fn upgrade_from(old: u64, goes_by_old: fn(&[String]) -> bool) {
    let old_level = old.to_string();
    // Makes a node what its older version was.
    let as_old = ["--level-max", old_level.as_str()];
    let mut zones = Zones::start_with(&as_old);
    let urls = zones.urls();
    let load = Load::start(&urls);
    load.goes_on();

    for zone in 0..3 {
        assert!(goes_by_old(&urls), "old and new versions go by level {old}");
        let refused = raise(&urls[zone]);
        assert!(!refused.status.success());
        assert!(stderr(&refused).contains("understands no higher one"), "{refused:?}");
        // One after the other, as docs/cluster.md says.
        zones.stop_node(zone);
        zones.start_node_at(zone, &urls[zone]);
        wait_until(&urls[zone], "the new version serves", |it| {
            it["ready"] == true && it["levelMax"] == NEW && it["level"] == old
        });
        load.goes_on();
    }
    let all_new =
        |it: &Value| it["peers"].as_array().unwrap().iter().all(|peer| peer["levelMax"] == NEW);
    urls.iter().for_each(|url| {
        wait_until(url, "every node knows that all are new", all_new);
    });
    let in_force = format!("level {NEW} is in force\n");
    assert_eq!(stdout(&raise(&urls[0])), in_force);
    for url in &urls {
        wait_until(url, "every node goes by the new level", |it| it["level"] == NEW);
    }
    assert!(!goes_by_old(&urls));
    load.goes_on();
    // There is no way back, and whoever asks for it is told so.
    let lower = sereno(&["raise-level", "--to", "2", "--server", &urls[0]]);
    assert_eq!(lower.status.code(), Some(1));
    let says = format!("asked for level 2, and level {NEW} is in force: a level is never lowered");
    assert!(stderr(&lower).contains(&says), "{lower:?}");
    assert_eq!(stdout(&raise(&urls[1])), in_force, "repeating does no harm");

    // An old version comes back: it says why not, and ends.
    zones.stop_node(2);
    let mut again = zones.node_command(2, "127.0.0.1:0");
    let ended = again.args(as_old).stderr(Stdio::piped()).output().unwrap();
    assert!(!ended.status.success());
    let says = format!("level {NEW}");
    assert!(stderr(&ended).contains(&says) && stderr(&ended).contains("upgrade"), "{ended:?}");
    zones.start_node_at(2, &urls[2]);
    load.goes_on();
    assert!(load.check() > 20);
}
