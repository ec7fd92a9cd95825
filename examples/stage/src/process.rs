//! Processes: started, killed, and stopped in the middle of what they do.

use rustix::process::{Pid, Signal, kill_process};
use sereno_etcd_dev::process::{spawn, that_ends_with_us};
use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, ExitStatus, Stdio},
};

/// A process of the play: it ends with this value, and with the play, however that ends.
#[derive(Debug)]
pub struct Process(Child);

/// What is said on standard error by the processes is for those who look for a fault: with this variable set.
const SHOW_ERRORS: &str = "SHOW_ERRORS";

/// Where a program of this repository is, which was built together with this one.
///
/// # Panics
/// It was not.
pub fn path(name: &str) -> String {
    let own = std::env::current_exe().unwrap();
    // Tests and examples are in a folder below the programs.
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    let path = found.into_iter().find(|path| path.is_file());
    let path = path.unwrap_or_else(|| {
        panic!("there is no program {name} beside this one: cargo build --release --workspace")
    });
    path.into_os_string().into_string().unwrap()
}

/// What starts that program. It ends with this process, however this one ends.
///
/// # Panics
/// It was not built.
pub fn program(name: &str) -> Command {
    let mut command = that_ends_with_us(&path(name));
    // The play decides alone: nothing of the caller's own settings.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SERENO_") {
            command.env_remove(name);
        }
    }
    command
}

impl Process {
    /// Starts it.
    pub fn start(mut command: Command) -> Self {
        command.stdout(Stdio::null());
        Self::launch(command)
    }

    fn launch(mut command: Command) -> Self {
        command.stdin(Stdio::null());
        if std::env::var_os(SHOW_ERRORS).is_none() {
            command.stderr(Stdio::null());
        }
        Self(spawn(command).unwrap())
    }

    /// Starts it, and waits for the `http://…` in the first line that it writes.
    ///
    /// # Panics
    /// It ends without.
    pub fn serving(mut command: Command) -> (Self, String) {
        command.stdout(Stdio::piped());
        let mut process = Self::launch(command);
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.find("http://").unwrap_or_else(|| panic!("no address in {line:?}"));
        (process, line[at..].trim().to_string())
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// `kill -9`: it can do nothing about it.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process and all that it has started, and those in turn.
pub fn family(id: u32) -> Vec<u32> {
    let mut family = vec![id];
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(children(parent));
        next += 1;
    }
    family
}

fn children(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| parent_of(*id) == Some(parent)).collect()
}

fn parent_of(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // `id (name) state parent …`; the name may have anything in it.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// What the process is called.
pub fn name(id: u32) -> String {
    fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default().trim().into()
}

/// `kill -9`.
pub fn kill(id: u32) {
    signal(id, Signal::KILL);
}

/// It stands still from here on, as in a machine that is being moved.
pub fn pause(id: u32) {
    signal(id, Signal::STOP);
}

/// It goes on where it was, and does not know that time has passed.
pub fn resume(id: u32) {
    signal(id, Signal::CONT);
}

fn signal(id: u32, signal: Signal) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).unwrap();
    // It may have ended by itself.
    let _ = kill_process(pid, signal);
}
