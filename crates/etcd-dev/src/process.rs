//! Processes that never outlive this one.
//!
//! The kernel is told to kill a member when its parent goes. It counts the *thread* that started a process as the
//! parent, and a test's thread ends with the test: so one thread starts all of them, and never ends.

use crate::Error;
use std::{
    os::unix::process::CommandExt,
    process::{Child, Command},
    sync::{
        LazyLock,
        mpsc::{Sender, channel},
    },
};

struct Request {
    command: Command,
    reply: Sender<std::io::Result<Child>>,
}

static STARTER: LazyLock<Sender<Request>> = LazyLock::new(|| {
    let (requests, asked) = channel::<Request>();
    let start_all = move || {
        for mut request in asked {
            // Whoever asked waits for it.
            let _ = request.reply.send(request.command.spawn());
        }
    };
    let thread = std::thread::Builder::new().name("etcd-starter".into()).spawn(start_all);
    thread.expect("a thread can be started");
    requests
});

/// `program`, started by a tool of util-linux (every Debian has it) that arranges for its end. Elsewhere only the
/// destructor ends it.
pub fn that_ends_with_us(program: &str) -> Command {
    let has_tool = cfg!(target_os = "linux")
        && Command::new("setpriv").arg("--version").output().is_ok_and(|it| it.status.success());
    if !has_tool {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// Starts it, from the one thread that never ends, in a process group of its own: Ctrl-C is for this process, which
/// then ends the others in their order.
///
/// # Errors
/// When the program cannot be started.
pub fn spawn(mut command: Command) -> Result<Child, Error> {
    command.process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let (reply, answer) = channel();
    let starter_gone = "the starting thread never ends";
    STARTER.send(Request { command, reply }).expect(starter_gone);
    let started = answer.recv().expect(starter_gone);
    started.map_err(|error| Error(format!("cannot start {program}: {error}")))
}
