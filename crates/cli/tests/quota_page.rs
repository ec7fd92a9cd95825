//! The console sessions of docs/quotas.md, run as they stand there against a real service.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

mod support;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};
use support::{SERENO, Service};

const PAGE: &str = include_str!("../../../docs/quotas.md");
/// Comes after what a command has written.
const END: &str = "<<end>>";

/// A command of the page, and what it says that comes of it; `…` is anything.
#[derive(Debug)]
struct Step {
    command: String,
    output: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        match (line.strip_prefix("```"), line.strip_prefix("$ ")) {
            (Some(kind), _) => is_console = kind == "console",
            (None, Some(command)) if is_console => {
                steps.push(Step { command: command.into(), output: Vec::new() });
            }
            (None, _) if is_console => {
                steps.last_mut().unwrap().output.push(line.trim_end().into())
            }
            _ => {}
        }
    }
    steps
}

/// One shell for the whole page: it remembers what was set.
struct Shell {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Shell {
    fn start(folder: &Path, server: &str) -> Self {
        let bin = folder.join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(SERENO, bin.join("sereno")).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut child = Command::new("sh")
            .args(["-c", "exec 2>&1; exec sh"])
            .env("PATH", path)
            .env("SERENO_SERVER", server)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, to, from: BufReader::new(from) }
    }

    /// The next command finds the exit code of this one.
    fn run(&mut self, command: &str) -> Vec<String> {
        writeln!(self.to, "{{ {command}; }} </dev/null\ncode=$?; echo '{END}'; (exit $code)")
            .unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the shell is gone: {lines:?}");
            match line.trim_end() {
                END => return lines,
                line => lines.push(line.into()),
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a line is as the page says.
fn is_as_told(line: &str, told: &str) -> bool {
    let mut parts = told.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn the_sessions_of_the_page_are_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(&folder.path().join("data"));
    let mut shell = Shell::start(folder.path(), &service.url);
    let steps = steps(PAGE);
    assert!(steps.len() > 20, "{steps:?}");
    for Step { command, output } in &steps {
        let lines = shell.run(command);
        let same = lines.len() == output.len()
            && lines.iter().zip(output).all(|(line, told)| is_as_told(line, told));
        let (lines, output) = (lines.join("\n"), output.join("\n"));
        assert!(same, "$ {command}\n{lines}\n\nthe page says:\n{output}");
    }
}

#[test]
fn what_differs_from_run_to_run_is_left_out_and_nothing_else() {
    for (line, told, same) in [
        ("a 1 b 2", "a … b …", true),
        ("a 1 b 2", "a … c …", false),
        ("a 1 b 2", "a 1 b 2", true),
        ("a 1 b 23", "a 1 b 2", false),
        ("a 1 b 2", "a … b 3", false),
        ("", "…", true),
    ] {
        assert_eq!(is_as_told(line, told), same, "{line} / {told}");
    }
}
