//! A scripted HTTP server: it remembers what it was asked and answers as it is told, or does not.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.
#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub body: Value,
    pub at: Instant,
}

/// One answer.
#[derive(Clone, Debug)]
pub enum Say {
    /// This status and body.
    Json(u16, Value),
    /// The same, after a while.
    Later(Duration, u16, Value),
    /// A text that is no JSON.
    Text(u16, String),
    /// Nothing, and the connection stays open.
    Silence,
    /// The connection is closed without an answer.
    Cut,
    /// Server-sent events, and then the connection ends.
    Events(String),
    /// Server-sent events, and then nothing.
    EventsThenSilence(String),
}

type Script = Box<dyn FnMut(&Asked) -> Say + Send>;

struct Shared {
    script: Mutex<Script>,
    asked: Mutex<Vec<Asked>>,
    more: Condvar,
}

/// The running server; its threads end with the test process.
#[derive(Clone)]
pub struct Stub {
    pub url: String,
    shared: Arc<Shared>,
}

impl Stub {
    pub fn start(script: impl FnMut(&Asked) -> Say + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            asked: Mutex::new(Vec::new()),
            more: Condvar::new(),
        });
        let accepting = shared.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = accepting.clone();
                thread::spawn(move || serve(&shared, connection));
            }
        });
        Self { url, shared }
    }

    /// From now on it answers by this script.
    pub fn now(&self, script: impl FnMut(&Asked) -> Say + Send + 'static) {
        *self.shared.script.lock().unwrap() = Box::new(script);
    }

    /// Everything asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// What was asked so far on this path.
    pub fn asked_on(&self, path: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.path == path).collect()
    }

    /// Waits until `enough` is true of everything asked; panics after 20 s.
    pub fn until(&self, what: &str, enough: impl Fn(&[Asked]) -> bool) {
        let asked = self.shared.asked.lock().unwrap();
        let limit = Duration::from_secs(20);
        let (asked, timeout) =
            self.shared.more.wait_timeout_while(asked, limit, |asked| !enough(asked)).unwrap();
        assert!(!timeout.timed_out(), "never came: {what}; asked was {asked:#?}");
    }

    /// Waits for the first request on this path.
    pub fn until_asked_on(&self, path: &str) -> Asked {
        self.until(path, |asked| asked.iter().any(|asked| asked.path == path));
        self.asked_on(path).remove(0)
    }
}

fn serve(shared: &Shared, connection: TcpStream) {
    let mut writer = connection.try_clone().unwrap();
    let mut reader = BufReader::new(connection);
    while let Some(asked) = read_request(&mut reader) {
        shared.asked.lock().unwrap().push(asked.clone());
        shared.more.notify_all();
        let say = shared.script.lock().unwrap()(&asked);
        let (status, kind, text) = match say {
            Say::Json(status, body) => (status, "application/json", body.to_string()),
            Say::Later(pause, status, body) => {
                thread::sleep(pause);
                (status, "application/json", body.to_string())
            }
            Say::Text(status, text) => (status, "text/plain", text),
            Say::Silence => {
                // Until the client has had enough.
                let _ = reader.read(&mut [0; 1]);
                return;
            }
            Say::Cut => return,
            Say::Events(events) => {
                let _ = writer.write_all(stream(&events).as_bytes());
                return;
            }
            Say::EventsThenSilence(events) => {
                let _ = writer.write_all(stream(&events).as_bytes());
                let _ = reader.read(&mut [0; 1]);
                return;
            }
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        if writer.write_all((head + &text).as_bytes()).is_err() {
            return;
        }
    }
}

/// An answer that lasts as long as its connection.
fn stream(events: &str) -> String {
    let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    format!("{head}{events}")
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
    let at = Instant::now();
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_string(), words.next()?.to_string());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Asked { method, path, body, at })
}

pub const LEASE_ID: &str = "00112233445566778899aabbccddeeff";

