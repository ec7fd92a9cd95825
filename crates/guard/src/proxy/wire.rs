//! A connection to the upstream that knows when the last byte was sent.
//!
//! One for each request: then it is certain which bytes belong to which write, and nothing is sent twice unseen.

use super::problem::Problem;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, timeout},
};

/// To the upstream.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The connection.
pub(super) struct Wire {
    stream: TcpStream,
    last_sent: LastSent,
}

/// When something was sent over it, noted *after* the system has taken it: a process that is stopped in between
/// notes a later time, never an earlier one.
#[derive(Clone)]
pub(super) struct LastSent(Arc<Mutex<Instant>>);

impl LastSent {
    pub(super) fn get(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl Wire {
    pub(super) async fn connect(
        address: (&str, u16),
        upstream_max: Duration,
    ) -> Result<Self, Problem> {
        let connected =
            timeout(CONNECT_TIMEOUT.min(upstream_max), TcpStream::connect(address)).await;
        let stream = connected
            .map_err(|_| Problem::Unreachable("no connection in time".into()))?
            .map_err(|error| Problem::Unreachable(error.to_string()))?;
        // A request is not to wait for the answer to its beginning.
        let _ = stream.set_nodelay(true);
        Ok(Self { stream, last_sent: LastSent(Arc::new(Mutex::new(Instant::now()))) })
    }

    pub(super) fn last_sent(&self) -> LastSent {
        self.last_sent.clone()
    }

    fn noted(&self, sent: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(sent, Poll::Ready(Ok(bytes)) if bytes > 0) {
            self.last_sent.note();
        }
        sent
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.noted(sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
