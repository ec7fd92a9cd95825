//! The client's own thread. Renewals must not depend on whether the caller's runtime is busy, and what is owed
//! to the service (releases, abandons) must not die with it.

use std::{future::Future, io, thread, time::Duration};
use tokio::{
    runtime::{Builder, Handle},
    sync::{oneshot, watch},
};

/// How long the thread goes on after the last handle is gone, for what is still owed.
const LINGER: Duration = Duration::from_secs(30);

/// Where the client's tasks run.
#[derive(Clone)]
pub(crate) struct Background {
    handle: Handle,
    owed: watch::Sender<usize>,
}

/// Held by everything that keeps the client alive; dropped with the last of it.
pub(crate) struct KeepsAlive {
    _open: oneshot::Sender<()>,
}

/// Counts one task that has to finish.
struct Owed(watch::Sender<usize>);

impl Owed {
    fn new(owed: &watch::Sender<usize>) -> Self {
        owed.send_modify(|count| *count += 1);
        Self(owed.clone())
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Background {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<(Self, KeepsAlive)> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (open, closed) = oneshot::channel();
        let owed = watch::Sender::new(0);
        let mut unpaid = owed.subscribe();
        thread::Builder::new().name("sereno-client".into()).spawn(move || {
            runtime.block_on(async {
                let _ = closed.await;
                let _ = tokio::time::timeout(LINGER, unpaid.wait_for(|&count| count == 0)).await;
            });
        })?;
        Ok((Self { handle, owed }, KeepsAlive { _open: open }))
    }

    /// Runs a task that may be cut off when the client goes.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }

    /// Runs a task that the end of the client waits for.
    pub(crate) fn spawn_owed(&self, task: impl Future<Output = ()> + Send + 'static) {
        let owed = Owed::new(&self.owed);
        self.handle.spawn(async move {
            task.await;
            drop(owed);
        });
    }

    /// Runs a task whose result the caller awaits, on any runtime. Dropping the returned future cancels the task.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (mut done, result) = oneshot::channel();
        self.handle.spawn(async move {
            tokio::select! {
                output = task => { let _ = done.send(output); }
                () = done.closed() => {}
            }
        });
        result.await.ok()
    }

    /// Returns when nothing is owed any more.
    pub(crate) async fn settled(&self) {
        let _ = self.owed.subscribe().wait_for(|&count| count == 0).await;
    }
}
