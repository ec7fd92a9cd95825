//! Many connections, too many, and idle ones.

use crate::harness::{Bench, acquire_body};
use serde_json::json;
use sereno_server::Config;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

async fn connect(bench: &Bench) -> TcpStream {
    TcpStream::connect(bench.url.strip_prefix("http://").unwrap()).await.unwrap()
}

async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 1_024];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

/// Sends requests in one piece, as a client that does not wait for answers.
async fn pipeline(bench: &Bench, requests: &[String]) -> TcpStream {
    let mut stream = connect(bench).await;
    stream.write_all(requests.concat().as_bytes()).await.unwrap();
    stream
}

fn acquire_request(resource: &str, more: serde_json::Value) -> String {
    let body = acquire_body(resource, more).to_string();
    format!(
        "POST /v1/locks/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What arrives first. An answer that waits for the one behind it would take its whole wait.
async fn first_answer(mut stream: TcpStream) -> String {
    let mut answer = vec![0; 4_096];
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut answer)).await;
    let length = read.expect("an answer does not wait for the next one").unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test]
async fn an_answer_does_not_wait_for_the_request_behind_it() {
    let bench = Bench::memory().await;
    bench.grant("held").await;
    let waits = acquire_request("held", json!({"waitTimeout": "20s"}));
    let stream = pipeline(&bench, &[acquire_request("free", json!({})), waits.clone()]).await;
    assert!(first_answer(stream).await.contains("\"state\":\"granted\""));
    let watch = "GET /v1/watch HTTP/1.1\r\nhost: localhost\r\n\r\n".to_string();
    let stream = pipeline(&bench, &[watch, waits]).await;
    assert!(first_answer(stream).await.starts_with("HTTP/1.1 200"));
}

async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer).await.is_err();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_a_freed_place_is_given_again() {
    let config = Config { max_connections: 3, ..Config::in_memory() };
    let bench = Bench::start_with(tempfile::tempdir().unwrap(), config).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(&bench).await;
        assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
        open.push(stream);
    }
    let refused = answer(&bench, "/v1/status").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused:?}");
    let (head, body) = refused.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    let problem: sereno_api::Problem = serde_json::from_str(body).unwrap();
    assert_eq!(problem.code, sereno_api::ErrorCode::Unavailable);
    // A supervisor that asks must not take a busy node for a dead one.
    for probe in ["/livez", "/readyz"] {
        assert!(answer(&bench, probe).await.starts_with("HTTP/1.1 200"), "{probe}");
    }
    // Who takes such a place and says nothing does not have it for long.
    let silent = tokio::time::timeout(Duration::from_secs(10), rest(connect(&bench).await)).await;
    assert!(silent.is_ok(), "it is closed");
    drop(open.pop());
    // The server sees the end of the connection a moment later.
    while answer(&bench, "/v1/status").await.starts_with("HTTP/1.1 503") {}
}

/// The whole answer over a connection of its own.
async fn answer(bench: &Bench, path: &str) -> String {
    let mut stream = connect(bench).await;
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let _closed = stream.write_all(head.as_bytes()).await;
    rest(stream).await
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let config = Config { idle_timeout: Duration::from_secs(1), ..Config::in_memory() };
    let bench = Bench::start_with(tempfile::tempdir().unwrap(), config).await;
    let silent = connect(&bench).await;
    let mut used = connect(&bench).await;
    assert!(ask(&mut used).await.starts_with("HTTP/1.1 200"));
    let mut slow = connect(&bench).await;
    slow.write_all(b"GET /livez HTTP/1.1\r\nhost: lo").await.unwrap();
    for stream in [silent, used, slow] {
        let rest = tokio::time::timeout(Duration::from_secs(10), rest(stream)).await;
        let rest = rest.expect("it is closed");
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{rest:?}");
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

#[tokio::test]
async fn thousands_of_idle_connections_cost_little_and_disturb_nobody() {
    let bench = Bench::memory().await;
    let mut first = connect(&bench).await;
    ask(&mut first).await;
    let before = resident_bytes();
    let mut idle = Vec::new();
    for _ in 0..4_000 {
        idle.push(connect(&bench).await);
    }
    assert!(ask(&mut first).await.starts_with("HTTP/1.1 200"));
    bench.grant("a").await;
    // All that they can cost: the accepting side has caught up when its newest one is answered.
    assert!(ask(idle.last_mut().unwrap()).await.starts_with("HTTP/1.1 200"));
    let each = (resident_bytes().saturating_sub(before)) / 4_000;
    assert!(each < 24 << 10, "{each} bytes for each idle connection, both ends together");
    bench.stop().await;
}
