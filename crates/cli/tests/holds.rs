//! `sereno hold` and `sereno holds` against a real service.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::{Value, json};
use std::process::Output;
use support::{Service, stderr, stdout};

fn service() -> (tempfile::TempDir, Service) {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(&folder.path().join("data"));
    (folder, service)
}

fn hold(service: &Service, owner: &str, more: &[&str]) -> Output {
    let arguments = ["hold", "--owner", owner, "--output", "json"];
    service.run(&[&arguments[..], more].concat())
}

/// One that has to be placed.
fn held(service: &Service, owner: &str, more: &[&str]) -> Value {
    serde_json::from_str(&stdout(&hold(service, owner, more))).unwrap()
}

/// The problem of one that must not be.
fn refused(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    serde_json::from_str(&stderr(output)).unwrap()
}

#[test]
fn the_last_pair_is_held_for_one_and_the_other_is_told_until_when() {
    let (_folder, service) = service();
    let first = held(&service, "cart-7", &["sku/42", "--ttl", "10m"]);
    assert_eq!((&first["resource"], &first["yours"]), (&json!("sku/42"), &json!(false)));
    assert_eq!(first["fenceKey"], "default/hold/sku/42");
    let again = held(&service, "cart-7", &["sku/42", "--ttl", "20m"]);
    assert_eq!((&again["yours"], &again["fence"]), (&json!(true), &first["fence"]));
    let ten_minutes = 600_000;
    assert!(again["expiresInMs"].as_u64().unwrap() <= ten_minutes, "not extended: {again}");

    let taken = refused(&hold(&service, "cart-8", &["sku/42"]));
    assert_eq!((&taken["code"], &taken["holder"]["owner"]), (&json!("TAKEN"), &json!("cart-7")));
    let left = taken["retryAfterMs"].as_u64().unwrap();
    assert!(left <= ten_minutes && left > ten_minutes - 60_000, "{taken}");
    let text = service.run(&["hold", "sku/42", "--owner", "cart-8"]);
    assert!(stderr(&text).contains("holds get"), "{text:?}");

    assert!(service.text(&["holds", "get", "sku/42"]).contains("cart-7"));
    assert!(service.text(&["holds", "get", "sku/43"]).contains("is free"));
    held(&service, "cart-9", &["sku/1"]);
    let rows = service.json(&["holds", "ls", "sku/", "--stale"]);
    let names: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["resource"]).collect();
    assert_eq!(names, [&json!("sku/1"), &json!("sku/42")], "by name");
    let mine = service.json(&["holds", "ls", "--owner", "cart-9"]);
    assert_eq!(mine.as_array().unwrap().len(), 1);

    let release = ["holds", "release", "sku/42", "--owner", "cart-7"];
    assert!(service.text(&release).contains("is free"));
    assert_eq!(service.run(&release).status.code(), Some(1), "it says that it did nothing");
    let next = held(&service, "cart-8", &["sku/42"]);
    assert!(next["fence"].as_u64() > first["fence"].as_u64());
}

#[test]
fn payment_has_a_deadline_of_its_own_and_wants_the_fence() {
    let (_folder, service) = service();
    let hold = held(&service, "cart-7", &["sku/42", "--ttl", "10m"]);
    let fence = hold["fence"].to_string();
    let act = |what: &str, more: &[&str]| {
        let arguments = ["holds", what, "sku/42", "--owner", "cart-7", "--output", "json"];
        service.run(&[&arguments[..], more].concat())
    };
    let renewed: Value = serde_json::from_str(&stdout(&act("renew", &["--ttl", "15m"]))).unwrap();
    assert_eq!((&renewed["fence"], &renewed["begun"]), (&hold["fence"], &json!(false)));
    let wrong = refused(&act("begin", &["--ttl", "5m", "--fence", "17"]));
    assert_eq!(wrong["code"], "NOT_HOLDER");
    let begun = act("begin", &["--ttl", "5m", "--fence", &fence]);
    let begun: Value = serde_json::from_str(&stdout(&begun)).unwrap();
    assert_eq!(begun["begun"], true);
    assert!(service.text(&["holds", "get", "sku/42"]).contains("payment     begun"));
    assert_eq!(refused(&act("release", &[]))["code"], "NOT_HOLDER", "not without the fence");
    stdout(&act("release", &["--fence", &fence]));
}

#[test]
fn several_are_all_held_or_none_and_one_replaces_another() {
    let (_folder, service) = service();
    let seats = held(&service, "anna", &["seat/1", "seat/2"]);
    assert_eq!(seats["holds"].as_array().unwrap().len(), 2);
    let taken = refused(&hold(&service, "ben", &["seat/3", "seat/2"]));
    assert_eq!(taken["inTheWay"][0]["resource"], "seat/2");
    assert_eq!(service.json(&["holds", "get", "seat/3"])["state"], "free");

    // Refused, it leaves the old one as it was.
    refused(&hold(&service, "ben", &["seat/1", "--replaces", "seat/9"]));
    held(&service, "ben", &["seat/9"]);
    refused(&hold(&service, "ben", &["seat/1", "--replaces", "seat/9"]));
    assert_eq!(service.json(&["holds", "get", "seat/9"])["holder"]["owner"], "ben");
    held(&service, "ben", &["seat/8", "--replaces", "seat/9"]);
    assert_eq!(service.json(&["holds", "get", "seat/9"])["state"], "free");
}

#[test]
fn caps_stop_hoarding_and_an_operator_ends_a_hold() {
    let (_folder, service) = service();
    let set = ["namespace", "set", "shop", "--holds-per-owner", "2", "--hold-cooldown", "1m"];
    service.text(&set);
    assert!(service.text(&["namespace", "get", "shop"]).contains("hold-cooldown        1m"));
    let in_shop = |seat| [seat, "--namespace", "shop"];
    for seat in ["seat/1", "seat/2"] {
        held(&service, "anna", &in_shop(seat));
    }
    let too_many = refused(&hold(&service, "anna", &in_shop("seat/3")));
    assert_eq!((&too_many["limit"], &too_many["max"]), (&json!("holdsPerOwner"), &json!(2)));
    service.text(&["holds", "release", "seat/1", "--owner", "anna", "--namespace", "shop"]);
    let too_soon = refused(&hold(&service, "anna", &in_shop("seat/1")));
    assert_eq!(too_soon["limit"], "holdCooldown");

    let end = ["holds", "force-release", "seat/2", "--reason", "a test", "--namespace", "shop"];
    service.text(&[&end[..], &["--whoever-has-it"]].concat());
    let nobody = service.run(&[&end[..], &["--whoever-has-it"]].concat());
    assert!(stderr(&nobody).contains("nobody has seat/2"), "{nobody:?}");
    assert!(service.text(&["audit"]).contains("shop/hold/seat/2"));
}
