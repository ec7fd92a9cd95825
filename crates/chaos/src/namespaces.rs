//! Namespaces of the harness's own: it starts itself anew inside them, and all that it makes there (network namespaces,
//! links, mounts) vanishes with it, however it ends.

use crate::cluster::process::run;
use std::{io, os::unix::process::CommandExt, path::Path, process::Command};

/// Tells the harness that it is inside.
const INSIDE: &str = "SERENO_CHAOS_INSIDE";

/// As root, and as anybody where user namespaces are allowed (then without a disk of its own).
const WAYS: [&[&str]; 2] = [
    &["--net", "--mount", "--propagation", "private"],
    &["--user", "--map-root-user", "--net", "--mount", "--propagation", "private"],
];

/// `ip netns` keeps its names in /run: there they are nobody else's.
const ENTER: &str = "mount -t tmpfs none /run && ip link set lo up";
const PROBE: &str = "ip netns add probe && ip netns exec probe nft list ruleset";

/// Whether this process is inside.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// What has to be done first in there.
///
/// # Errors
/// In words.
pub fn settle_in() -> Result<(), String> {
    run("sh", &["-c", ENTER])
}

/// Starts this program again inside. Returns only if that is not possible, with the reason.
pub fn enter(own: &Path) -> String {
    let mut why = String::new();
    for flags in WAYS {
        let probe = format!("{ENTER} && {PROBE}");
        let arguments: Vec<_> = flags.iter().copied().chain(["--", "sh", "-c", &probe]).collect();
        match run("unshare", &arguments) {
            Ok(()) => {
                let mut command = Command::new("unshare");
                command.args(flags).arg("--").arg(own).args(std::env::args_os().skip(1));
                let error: io::Error = command.env(INSIDE, "1").exec();
                why = error.to_string();
            }
            Err(error) => why = error,
        }
    }
    why
}
