//! Plain HTTP to the nodes, every call recorded before it is sent. The SDK would hide lost answers: here they are the point.

use super::words;
use crate::history::{Answer, Heard, Op, Recorder};
use reqwest::Client;
use serde_json::json;
use std::time::Duration;

/// The namespace of everything in a run.
pub const NAMESPACE: &str = "chaos";

/// How long a node may take; it is told so, too.
const TIMEOUT: Duration = Duration::from_secs(3);
/// And some time for the answer to arrive.
const ARRIVAL: Duration = Duration::from_millis(500);

/// The way to all nodes.
#[derive(Debug)]
pub struct Door {
    http: Client,
    servers: Vec<String>,
    recorder: Recorder,
}

impl Door {
    /// To these nodes.
    ///
    /// # Errors
    /// There can be no HTTP client.
    pub fn new(servers: Vec<String>, recorder: Recorder) -> reqwest::Result<Self> {
        let builder = Client::builder().no_proxy().timeout(TIMEOUT + ARRIVAL);
        Ok(Self { http: builder.build()?, servers, recorder })
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.servers.len()
    }

    /// Where what is not a call is noted.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// One call of one node, recorded.
    pub async fn call(&self, worker: &str, node: usize, op: &Op) -> Heard {
        let (method, path, body) = words::of(op);
        let url = format!("{}{path}", self.servers[node]);
        let mut request = self.http.request(method, url).header("Sereno-Timeout", "3s");
        if let Some(body) = body {
            request = request.json(&body);
        }
        let call = self.recorder.start(worker, node, op);
        let answer = match exchange(request).await {
            Ok(answer) => answer,
            Err(error) => {
                let sent = !error.is_connect();
                Answer::Silence { silence: format!("{error:?}"), sent }
            }
        };
        let heard = Heard::of(op, &answer);
        self.recorder.end(call, answer);
        heard.expect("the service speaks its own language")
    }

    /// Creates the namespace: short leases, so that they end within a run.
    ///
    /// # Errors
    /// In words: nobody does it.
    pub async fn put_namespace(&self, node: usize) -> Result<(), String> {
        let url = format!("{}/v1/namespaces/{NAMESPACE}", self.servers[node]);
        let policy = json!({"minTtl": "1s", "defaultTtl": "5s"});
        let body = json!({"expectedVersion": 0, "policy": policy});
        let sent = self.http.put(url).json(&body).send().await;
        match sent.map_err(|error| error.to_string())?.status().as_u16() {
            // It was there, from an attempt before.
            201 | 409 => Ok(()),
            status => Err(format!("the namespace is not put: {status}")),
        }
    }
}

async fn exchange(request: reqwest::RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let body = response.bytes().await?;
    Ok(match serde_json::from_slice(&body) {
        Ok(body) => Answer::Response { status, body },
        Err(error) => Answer::Silence { silence: format!("{status}: {error}"), sent: true },
    })
}
