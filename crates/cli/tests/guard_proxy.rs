//! `sereno guard-proxy`, as a process before a service that cannot check tokens.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use support::{SERENO, Service, signal, stderr, upstream::Upstream};

const KEY: &str = "default/lock/ledger";

struct Proxy {
    child: Child,
    url: String,
}

impl Proxy {
    fn command(upstream: &Upstream, data: &Path, options: &[&str]) -> Command {
        let mut command = Command::new(SERENO);
        command.env_remove("SERENO_SERVER");
        command.args(["guard-proxy", "--listen", "127.0.0.1:0", "--upstream", &upstream.url]);
        command.arg("--data").arg(data).args(options);
        command
    }

    fn start(upstream: &Upstream, data: &Path, options: &[&str]) -> Self {
        let mut command = Self::command(upstream, data, options);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.find("http://").unwrap_or_else(|| panic!("no address in {line:?}"));
        Self { child, url: line[at..].trim().to_string() }
    }

    fn kill_9(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A POST with a token.
    fn write(&self, path: &str, token: u64) -> Answer {
        Answer::to(client().post(format!("{}{path}", self.url)).body("b"), Some(token)).unwrap()
    }

    /// The same, while others go on.
    fn begin(&self, path: &str, token: u64) -> JoinHandle<Answer> {
        let request = client().post(format!("{}{path}", self.url)).body("b");
        thread::spawn(move || Answer::to(request, Some(token)).unwrap())
    }

    /// Waits until a request with this token has been seen by the proxy, though it may wait there for its turn.
    fn until_known(&self, token: u64) {
        let refused = || self.write("/probe", 1);
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let answer = refused();
            assert_eq!(answer.status, 412, "{answer:?}");
            if answer.json()["highest"].as_u64().unwrap() >= token {
                return;
            }
            assert!(Instant::now() < end);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client() -> reqwest::blocking::Client {
    reqwest::blocking::Client::builder().timeout(Duration::from_secs(60)).build().unwrap()
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: reqwest::header::HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn to(request: reqwest::blocking::RequestBuilder, token: Option<u64>) -> reqwest::Result<Self> {
        let request = match token {
            Some(token) => request.header("Sereno-Fence-Key", KEY).header("Sereno-Token", token),
            None => request,
        };
        let answer = request.send()?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Ok(Self { status, headers, body: answer.bytes()?.to_vec() })
    }

    fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/problem+json");
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[test]
fn it_passes_on_what_is_in_order_and_refuses_older_tokens() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let proxy = Proxy::start(&upstream, data.path(), &[]);
    let answer = proxy.write("/accounts/1?x=y", 7);
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"b".as_slice()));
    assert_eq!(answer.headers["x-upstream"], "yes");
    assert!(!answer.headers.contains_key("x-private"), "it was meant for the proxy: {answer:?}");
    let seen = upstream.seen().remove(0);
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/accounts/1?x=y"));
    assert_eq!((seen.token(), seen.header("sereno-fence-key")), (7, Some(KEY)));
    assert_eq!(seen.header("host"), Some(upstream.url.trim_start_matches("http://")));

    assert_eq!(proxy.write("/", 7).status, 200, "an equal one");
    let refused = proxy.write("/", 6);
    assert_eq!(refused.status, 412);
    let problem = refused.json();
    assert_eq!((&problem["code"], &problem["outcome"]), (&"FENCED".into(), &"notApplied".into()));
    assert_eq!((&problem["token"], &problem["highest"]), (&6.into(), &7.into()));
    assert_eq!(problem["fenceKey"], KEY);
    // A read with a token is asked like a write: it is how an owner shows its token before it reads.
    let get = |token| Answer::to(client().get(&proxy.url), Some(token)).unwrap().status;
    assert_eq!((get(6), get(9), get(7)), (412, 200, 412));
    let other = client()
        .post(&proxy.url)
        .header("Sereno-Fence-Key", "default/lock/b")
        .header("Sereno-Token", "1");
    assert_eq!(other.send().unwrap().status(), 200);
    assert_eq!(upstream.tokens(), [7, 7, 9, 1]);
}

#[test]
fn requests_without_a_token() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    for (options, get, post) in
        [(&[] as &[&str], 200, 428), (&["--require"], 428, 428), (&["--allow-unfenced"], 200, 200)]
    {
        let proxy = Proxy::start(&upstream, data.path(), options);
        let status = |request| Answer::to(request, None).unwrap().status;
        assert_eq!(status(client().get(&proxy.url)), get, "{options:?}");
        assert_eq!(status(client().post(&proxy.url)), post, "{options:?}");
        assert_eq!(status(client().post(&proxy.url).header("Sereno-Token", "7")), 400);
        assert_eq!(status(client().get(&proxy.url).header("Sereno-Fence-Key", KEY)), 400);
    }
}