/// A grant of what was asked.
pub fn granted(asked: &Asked, token: u64, expires_in_ms: u64) -> Say {
    let resource = asked.body["resource"].as_str().unwrap();
    let namespace = asked.body["namespace"].as_str().unwrap();
    Say::Json(
        200,
        json!({
            "state": "granted", "resource": resource, "fenceKey": format!("{namespace}/lock/{resource}"),
            "leaseId": LEASE_ID, "fencingToken": token, "fencing": "bestEffort",
            "expiresAt": "2026-11-30T22:00:30Z", "expiresInMs": expires_in_ms, "replayed": false,
            "revision": 17, "clusterTimeMs": 91_234,
        }),
    )
}

/// 202: still in the queue.
pub fn waiting(asked: &Asked) -> Say {
    let body = json!({
        "state": "waiting", "resource": asked.body["resource"], "place": 1, "waitExpiresInMs": 4_200,
        "replayed": false, "revision": 18, "clusterTimeMs": 91_235,
    });
    Say::Json(202, body)
}

/// Every lease of the call renewed.
pub fn renewed(asked: &Asked, expires_in_ms: u64) -> Say {
    let leases = asked.body["leases"].as_array().unwrap();
    let result = |lease: &Value| json!({"resource": lease["resource"], "ok": true, "expiresInMs": expires_in_ms, "clipped": false});
    let results: Vec<_> = leases.iter().map(result).collect();
    Say::Json(200, json!({"results": results, "revision": 19, "clusterTimeMs": 91_236}))
}

/// Every lease of the call refused with this code.
pub fn not_renewed(asked: &Asked, code: &str, more: &Value) -> Say {
    let leases = asked.body["leases"].as_array().unwrap();
    let result = |lease: &Value| {
        let mut result = json!({"resource": lease["resource"], "ok": false, "code": code});
        for (name, value) in more.as_object().unwrap() {
            result[name] = value.clone();
        }
        result
    };
    let results: Vec<_> = leases.iter().map(result).collect();
    Say::Json(200, json!({"results": results, "revision": 19, "clusterTimeMs": 91_236}))
}

pub fn released() -> Say {
    Say::Json(200, json!({"released": true, "revision": 20, "clusterTimeMs": 91_237}))
}

pub fn abandoned() -> Say {
    Say::Json(200, json!({"was": "waiting", "revision": 21, "clusterTimeMs": 91_238}))
}

/// A problem document.
pub fn problem(status: u16, code: &str, retry_with: Option<&str>) -> Say {
    let mut body = json!({
        "type": format!("/errors/{code}"), "title": "t", "status": status, "code": code,
        "detail": "because", "outcome": "notApplied",
    });
    if let Some(retry_with) = retry_with {
        body["retryWith"] = retry_with.into();
    }
    Say::Json(status, body)
}

/// A well-behaved service that grants everything for this long.
pub fn grants_all(ttl_ms: u64) -> impl FnMut(&Asked) -> Say + Send + 'static {
    let mut token = 6;
    move |asked| match asked.path.as_str() {
        "/v1/locks/acquire" => {
            token += 1;
            granted(asked, token, ttl_ms)
        }
        "/v1/locks/renew-many" => renewed(asked, ttl_ms),
        "/v1/locks/release" => released(),
        "/v1/locks/abandon" => abandoned(),
        other => panic!("not in the script: {other}"),
    }
}

/// A won campaign for what was asked.
pub fn elected(asked: &Asked, term: u64, expires_in_ms: u64) -> Say {
    let election = asked.body["election"].as_str().unwrap();
    let namespace = asked.body["namespace"].as_str().unwrap();
    Say::Json(
        200,
        json!({
            "state": "leading", "election": election, "fenceKey": format!("{namespace}/election/{election}"),
            "leaseId": LEASE_ID, "term": term, "value": asked.body["value"].as_str().unwrap_or(""), "version": 3,
            "fencing": "bestEffort", "expiresAt": "2026-11-30T22:00:30Z", "expiresInMs": expires_in_ms,
            "replayed": false, "revision": 17, "clusterTimeMs": 91_234,
        }),
    )
}

