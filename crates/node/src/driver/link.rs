//! The link between two nodes: frames over a stream that somebody else has opened. A frame is its length (u32,
//! little-endian), its proof (see the module `secret`) and a message in borsh.

use super::{
    secret::{End, PROOF_BYTES, Prover, Secret, shake_hands},
    seldom::Seldom,
};
use crate::{
    handle::{Call, NodeHandle, Role},
    node::{CallId, Input},
    peer::{PeerCall, Request, Response},
};
use async_trait::async_trait;
use borsh::{BorshDeserialize, BorshSerialize};
use sereno_core::limits;
use std::{collections::BTreeMap, io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter},
    sync::{mpsc, oneshot},
    task::{AbortHandle, JoinHandle},
    time::Instant,
};

/// A frame holds one command, or an answer; both are bounded.
const FRAME_BYTES_MAX: usize = 4 * limits::COMMAND_BYTES_MAX;
/// A standby asks so often whether its leader is there.
const PING_INTERVAL: Duration = Duration::from_millis(500);
/// A link over which nothing came for so long is broken.
const SILENCE: Duration = Duration::from_millis(1_500);
/// A leader gives up a standby that has not asked for so long: it has gone without a word.
const STANDBY_SILENCE: Duration = Duration::from_secs(10);
/// Between two attempts to reach a leader.
const DIAL_INTERVAL: Duration = Duration::from_millis(200);

/// A stream of bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// Opens streams to other nodes. Who is at their other end is found out by the link itself.
#[async_trait]
pub trait Dial: Send + Sync + 'static {
    /// A stream to the node at this address, whose other end calls [`accept_link`].
    ///
    /// # Errors
    /// When it cannot be reached.
    async fn dial(&self, address: &str) -> io::Result<Box<dyn Stream>>;
}

async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    prover: &mut Prover,
    message: &impl BorshSerialize,
) -> io::Result<()> {
    let bytes = borsh::to_vec(message)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_le_bytes()).await?;
    to.write_all(&prover.next(&bytes)).await?;
    to.write_all(&bytes).await
}

async fn read<T: BorshDeserialize>(
    from: &mut (impl AsyncRead + Unpin),
    prover: &mut Prover,
) -> io::Result<T> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    let length = from.read_u32_le().await? as usize;
    if length > FRAME_BYTES_MAX {
        return Err(invalid("the frame is too large"));
    }
    let mut proof = [0; PROOF_BYTES];
    from.read_exact(&mut proof).await?;
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    if !prover.is_next(&bytes, &proof) {
        return Err(invalid("a frame is not what the other node sent"));
    }
    borsh::from_slice(&bytes)
}

/// Writes what comes, and flushes when nothing more is there.
async fn write_all<T: BorshSerialize>(
    to: impl AsyncWrite + Unpin,
    mut prover: Prover,
    mut messages: mpsc::UnboundedReceiver<T>,
) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(64 << 10, to);
    while let Some(message) = messages.recv().await {
        write(&mut to, &mut prover, &message).await?;
        while let Ok(message) = messages.try_recv() {
            write(&mut to, &mut prover, &message).await?;
        }
        to.flush().await?;
    }
    Ok(())
}

/// A standby's link to one leader, dialled again whenever it breaks. Dropping it ends it.
pub(super) struct Link {
    requests: mpsc::UnboundedSender<Request>,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    pub(super) fn to(
        address: String,
        dial: Arc<dyn Dial>,
        secret: Secret,
        inputs: mpsc::UnboundedSender<Result<Input, String>>,
    ) -> Self {
        let (requests, asked) = mpsc::unbounded_channel();
        Self { requests, task: tokio::spawn(keep(address, dial, secret, asked, inputs)) }
    }

    pub(super) fn send(&self, request: Request) {
        // A link that has ended tells the node so.
        let _ = self.requests.send(request);
    }
}

