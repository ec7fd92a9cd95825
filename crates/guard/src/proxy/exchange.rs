//! One exchange with the upstream, in a task of its own: a client that goes away does not end it, for the upstream may
//! be at work all the same.

use super::{
    InFlight, Write,
    body::{AnswerBody, BodyError, Piece, Relayed, RequestBody},
    headers,
    problem::Problem,
    wire::{LastSent, Wire},
};
use http_body_util::BodyExt;
use hyper::{
    Request, Response,
    body::Incoming,
    client::conn::http1::{self, Connection},
};
use hyper_util::rt::TokioIo;
use std::{
    error::Error,
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};
use tokio::{
    sync::{
        mpsc::{self, Sender},
        oneshot,
    },
    time::{Instant, sleep_until, timeout},
};

/// Pieces of an answer between the upstream and the client.
const PIECES: usize = 8;
/// For each piece of an answer, from the upstream and to the client.
const IDLE: Duration = Duration::from_secs(60);

type Answer = Result<Response<AnswerBody>, Problem>;

/// What is sent.
pub(super) struct Exchange {
    pub(super) wire: Wire,
    pub(super) request: Request<RequestBody>,
    pub(super) in_flight: InFlight,
    pub(super) upstream_max: Duration,
    pub(super) body_max: u64,
}

type Upstream = Pin<Box<Connection<TokioIo<Wire>, RequestBody>>>;

/// The upstream's side of the exchange. Nothing is sent but while this is driven, and nothing any more once it is
/// dropped: so what is known of the last byte sent is known for good.
struct Link {
    connection: Option<Upstream>,
    last_sent: LastSent,
    upstream_max: Duration,
}

/// Its time was over before its end.
struct OutOfTime;

impl Link {
    /// Does `work`, which needs the connection, until a write that is in flight now counts as finished.
    async fn in_time<T>(&mut self, work: impl Future<Output = T>) -> Result<T, OutOfTime> {
        let (last_sent, upstream_max) = (self.last_sent.clone(), self.upstream_max);
        let mut work = pin!(self.drive(work));
        loop {
            let until = last_sent.get() + upstream_max;
            tokio::select! {
                done = &mut work => return Ok(done),
                () = sleep_until(until) => {}
            }
            // More may have been sent meanwhile.
            if last_sent.get() + upstream_max <= Instant::now() {
                return Err(OutOfTime);
            }
        }
    }

    /// Does `work`, and what the connection has to do meanwhile.
    async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            if let Some(connection) = &mut self.connection
                && connection.as_mut().poll(context).is_ready()
            {
                // What the work waits for is ended by that, which wakes it.
                self.connection = None;
            }
            Poll::Pending
        })
        .await
    }

    /// Sends nothing more, and returns when what was sent counts as finished.
    async fn cut(mut self) {
        self.connection = None;
        sleep_until(self.last_sent.get() + self.upstream_max).await;
    }
}

impl Exchange {
    /// Carries it out to its end, whatever becomes of who asked.
    pub(super) fn start(self) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        tokio::spawn(self.run(answer));
        answered
    }

    async fn run(self, answer: oneshot::Sender<Answer>) {
        let Self { wire, request, in_flight, upstream_max, body_max } = self;
        let InFlight { write, place } = in_flight;
        let write = write.map(Write::send);
        let failure = request.body().failure();
        let last_sent = wire.last_sent();
        let (mut sender, connection) = match http1::handshake(TokioIo::new(wire)).await {
            Ok((sender, connection)) => (sender, Some(Box::pin(connection))),
            Err(error) => {
                let _ = answer.send(Err(Problem::Unreachable(describe(&error))));
                if let Some(write) = write {
                    write.finish();
                }
                return;
            }
        };
        let mut link = Link { connection, last_sent, upstream_max };
        let problem = match link.in_time(sender.send_request(request)).await {
            Ok(Ok(response)) => {
                let (mut parts, body) = response.into_parts();
                parts.headers = headers::of_answer(parts.headers);
                let (pieces, relayed) = mpsc::channel(PIECES);
                // Without anybody to hear it the answer is still read to its end.
                let _ = answer.send(Ok(Response::from_parts(parts, Relayed(relayed).boxed())));
                relay(link, body, pieces, write).await;
                drop(place);
                return;
            }
            Ok(Err(error)) => match failure.get() {
                // Cut off on purpose, but the upstream has seen a part of it.
                Some(BodyError::TooLarge) => Problem::TooLarge(body_max),
                Some(body) => Problem::Broken(body.to_string()),
                None => Problem::Broken(describe(&error)),
            },
            Err(OutOfTime) => Problem::NoAnswer,
        };
        tracing::warn!("{}", problem.document()["detail"]);
        let _ = answer.send(Err(problem));
        if let Some(write) = write {
            link.cut().await;
            write.finish();
        }
        drop(place);
    }
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Whole,
    Broken,
}

/// Hands the answer over. The write counts until the whole answer is there or its time is over, whichever is first.
async fn relay(mut link: Link, body: Incoming, pieces: Sender<Piece>, mut write: Option<Write>) {
    let until = link.last_sent.get() + link.upstream_max;
    let ended = {
        let mut passing = pin!(pass_on(body, pieces, until));
        match link.in_time(&mut passing).await {
            Ok(ended) => ended,
            Err(OutOfTime) => {
                // It counts no more, and the answer goes on for as long as it flows.
                if let Some(write) = write.take() {
                    write.finish();
                }
                link.drive(passing).await
            }
        }
    };
    if let Some(write) = write {
        if ended == Ended::Broken {
            link.cut().await;
        }
        write.finish();
    }
}

/// Without anybody to hear it the answer is still read, while the write counts.
async fn pass_on(mut body: Incoming, pieces: Sender<Piece>, until: Instant) -> Ended {
    let mut pieces = Some(pieces);
    loop {
        if pieces.is_none() && Instant::now() >= until {
            return Ended::Broken;
        }
        let piece = match timeout(IDLE, body.frame()).await {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => Ok(Some(data)),
                Err(_trailers) => continue,
            },
            Ok(Some(Err(error))) => Err(BodyError::Broken(error.to_string())),
            Ok(None) => Ok(None),
            Err(_) => Err(BodyError::TooSlow),
        };
        let ended = match &piece {
            Ok(Some(_)) => None,
            Ok(None) => Some(Ended::Whole),
            Err(_) => Some(Ended::Broken),
        };
        if let Some(to) = &pieces
            && !matches!(timeout(IDLE, to.send(piece)).await, Ok(Ok(())))
        {
            // The client has gone, or takes nothing.
            pieces = None;
        }
        if let Some(ended) = ended {
            return ended;
        }
    }
}

/// The chain of causes: the outermost says little.
fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
