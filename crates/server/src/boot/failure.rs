//! A failure that the server cannot go on after, told to whoever runs it.

use std::sync::Arc;
use tokio::sync::watch;

/// The first failure, if any.
#[derive(Clone)]
pub(super) struct Failure(Arc<watch::Sender<Option<String>>>);

impl Default for Failure {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Failure {
    /// Only the first counts: what follows it is mostly its consequence.
    pub(super) fn report(&self, message: String) {
        tracing::error!(reason = %message, "the server cannot go on");
        self.0.send_if_modified(|first| {
            let is_first = first.is_none();
            if is_first {
                *first = Some(message);
            }
            is_first
        });
    }

    pub(super) fn message(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    pub(super) async fn wait(&self) -> String {
        let mut seen = self.0.subscribe();
        match seen.wait_for(Option::is_some).await {
            Ok(message) => message.clone().unwrap_or_default(),
            Err(_) => unreachable!("this very value keeps the sender"),
        }
    }
}