async fn keep(
    address: String,
    dial: Arc<dyn Dial>,
    secret: Secret,
    mut asked: mpsc::UnboundedReceiver<Request>,
    inputs: mpsc::UnboundedSender<Result<Input, String>>,
) {
    let failures = Seldom::default();
    loop {
        match tokio::time::timeout(SILENCE, dial.dial(&address)).await {
            Ok(Ok(stream)) => {
                // What was asked for over the link before this one has been given up by the node.
                while asked.try_recv().is_ok() {}
                let error = carry(stream, &secret, &address, &mut asked, &inputs).await;
                if failures.is_due() {
                    tracing::warn!(%address, %error, "there is no link to the leader");
                }
                let _ = inputs.send(Ok(Input::LinkLost(address.clone())));
            }
            Ok(Err(error)) => tracing::debug!(%address, %error, "the leader is not reached"),
            Err(_) => tracing::debug!(%address, "the leader does not answer"),
        }
        tokio::time::sleep(DIAL_INTERVAL).await;
    }
}

/// Until the link breaks: why.
async fn carry(
    mut stream: Box<dyn Stream>,
    secret: &Secret,
    address: &str,
    asked: &mut mpsc::UnboundedReceiver<Request>,
    inputs: &mpsc::UnboundedSender<Result<Input, String>>,
) -> io::Error {
    let shaken = shake_hands(&mut stream, secret, End::Standby);
    let (prove, mut check) = match tokio::time::timeout(SILENCE, shaken).await {
        Ok(Ok(provers)) => provers,
        Ok(Err(error)) => return error,
        Err(_) => return io::Error::new(io::ErrorKind::TimedOut, "it does not answer"),
    };
    let (mut from, to) = tokio::io::split(stream);
    let (sender, outgoing) = mpsc::unbounded_channel();
    let mut writing = std::pin::pin!(write_all(to, prove, outgoing));
    // Reading is a task of its own: a frame that has arrived in part must not be lost.
    let (arrived, mut responses) = mpsc::unbounded_channel();
    let reader = AbortOnDrop::new(async move {
        loop {
            let response: io::Result<Response> = read(&mut from, &mut check).await;
            let is_over = response.is_err();
            if arrived.send(response).is_err() || is_over {
                return;
            }
        }
    });
    let _reader = reader;
    let mut ping = tokio::time::interval(PING_INTERVAL);
    let mut heard_at = Instant::now();
    let mut is_linked = false;
    loop {
        tokio::select! {
            written = &mut writing => {
                return written.err().unwrap_or_else(|| io::Error::other("closed"));
            }
            response = responses.recv() => match response {
                Some(Ok(response)) => {
                    heard_at = Instant::now();
                    if !is_linked {
                        // Only one that leads answers at all.
                        is_linked = true;
                        let _ = inputs.send(Ok(Input::Linked(address.to_owned())));
                    }
                    let _ = inputs.send(Ok(Input::Responded(address.to_owned(), response)));
                }
                Some(Err(error)) => return error,
                None => return io::Error::other("closed"),
            },
            Some(request) = asked.recv() => {
                let _ = sender.send(request);
            }
            _ = ping.tick() => {
                if heard_at.elapsed() > SILENCE {
                    return io::Error::new(io::ErrorKind::TimedOut, "the leader is silent");
                }
                let _ = sender.send(Request::Ping);
            }
        }
    }
}

struct AbortOnDrop(AbortHandle);

