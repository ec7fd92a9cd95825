//! One HTTP exchange with one of several addresses. What an exchange means is decided elsewhere.

use crate::{
    clock::Moment,
    core::lock,
    error::Error,
    servers::{Round, Servers, Standing, Targets},
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, Uri,
    body::Incoming,
    header::{ACCEPT, CONTENT_TYPE, USER_AGENT},
};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use sereno_api::Millis;
use std::{sync::Mutex, time::Duration};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Enough for an address that was silent, while others answer.
const SILENT_TIMEOUT: Duration = Duration::from_secs(1);
/// Before a call's time is over its door is to answer.
const ANSWER_MARGIN: Duration = Duration::from_millis(300);
/// The longest that a door takes for `Sereno-Timeout`.
const TOLD_TIMEOUT_MAX: Duration = Duration::from_secs(600);
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const AGENT: &str = concat!("sereno-client/", env!("CARGO_PKG_VERSION"));

/// What to send, to whichever address.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub method: Method,
    /// Begins with a slash.
    pub path: String,
    pub body: Option<Bytes>,
}

impl Ask {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None }
    }

    pub(crate) fn json(
        method: Method,
        path: impl Into<String>,
        body: &impl serde::Serialize,
    ) -> Self {
        let body = serde_json::to_vec(body).expect("wire types have string keys");
        Self { method, path: path.into(), body: Some(body.into()) }
    }

    pub(crate) fn post(path: &str, body: &impl serde::Serialize) -> Self {
        Self::json(Method::POST, path, body)
    }
}

/// An answer, whatever its status.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The moment before the call was handed to the network.
    pub sent: Moment,
    pub status: u16,
    pub body: Bytes,
}

/// No answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The request never left: no connection was made.
    NotSent(String),
    /// It left, and may have been carried out.
    Silent(String),
}

/// The addresses of one service, and connections to them.
pub(crate) struct Transport {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    servers: Vec<Uri>,
    known: Mutex<Servers>,
}

impl Transport {
    /// `servers`: one or several addresses, separated by commas.
    pub(crate) fn new(servers: &str) -> Result<Self, Error> {
        let servers = servers
            .split(',')
            .map(str::trim)
            .filter(|server| !server.is_empty())
            .map(parse_server)
            .collect::<Result<Vec<_>, _>>()?;
        if servers.is_empty() {
            return Err(Error::Invalid("no server address given".into()));
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let http = legacy::Client::builder(TokioExecutor::new()).build(connector);
        let known = Mutex::new(Servers::new(servers.len()));
        Ok(Self { http, servers, known })
    }

    /// How many addresses there are.
    pub(crate) fn len(&self) -> usize {
        self.servers.len()
    }

    /// The address that a call asks next.
    pub(crate) fn next(&self, round: &mut Round) -> usize {
        lock(&self.known).next(round, Moment::now())
    }

    /// The addresses that a renewal asks now.
    pub(crate) fn for_renewal(&self) -> Targets {
        lock(&self.known).for_renewal(Moment::now())
    }

    /// What came of a call to `server` that was sent at `sent`: the next calls go by it.
    pub(crate) fn note(&self, server: usize, standing: Standing, sent: Moment) {
        lock(&self.known).note(server, standing, sent, Moment::now());
    }

    /// How long to wait for this address, where one that is known to answer is given `usual`.
    pub(crate) fn patience(&self, server: usize, usual: Duration) -> Duration {
        match lock(&self.known).is_worth_little(server, Moment::now()) {
            true => usual.min(SILENT_TIMEOUT),
            false => usual,
        }
    }

    /// One whole exchange, to be given up after `timeout`.
    pub(crate) async fn exchange(
        &self,
        server: usize,
        ask: &Ask,
        timeout: Duration,
    ) -> Result<Answer, NoAnswer> {
        let exchange = async {
            let (sent, response) = self.open(server, ask, Some(timeout)).await?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body =
                body.map_err(|error| NoAnswer::Silent(format!("the answer broke off: {error}")))?;
            Ok(Answer { sent, status, body: body.to_bytes() })
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(result) => result,
            Err(_) => Err(NoAnswer::Silent(format!(
                "no answer from {} in {}",
                self.servers[server],
                Millis::from(timeout)
            ))),
        }
    }

    /// Sends and returns as soon as the answer's head is there; the body may go on for ever.
    pub(crate) async fn open(
        &self,
        server: usize,
        ask: &Ask,
        timeout: Option<Duration>,
    ) -> Result<(Moment, Response<Incoming>), NoAnswer> {
        let request = self.request(server, ask, timeout)?;
        let sent = Moment::now();
        match self.http.request(request).await {
            Ok(response) => Ok((sent, response)),
            Err(error) if error.is_connect() => {
                Err(NoAnswer::NotSent(self.describe(server, &error)))
            }
            Err(error) => Err(NoAnswer::Silent(self.describe(server, &error))),
        }
    }

    fn request(
        &self,
        server: usize,
        ask: &Ask,
        timeout: Option<Duration>,
    ) -> Result<Request<Full<Bytes>>, NoAnswer> {
        let base = self.servers[server].to_string();
        let uri = format!("{}{}", base.trim_end_matches('/'), ask.path);
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(uri)
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "application/json, text/event-stream");
        if ask.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(timeout) = timeout {
            // A little less: a door that gives up says what is certain, and its answer takes time.
            let told = timeout.saturating_sub(ANSWER_MARGIN.min(timeout / 5));
            let told = told.clamp(Duration::from_millis(1), TOLD_TIMEOUT_MAX);
            request = request.header("sereno-timeout", Millis::from(told).to_string());
        }
        request
            .body(Full::new(ask.body.clone().unwrap_or_default()))
            .map_err(|error| NoAnswer::NotSent(format!("cannot be sent: {error}")))
    }

