//! The server itself. What can be done with it is seen where it is used.

use sereno_postgres_dev::Server;
use std::process::Command;

#[test]
fn it_survives_a_crash_and_leaves_nothing_behind() {
    let mut server = Server::start().unwrap();
    assert!(server.url().starts_with("postgres://sereno@127.0.0.1:"), "{}", server.url());
    let url = server.create_database("other").unwrap();
    assert!(url.ends_with("/other"), "{url}");
    assert!(server.create_database("other").is_err(), "it is there already");
    server.kill();
    assert_eq!(server.process_id(), None);
    server.restart().unwrap();
    assert!(server.create_database("other").is_err(), "and still is");
    let process = server.process_id().unwrap().to_string();
    drop(server);
    let is_alive = Command::new("kill").args(["-0", &process]).output().unwrap().status.success();
    assert!(!is_alive);
}

#[test]
fn settings_that_make_no_sense_are_told() {
    let error = Server::with_settings(&["no_such_setting=1"]).unwrap_err().to_string();
    assert!(error.contains("no_such_setting"), "{error}");
}