#[test]
fn a_newer_token_waits_for_older_writes_and_ends_them() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let proxy = Proxy::start(&upstream, data.path(), &[]);
    let first = proxy.begin("/hold/a", 5);
    let second = proxy.begin("/hold/b", 5);
    upstream.until("both, side by side", |seen| seen.len() == 2);
    let newer = proxy.begin("/", 7);
    proxy.until_known(7);
    assert_eq!(proxy.write("/", 5).status, 412, "no older one goes before it");
    upstream.release("a");
    assert_eq!(first.join().unwrap().status, 200);
    assert_eq!(upstream.tokens(), [5, 5], "the second is still in flight");
    upstream.release("b");
    assert_eq!((second.join().unwrap().status, newer.join().unwrap().status), (200, 200));
    let seen = upstream.seen();
    assert_eq!(upstream.tokens(), [5, 5, 7]);
    assert!(seen[..2].iter().all(|older| older.ended.unwrap() <= seen[2].begun));
}

#[test]
fn a_write_without_an_answer_counts_until_its_time_is_over() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let proxy = Proxy::start(&upstream, data.path(), &["--upstream-max", "700ms"]);
    let older = proxy.begin("/hold/never", 5);
    upstream.until("the older one", |seen| seen.len() == 1);
    assert_eq!(proxy.write("/", 7).status, 200);
    let older = older.join().unwrap();
    assert_eq!(older.status, 504);
    assert_eq!(older.json()["outcome"], "unknown");
    let seen = upstream.seen();
    let apart = seen[1].begun - seen[0].begun;
    // The upstream may have noted its beginning a little after it was sent.
    assert!(apart >= Duration::from_millis(650) && apart < Duration::from_secs(10), "{apart:?}");
}

#[test]
fn a_client_that_goes_away_ends_nothing() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let proxy = Proxy::start(&upstream, data.path(), &[]);
    let mut client = TcpStream::connect(proxy.url.trim_start_matches("http://")).unwrap();
    let head = format!(
        "POST /hold/a HTTP/1.1\r\nHost: x\r\nSereno-Fence-Key: {KEY}\r\nSereno-Token: 5\r\n"
    );
    client.write_all(format!("{head}Content-Length: 1\r\n\r\nb").as_bytes()).unwrap();
    upstream.until("the older one", |seen| seen.len() == 1);
    drop(client);
    let newer = proxy.begin("/", 7);
    proxy.until_known(7);
    upstream.release("a");
    assert_eq!(newer.join().unwrap().status, 200);
    let seen = upstream.seen();
    assert!(seen[0].ended.unwrap() <= seen[1].begun);

    // One that goes away while it waits gives its place up, and is never forwarded.
    let first = proxy.begin("/hold/b", 8);
    upstream.until("the next", |seen| seen.len() == 3);
    let mut client = TcpStream::connect(proxy.url.trim_start_matches("http://")).unwrap();
    let head = head.replace("Token: 5", "Token: 9");
    client.write_all(format!("{head}Content-Length: 1\r\n\r\nb").as_bytes()).unwrap();
    proxy.until_known(9);
    drop(client);
    upstream.release("b");
    assert_eq!(first.join().unwrap().status, 200);
    assert_eq!(proxy.write("/", 10).status, 200);
    assert!(
        !upstream.tokens().contains(&9) || upstream.tokens() == [5, 7, 8, 9, 10],
        "{:?}",
        upstream.tokens()
    );
}