/// A renewed term.
pub fn term_renewed(term: u64, expires_in_ms: u64) -> Say {
    Say::Json(
        200,
        json!({
            "fencingToken": term, "expiresAt": "2026-11-30T22:00:30Z", "expiresInMs": expires_in_ms, "clipped": false,
            "revision": 19, "clusterTimeMs": 91_236,
        }),
    )
}

/// A problem document with something more to say.
pub fn problem_with(status: u16, code: &str, retry_with: Option<&str>, more: &Value) -> Say {
    let Say::Json(status, mut body) = problem(status, code, retry_with) else { unreachable!() };
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    Say::Json(status, body)
}

/// A service in which everybody who campaigns leads at once.
pub fn elects_all(ttl_ms: u64) -> impl FnMut(&Asked) -> Say + Send + 'static {
    let mut term = 6;
    move |asked| match asked.path.as_str() {
        "/v1/elections/campaign" => {
            term += 1;
            elected(asked, term, ttl_ms)
        }
        "/v1/elections/renew" => term_renewed(term, ttl_ms),
        "/v1/elections/resign" => released(),
        "/v1/elections/abandon" => abandoned(),
        other => panic!("not in the script: {other}"),
    }
}

/// A hold of what was asked.
pub fn held(asked: &Asked, fence: u64, expires_in_ms: u64) -> Say {
    let resource = asked.body["resource"].as_str().unwrap();
    let namespace = asked.body["namespace"].as_str().unwrap();
    Say::Json(
        200,
        json!({
            "state": "held", "resource": resource, "owner": asked.body["owner"],
            "fenceKey": format!("{namespace}/hold/{resource}"), "fence": fence, "yours": false, "begun": false,
            "expiresAt": "2026-11-30T22:00:30Z", "expiresInMs": expires_in_ms, "replayed": false, "revision": 17,
            "clusterTimeMs": 91_234,
        }),
    )
}

/// A hold that goes on.
pub fn hold_extended(asked: &Asked, begun: bool, expires_in_ms: u64) -> Say {
    Say::Json(
        200,
        json!({
            "resource": asked.body["resource"], "fence": asked.body["fence"], "begun": begun, "clipped": false,
            "expiresAt": "2026-11-30T22:10:30Z", "expiresInMs": expires_in_ms, "replayed": false, "revision": 18,
            "clusterTimeMs": 91_235,
        }),
    )
}

pub const RESERVATION: &str = "aabbccddeeff00112233445566778899";

/// A reservation of what was asked.
pub fn reserved(asked: &Asked, fence: u64, expires_in_ms: u64) -> Say {
    let items = asked.body["items"].as_array().cloned().unwrap_or_default();
    let items: Vec<_> = items
        .into_iter()
        .map(|mut item| {
            item["available"] = json!([9, 7]);
            item
        })
        .collect();
    still_reserved("reserved", &items, fence, expires_in_ms)
}

/// A reservation that goes on with these items.
pub fn still_reserved(state: &str, items: &[Value], fence: u64, expires_in_ms: u64) -> Say {
    Say::Json(
        200,
        json!({
            "state": state, "reservationId": RESERVATION, "fenceKey": format!("default/quota/{RESERVATION}"),
            "fence": fence, "items": items, "clipped": false, "expiresAt": "2026-11-30T22:00:30Z",
            "expiresInMs": expires_in_ms, "finalDeadlineInMs": 86_400_000, "replayed": false, "revision": 17,
            "clusterTimeMs": 91_234,
        }),
    )
}

/// A commit of these items, which leaves those reserved.
pub fn committed(taken: &Value, left: &Value) -> Say {
    Say::Json(
        200,
        json!({
            "commitId": 7, "reservationId": RESERVATION, "taken": taken, "returned": [], "left": left,
            "replayed": false, "revision": 18, "clusterTimeMs": 91_235,
        }),
    )
}

/// A reservation that was given back.
pub fn given_back() -> Say {
    let body = json!({"released": true, "items": [], "replayed": false, "revision": 19, "clusterTimeMs": 91_236});
    Say::Json(200, body)
}
