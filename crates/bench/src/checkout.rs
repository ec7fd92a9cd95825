//! Which commit a result belongs to. Asked of git when a run begins and not built in, so that two builds of one commit
//! are the same bytes.

use std::{path::Path, process::Command};

/// What is said where there is no checkout, or no git.
const UNKNOWN: &str = "unknown";
/// Only Sereno's checkout has this file: another project's commit says nothing about this program.
const MARK: &str = "crates/bench/src/checkout.rs";

/// The commit of the checkout that this program was built in, or else of the one that it was started in; with
/// `, changed` after it where files differ from the commit. `unknown` outside of a checkout.
///
/// It is the checkout's commit, not the program's: whoever builds first and commits then is told the later one.
pub fn commit() -> String {
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).and_then(commit_of);
    beside.or_else(|| commit_of(Path::new("."))).unwrap_or_else(|| UNKNOWN.into())
}

fn commit_of(folder: &Path) -> Option<String> {
    let top = git(folder, &["rev-parse", "--show-toplevel"])?;
    if !Path::new(&top).join(MARK).is_file() {
        return None;
    }
    let commit = git(folder, &["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(folder, &["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}, changed") })
}

/// What git says, without the end of the line; absent where it refuses or is not there.
fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(words).output().ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8(text).ok()?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn must(folder: &Path, words: &[&str]) -> String {
        git(folder, words).expect("git is installed, and does this")
    }

    #[test]
    fn only_a_checkout_of_sereno_has_a_commit_and_changes_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let inner = path.join("target/release");
        let mark = path.join(MARK);
        std::fs::create_dir_all(mark.parent().unwrap()).unwrap();
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(commit_of(&inner), None, "no checkout at all");
        must(path, &["init", "--quiet"]);
        std::fs::write(path.join("other"), "1").unwrap();
        must(path, &["add", "other"]);
        let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let commit = ["commit", "--quiet", "--message", "one"];
        must(path, &[author.as_slice(), &commit].concat());
        assert_eq!(commit_of(&inner), None, "another project's");
        std::fs::write(&mark, "").unwrap();
        let found = commit_of(&inner).unwrap();
        assert!(must(path, &["rev-parse", "HEAD"]).starts_with(&found), "{found}");
        std::fs::write(path.join("other"), "2").unwrap();
        assert_eq!(commit_of(&inner).unwrap(), format!("{found}, changed"));
    }
}