#[test]
fn an_upstream_that_is_away_is_told_as_such_and_nothing_is_in_flight() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let mut nobody = upstream.clone();
    nobody.url = "http://127.0.0.1:1".into();
    let proxy = Proxy::start(&nobody, data.path(), &[]);
    let answer = proxy.write("/", 5);
    assert_eq!(answer.status, 502);
    assert_eq!(answer.json()["outcome"], "notApplied");
    assert_eq!(proxy.write("/", 7).status, 502, "at once");
}

#[test]
fn bodies_have_a_bound_and_are_streamed() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let proxy = Proxy::start(&upstream, data.path(), &["--body-max", "3000000"]);
    let post = || client().post(&proxy.url);
    let large: Vec<u8> = (0..3_000_000_u32).map(|it| u8::try_from(it % 251).unwrap()).collect();
    let answer = Answer::to(post().body(large.clone()), Some(5)).unwrap();
    assert_eq!((answer.status, answer.body == large), (200, true));
    let chunked = reqwest::blocking::Body::new(std::io::Cursor::new(large.clone()));
    let answer = Answer::to(post().body(chunked), Some(5)).unwrap();
    assert_eq!((answer.status, answer.body == large), (200, true));
    let too_large = [large, vec![0]].concat();
    // The proxy answers without reading it all, and may close before the client has sent it all.
    if let Ok(answer) = Answer::to(post().body(too_large.clone()), Some(6)) {
        assert_eq!((answer.status, answer.json()["code"].as_str()), (413, Some("TOO_LARGE")));
    }
    let chunked = reqwest::blocking::Body::new(std::io::Cursor::new(too_large));
    if let Ok(answer) = Answer::to(post().body(chunked), Some(6)) {
        assert_eq!(answer.status, 413);
    }
    assert_eq!(upstream.seen().len(), 2, "no whole request of the others arrived");
}

#[test]
fn one_process_has_the_memory() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let first = Proxy::start(&upstream, data.path(), &[]);
    let output: Output = Proxy::command(&upstream, data.path(), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("another process uses the folder"), "{}", stderr(&output));
    first.kill_9();
    Proxy::start(&upstream, data.path(), &[]);
}

#[test]
fn the_service_is_told_of_refusals() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let service = Service::start(&data.path().join("service"));
    let proxy = Proxy::start(&upstream, &data.path().join("fence"), &["--server", &service.url]);
    assert_eq!(proxy.write("/", 7).status, 200);
    for _ in 0..100 {
        assert_eq!(proxy.write("/", 6).status, 412);
    }
    let end = Instant::now() + Duration::from_secs(20);
    let refusals = || {
        let audit = service.text(&["audit", "--output", "json"]);
        audit.lines().filter(|line| line.contains("fenceRefused")).count()
    };
    while refusals() == 0 {
        assert!(Instant::now() < end, "never told");
    }
    assert!(refusals() < 30, "a storm is a trickle there");
    assert_eq!(service.json(&["namespace", "get", "default"])["fencingProven"], true);
}

#[test]
fn it_ends_gracefully() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let mut proxy = Proxy::start(&upstream, data.path(), &[]);
    let write = proxy.begin("/hold/a", 5);
    upstream.until("it", |seen| seen.len() == 1);
    signal("-TERM", proxy.child.id());
    upstream.release("a");
    assert_eq!(write.join().unwrap().status, 200);
    assert!(proxy.child.wait().unwrap().success());
}

