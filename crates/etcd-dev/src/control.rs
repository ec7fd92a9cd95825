//! `etcdctl` on the cluster.

use crate::{Cluster, Error, member};
use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// A new cluster has its leader in about a second; a machine can be busy.
const HEALTHY_WITHIN: Duration = Duration::from_secs(60);

impl Cluster {
    /// Runs `etcdctl` with these arguments on all members, and returns what it prints.
    pub fn ctl(&self, arguments: &[&str]) -> Result<String, Error> {
        self.ctl_at(&self.endpoints(), arguments)
    }

    /// Runs `etcdctl` with these arguments on one member.
    pub fn ctl_member(&self, member: usize, arguments: &[&str]) -> Result<String, Error> {
        self.ctl_at(&self.endpoints()[member..=member], arguments)
    }

    fn ctl_at(&self, endpoints: &[String], arguments: &[&str]) -> Result<String, Error> {
        let urls: Vec<_> = endpoints.iter().map(|it| format!("{}://{it}", self.scheme())).collect();
        let mut command = Command::new("etcdctl");
        command.arg("--endpoints").arg(urls.join(","));
        if let Some(tls) = &self.options.tls {
            command.arg("--cacert").arg(&tls.ca);
            if let Some((certificate, key)) = &tls.client {
                command.arg("--cert").arg(certificate).arg("--key").arg(key);
            }
        }
        command.args(arguments);
        run(command)
    }

    /// Waits until every member answers and has a leader.
    pub fn wait_until_healthy(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + HEALTHY_WITHIN;
        loop {
            let member =
                self.members.iter_mut().find_map(|it| it.has_ended().then(|| it.name.clone()));
            if let Some(name) = member {
                let log = self.dir.join(format!("{name}.log"));
                return Err(Error(format!("{name} of etcd has ended, see {}", log.display())));
            }
            // It waits by itself for members that do not answer yet, for some seconds.
            match self.ctl(&["endpoint", "health"]) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Index of the member that leads, as the members that answer see it.
    pub fn leader(&self) -> Option<usize> {
        (0..self.members.len()).find(|index| {
            let status = self.ctl_member(*index, &["endpoint", "status", "-w", "fields"]);
            status.is_ok_and(|text| {
                let id = field(&text, "MemberID");
                id.is_some() && id == field(&text, "Leader")
            })
        })
    }

    pub(crate) fn restore_member(&self, index: usize, backup: &Path) -> Result<(), Error> {
        let member = &self.members[index];
        let mut command = Command::new("etcdctl");
        command.args(["snapshot", "restore"]).arg(backup);
        command.arg("--data-dir").arg(self.data_dir(index));
        command.args(["--name", &member.name]);
        command.args(["--initial-cluster", &self.initial_cluster()]);
        command.args(["--initial-cluster-token", &self.token()]);
        command.args(["--initial-advertise-peer-urls", &member.peer_url()]);
        run(command).map(drop)
    }
}

fn run(mut command: Command) -> Result<String, Error> {
    member::without_settings(&mut command);
    let output = command.output().map_err(|error| {
        Error(format!("cannot run etcdctl (Debian package etcd-client): {error}"))
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error(format!("etcdctl: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// The value in a line `"Name" : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("\"{name}\" : ")))?;
    Some(line.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let text = "\"ClusterID\" : 7\n\"MemberID\" : 12\n\"Version\" : \"3.4.23\"\n";
        assert_eq!(field(text, "MemberID"), Some("12"));
        assert_eq!(field(text, "Version"), Some("3.4.23"));
        assert_eq!(field(text, "Leader"), None);
    }
}
