//! A protected resource as simple as can be: a file with a value and the highest token it has taken.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// See the module.
pub(super) struct Register {
    path: PathBuf,
}

/// What it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub token: u64,
    pub value: String,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Taken,
    /// A higher token was there before.
    Refused {
        highest: u64,
    },
}

impl Register {
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.into() }
    }

    pub(super) fn read(&self) -> io::Result<Written> {
        read(&mut self.open()?)
    }

    /// Check and write are one step, under a lock on the file: that is what makes it a fence. An equal token is the
    /// same owner's next write.
    pub(super) fn write(&self, token: u64, value: &str) -> io::Result<Verdict> {
        let mut file = self.open()?;
        file.lock()?;
        let before = read(&mut file)?;
        if token < before.token {
            return Ok(Verdict::Refused { highest: before.token });
        }
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{token}")?;
        file.write_all(value.as_bytes())?;
        file.sync_all()?;
        Ok(Verdict::Taken)
    }

    fn open(&self) -> io::Result<File> {
        File::options().read(true).write(true).create(true).truncate(false).open(&self.path)
    }
}

fn read(file: &mut File) -> io::Result<Written> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    let Some((token, value)) = text.split_once('\n') else { return Ok(Written::default()) };
    let token = token.parse().map_err(|_| io::Error::other("the register is damaged"))?;
    Ok(Written { token, value: value.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_tokens_are_refused_and_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let register = Register::at(&folder.path().join("register"));
        assert_eq!(register.read().unwrap(), Written::default());
        assert_eq!(register.write(7, "a longer value").unwrap(), Verdict::Taken);
        assert_eq!(register.write(7, "short").unwrap(), Verdict::Taken);
        assert_eq!(register.write(6, "late").unwrap(), Verdict::Refused { highest: 7 });
        let written = Written { token: 7, value: "short".into() };
        assert_eq!(register.read().unwrap(), written);
    }
}