impl AbortOnDrop {
    fn new(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The other end of a link, which has proven that it belongs to this service. Until then it is anybody's connection.
pub struct Accepted<S> {
    stream: S,
    prove: Prover,
    check: Prover,
}

/// Finds out who is at the other end of a stream that somebody has opened to this node; within a second and a half.
///
/// # Errors
/// Of kind `PermissionDenied` when it does not know the secret or means another log; else why it broke.
pub async fn accept_link<S: Stream>(
    node: &NodeHandle,
    mut stream: S,
    secret: &Secret,
) -> io::Result<Accepted<S>> {
    let secret = secret.of_log(node.status().borrow().log_id);
    let shaken = shake_hands(&mut stream, &secret, End::Leader);
    let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not say who it is");
    let (prove, check) = tokio::time::timeout(SILENCE, shaken).await.map_err(silent)??;
    Ok(Accepted { stream, prove, check })
}

impl<S: Stream> Accepted<S> {
    /// Serves the link on this node until it breaks, or the node has gone.
    ///
    /// # Errors
    /// Why it broke.
    pub async fn serve(self, node: NodeHandle) -> io::Result<()> {
        let Self { stream, prove, check } = self;
        serve(node, stream, prove, check).await
    }
}

async fn serve(
    node: NodeHandle,
    stream: impl Stream,
    prove: Prover,
    mut check: Prover,
) -> io::Result<()> {
    let (mut from, to) = tokio::io::split(stream);
    let (answers, outgoing) = mpsc::unbounded_channel();
    let (arrived, mut requests) = mpsc::channel(1_024);
    let _reader = AbortOnDrop::new(async move {
        loop {
            let request: io::Result<Request> = read(&mut from, &mut check).await;
            let is_over = request.is_err();
            if arrived.send(request).await.is_err() || is_over {
                return;
            }
        }
    });
    let mut writing = std::pin::pin!(write_all(to, prove, outgoing));
    let mut ends = BTreeMap::new();
    let (done, mut ended) = mpsc::unbounded_channel();
    let mut silent_at = Instant::now() + STANDBY_SILENCE;
    loop {
        tokio::select! {
            written = &mut writing => return written,
            Some(id) = ended.recv() => drop(ends.remove(&id)),
            () = tokio::time::sleep_until(silent_at) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the standby is silent"));
            }
            request = requests.recv() => {
                silent_at = Instant::now() + STANDBY_SILENCE;
                let Some(request) = request else { return Ok(()) };
                match request? {
                    Request::Call(call) => {
                        let (end, over) = oneshot::channel();
                        ends.insert(call.id, end);
                        tokio::spawn(answer(node.clone(), call, over, answers.clone(), done.clone()));
                    }
                    Request::Cancelled(id) => drop(ends.remove(&id)),
                    Request::Unheard(claim) => node.unheard(claim),
                    Request::Barrier { number, timeout_ms } => {
                        tokio::spawn(barrier(node.clone(), number, timeout_ms, answers.clone()));
                    }
                    Request::Ping => {
                        let (leads, time) = {
                            let status = node.status();
                            let status = status.borrow();
                            (matches!(status.role, Role::Leader { .. }), status.time)
                        };
                        if !leads {
                            return Err(io::Error::other("this node does not lead"));
                        }
                        node.reached();
                        let _ = answers.send(Response::Pong(time));
                    }
                }
            }
        }
    }
}

/// Carries out a standby's call, until its end is dropped there: then nobody listens any more.
async fn answer(
    node: NodeHandle,
    call: PeerCall,
    over: oneshot::Receiver<()>,
    answers: mpsc::UnboundedSender<Response>,
    done: mpsc::UnboundedSender<CallId>,
) {
    let id = call.id;
    let call = Call {
        caller: call.caller,
        operation: call.operation,
        born_at: Some(call.born_at),
        deadline: Instant::now() + Duration::from_millis(call.timeout_ms),
        hold: Duration::from_millis(call.hold_ms),
        is_passed: true,
    };
    tokio::select! {
        reply = node.call(call) => {
            let claim = crate::handle::granted_claim(&reply);
            if answers.send(Response::Reply(id, reply)).is_err()
                && let Some(claim) = claim
            {
                node.unheard(claim);
            }
        }
        _ = over => {}
    }
    let _ = done.send(id);
}

async fn barrier(
    node: NodeHandle,
    number: u64,
    timeout_ms: u64,
    answers: mpsc::UnboundedSender<Response>,
) {
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    let up_to = node.barrier(deadline).await;
    let _ = answers.send(Response::Barrier { number, up_to });
}
