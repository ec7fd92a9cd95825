//! A Sereno server for one run: the real `sereno serve` as a child, on a free port, in a temporary folder.

use super::Child;
use crate::{error::Error, target::ask_json};
use sereno_api::Status;
use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The log engine of a served Sereno.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Durable, in the temporary folder.
    Sqlite,
    /// Nothing is kept: the same door and node without a disk.
    Memory,
}

/// How a run starts servers.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// The `sereno` program. [default: beside this program]
    #[arg(long, value_name = "PATH")]
    pub sereno: Option<PathBuf>,

    /// Where temporary data folders are made: the disk to be measured. [default: the system's]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// One more argument for `sereno serve`; can be given several times (--serve-arg=--log-level=warn).
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub serve_arg: Vec<String>,
}

impl ServeArgs {
    /// A new temporary folder.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self) -> Result<TempDir, Error> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("sereno-bench-");
        match &self.dir {
            Some(dir) => builder.tempdir_in(dir).map_err(Error::path("make a folder in", dir)),
            None => builder.tempdir().map_err(Error::io("make a temporary folder")),
        }
    }

    /// Starts a server in `folder`, and waits until it leads.
    ///
    /// # Errors
    /// There is no such program, or it does not come up.
    pub async fn serve(
        &self,
        engine: Engine,
        folder: &Path,
        args: &[String],
    ) -> Result<Served, Error> {
        let log = match engine {
            Engine::Sqlite => "sqlite",
            Engine::Memory => "memory",
        };
        self.serve_on(log, "127.0.0.1:0", folder, args).await
    }

    /// The same with the log named, and the address to listen on.
    ///
    /// # Errors
    /// There is no such program, or it does not come up.
    pub async fn serve_on(
        &self,
        log: &str,
        http: &str,
        folder: &Path,
        args: &[String],
    ) -> Result<Served, Error> {
        let mut command = Command::new(find_sereno(self.sereno.as_deref())?);
        // The run decides alone: nothing of the caller's own settings.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SERENO_") {
                command.env_remove(name);
            }
        }
        command.args(["serve", "--http", http, "--log", log, "--data"]);
        command.arg(folder.join("data")).args(args).args(&self.serve_arg);
        let mut child = Child::start("sereno", command, folder)?;
        let line = child.line(START_TIMEOUT)?;
        let address = parse_address(&line)
            .ok_or_else(|| child.failed(&format!("its first line names no address: {line:?}")))?;
        let served = Served { child, address };
        served.wait_ready().await?;
        Ok(served)
    }
}

/// A running server.
#[derive(Debug)]
pub struct Served {
    /// Its process.
    pub child: Child,
    /// Where its door listens.
    pub address: SocketAddr,
}

impl Served {
    /// What it says of itself.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn status(&self) -> Result<Status, Error> {
        ask_json(self.address, "GET", "/v1/status", b"").await
    }

    async fn wait_ready(&self) -> Result<(), Error> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            match self.status().await {
                Ok(status) if status.ready => return Ok(()),
                Err(error) if Instant::now() > until => return Err(error),
                Ok(status) if Instant::now() > until => {
                    let why = status.not_ready.unwrap_or_default();
                    return Err(Error::Child {
                        program: "sereno",
                        why: format!("not ready: {why}"),
                    });
                }
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

/// The program: as told, else beside this one, else one folder up (tests run in `deps`).
///
/// # Errors
/// It is in none of these places.
pub fn find_sereno(told: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = told {
        return Ok(path.to_owned());
    }
    let own = std::env::current_exe().map_err(Error::io("find this program"))?;
    let folders = own.ancestors().skip(1).take(2);
    folders.map(|folder| folder.join("sereno")).find(|path| path.is_file()).ok_or_else(|| {
        Error::Missing(format!(
            "there is no `sereno` beside {}. Build it with `cargo build --release`, or name it with --sereno",
            own.display()
        ))
    })
}

/// `127.0.0.1:7480` out of a line that names `http://127.0.0.1:7480`.
fn parse_address(line: &str) -> Option<SocketAddr> {
    let rest = line.split_once("http://")?.1;
    let end = rest.find(|c: char| c.is_whitespace() || c == '/' || c == '"').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The address of a server that runs already, from its URL.
///
/// # Errors
/// It is no `http://host:port`.
pub fn resolve(url: &str) -> Result<SocketAddr, Error> {
    let wrong = |why: &str| Error::Usage(format!("--server {url}: {why}"));
    let rest = url.strip_prefix("http://").ok_or_else(|| wrong("must begin with http://"))?;
    let rest = rest.trim_end_matches('/');
    let mut found = rest.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
    found.next().ok_or_else(|| wrong("has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_address() {
        let address = "127.0.0.1:7480".parse().ok();
        for line in [
            "Sereno listens on http://127.0.0.1:7480",
            "http://127.0.0.1:7480/ (sqlite)",
            "{\"http\":\"http://127.0.0.1:7480\"}",
        ] {
            assert_eq!(parse_address(line), address, "{line}");
        }
        assert_eq!(parse_address("listening"), None);
    }

    #[test]
    fn a_server_is_named_by_its_url() {
        assert_eq!(resolve("http://127.0.0.1:7480/").unwrap().port(), 7480);
        assert!(resolve("127.0.0.1:7480").unwrap_err().to_string().contains("http://"));
        assert!(resolve("http://127.0.0.1").is_err());
    }

    #[test]
    fn a_program_that_is_named_is_taken() {
        assert_eq!(find_sereno(Some(Path::new("/x/sereno"))).unwrap(), Path::new("/x/sereno"));
    }
}
