//! The state that a kill between *durable* and *forwarded* leaves: made on purpose, for no test can hit that moment.

use super::*;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn config(upstream: SocketAddr, data: &std::path::Path) -> Config {
    Config {
        listen: ([127, 0, 0, 1], 0).into(),
        upstream: format!("http://{upstream}"),
        data: data.into(),
        upstream_max: Duration::from_millis(400),
        body_max: 1_000,
        unfenced: Unfenced::Safe,
        reporter: None,
    }
}

/// Answers everything at once.
async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4_096]).await;
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            });
        }
    });
    address
}

async fn write(proxy: SocketAddr, token: u64) -> String {
    let mut stream = tokio::net::TcpStream::connect(proxy).await.unwrap();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nSereno-Fence-Key: k\r\nSereno-Token: {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer["HTTP/1.1 ".len()..][..3].to_string()
}

#[tokio::test]
async fn a_write_that_was_durable_and_perhaps_never_sent_is_waited_out() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, _) = Memory::open(folder.path()).unwrap();
    memory.begin(1, &crate::Fence::new("k", 7).unwrap()).await.unwrap().unwrap();
    // As a kill would: without an end.
    drop(memory);
    let upstream = upstream().await;
    let begun = Instant::now();
    let proxy = loop {
        match Proxy::start(config(upstream, folder.path())).await {
            Err(ProxyError::Memory(MemoryError::InUse(_))) => tokio::task::yield_now().await,
            proxy => break proxy.unwrap(),
        }
    };
    let address = proxy.address().unwrap();
    let running = tokio::spawn(proxy.run(std::future::pending()));
    assert_eq!(write(address, 6).await, "412", "it was accepted");
    assert_eq!(write(address, 7).await, "204");
    assert!(begun.elapsed() < Duration::from_millis(350), "an equal one does not wait");
    assert_eq!(write(address, 8).await, "204");
    assert!(begun.elapsed() >= Duration::from_millis(400), "a newer one does");
    assert_eq!(write(address, 7).await, "412");
    running.abort();
}

#[tokio::test]
async fn without_its_memory_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(config(upstream().await, folder.path())).await.unwrap();
    let address = proxy.address().unwrap();
    let running = tokio::spawn(proxy.run(std::future::pending()));
    assert_eq!(write(address, 5).await, "204");
    // Somebody takes the table away: the next commit fails.
    let other = rusqlite::Connection::open(folder.path().join("fence.db")).unwrap();
    let left = || other.query_row("SELECT count(*) FROM in_flight", [], |row| row.get::<_, i64>(0));
    while left().unwrap() > 0 {
        tokio::task::yield_now().await;
    }
    other.execute_batch("DROP TABLE in_flight").unwrap();
    assert_eq!(write(address, 6).await, "503");
    let ended = running.await.unwrap();
    assert!(matches!(ended, Err(ProxyError::MemoryLost(_))), "{ended:?}");
}
