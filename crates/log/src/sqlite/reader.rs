//! A thread with a connection that only reads. Each question is one short transaction: a long one would keep the
//! WAL from beginning anew.

use super::writer::Stop;
use crate::LogError;
use rusqlite::Connection;
use std::{
    sync::mpsc::{Sender, channel},
    thread::JoinHandle,
};
use tokio::sync::oneshot;

type Question = Box<dyn FnOnce(&Connection) + Send>;

pub(super) struct Reader {
    /// `None` only while it is dropped.
    questions: Option<Sender<Question>>,
    thread: Option<JoinHandle<()>>,
    stop: Stop,
}

impl Reader {
    pub(super) fn start(name: &str, connection: Connection, stop: Stop) -> Result<Self, LogError> {
        let (questions, asked) = channel::<Question>();
        let run = move || {
            for question in asked {
                question(&connection);
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        let thread =
            thread.map_err(|error| LogError::Storage(format!("starting {name}: {error}")))?;
        Ok(Self { questions: Some(questions), thread: Some(thread), stop })
    }

    /// Runs `question` in a transaction of its own.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        if let Some(error) = self.stop.error() {
            return Err(error);
        }
        let (reply, answer) = oneshot::channel();
        let ask: Question = Box::new(move |connection| {
            // Whoever asked may have gone: then nobody wants to know.
            let _ = reply.send(in_transaction(connection, question));
        });
        let questions = self.questions.as_ref().expect("a reader answers until it is dropped");
        let ended = || LogError::Storage("a reading thread of the log has ended".into());
        questions.send(ask).map_err(|_| ended())?;
        let result = answer.await.map_err(|_| ended())?;
        result.inspect_err(|error| self.stop.note(error))
    }
}

impl Drop for Reader {
    /// Waits for the thread: the connection must be closed before the folder's lock is given back.
    fn drop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there was a broken invariant and has been printed.
            let _ = thread.join();
        }
    }
}

/// Everything `question` reads is of one moment.
pub(super) fn in_transaction<T>(
    connection: &Connection,
    question: impl FnOnce(&Connection) -> Result<T, LogError>,
) -> Result<T, LogError> {
    use super::failure::Doing;
    let transaction = connection.unchecked_transaction().doing("beginning to read")?;
    question(&transaction)
}
