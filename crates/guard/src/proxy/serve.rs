//! The proxy's door.

use super::{
    InFlight, ProxyError, Shared, Unfenced, Write,
    body::{AnswerBody, BodyError, RequestBody},
    exchange::Exchange,
    headers,
    keys::Turn,
    problem::Problem,
    wire::Wire,
};
use crate::Fence;
use hyper::{Method, Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout},
};

/// Connections of clients at once; more have to wait.
const CONNECTIONS_MAX: usize = 4_096;
/// For the head of a request, and for the beginning of its body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Where accepting fails, for want of files for example.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

type Answer = Response<AnswerBody>;

/// Serves until `stop` ends or the memory fails.
pub(super) async fn run(
    listener: &TcpListener,
    shared: &Arc<Shared>,
    stop: impl Future<Output = ()>,
) -> Result<(), ProxyError> {
    let mut failure = shared.memory.failure();
    let (stopping, stopped) = watch::channel(false);
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(listener, &connections) => accepted,
            () = &mut stop => break,
            failed = lost(&mut failure) => return Err(ProxyError::MemoryLost(failed)),
        };
        if let Some((stream, from, place)) = accepted {
            tokio::spawn(connection(shared.clone(), stream, from, stopped.clone(), place));
        }
    }
    stopping.send_replace(true);
    tracing::info!("stopping: what is in flight is finished first");
    let all = u32::try_from(super::REQUESTS_MAX).unwrap_or(u32::MAX);
    let connections_all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    // Each request is bounded by itself; this is for clients that do not take their answers.
    let finished = async {
        let _ = shared.places.acquire_many(all).await;
        let _ = connections.acquire_many(connections_all).await;
    };
    let _ = timeout(shared.upstream_max * 2 + READ_TIMEOUT, finished).await;
    Ok(())
}

async fn lost(failure: &mut watch::Receiver<Option<String>>) -> String {
    match failure.wait_for(Option::is_some).await {
        Ok(why) => why.clone().unwrap_or_default(),
        Err(_) => "its thread has ended".into(),
    }
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = connections.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, from)) => Some((stream, from, place)),
        Err(error) => {
            tracing::warn!("accepting a connection: {error}");
            tokio::time::sleep(ACCEPT_AGAIN).await;
            None
        }
    }
}

async fn connection(
    shared: Arc<Shared>,
    stream: TcpStream,
    from: SocketAddr,
    mut stopped: watch::Receiver<bool>,
    place: OwnedSemaphorePermit,
) {
    // Small answers are not to wait for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move {
            let answer = handle(&shared, request, from).await;
            Ok::<Answer, Infallible>(answer.unwrap_or_else(|problem| problem.answer()))
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(READ_TIMEOUT);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = told(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection from {from}: {error}");
    }
    drop(place);
}

async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

/// One request. Dropped while it waits (the client has gone) it leaves nothing behind; once it is being sent a task of
/// its own carries it on.
async fn handle(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
    from: SocketAddr,
) -> Result<Answer, Problem> {
    let place = shared.places.clone().try_acquire_owned().map_err(|_| Problem::Busy)?;
    let fence = check(shared, &request)?;
    let (mut parts, body) = request.into_parts();
    let body = timeout(READ_TIMEOUT, RequestBody::read_ahead(body, shared.body_max)).await;
    let body = body.map_err(|_| Problem::TooSlow)?.map_err(|error| match error {
        BodyError::TooLarge => Problem::TooLarge(shared.body_max),
        BodyError::TooSlow => Problem::TooSlow,
        BodyError::Broken(why) => Problem::Invalid(why),
    })?;
    parts.uri =
        shared.base.of(&parts.uri).ok_or_else(|| Problem::Invalid("the path is none".into()))?;
    parts.headers = headers::of_request(parts.headers, shared.base.authority.as_str(), from.ip());
    parts.version = hyper::Version::HTTP_11;
    let turn = match &fence {
        Some(fence) => Some(turn(shared, fence).await?),
        None => None,
    };
    // Before anything is written down: where there is no upstream, nothing is in flight.
    let wire = Wire::connect(shared.base.address(), shared.upstream_max).await?;
    let write = match (&fence, turn) {
        (Some(fence), Some((id, turn))) => Some(begin(shared, fence, id, turn).await?),
        _ => None,
    };
    let exchange = Exchange {
        wire,
        request: Request::from_parts(parts, body.until(Instant::now() + shared.upstream_max)),
        in_flight: InFlight { write, place },
        upstream_max: shared.upstream_max,
        body_max: shared.body_max,
    };
    exchange.start().await.unwrap_or_else(|_| Err(Problem::Broken("the exchange has ended".into())))
}

/// What can be said before the body is looked at.
fn check(shared: &Shared, request: &Request<Incoming>) -> Result<Option<Fence>, Problem> {
    if request.method() == Method::CONNECT {
        return Err(Problem::NotSupported);
    }
    let fence = headers::fence(request.headers()).map_err(Problem::Invalid)?;
    let may_be_unfenced = match shared.unfenced {
        Unfenced::Everything => true,
        Unfenced::Safe => headers::is_safe(request.method()),
        Unfenced::Nothing => false,
    };
    if fence.is_none() && !may_be_unfenced {
        return Err(Problem::TokenRequired);
    }
    if headers::length(request.headers()).is_some_and(|length| length > shared.body_max) {
        return Err(Problem::TooLarge(shared.body_max));
    }
    Ok(fence)
}

/// Waits until no older write is in flight.
async fn turn(shared: &Shared, fence: &Fence) -> Result<(u64, Turn), Problem> {
    let id = shared.next_id();
    let turn = shared.keys.turn(fence, id).await;
    turn.map(|turn| (id, turn)).map_err(|refused| refuse(shared, refused))
}

/// Has it durable that it is in flight.
async fn begin(shared: &Shared, fence: &Fence, id: u64, turn: Turn) -> Result<Write, Problem> {
    // From here on whatever happens ends it in the memory too.
    let write = Write::new(id, shared.memory.clone(), turn);
    match shared.memory.begin(id, fence).await {
        Ok(Ok(())) => {
            if let Some(reporter) = &shared.reporter {
                reporter.checks(fence.key());
            }
            Ok(write)
        }
        Ok(Err(refused)) => Err(refuse(shared, refused)),
        Err(_lost) => Err(Problem::MemoryLost),
    }
}

fn refuse(shared: &Shared, refused: crate::Refused) -> Problem {
    tracing::debug!("refused: {refused}");
    if let Some(reporter) = &shared.reporter {
        reporter.refused(&refused);
    }
    Problem::Fenced(refused)
}
