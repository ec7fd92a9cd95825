//! Between a log and its etcd: makes on purpose everything that can become of an append on its way.
//!
//! A plan is carried out on the next append that goes by. The client's connection is closed then: it sees that at
//! once, and never an answer.

use super::frames::{DATA, Frame, Frames, HEADERS};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Pass,
    /// The request arrives, its answer does not.
    ReplyLost,
    /// The request does not arrive.
    Lost,
    /// The request arrives when [`Proxy::let_late_arrive`] says so.
    Late,
    /// Every connection is closed, and none is accepted, until it is taken back.
    Closed,
}

/// Stands for one or several members; each has a port of its own.
pub struct Proxy {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    tasks: Vec<JoinHandle<()>>,
}

struct Shared {
    plan: watch::Sender<Plan>,
    /// Bytes of answers that are let through, and those that have been.
    room: watch::Sender<u64>,
    passed: watch::Sender<u64>,
    late: Mutex<Vec<Request>>,
}

/// A request on its way, and where its answer comes from.
struct Request {
    bytes: Vec<u8>,
    to: OwnedWriteHalf,
    answers: OwnedReadHalf,
    answer_frames: Frames,
    stream: u32,
}

impl Request {
    /// Returns when it has been answered, which nobody hears.
    async fn arrive(mut self) {
        self.to.write_all(&self.bytes).await.expect("etcd takes it");
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = self.answers.read(&mut buffer).await.expect("etcd answers");
            assert!(read > 0, "etcd hung up");
            let is_end =
                |it: &Frame| it.kind == HEADERS && it.stream == self.stream && it.ends_its_stream();
            if self.answer_frames.take(&buffer[..read]).iter().any(is_end) {
                return;
            }
        }
    }
}

impl Proxy {
    pub async fn start(members: &[String]) -> Self {
        let shared = Arc::new(Shared {
            plan: watch::channel(Plan::Pass).0,
            room: watch::channel(u64::MAX).0,
            passed: watch::channel(0).0,
            late: Mutex::default(),
        });
        let (mut addresses, mut tasks) = (Vec::new(), Vec::new());
        for member in members {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            addresses.push(listener.local_addr().expect("it has an address"));
            tasks.push(tokio::spawn(accept(listener, member.clone(), Arc::clone(&shared))));
        }
        Self { shared, addresses, tasks }
    }

    pub fn endpoints(&self) -> Vec<String> {
        self.addresses.iter().map(SocketAddr::to_string).collect()
    }

    pub fn plan(&self, plan: Plan) {
        self.shared.plan.send_replace(plan);
    }

    /// Lets so many more bytes of answers through, and then none.
    pub fn hold_after(&self, bytes: u64) {
        let passed = *self.shared.passed.borrow();
        self.shared.room.send_replace(passed + bytes);
    }

    pub fn hold_no_more(&self) {
        self.shared.room.send_replace(u64::MAX);
    }

    /// Returns when no more answers are let through.
    pub async fn is_holding(&self) {
        let room = *self.shared.room.borrow();
        let mut passed = self.shared.passed.subscribe();
        passed.wait_for(|passed| *passed >= room).await.expect("the proxy is there");
    }

    /// Returns when they have been answered, which nobody hears.
    pub async fn let_late_arrive(&self) {
        let late = std::mem::take(&mut *self.shared.late.lock().expect("no panic"));
        for request in late {
            request.arrive().await;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn accept(listener: TcpListener, member: String, shared: Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        if *shared.plan.borrow() == Plan::Closed {
            continue;
        }
        let Ok(server) = TcpStream::connect(&member).await else { continue };
        let at_once = [&client, &server].map(|stream| stream.set_nodelay(true));
        at_once.into_iter().for_each(|set| set.expect("a socket takes the option"));
        tokio::spawn(carry(client, server, Arc::clone(&shared)));
    }
}

async fn carry(client: TcpStream, server: TcpStream, shared: Arc<Shared>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let mut plan = shared.plan.subscribe();
    let (mut asked, mut answered) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let (mut frames, mut answer_frames) = (Frames::of_client(), Frames::of_server());
    loop {
        tokio::select! {
            biased;
            () = closed(&mut plan) => return,
            read = from_client.read(&mut asked) => {
                let count = read.unwrap_or(0);
                if count == 0 {
                    return;
                }
                let begun = frames.take(&asked[..count]);
                let append = begun.iter().find(|it| is_append(it));
                let now = *shared.plan.borrow();
                match (append, now) {
                    (_, Plan::Closed) => return,
                    (None, _) | (_, Plan::Pass) => {
                        if to_server.write_all(&asked[..count]).await.is_err() {
                            return;
                        }
                    }
                    (Some(append), planned) => {
                        shared.plan.send_replace(Plan::Pass);
                        let mut bytes = asked[..count].to_vec();
                        while !frames.is_whole() {
                            let more = from_client.read(&mut asked).await.unwrap_or(0);
                            assert!(more > 0, "a client sends its request to the end");
                            frames.take(&asked[..more]);
                            bytes.extend_from_slice(&asked[..more]);
                        }
                        let stream = append.stream;
                        let request =
                            Request { bytes, to: to_server, answers: from_server, answer_frames, stream };
                        match planned {
                            Plan::ReplyLost => request.arrive().await,
                            Plan::Late => shared.late.lock().expect("no panic").push(request),
                            Plan::Lost | Plan::Pass | Plan::Closed => {}
                        }
                        return;
                    }
                }
            }
            read = from_server.read(&mut answered) => {
                let count = read.unwrap_or(0);
                answer_frames.take(&answered[..count]);
                shared.passed.send_modify(|passed| *passed += count as u64);
                let passed = *shared.passed.borrow();
                let mut room = shared.room.subscribe();
                // The sender lives as long as the connection.
                let _ = room.wait_for(|room| passed < *room).await.map(drop);
                if count == 0 || to_client.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Its message is longer than those of reads, watches and the like.
fn is_append(frame: &Frame) -> bool {
    frame.kind == DATA && frame.length > 300
}

async fn closed(plan: &mut watch::Receiver<Plan>) {
    // The sender lives as long as the connection.
    let _ = plan.wait_for(|plan| *plan == Plan::Closed).await;
}
