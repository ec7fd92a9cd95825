//! A Redis server for one run: durable before it answers, in a folder of its own.

use super::Child;
use crate::{
    error::Error,
    wire::{
        Link,
        resp::{Reply, Resp, write_command},
    },
};
use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts `program` (`redis-server`) in `folder` on a free port and waits until it answers.
///
/// # Errors
/// It is not installed, or does not come up.
pub async fn start_redis(program: &Path, folder: &Path) -> Result<(Child, SocketAddr), Error> {
    let address = free_address()?;
    let mut command = Command::new(program);
    command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"]);
    command.args(["--dir", &folder.display().to_string(), "--daemonize", "no"]);
    command.args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
    let mut child = Child::start("redis-server", command, folder).map_err(|error| match error {
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Error::Missing(format!(
                "{} is not on this machine, and without it there is nothing to compare with. \
                 On Debian: apt-get install redis-server",
                program.display()
            ))
        }
        other => other,
    })?;
    let until = Instant::now() + START_TIMEOUT;
    while !answers(address).await {
        if !child.is_running() || Instant::now() > until {
            return Err(child.failed("did not answer"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok((child, address))
}

/// A port that is free now.
fn free_address() -> Result<SocketAddr, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(Error::io("find a free port"))
}

async fn answers(address: SocketAddr) -> bool {
    let Ok(mut link) = Link::connect(address).await else { return false };
    write_command(&mut link.output, &[b"PING"]);
    matches!(link.exchange::<Resp>().await, Ok(Reply::Simple(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_redis_it_says_what_to_install() {
        let folder = tempfile::tempdir().unwrap();
        let error = start_redis(Path::new("no-such-redis-server"), folder.path()).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("apt-get install redis-server"), "{error}");
    }
}
