//! Where the clusters of tests keep their data.

use crate::Error;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// In memory, where there is plenty of it: three members sync each entry, and tests kill processes, not machines.
const MEMORY: &str = "/dev/shm";
/// What a few clusters may need.
const PLENTY: u64 = 2 << 30;
const NAME: &str = "sereno-etcd-";

/// A folder that nobody else has. What is never dropped (a cluster that many tests share) removes nothing either,
/// so folders of processes that have ended are removed here.
pub fn scratch_folder() -> Result<PathBuf, Error> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let all = if has_plenty(Path::new(MEMORY)) { MEMORY.into() } else { std::env::temp_dir() };
    remove_old(&all);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = all.join(format!("{NAME}{}-{number}", std::process::id()));
    fs::create_dir(&folder)
        .map_err(|error| Error(format!("making {}: {error}", folder.display())))?;
    Ok(folder)
}

fn has_plenty(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|it| it.f_bavail.saturating_mul(it.f_frsize) >= PLENTY)
}

fn remove_old(all: &Path) {
    // Only where it can be told which processes there are.
    let processes = Path::new("/proc");
    let Ok(folders) = fs::read_dir(all) else { return };
    for folder in folders.flatten().filter(|_| processes.join("self").exists()) {
        let name = folder.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(NAME)) else { continue };
        let process = rest.split('-').next().unwrap_or_default();
        if process.parse::<u32>().is_ok() && !processes.join(process).exists() {
            // Somebody else may be removing it, too.
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}
