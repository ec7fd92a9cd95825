//! Commands that work on a data folder itself, without a running service.

mod audit_check;
mod backup;
mod doctor;
mod doctor_etcd;
mod etcd;
mod replay;
mod restore;

pub(crate) use backup::{BackupArgs, run as backup};
pub(crate) use doctor::{DoctorArgs, run as doctor};
pub(crate) use restore::{RestoreArgs, run as restore};

use crate::failure::Failure;
use sereno_log::LogError;
use sereno_server::config::Config;
use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Where `sereno serve` keeps its log unless it is told otherwise.
fn folder_or_default(data: Option<&PathBuf>) -> PathBuf {
    data.cloned().unwrap_or_else(|| Config::default().data)
}

/// `--data` names something. Whether it can be read is another question.
fn exists(data: &Path) -> Result<(), String> {
    match data.try_exists() {
        Ok(false) => Err("the folder does not exist".into()),
        _ => Ok(()),
    }
}

/// A log that cannot be used.
fn log_failure(data: &Path, error: &LogError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        LogError::Damaged(_) => failure.hint(format!(
            "Nothing was changed. Look closer with `sereno doctor --data {}`.",
            data.display()
        )),
        LogError::InUse(_) => failure.hint("Stop the service that uses this folder first."),
        _ => failure,
    }
}

/// The wall clock in microseconds since 1970, as tokens count it.
fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
