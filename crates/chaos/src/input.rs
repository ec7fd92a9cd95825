//! The standard input of a process of a run, by which the harness tells it what to do. Its end is the end of the process.

use std::io::BufRead;
use tokio::sync::mpsc;

/// Its lines. A thread of its own reads them, for a read of the standard input cannot be taken back.
pub fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let all = std::io::stdin().lock().lines().map_while(Result::ok);
        all.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
    });
    lines
}
