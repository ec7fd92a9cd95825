//! A small disk of its own under one member of etcd: a file with a file system, mounted. It can be filled, and made slow.

use super::process::{Process, run};
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

/// Room for etcd's preallocated log and its database, and little more.
const BYTES: u64 = 448 << 20;

/// A mounted disk; unmounted with this value.
#[derive(Debug)]
pub struct Disk {
    at: PathBuf,
    log: PathBuf,
    /// Freezes and thaws by turns.
    slowing: Option<Process>,
}

impl Disk {
    /// Makes and mounts one in `dir`.
    ///
    /// # Errors
    /// In words: what the machine does not allow.
    pub fn mount(dir: &Path) -> Result<Self, String> {
        let (image, at) = (dir.join("disk.image"), dir.join("disk"));
        let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
        fs::create_dir_all(&at).map_err(failed)?;
        File::create(&image).and_then(|file| file.set_len(BYTES)).map_err(failed)?;
        let (image, mounted) = (image.display().to_string(), at.display().to_string());
        run("mkfs.ext4", &["-q", "-m", "0", &image])?;
        run("mount", &["-o", "loop", &image, &mounted])?;
        Ok(Self { at, log: dir.join("disk.log"), slowing: None })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.at
    }

    fn ballast(&self) -> PathBuf {
        self.at.join("ballast")
    }

    /// Leaves no block free.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn fill(&self) -> Result<(), String> {
        let file = File::create(self.ballast());
        let mut file = file.map_err(|error| format!("{}: {error}", self.at.display()))?;
        // Smaller and smaller pieces, until not even one block is left.
        for size in [1 << 20, 64 << 10, 4 << 10] {
            let piece = vec![1; size];
            while file.write_all(&piece).and_then(|()| file.sync_data()).is_ok() {}
        }
        Ok(())
    }

    /// Gives the room back.
    pub fn free(&self) {
        let _ = fs::remove_file(self.ballast());
    }

    /// Stands still for `pause` of each `pause + rest`. The shell thaws it even when the harness is killed: it ends when
    /// its input does.
    ///
    /// # Errors
    /// There is no shell.
    pub fn slow(&mut self, pause: Duration, rest: Duration) -> Result<(), String> {
        const FREEZE_AND_THAW: &str = "while read -r -t $3 _; [ $? -gt 128 ]; do fsfreeze -f $1; sleep $2; fsfreeze -u $1; done";
        let mut command = std::process::Command::new("bash");
        let seconds = |it: Duration| it.as_secs_f64().to_string();
        command.args(["-c", FREEZE_AND_THAW, "slow"]).arg(&self.at);
        command.args([seconds(pause), seconds(rest)]);
        self.slowing = Some(Process::start(command, &self.log)?);
        Ok(())
    }

    /// As fast as it is by itself.
    pub fn fast(&mut self) {
        const LONGEST: Duration = Duration::from_secs(10);
        if let Some(mut slowing) = self.slowing.take() {
            slowing.tell_no_more();
            slowing.wait(LONGEST);
            // Should it have been cut off between the two.
            let _ = run("fsfreeze", &["-u", &self.at.display().to_string()]);
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.fast();
        let _ = run("umount", &["-l", &self.at.display().to_string()]);
    }
}