    /// The chain of causes: hyper's own message hides the interesting one.
    fn describe(&self, server: usize, error: &dyn std::error::Error) -> String {
        let mut text = format!("{}: {error}", self.servers[server]);
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}

/// TLS will come in here: another connector, chosen by the scheme.
fn parse_server(text: &str) -> Result<Uri, Error> {
    let wrong = |why: &str| Error::Invalid(format!("server address {text:?} {why}"));
    let uri: Uri = text.parse().map_err(|_| wrong("is not a URL"))?;
    match uri.scheme_str() {
        Some("http") if uri.host().is_none_or(str::is_empty) => Err(wrong("names no host")),
        Some("http") if uri.query().is_some() => Err(wrong("must not have a query")),
        Some("http") => Ok(uri),
        Some("https") => Err(wrong("asks for TLS, which this version does not speak")),
        _ => Err(wrong("must begin with http://")),
    }
}

/// `text` as one piece of a path or a query: everything but the unreserved characters is escaped.
pub(crate) fn escape(text: &str, keep: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        let character = char::from(byte);
        if byte.is_ascii_alphanumeric() || "-._~".contains(character) || keep.contains(character) {
            escaped.push(character);
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        let transport = Transport::new(" http://a:1 ,http://[::1]:7480/base/, ").unwrap();
        assert_eq!(transport.len(), 2);
        for (wrong, why) in [
            ("", "no server"),
            ("localhost:7480", "must begin with http://"),
            ("https://a", "TLS"),
            ("ftp://a", "must begin"),
            ("http://a?b", "query"),
            ("http://a b", "not a URL"),
        ] {
            let error = Transport::new(wrong).err().expect(wrong).to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_came_of_a_call_decides_where_the_next_one_goes_and_how_long_it_may_take() {
        let transport = Transport::new("http://a,http://b").unwrap();
        let usual = Duration::from_secs(5);
        assert_eq!(transport.next(&mut Round::default()), 0);
        transport.note(0, Standing::Silent, Moment::now());
        assert_eq!(transport.next(&mut Round::default()), 1);
        assert_eq!(transport.patience(0, usual), usual, "there is no better one");
        transport.note(1, Standing::Answers, Moment::now());
        assert_eq!(transport.patience(0, usual), SILENT_TIMEOUT);
        assert_eq!(transport.patience(1, usual), usual);
        let targets = transport.for_renewal();
        assert_eq!((targets.first, targets.beside), (1, None), "the other was asked just now");
    }

    #[test]
    fn the_path_follows_the_base() {
        let transport = Transport::new("http://[::1]:7480/base/").unwrap();
        let request = transport.request(0, &Ask::get("/v1/status"), None).unwrap();
        assert_eq!(request.uri(), "http://[::1]:7480/base/v1/status");
    }

    #[test]
    fn the_door_is_told_a_time_out_that_it_takes() {
        let transport = Transport::new("http://a").unwrap();
        for (timeout, told) in [
            (Duration::ZERO, "1ms"),
            (Duration::from_millis(1_500), "1200ms"),
            (Duration::from_millis(500), "400ms"),
            (Duration::from_secs(3_600), "10m"),
        ] {
            let request = transport.request(0, &Ask::get("/"), Some(timeout)).unwrap();
            assert_eq!(request.headers()["sereno-timeout"], told);
        }
    }

    #[test]
    fn escaping_keeps_what_may_stand() {
        assert_eq!(escape("a/b c+ä", "/"), "a/b%20c%2B%C3%A4");
        assert_eq!(escape("a/b", ""), "a%2Fb");
    }
}