/// Killed while a write is in flight, it waits that one out when it is started again, and remembers what it accepted.
#[test]
fn kill_9_with_a_write_in_flight() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    let options = ["--upstream-max", "1s"];
    let proxy = Proxy::start(&upstream, data.path(), &options);
    let url = proxy.url.clone();
    let lost = thread::spawn(move || {
        Answer::to(client().post(format!("{url}/hold/never")).body("b"), Some(5)).is_err()
    });
    upstream.until("the older one", |seen| seen.len() == 1);
    let killed = Instant::now();
    proxy.kill_9();
    assert!(lost.join().unwrap());
    let proxy = Proxy::start(&upstream, data.path(), &options);
    assert_eq!(proxy.write("/", 4).status, 412);
    assert_eq!(proxy.write("/", 5).status, 200, "an equal one need not wait");
    assert_eq!(proxy.write("/", 7).status, 200);
    let seen = upstream.seen();
    let apart = seen[2].begun - killed;
    assert!(apart >= Duration::from_secs(1) && apart < Duration::from_secs(10), "{apart:?}");
    assert_eq!(proxy.write("/", 5).status, 412);
    assert_eq!(upstream.tokens(), [5, 5, 7]);
}

/// Killed again and again at any moment under owners that come and go: at the upstream no token ever goes back, and no
/// newer one begins while an older one is at work.
#[test]
fn kill_9_at_any_moment() {
    let (upstream, data) = (Upstream::start(), tempfile::tempdir().unwrap());
    // The present owner. Each fourth write that is done is its last.
    let owner = Arc::new(AtomicU64::new(1_000));
    for round in 0..8 {
        let proxy = Proxy::start(&upstream, data.path(), &["--upstream-max", "1s"]);
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let (url, owner) = (format!("{}/slow", proxy.url), owner.clone());
                thread::spawn(move || write_until_it_is_gone(&url, writer, &owner))
            })
            .collect();
        let enough = upstream.seen().len() + 8;
        upstream.until("a few writes", |seen| seen.len() >= enough);
        thread::sleep(Duration::from_millis(round * 7));
        proxy.kill_9();
        for writer in writers {
            writer.join().unwrap();
        }
    }
    let seen = upstream.seen();
    for (index, newer) in seen.iter().enumerate() {
        for older in seen[..index].iter() {
            assert!(older.token() <= newer.token(), "{} after {}", newer.token(), older.token());
            let is_over = older.token() == newer.token()
                || older.ended.is_none_or(|ended| ended <= newer.begun);
            assert!(is_over, "{} began while {} was at work", newer.token(), older.token());
        }
    }
}

/// Some do not know yet who the present owner is.
fn write_until_it_is_gone(url: &str, writer: u64, owner: &AtomicU64) {
    let client = client();
    for step in 1.. {
        let token = owner.load(Ordering::Relaxed) - (writer + step) % 3;
        match Answer::to(client.post(url).body("b"), Some(token)) {
            Ok(answer) if answer.status == 200 && step % 4 == 0 => {
                owner.fetch_max(token + 1, Ordering::Relaxed);
            }
            Ok(answer) => assert!([200, 412, 504].contains(&answer.status), "{answer:?}"),
            Err(_) => return,
        }
    }
}

/// An answer is passed on as it comes, and one that breaks off is not taken for a whole.
#[test]
fn an_answer_that_breaks_off_is_an_error() {
    let data = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut upstream = Upstream::start();
    upstream.url = format!("http://{}", listener.local_addr().unwrap());
    let proxy = Proxy::start(&upstream, data.path(), &["--upstream-max", "500ms"]);
    let breaking = thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut buffer = [0; 4_096];
        assert!(connection.read(&mut buffer).unwrap() > 0);
        connection
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
            .unwrap();
        // And no end.
        drop(connection);
        listener.accept().map(|_| Instant::now()).unwrap()
    });
    let begun = Instant::now();
    let broken = Answer::to(client().post(&proxy.url).body("b"), Some(5));
    assert!(broken.is_err(), "{broken:?}");
    // The upstream may be at work all the same: it counts until its time is over.
    let newer = proxy.begin("/", 7);
    let next = breaking.join().unwrap();
    assert!(next - begun >= Duration::from_millis(450), "{:?}", next - begun);
    drop(newer);
}
