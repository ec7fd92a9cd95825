//! `sereno backup`: the whole state at the log's head, as one verified file.

use super::{
    etcd::EtcdArgs,
    exists, folder_or_default, log_failure,
    replay::{Replay, state_of},
};
use crate::{failure::Failure, output::Output};
use clap::Args;
use sereno_core::State;
use sereno_log::sqlite::{ReadOnlyLog, open_read_only};
use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Write a backup of a data folder or of a log in etcd, also while a service uses it.
///
/// The log is only read. Its newest snapshot (a saved state) is loaded and what the log has after it is applied
/// again; the state that this comes to is written, and read back before the file appears under its name. The file
/// holds the secret ids of present leases: keep it as you keep the data folder. Only its owner can read it.
#[derive(Clone, Debug, Args)]
pub(crate) struct BackupArgs {
    /// The data folder. [default: ./sereno-data, as of `sereno serve`]
    #[arg(long, env = "SERENO_DATA", value_name = "DIR", hide_env_values = true)]
    data: Option<PathBuf>,
    #[command(flatten)]
    etcd: EtcdArgs,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    output: Output,
}

/// What was written.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    file: PathBuf,
    bytes: usize,
    log_id: String,
    position: u64,
    revision: u64,
    leases: u64,
}

pub(crate) fn run(args: &BackupArgs) -> Result<u8, Failure> {
    if !args.replace && args.to.exists() {
        let what = format!("{} exists", args.to.display());
        return Err(Failure::new(what).hint("Name another file, or say --replace."));
    }
    let state = match &args.etcd.log {
        Some(url) => args.etcd.state_at_head(url)?,
        None => {
            let data = folder_or_default(args.data.as_ref());
            refuse_own_file(&data, &args.to)?;
            state_in(&data)?
        }
    };
    let bytes = verified(&state)?;
    write_atomically(&args.to, &bytes)
        .map_err(|error| Failure::io(&format!("writing {}", args.to.display()), &error))?;
    let written = Written {
        file: args.to.clone(),
        bytes: bytes.len(),
        log_id: state.log_id().to_hex(),
        position: state.head().position.0,
        revision: state.revision().0,
        leases: state.leases(),
    };
    args.output.answer(&written, |written| text(args, written))?;
    Ok(0)
}

/// A backup that replaced a file of the log would be the end of both.
fn refuse_own_file(data: &Path, to: &Path) -> Result<(), Failure> {
    let folder = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (Ok(folder), Ok(data)) = (folder.canonicalize(), data.canonicalize()) else {
        return Ok(()); // One of them is not there, which is said later.
    };
    match folder.starts_with(&data) {
        true => Err(Failure::new(format!("{} is in the data folder itself", to.display()))
            .hint("Write the backup somewhere else: it is of use only where the folder is lost.")),
        false => Ok(()),
    }
}

fn state_in(data: &Path) -> Result<State, Failure> {
    exists(data).map_err(|what| Failure::new(format!("{}: {what}", data.display())))?;
    let log = open_read_only(data).map_err(|error| log_failure(data, &error))?;
    state_at_head(&log).map_err(|what| {
        Failure::new(format!("the log cannot be applied again, so nothing was written: {what}"))
            .hint(format!("Look closer with `sereno doctor --data {}`.", data.display()))
    })
}

fn text(args: &BackupArgs, written: &Written) -> String {
    let trail = match (&args.etcd.log, &args.data) {
        (Some(_), None) => "the folder audit of each node".into(),
        (_, data) => {
            let data = folder_or_default(data.as_ref());
            sereno_server::audit::folder_in(&data).display().to_string()
        }
    };
    let again = match &args.etcd.log {
        Some(_) => "Begin a log anew in etcd with `sereno restore --from {0} --log URL`",
        None => "Make a new data folder from it with `sereno restore --from {0} --data DIR`",
    };
    let again = again.replace("{0}", &written.file.display().to_string());
    format!(
        "{}: the state of log {} at position {} (revision {}, {} leases), in {} bytes, and it reads back the same.\n\
         The audit trail is not in it: copy {} too.\n\
         {again}.",
        written.file.display(),
        written.log_id,
        written.position,
        written.revision,
        written.leases,
        written.bytes,
        trail,
    )
}

fn state_at_head(log: &ReadOnlyLog) -> Result<State, String> {
    if log.head().position.0 == 0 {
        return Err("it is empty".into());
    }
    let newest = log.latest_snapshot().map_err(|error| error.to_string())?;
    let state = newest.as_ref().map_or_else(|| Ok(State::new()), state_of)?;
    let mut replay = Replay::from(log, state);
    replay.to(log.head())?;
    Ok(replay.into_state())
}

/// The bytes, once they have been read back to the same state.
fn verified(state: &State) -> Result<Vec<u8>, Failure> {
    let bytes = state.to_snapshot();
    let same = State::from_snapshot(&bytes).is_ok_and(|read| {
        (read.head(), read.outcome_chain(), read.to_snapshot() == bytes)
            == (state.head(), state.outcome_chain(), true)
    });
    match same {
        true => Ok(bytes),
        false => Err(Failure::new(
            "the snapshot does not read back to the same state; nothing was written",
        )),
    }
}

/// Under another name first, durable, readable by its owner only, and then under its own.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or_else(|| io::Error::other("it is no file name"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    let hidden = folder.join(hidden);
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&hidden)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&hidden, path))
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    written
}
