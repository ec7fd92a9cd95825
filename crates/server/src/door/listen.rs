//! Connections: accepted up to a bound, timed, and ended gracefully.

use super::{Door, answer::json_bytes, problem::Refused};
use crate::cluster::LINK_PATH;
use axum::{Router, response::IntoResponse as _, routing::future::RouteFuture};
use futures_util::future::{Either, Ready, ready};
use hyper::{Request, Response, body::Incoming, server::conn::http1};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinHandle,
};
use tower_service::Service as _;

/// Bytes of a request head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Of each connection: what has arrived and was not asked for yet.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Header fields of a request.
const HEAD_FIELDS_MAX: usize = 64;
/// Places for other nodes' links and for probes where clients have taken all others: a leader that no node reaches
/// would resign, and a supervisor would kill a node that is only busy.
const RESERVE: usize = 128;
/// Whoever takes one of those has to say within this what it is.
const RESERVE_HEAD_TIMEOUT: Duration = Duration::from_millis(1_500);
/// What supervisors ask.
const PROBES: [&str; 2] = ["/livez", "/readyz"];
/// A peer that is silent is asked after this time, and then so often, this many times.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(15), Duration::from_secs(5), 3);
/// A peer that does not confirm what was sent to it is given up after this time.
const UNCONFIRMED_MS: u32 = 30_000;
/// Accepting goes on after this time when the system had no means for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Taking requests.
    Serving,
    /// Answering what it has, and taking nothing new.
    Stopping,
    /// Closing what is still open.
    Closing,
}

/// The door, listening.
pub(crate) struct Running {
    accepting: JoinHandle<()>,
    places: Arc<Semaphore>,
    connections_max: usize,
}

impl Running {
    /// Waits, for at most `grace`, until all connections have ended. The phase must have changed before.
    pub(crate) async fn ended(self, grace: Duration) -> bool {
        let accepting_ended = self.accepting.await.is_ok();
        let all = u32::try_from(self.connections_max).unwrap_or(u32::MAX);
        let connections = tokio::time::timeout(grace, self.places.acquire_many(all)).await;
        accepting_ended && connections.is_ok()
    }
}

/// How connections are bounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Open at once.
    pub(crate) connections_max: usize,
    /// One that sends no whole request head for so long is closed.
    pub(crate) idle_timeout: Duration,
}

/// Serves on `listener` until the phase changes.
pub(crate) fn listen(door: Arc<Door>, listener: TcpListener, bounds: Bounds) -> Running {
    let Bounds { connections_max, idle_timeout } = bounds;
    let places = Arc::new(Semaphore::new(connections_max));
    let router = super::routes::router(Arc::clone(&door));
    let accepting = accept(listener, router, door, Arc::clone(&places), idle_timeout);
    let accepting = tokio::spawn(accepting);
    Running { accepting, places, connections_max }
}

async fn accept(
    listener: TcpListener,
    router: Router,
    door: Arc<Door>,
    places: Arc<Semaphore>,
    idle_timeout: Duration,
) {
    let mut phase = door.phase.clone();
    let http = http(idle_timeout);
    let mut brief = self::http(RESERVE_HEAD_TIMEOUT);
    brief.keep_alive(false);
    let reserve = Arc::new(Semaphore::new(RESERVE));
    let full_house = full_house();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Serving) => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection could be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (http, is_reserve, place) = match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => (http.clone(), false, place),
            Err(_) => match Arc::clone(&reserve).try_acquire_owned() {
                Ok(place) => (brief.clone(), true, place),
                Err(_) => {
                    door.metrics.door.turned_away();
                    // If the system takes it at once: nobody waits here for a client.
                    let _best_effort = stream.try_write(&full_house);
                    continue;
                }
            },
        };
        let service = Service { router: router.clone(), door: Arc::clone(&door), from, is_reserve };
        tokio::spawn(serve(http, stream, service, phase.clone(), place));
    }
}

fn http(head_timeout: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .max_header_size(HEAD_BYTES_MAX)
        .max_headers(HEAD_FIELDS_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        // A clock before 1970 cannot be written there.
        .auto_date_header(SystemTime::now() >= UNIX_EPOCH);
    http
}

fn too_many() -> Refused {
    Refused::unavailable("too many connections", 1_000)
}

/// What a connection too many is told.
fn full_house() -> Vec<u8> {
    let body = json_bytes(&*too_many().0);
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
         content-type: application/problem+json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

async fn serve(
    http: http1::Builder,
    stream: TcpStream,
    service: Service,
    mut phase: watch::Receiver<Phase>,
    _place: OwnedSemaphorePermit,
) {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%error, "a connection could not be set up");
        return;
    }
    let _counted = service.door.metrics.door.connection();
    let mut connection =
        std::pin::pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let mut stopping = false;
    loop {
        let next = if stopping { Phase::Closing } else { Phase::Stopping };
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                }
                return;
            }
            _ = phase.wait_for(|phase| *phase >= next) => {
                if stopping {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                stopping = true;
            }
        }
    }
}

/// Answers leave at once, and the death of a silent peer is noticed: whoever waits in a queue is asked for by its
/// open connection.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (idle, interval, count) = KEEPALIVE;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, idle)?;
    sockopt::set_tcp_keepintvl(stream, interval)?;
    sockopt::set_tcp_keepcnt(stream, count)?;
    Ok(sockopt::set_tcp_user_timeout(stream, UNCONFIRMED_MS)?)
}

/// What hyper calls for each request: the guard, then the routes.
#[derive(Clone)]
struct Service {
    router: Router,
    door: Arc<Door>,
    from: SocketAddr,
    /// Only for other nodes and probes.
    is_reserve: bool,
}

type Answer = Response<axum::body::Body>;

impl hyper::service::Service<Request<Incoming>> for Service {
    type Response = Answer;
    type Error = Infallible;
    type Future = Either<RouteFuture<Infallible>, Ready<Result<Answer, Infallible>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if let Some(links) = &self.door.reach.links
            && request.uri().path() == LINK_PATH
        {
            return Either::Right(ready(Ok(links.take(request, self.from))));
        }
        if self.is_reserve && !PROBES.contains(&request.uri().path()) {
            self.door.metrics.door.turned_away();
            return Either::Right(ready(Ok(too_many().into_response())));
        }
        match self.door.reach.hosts.check(request.uri(), request.headers()) {
            Ok(()) => Either::Left(self.router.clone().call(request)),
            Err(refused) => Either::Right(ready(Ok(refused.into_response()))),
        }
    }
}
