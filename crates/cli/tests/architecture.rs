//! Holds what ARCHITECTURE.md says is absent on purpose, by reading cargo's metadata and the sources.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// What each crate of the workspace depends on outside of its tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let packages = metadata["packages"].as_array().unwrap();
    let of = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap();
        // A kind of `null` is a normal dependency; the others are for tests and build scripts.
        all.iter().filter(|one| one["kind"].is_null()).map(|one| text(&one["name"])).collect()
    };
    packages.iter().map(|package| (text(&package["name"]), of(package))).collect()
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

#[test]
fn dependencies_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("sereno-core", &[] as &[_]),
        ("sereno-etcd-dev", &[]),
        ("sereno-guard", &["sereno-client"]),
        ("sereno-postgres-dev", &["sereno-etcd-dev"]),
        ("sereno-log", &["sereno-core"]),
        ("sereno-node", &["sereno-core", "sereno-log"]),
        ("sereno-sim", &["sereno-core", "sereno-log", "sereno-node"]),
        ("sereno-api", &[]),
        ("sereno-schedule", &[]),
        ("sereno-client", &["sereno-api", "sereno-schedule"]),
        (
            "sereno-server",
            &["sereno-api", "sereno-core", "sereno-log", "sereno-node", "sereno-schedule"],
        ),
    ]);
    let dependencies = dependencies();
    for (name, allowed) in allowed {
        let ours = dependencies[name].iter().filter(|other| other.starts_with("sereno-"));
        for other in ours {
            assert!(allowed.contains(&other.as_str()), "{name} must not depend on {other}");
        }
    }
}

#[test]
fn only_their_own_crates_know_the_world() {
    // Who may name what: the runtime, JSON, the web, the engines.
    let only: [(&str, &[&str]); 11] = [
        (
            "serde_json",
            &[
                "sereno-api",
                "sereno-server",
                "sereno-client",
                "sereno-guard",
                "sereno-cli",
                "sereno-bench",
                "sereno-chaos",
            ],
        ),
        (
            "serde",
            &[
                "sereno-api",
                "sereno-server",
                "sereno-client",
                "sereno-cli",
                "sereno-bench",
                "sereno-chaos",
            ],
        ),
        ("axum", &["sereno-server"]),
        ("hyper", &["sereno-server", "sereno-client", "sereno-guard", "sereno-bench"]),
        ("reqwest", &["sereno-client", "sereno-chaos"]),
        ("rusqlite", &["sereno-log", "sereno-guard"]),
        ("tokio-postgres", &["sereno-guard", "sereno-bench"]),
        ("etcd-client", &["sereno-log", "sereno-bench"]),
        ("tonic", &["sereno-log"]),
        (
            "rand",
            &[
                "sereno-log",
                "sereno-node",
                "sereno-server",
                "sereno-client",
                "sereno-cli",
                "sereno-bench",
                "sereno-chaos",
            ],
        ),
        ("clap", &["sereno-server", "sereno-cli", "sereno-bench", "sereno-chaos"]),
    ];
    let ours = dependencies().into_iter().filter(|(name, _)| !is_example(name));
    for (name, dependencies) in ours {
        for (library, allowed) in only {
            let knows = dependencies.contains(library);
            assert!(!knows || allowed.contains(&name.as_str()), "{name} must not know {library}");
        }
        let pure = name == "sereno-core";
        assert!(!(pure && dependencies.contains("tokio")), "core knows no runtime");
    }
}

/// They stand for programs of users.
fn is_example(name: &str) -> bool {
    name.starts_with("example-")
}

#[test]
fn examples_are_users() {
    // `example-stage` is what their tests stand on.
    let may = ["sereno-client", "sereno-guard"];
    for (name, dependencies) in
        dependencies().into_iter().filter(|(name, _)| name != "example-stage")
    {
        let ours = dependencies.iter().filter(|other| other.starts_with("sereno-"));
        for other in ours.filter(|_| is_example(&name)) {
            assert!(may.contains(&other.as_str()), "{name} must not depend on {other}");
        }
        assert!(
            !dependencies.iter().any(|other| is_example(other)),
            "{name} depends on an example"
        );
    }
}

#[test]
fn the_core_is_a_pure_function() {
    let banned = [
        "std::time",
        "Instant",
        "SystemTime",
        "std::fs",
        "std::net",
        "std::env",
        "std::thread",
        "async fn",
        ".await",
        "rand::",
        "f32",
        "f64",
        "println!",
        "static mut",
        "unsafe",
    ];
    for (path, text) in sources(&root().join("crates/core/src")) {
        for word in banned {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let hit = code.into_iter().find(|line| line.contains(word));
            assert!(hit.is_none(), "{} has {word:?}: {}", path.display(), hit.unwrap());
        }
    }
}

#[test]
fn only_the_driver_knows_the_runtime() {
    let may = ["driver", "handle.rs", "events.rs", "replay.rs"];
    for (path, text) in sources(&root().join("crates/node/src")) {
        let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let is_test = parts.contains(&"tests") || parts.last().unwrap().ends_with("tests.rs");
        let knows = text.contains("tokio::") && !is_test;
        let may = may.iter().any(|name| parts.contains(name));
        assert!(!knows || may, "{} must stay sans-I/O", path.display());
    }
}

#[test]
fn planted_bugs_stay_in_the_simulator() {
    for (name, dependencies) in dependencies() {
        assert!(!dependencies.contains("sereno-sim"), "{name} must not depend on the simulator");
        let folder = root().join("crates").join(name.trim_start_matches("sereno-"));
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let mut lines = manifest.lines().filter(|line| !line.starts_with('#'));
        let may = ["sereno-core", "sereno-sim"].contains(&name.as_str());
        assert!(may || !lines.any(|line| line.contains("planted")), "{name} plants bugs");
        let default = manifest.lines().find(|line| line.starts_with("default ="));
        assert_eq!(default, None, "{name} switches features on by itself");
    }
}

#[test]
fn every_limit_is_documented() {
    let limits = fs::read_to_string(root().join("crates/core/src/limits.rs")).unwrap();
    let page = fs::read_to_string(root().join("docs/limits.md")).unwrap();
    let names = limits.lines().filter_map(|line| line.strip_prefix("pub const "));
    let names: Vec<_> = names.map(|rest| rest.split(':').next().unwrap()).collect();
    assert!(names.len() > 30, "the limits are found: {names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/limits.md does not tell of {name}");
    }
}

#[test]
fn every_alarm_is_explained() {
    let rules = fs::read_to_string(root().join("docs/alerts.yml")).unwrap();
    let page = fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let names = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let names: Vec<_> = names.collect();
    assert!(names.len() > 20, "the rules are found: {names:?}");
    for name in names {
        let rows = page.lines().filter(|line| line.starts_with(&format!("| `{name}` |")));
        assert_eq!(rows.count(), 1, "docs/operating.md does not say once what {name} means");
    }
}

#[test]
fn the_nodes_secret_gets_into_no_image_and_no_commit() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let compose = read("deploy/docker-compose.yml");
    let file = compose.lines().find_map(|line| line.trim().strip_prefix("file: ./")).unwrap();
    for list in [".dockerignore", ".gitignore"] {
        for name in [format!("/deploy/{file}").as_str(), "/target"] {
            assert!(read(list).lines().any(|line| line == name), "{list} does not name {name}");
        }
    }
}
