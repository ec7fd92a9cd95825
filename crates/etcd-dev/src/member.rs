//! One member: its addresses, its process, its arguments.

use crate::{Cluster, Error, process};
use rustix::process::{Pid, Signal, kill_process};
use std::{fs::File, path::Path, path::PathBuf, process::Child, process::Command};

pub(crate) struct Member {
    pub(crate) name: String,
    client_port: u16,
    peer_port: u16,
    process: Option<Child>,
}

impl Member {
    pub(crate) fn new(index: usize, client_port: u16, peer_port: u16) -> Self {
        Self { name: format!("member-{index}"), client_port, peer_port, process: None }
    }

    pub(crate) fn client_address(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    pub(crate) fn peer_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.peer_port)
    }

    pub(crate) fn launch(&mut self, arguments: &[String], log: &Path) -> Result<(), Error> {
        self.kill();
        let failed = |error: std::io::Error| Error(format!("{}: {error}", log.display()));
        let output = File::options().create(true).append(true).open(log).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        let mut command = process::that_ends_with_us("etcd");
        command.args(arguments).stdin(std::process::Stdio::null()).stdout(output).stderr(errors);
        without_settings(&mut command);
        self.process = Some(process::spawn(command)?);
        Ok(())
    }

    /// What is wrong if the process has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.process.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.process.as_ref().expect("only a running member is paused or resumed");
        // It may have ended by itself: whoever needs it will notice.
        let _ = kill_process(Pid::from_child(child), signal);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The settings of somebody else's etcd, in the environment, are not for this one.
pub(crate) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETCD") {
            command.env_remove(name);
        }
    }
    command.env("ETCDCTL_API", "3");
    if cfg!(target_arch = "aarch64") {
        // etcd 3.4 wants to be told that somebody knows.
        command.env("ETCD_UNSUPPORTED_ARCH", "arm64");
    }
}

impl Cluster {
    pub(crate) fn scheme(&self) -> &'static str {
        if self.options.tls.is_some() { "https" } else { "http" }
    }

    /// Of this incarnation of the cluster.
    pub(crate) fn data_dir(&self, index: usize) -> PathBuf {
        self.dir.join(format!("data-{}-{index}", self.restored))
    }

    pub(crate) fn initial_cluster(&self) -> String {
        let each = self.members.iter().map(|it| format!("{}={}", it.name, it.peer_url()));
        each.collect::<Vec<_>>().join(",")
    }

    pub(crate) fn token(&self) -> String {
        format!("{}-{}", self.members[0].peer_port, self.restored)
    }

    pub(crate) fn arguments(&self, index: usize) -> Vec<String> {
        let member = &self.members[index];
        let client_url = format!("{}://{}", self.scheme(), member.client_address());
        let pairs = [
            ("--name", member.name.clone()),
            ("--data-dir", self.data_dir(index).display().to_string()),
            ("--listen-client-urls", client_url.clone()),
            ("--advertise-client-urls", client_url),
            ("--listen-peer-urls", member.peer_url()),
            ("--initial-advertise-peer-urls", member.peer_url()),
            ("--initial-cluster", self.initial_cluster()),
            ("--initial-cluster-token", self.token()),
            ("--logger", "zap".into()),
        ];
        let mut arguments: Vec<String> =
            pairs.into_iter().flat_map(|(name, value)| [name.into(), value]).collect();
        if let Some(tls) = &self.options.tls {
            let mut files = vec![("--cert-file", &tls.certificate), ("--key-file", &tls.key)];
            // An authority to trust alone has etcd ask clients for certificates.
            if tls.client.is_some() {
                files.push(("--trusted-ca-file", &tls.ca));
                arguments.push("--client-cert-auth".into());
            }
            for (name, file) in files {
                arguments.extend([name.into(), file.display().to_string()]);
            }
        }
        arguments.extend(self.options.arguments.iter().cloned());
        arguments
    }
}
