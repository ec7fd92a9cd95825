//! As whom the server runs: it refuses root.

use crate::Error;
use std::{fs, os::unix::fs::chown, path::Path, process::Command};

/// Preferred first.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// Another user of this machine.
pub(crate) struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// Somebody, if this process is root; `None` if it is not.
    pub(crate) fn other_than_root() -> Result<Option<Self>, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let all = fs::read_to_string("/etc/passwd")
            .map_err(|error| Error(format!("reading /etc/passwd: {error}")))?;
        let found = NAMES.iter().find_map(|name| parse(&all, name));
        let nobody =
            || Error(format!("PostgreSQL refuses root, and there is no user of {NAMES:?}"));
        found.map(Some).ok_or_else(nobody)
    }

    /// Makes the folder theirs.
    pub(crate) fn give(&self, folder: &Path) -> Result<(), Error> {
        chown(folder, Some(self.uid), Some(self.gid))
            .map_err(|error| Error(format!("giving {} away: {error}", folder.display())))
    }

    /// `program` as this user, ended together with this process.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = setpriv();
        command.arg(format!("--reuid={}", self.uid)).arg(format!("--regid={}", self.gid));
        command.args(["--clear-groups", "--"]).arg(program);
        command
    }

    /// The same as the present user.
    pub(crate) fn same(program: &Path) -> Command {
        let mut command = setpriv();
        command.arg("--").arg(program);
        command
    }
}

/// Of util-linux, which every Debian has. `QUIT` and not `KILL`: see `Server::end`.
fn setpriv() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    command
}

fn parse(all: &str, name: &str) -> Option<User> {
    let mut fields = all
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    // After the name: password, user id, group id.
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let all = "root:x:0:0::/root:/bin/sh\npostgresql:x:7:7::/:/\npostgres:x:105:110:PG:/var:/bin/sh\n";
        let user = parse(all, "postgres").unwrap();
        assert_eq!((user.uid, user.gid), (105, 110));
        assert!(parse(all, "nobody").is_none());
    }
}
