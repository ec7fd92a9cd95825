//! A PostgreSQL on this machine: for tests, and for trying things out. It is the one that Debian packages
//! (`postgresql`), on a free port of loopback and with all its data in a temporary folder.
//!
//! It trusts every connection from this machine, and is set up to be quick: a crash of the *machine* may lose its data,
//! one of its *processes* does not. [`Server::durable_in`] starts one that loses nothing, for measurements.

mod programs;
mod user;

use programs::Programs;
use rustix::process::{Pid, Signal, kill_process};
use sereno_etcd_dev::{process, scratch_folder};
use std::{
    fmt,
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use user::User;

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EACH: Duration = Duration::from_millis(20);
/// The superuser, who has no password.
const SUPERUSER: &str = "sereno";

/// Why a server does not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// A running server. It ends with this value, and with the process that started it, however that ends.
pub struct Server {
    programs: Programs,
    user: Option<User>,
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    process: Option<Child>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts one, and waits until it takes connections.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start; the message has what it said.
    pub fn start() -> Result<Self, Error> {
        Self::with_settings(&[])
    }

    /// The same with settings of its configuration, each as `name=value`.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn with_settings(settings: &[&str]) -> Result<Self, Error> {
        let folder = scratch_folder().map_err(|error| Error(error.to_string()))?;
        Self::launched(folder, settings)
    }

    /// One that loses nothing either when the machine crashes: for measurements. Its data is in `folder`, which exists,
    /// is given to the user it runs as, and goes with it; so that decides which disk is measured.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn durable_in(folder: &Path, settings: &[&str]) -> Result<Self, Error> {
        // Of two settings of one name the later one counts.
        let durable = ["fsync=on", "synchronous_commit=on", "full_page_writes=on"];
        Self::launched(folder.into(), &[settings, &durable].concat())
    }

    fn launched(folder: PathBuf, settings: &[&str]) -> Result<Self, Error> {
        let mut server = Self {
            programs: Programs::find()?,
            user: User::other_than_root()?,
            folder,
            port: 0,
            settings: settings.iter().map(ToString::to_string).collect(),
            process: None,
        };
        if let Some(user) = &server.user {
            user.give(&server.folder)?;
        }
        server.make_cluster()?;
        server.launch_on_a_free_port()?;
        Ok(server)
    }

    /// `postgres://…` of the first database, for its superuser.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The same of another database.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes a database, for a test that wants to be alone; its URL.
    ///
    /// # Errors
    /// When it cannot be made, for example because it is there already.
    pub fn create_database(&self, name: &str) -> Result<String, Error> {
        let mut command = Command::new(self.programs.path("createdb"));
        command.args(["--host=127.0.0.1", &format!("--port={}", self.port), "--no-password"]);
        command.args([&format!("--username={SUPERUSER}"), name]);
        run(command)?;
        Ok(self.url_of(name))
    }

    /// Of the process that clients connect to.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Ends it as a crash would: what was being committed is committed or not, and nobody is told.
    pub fn kill(&mut self) {
        self.end(Signal::QUIT);
    }

    /// Starts it again, at the same address.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        self.launch()?;
        self.wait_until_it_serves()
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// A command as the user who may run the server.
    fn command(&self, program: &str) -> Command {
        let path = self.programs.path(program);
        let mut command = match &self.user {
            Some(user) => user.command(&path),
            None => User::same(&path),
        };
        // Its own folder: the present one may be closed to that user.
        command.current_dir(&self.folder).stdin(Stdio::null());
        // The settings of somebody else's PostgreSQL are not for this one.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG"))
        {
            command.env_remove(name);
        }
        command
    }

    fn make_cluster(&self) -> Result<(), Error> {
        let mut command = self.command("initdb");
        command.arg("--pgdata").arg(self.data());
        command.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        command.arg(format!("--username={SUPERUSER}"));
        run(command)
    }

    fn launch_on_a_free_port(&mut self) -> Result<(), Error> {
        /// A port that was free may be taken before the server has it.
        const ATTEMPTS: usize = 3;
        let mut failed = None;
        for _ in 0..ATTEMPTS {
            self.port = free_port()?;
            match self.launch().and_then(|()| self.wait_until_it_serves()) {
                Ok(()) => return Ok(()),
                Err(error) => failed = Some(error),
            }
            self.kill();
        }
        Err(failed.unwrap_or_else(|| Error("there was no attempt".into())))
    }

    fn launch(&mut self) -> Result<(), Error> {
        let cannot = |error: std::io::Error| Error(format!("{}: {error}", self.log().display()));
        let out = File::options().create(true).append(true).open(self.log()).map_err(cannot)?;
        let errors = out.try_clone().map_err(cannot)?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).stdout(out).stderr(errors);
        let fixed = [
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".into(),
            "unix_socket_directories=".into(),
            "fsync=off".into(),
            "max_connections=300".into(),
        ];
        for setting in fixed.iter().chain(&self.settings) {
            command.args(["-c", setting]);
        }
        let started = process::spawn(command).map_err(|error| Error(error.to_string()))?;
        self.process = Some(started);
        Ok(())
    }

    fn wait_until_it_serves(&mut self) -> Result<(), Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut ready = Command::new(self.programs.path("pg_isready"));
            ready.args(["--quiet", "--host=127.0.0.1", &format!("--port={}", self.port)]);
            if ready.status().is_ok_and(|status| status.success()) && !self.has_ended() {
                return Ok(());
            }
            if self.has_ended() || Instant::now() >= until {
                let said = fs::read_to_string(self.log()).unwrap_or_default();
                return Err(Error(format!("PostgreSQL does not start: {said}")));
            }
            thread::sleep(LOOK_EACH);
        }
    }

    fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// `QUIT` is PostgreSQL's word for ending at once: unlike `KILL` it leaves no shared memory behind.
    fn end(&mut self, signal: Signal) {
        let Some(mut child) = self.process.take() else { return };
        let id = Pid::from_child(&child);
        // It may have ended by itself.
        let _ = kill_process(id, signal);
        let until = Instant::now() + PATIENCE;
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = child.kill();
            }
            thread::sleep(LOOK_EACH);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Signal::QUIT);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs it to its end.
fn run(mut command: Command) -> Result<(), Error> {
    let program = Path::new(command.get_program()).display().to_string();
    let output =
        command.output().map_err(|error| Error(format!("cannot start {program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error(format!("{program} failed ({}): {said}", output.status)))
}

fn free_port() -> Result<u16, Error> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
    free.map(|it| it.port()).map_err(|error| Error(format!("looking for a free port: {error}")))
}
