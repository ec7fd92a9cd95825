//! Where PostgreSQL's programs are.

use crate::Error;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Debian keeps them out of the `PATH`, a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The folder that they are in.
pub(crate) struct Programs(PathBuf);

impl Programs {
    /// Debian's newest version, else those in the `PATH`.
    pub(crate) fn find() -> Result<Self, Error> {
        let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
        let mut found: Vec<(u32, PathBuf)> = versions
            .filter_map(|entry| {
                let version = entry.file_name().to_str()?.parse().ok()?;
                Some((version, entry.path().join("bin")))
            })
            .filter(|(_, folder)| is_complete(folder))
            .collect();
        found.sort();
        if let Some((_, newest)) = found.pop() {
            return Ok(Self(newest));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&path).find(|folder| is_complete(folder));
        in_path.map(Self).ok_or_else(|| {
            Error(format!("PostgreSQL is missing (Debian: apt install postgresql): no server in {DEBIAN} or the PATH"))
        })
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.0.join(program)
    }
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres", "pg_isready", "createdb"].iter().all(|name| folder.join(name).is_file())
}
