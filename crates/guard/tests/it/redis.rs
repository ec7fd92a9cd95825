//! The script, on a real Redis (`redis-server`).

use crate::{reporter, stub::Stub};
use sereno_guard::{Fence, REDIS_REFUSAL, REDIS_SCRIPT, Refused};
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

struct Redis {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Redis {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("these tests need redis-server (Debian package redis-server)");
        let redis = Self { child, port, _folder: folder };
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "redis-server does not listen");
            thread::sleep(Duration::from_millis(10));
        }
        redis
    }

    fn connect(&self) -> Link {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Link(BufReader::new(stream))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Just enough of the protocol: replies of one line, and strings.
struct Link(BufReader<TcpStream>);

impl Link {
    /// An error reply is an `Err`.
    fn call(&mut self, words: &[&str]) -> Result<Option<String>, String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let line = self.line();
        match line.split_at(1) {
            ("-", error) => Err(error.into()),
            ("$", "-1") => Ok(None),
            ("$", _) => Ok(Some(self.line())),
            (_, text) => Ok(Some(text.into())),
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    fn get(&mut self, key: &str) -> Option<String> {
        self.call(&["GET", key]).unwrap()
    }

    /// `keys` after the fence.
    fn set(&mut self, token: &str, pairs: &[(&str, &str)]) -> Result<Option<String>, String> {
        let count = (pairs.len() + 1).to_string();
        let mut words = vec!["EVAL", REDIS_SCRIPT, &count, "fence:k"];
        words.extend(pairs.iter().map(|(key, _)| *key));
        words.push(token);
        words.extend(pairs.iter().map(|(_, value)| *value));
        self.call(&words)
    }
}

#[test]
fn it_sets_all_behind_the_fence_or_nothing() {
    let redis = Redis::start();
    let mut link = redis.connect();
    assert_eq!(
        link.set("7", &[]),
        Ok(Some("7".into())),
        "the token is shown before anything is read"
    );
    assert_eq!(link.set("7", &[("a", "1"), ("b", "2")]), Ok(Some("7".into())));
    let error = link.set("6", &[("a", "x"), ("c", "x")]).unwrap_err();
    assert!(
        error.starts_with(&format!("{REDIS_REFUSAL} 7 ")) && error.contains("fence:k"),
        "{error}"
    );
    assert_eq!((link.get("a"), link.get("c")), (Some("1".into()), None));
    // Numbers, not texts.
    assert_eq!(link.set("10", &[("a", "2")]), Ok(Some("10".into())));
    assert!(link.set("9", &[("a", "x")]).unwrap_err().starts_with("FENCED 10 "));
    assert_eq!(link.set("9007199254740991", &[("a", "3")]), Ok(Some("9007199254740991".into())));
    let error = link.set("9007199254740990", &[("a", "x")]).unwrap_err();
    assert!(error.starts_with("FENCED 9007199254740991"), "no digit is lost: {error}");
    assert_eq!(link.get("a"), Some("3".into()));
    assert_eq!(link.call(&["TTL", "fence:k"]), Ok(Some("-1".into())), "it never goes by itself");
}

#[tokio::test]
async fn what_it_refused_is_reported() {
    let redis = Redis::start();
    let mut link = redis.connect();
    link.set("7", &[]).unwrap();
    let error = link.set("6", &[("a", "x")]).unwrap_err();
    let fence = Fence::new("default/lock/k", 6).unwrap();
    let refused = Refused::from_redis(&error, &fence).unwrap();
    assert_eq!(refused, fence.refused(7));
    let error = link.set("0", &[("a", "x")]).unwrap_err();
    assert_eq!(Refused::from_redis(&error, &fence), None, "{error}");
    let stub = Stub::start(reporter::recorded);
    let reporter = reporter::to(&stub);
    reporter.refused(&refused);
    reporter.settled().await;
    reporter::assert_refusal(&stub, "default/lock/k", 6, 7);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let redis = Redis::start();
    let mut link = redis.connect();
    for token in
        ["0", "-1", "1.5", "1e3", "", "x", "007", "9007199254740992", "99999999999999999999"]
    {
        let error = link.set(token, &[("a", "1")]).unwrap_err();
        assert!(error.starts_with("ERR the token"), "{token:?}: {error}");
    }
    for words in [
        vec!["EVAL", REDIS_SCRIPT, "0"],
        vec!["EVAL", REDIS_SCRIPT, "1", "fence:k"],
        vec!["EVAL", REDIS_SCRIPT, "2", "fence:k", "a", "7"],
        vec!["EVAL", REDIS_SCRIPT, "1", "fence:k", "7", "1"],
    ] {
        let error = link.call(&words).unwrap_err();
        assert!(error.starts_with("ERR give a fence"), "{error}");
    }
    let error = link.set("7", &[("fence:k", "1")]).unwrap_err();
    assert!(error.starts_with("ERR the fence itself"), "{error}");
    link.call(&["SET", "fence:k", "garbage"]).unwrap();
    let error = link.set("7", &[("a", "1")]).unwrap_err();
    assert!(error.starts_with("ERR fence:k has something"), "{error}");
    assert_eq!(link.get("a"), None);
}

#[test]
fn many_at_once_never_go_back() {
    let redis = Arc::new(Redis::start());
    let start = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8_u64)
        .map(|writer| {
            let (redis, start) = (redis.clone(), start.clone());
            thread::spawn(move || {
                let mut link = redis.connect();
                start.wait();
                for round in 1..200 {
                    let token = round * 3 + (writer * 7) % 11;
                    let text = token.to_string();
                    let before: u64 = link.get("a").map_or(0, |value| value.parse().unwrap());
                    match link.set(&text, &[("a", &text)]) {
                        Ok(_) => assert!(before <= token, "{token} after {before}"),
                        Err(error) => assert!(error.starts_with("FENCED"), "{error}"),
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut link = redis.connect();
    assert_eq!(link.get("a"), link.get("fence:k"));
}
