//! A server for one test, and a client that holds every answer against the document.

use reqwest::{Method, header::HeaderMap};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sereno_api::{ErrorCode, Granted, Problem};
use sereno_log::{Log, memory::MemoryLog};
use sereno_server::{Config, Server};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

/// Which log a test runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Engine {
    Memory,
    Sqlite,
}

/// Both.
pub(crate) const ENGINES: [Engine; 2] = [Engine::Memory, Engine::Sqlite];

pub(crate) struct Bench {
    pub(crate) server: Option<Server>,
    pub(crate) url: String,
    pub(crate) http: reqwest::Client,
    pub(crate) folder: tempfile::TempDir,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// The body of a 2xx.
    #[track_caller]
    pub(crate) fn ok<T: DeserializeOwned>(self) -> T {
        assert!((200..300).contains(&self.status), "{self:?}");
        serde_json::from_value(self.body).unwrap()
    }

    /// The problem with this code, checked against what holds for all problems.
    #[track_caller]
    pub(crate) fn problem(self, code: ErrorCode) -> Problem {
        let problem: Problem = serde_json::from_value(self.body.clone()).unwrap();
        assert_eq!(problem.code, code, "{self:?}");
        assert_eq!(self.status, code.status(), "{self:?}");
        assert_eq!(problem.status, self.status);
        assert_eq!(problem.type_url, format!("/errors/{code}"));
        assert_eq!(problem.title, code.title());
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let retry_after =
            self.headers.get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        let seconds = problem.retry_after_ms.map(|ms| ms.div_ceil(1_000).to_string());
        assert_eq!(retry_after, seconds);
        problem
    }
}

impl Bench {
    pub(crate) async fn start(engine: Engine) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = match engine {
            Engine::Memory => Config::in_memory(),
            Engine::Sqlite => Config::in_folder(folder.path()),
        };
        Self::start_with(folder, config).await
    }

    pub(crate) async fn memory() -> Self {
        Self::start(Engine::Memory).await
    }

    pub(crate) async fn start_with(folder: tempfile::TempDir, config: Config) -> Self {
        Self::of(folder, Server::start(config).await.unwrap()).await
    }

    pub(crate) async fn on(log: Arc<MemoryLog>) -> Self {
        let log: Arc<dyn Log> = log;
        let server = Server::start_on(Config::in_memory(), log).await.unwrap();
        Self::of(tempfile::tempdir().unwrap(), server).await
    }

    async fn of(folder: tempfile::TempDir, server: Server) -> Self {
        server.ready().await;
        let url = server.url();
        let http = reqwest::Client::builder().build().unwrap();
        Self { server: Some(server), url, http, folder }
    }

    /// Stops the server and gives its folder for another one.
    pub(crate) async fn stop(mut self) -> tempfile::TempDir {
        self.server.take().unwrap().stop().await.unwrap();
        self.folder
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.http.get(format!("{}{path}", self.url))).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.http.post(format!("{}{path}", self.url)).json(&body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(self.http.put(format!("{}{path}", self.url)).json(&body)).await
    }

    /// Sends, reads the answer, and checks that the document knows it.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let request = request.build().unwrap();
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = self.http.execute(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let answer = Answer { status, headers, body };
        check_documented(&method, &path, &answer);
        answer
    }

    /// An acquire of `resource` with nothing special, or with what `more` says.
    pub(crate) async fn acquire(&self, resource: &str, more: Value) -> Answer {
        self.post("/v1/locks/acquire", acquire_body(resource, more)).await
    }

    #[track_caller]
    pub(crate) fn grant(&self, resource: &str) -> impl Future<Output = Granted> {
        let acquire = self.acquire(resource, json!({}));
        async { acquire.await.ok() }
    }
}

/// The fields that an acquire needs, and others.
pub(crate) fn acquire_body(resource: &str, more: Value) -> Value {
    let mut body = json!({"resource": resource, "requestId": request_id(), "owner": "test"});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// A body with a request id, and what `fields` say.
pub(crate) fn with_id(fields: Value) -> Value {
    let mut body = json!({"requestId": request_id()});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Another one each time.
pub(crate) fn request_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("request-{:016}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The interface's document.
pub(crate) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::to_value(sereno_server::openapi()).unwrap())
}

/// The documented operation that a path belongs to.
fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let paths = &document()["paths"];
    let item = paths.get(path).or_else(|| {
        let folders = [
            ("/v1/locks/", "{resource}"),
            ("/v1/elections/", "{election}"),
            ("/v1/jobs/", "{job}"),
            ("/v1/holds/", "{resource}"),
            ("/v1/quotas/", "{node}"),
            ("/v1/reservations/", "{reservationId}"),
            ("/v1/namespaces/", "{name}"),
            ("/errors/", "{code}"),
        ];
        let (folder, name) = folders.iter().find(|(folder, _)| path.starts_with(folder))?;
        paths.get(format!("{folder}{name}"))
    })?;
    item.get(method.as_str().to_lowercase())
}

/// Status and code stand in the document, unless the route itself does not exist.
fn check_documented(method: &Method, path: &str, answer: &Answer) {
    let Some(operation) = operation(method, path) else {
        assert!(
            [404, 405, 415].contains(&answer.status),
            "{method} {path} is not documented: {answer:?}"
        );
        return;
    };
    let response = operation["responses"].get(answer.status.to_string());
    let response =
        response.unwrap_or_else(|| panic!("{method} {path} does not document {answer:?}"));
    if let Some(code) = answer.body.get("code").and_then(Value::as_str)
        && answer.status >= 400
    {
        let described = response["description"].as_str().unwrap();
        assert!(
            described.split(", ").any(|one| one == code),
            "{method} {path} does not document {code}"
        );
    }
}
