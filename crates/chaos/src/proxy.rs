//! The fault proxy: every connection into a host goes through it. It delays what passes, and on loopback it cuts.
//! A process of its own, beside the host's; a line of JSON on its standard input sets what it does from then on.

use crate::input;
use serde::{Deserialize, Serialize};
use std::{io, net::SocketAddr, str::FromStr, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where the proxy listens.
    pub listen: SocketAddr,
    /// Where it goes on to.
    pub to: SocketAddr,
}

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (listen, to) = text.split_once('=').ok_or("LISTEN=TO")?;
        let address = |text: &str| text.parse().map_err(|error| format!("{text}: {error}"));
        Ok(Self { listen: address(listen)?, to: address(to)? })
    }
}

/// What it does to one route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipe {
    /// So long is everything under way.
    pub delay_ms: u64,
    /// And up to so much longer.
    pub jitter_ms: u64,
    /// Nothing goes in.
    pub cuts_in: bool,
    /// Nothing comes out.
    pub cuts_out: bool,
}

#[derive(Clone, Copy)]
enum Way {
    In,
    Out,
}

impl Pipe {
    fn is_cut(self, way: Way) -> bool {
        match way {
            Way::In => self.cuts_in,
            Way::Out => self.cuts_out,
        }
    }

    fn lag(self) -> Duration {
        // Half the round trip in each direction.
        let jitter = rand::random_range(0..=self.jitter_ms);
        Duration::from_micros((self.delay_ms + jitter) * 500)
    }
}

/// Serves until its standard input ends.
///
/// # Errors
/// It cannot listen.
pub async fn serve(routes: Vec<Route>) -> io::Result<()> {
    let (settings, set) = watch::channel(vec![Pipe::default(); routes.len()]);
    for (index, route) in routes.into_iter().enumerate() {
        let listener = TcpListener::bind(route.listen).await?;
        let set = set.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, route.to, index, set.clone()));
            }
        });
    }
    let mut lines = input::lines();
    while let Some(line) = lines.recv().await {
        settings.send_replace(serde_json::from_str(&line)?);
    }
    Ok(())
}

async fn forward(
    stream: TcpStream,
    to: SocketAddr,
    route: usize,
    set: watch::Receiver<Vec<Pipe>>,
) -> io::Result<()> {
    let target = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    target.set_nodelay(true)?;
    let (from_client, to_client) = stream.into_split();
    let (from_target, to_target) = target.into_split();
    // The end of either direction is the end of the connection: a host that was killed is gone for both.
    tokio::select! {
        ended = carry(from_client, to_target, route, Way::In, set.clone()) => ended,
        ended = carry(from_target, to_client, route, Way::Out, set) => ended,
    }
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    route: usize,
    way: Way,
    mut set: watch::Receiver<Vec<Pipe>>,
) -> io::Result<()> {
    const UNDER_WAY_MAX: usize = 256;
    let (sender, mut arriving) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY_MAX);
    let lag = set.clone();
    let read = async move {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = from.read(&mut buffer).await?;
            let due = Instant::now() + lag.borrow()[route].lag();
            if count == 0 || sender.send((due, buffer[..count].to_vec())).await.is_err() {
                return io::Result::Ok(());
            }
        }
    };
    let write = async move {
        while let Some((due, bytes)) = arriving.recv().await {
            sleep_until(due).await;
            if set.wait_for(|set| !set[route].is_cut(way)).await.is_err() {
                break;
            }
            to.write_all(&bytes).await?;
        }
        io::Result::Ok(())
    };
    tokio::try_join!(read, write).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_read_as_it_is_written() {
        let route: Route = "127.0.0.1:1=10.0.0.2:3".parse().unwrap();
        assert_eq!(route.listen.port(), 1);
        assert_eq!(route.to.to_string(), "10.0.0.2:3");
        assert!("127.0.0.1:1".parse::<Route>().is_err());
    }

    #[tokio::test]
    async fn a_cut_way_carries_nothing_until_it_is_open_again() {
        let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cut = Pipe { cuts_in: true, ..Pipe::default() };
        let (settings, set) = watch::channel(vec![cut]);
        let mut client = TcpStream::connect(door.local_addr().unwrap()).await.unwrap();
        let (stream, _) = door.accept().await.unwrap();
        tokio::spawn(forward(stream, target.local_addr().unwrap(), 0, set));
        client.write_all(b"a").await.unwrap();
        let (mut inside, _) = target.accept().await.unwrap();
        // The other way is open.
        inside.write_all(b"b").await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'b');
        let silence = tokio::time::timeout(Duration::from_millis(100), inside.read_u8()).await;
        assert!(silence.is_err(), "cut: {silence:?}");
        settings.send_replace(vec![Pipe::default()]);
        assert_eq!(inside.read_u8().await.unwrap(), b'a');
    }
}
