//! A service that cannot check tokens: it notes what it is asked, when it begins and when it has done it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

/// A whole request that has arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub begun: Instant,
    pub ended: Option<Instant>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub fn token(&self) -> u64 {
        self.header("sereno-token").map_or(0, |token| token.parse().unwrap())
    }
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    /// Requests for `/hold/…` are answered once it is in here.
    released: Mutex<Vec<String>>,
    more: Condvar,
}

/// Answers `/hold/NAME` when told to, `/slow` after a few milliseconds, and anything else at once, with the request's
/// own body. Its threads end with the test.
#[derive(Clone)]
pub struct Upstream {
    pub url: String,
    shared: Arc<Shared>,
}

impl Upstream {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let accepting = shared.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = accepting.clone();
                thread::spawn(move || serve(&shared, connection));
            }
        });
        Self { url, shared }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Those with a token, in the order in which they began.
    pub fn tokens(&self) -> Vec<u64> {
        self.seen().iter().map(Seen::token).filter(|&token| token > 0).collect()
    }

    /// Waits until it is true of what was seen.
    pub fn until(&self, what: &str, enough: impl Fn(&[Seen]) -> bool) {
        let seen = self.shared.seen.lock().unwrap();
        let limit = Duration::from_secs(30);
        let (seen, late) =
            self.shared.more.wait_timeout_while(seen, limit, |seen| !enough(seen)).unwrap();
        assert!(!late.timed_out(), "never came: {what}; seen was {seen:#?}");
    }

    /// Lets `/hold/NAME` be answered.
    pub fn release(&self, name: &str) {
        self.shared.released.lock().unwrap().push(format!("/hold/{name}"));
        self.shared.more.notify_all();
    }
}

fn serve(shared: &Shared, connection: TcpStream) {
    connection.set_nodelay(true).unwrap();
    let mut writer = connection.try_clone().unwrap();
    let mut reader = BufReader::new(connection);
    while let Some(request) = read(&mut reader) {
        let (path, body) = (request.path.clone(), request.body.clone());
        let index = {
            let mut seen = shared.seen.lock().unwrap();
            seen.push(request);
            seen.len() - 1
        };
        shared.more.notify_all();
        if path.starts_with("/hold/") {
            let released = shared.released.lock().unwrap();
            drop(shared.more.wait_while(released, |released| !released.contains(&path)).unwrap());
        }
        if path == "/slow" {
            thread::sleep(Duration::from_millis(u64::try_from(index % 7).unwrap() * 3));
        }
        shared.seen.lock().unwrap()[index].ended = Some(Instant::now());
        shared.more.notify_all();
        let head = format!(
            "HTTP/1.1 200 OK\r\nx-upstream: yes\r\nconnection: x-private\r\nx-private: 1\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if writer.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}

/// `None` if it breaks off.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = Vec::new();
    loop {
        let header = line(reader)?;
        match header.split_once(':') {
            Some((name, value)) => headers.push((name.to_lowercase(), value.trim().to_string())),
            None => break,
        }
    }
    let find =
        |name: &str| headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if find("transfer-encoding") == Some("chunked") {
        loop {
            let length = usize::from_str_radix(&line(reader)?, 16).ok()?;
            let mut chunk = vec![0; length];
            reader.read_exact(&mut chunk).ok()?;
            line(reader)?;
            if length == 0 {
                break;
            }
            body.extend(chunk);
        }
    } else if let Some(length) = find("content-length") {
        body = vec![0; length.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
    }
    Some(Seen { method, path, headers, body, begun: Instant::now(), ended: None })
}

fn line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&length| length > 0)?;
    Some(line.trim_end().to_string())
}
