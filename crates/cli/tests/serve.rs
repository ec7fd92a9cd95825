//! `sereno serve` as a process: how it ends when it cannot go on.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use sereno_etcd_dev::{Certificates, Cluster, Options, scratch_folder};
use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use support::{SERENO, Service, signal, stderr, stdout};

/// A service that is told to stop while a call's body is still missing, which it waits for, for some seconds.
fn stopping() -> (tempfile::TempDir, Service, TcpStream) {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::of(Service::command(&folder.path().join("data")).stderr(Stdio::piped()));
    let mut call = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    let head = "POST /v1/locks/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 100\r\n\r\n{";
    call.write_all(head.as_bytes()).unwrap();
    // Answered after it, so the call above has been taken.
    stdout(&service.run(&["status"]));
    signal("-TERM", service.child.id());
    (folder, service, call)
}

fn said(service: &mut Service) -> String {
    let mut said = String::new();
    service.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said
}

#[test]
fn signals_at_once_are_one_request_to_stop() {
    let (_folder, mut service, call) = stopping();
    for name in ["-TERM", "-INT", "-TERM"] {
        signal(name, service.child.id());
    }
    assert!(service.child.try_wait().unwrap().is_none(), "it answers what is in flight first");
    drop(call);
    assert_eq!(service.child.wait().unwrap().code(), Some(0), "{}", said(&mut service));
}

#[test]
fn a_later_signal_quits_at_once() {
    let (_folder, mut service, _call) = stopping();
    thread::sleep(Duration::from_millis(600)); // Time itself makes it another request.
    let asked = Instant::now();
    signal("-TERM", service.child.id());
    assert_eq!(service.child.wait().unwrap().code(), Some(1));
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    let said = said(&mut service);
    assert!(said.contains("came while stopping") && !said.contains("panicked"), "{said}");
}

#[test]
fn a_data_folder_taken_away_ends_the_service_with_one_line_and_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut service = Service::of(Service::command(&data).stderr(Stdio::piped()));
    stdout(&service.run(&["lock", "a", "--", "true"]));
    fs::remove_dir_all(&data).unwrap();
    let status = service.child.wait().unwrap();
    assert_eq!(status.code(), Some(1), "it ends by itself, and not by a signal");
    let mut said = String::new();
    service.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("sereno: ") && last.contains("was deleted, moved"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_signal_ends_a_node_that_waits_for_an_etcd_that_does_not_answer() {
    for name in ["-TERM", "-INT"] {
        let folder = tempfile::tempdir().unwrap();
        // Somebody listens, and never says a word.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let log = format!("etcd://{}/test", silent.local_addr().unwrap());
        let mut command = Command::new(SERENO);
        command.args(["serve", "--http", "127.0.0.1:0", "--node-id", "a", "--log", &log, "--data"]);
        command.arg(folder.path().join("data")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let _asked = silent.accept().unwrap();
        let begun = Instant::now();
        signal(name, child.id());
        let ended = child.wait_with_output().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        assert!(ended.stdout.is_empty(), "it never said that it serves: {ended:?}");
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(said.contains("asked to stop before it served"), "{said}");
    }
}

/// An etcd that lets in nobody without a certificate and a password, and what a client of it needs.
struct Guarded {
    folder: PathBuf,
    certificates: Certificates,
    etcd: Cluster,
}

impl Guarded {
    fn start() -> Self {
        let folder = scratch_folder().unwrap();
        let certificates = Certificates::make(&folder).unwrap();
        let tls = Some(certificates.tls(true));
        let options = Options { members: 1, tls, ..Options::default() };
        let etcd = Cluster::start(&folder.join("etcd"), options).unwrap();
        for line in [
            "user add root:secret",
            "user grant-role root root",
            "role add sereno",
            "role grant-permission --prefix=true sereno readwrite test/",
            "user add ana:pw",
            "user grant-role ana sereno",
            "auth enable",
        ] {
            etcd.ctl(&line.split(' ').collect::<Vec<_>>()).unwrap();
        }
        fs::write(folder.join("password"), "pw\n").unwrap();
        fs::write(folder.join("wrong"), "wp\n").unwrap();
        Self { folder, certificates, etcd }
    }

    /// A command that is told of this log, and of the password in this file.
    fn command(&self, arguments: &[&str], password: &str) -> Command {
        let mut command = Command::new(SERENO);
        command.args(arguments).args(["--log", &self.etcd.log_url("test"), "--etcd-user", "ana"]);
        command.arg("--etcd-password-file").arg(self.folder.join(password));
        for (option, file) in [("ca", "ca.pem"), ("cert", "client.pem"), ("key", "client.key")] {
            command.arg(format!("--etcd-{option}")).arg(self.certificates.file(file));
        }
        command
    }

    fn node(&self, password: &str) -> Command {
        let arguments =
            ["serve", "--http", "127.0.0.1:0", "--node-id", "a", "--log-level", "error", "--data"];
        let data = self.folder.join("data");
        self.command(&[&arguments[..], &[text(&data)]].concat(), password)
    }

    fn backup(&self, password: &str) -> Output {
        let to = self.folder.join("backup");
        self.command(&["backup", "--to", text(&to)], password).output().unwrap()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.etcd.kill(0);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_node_and_a_backup_are_let_in_by_an_etcd_that_wants_a_certificate_and_a_password() {
    let guarded = Guarded::start();
    let refused = guarded.node("wrong").output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(stderr(&refused).contains("authentication failed"), "{refused:?}");
    let service = Service::of(&mut guarded.node("password"));
    stdout(&service.run(&["lock", "a", "--", "true"]));
    let etcd = &service.json(&["status"])["etcd"];
    assert_eq!(etcd["members"][0]["leads"], true, "its member is asked, too: {etcd}");
    let refused = guarded.backup("wrong");
    assert!(stderr(&refused).contains("authentication failed"), "{refused:?}");
    stdout(&guarded.backup("password"));
    service.stop();
}
