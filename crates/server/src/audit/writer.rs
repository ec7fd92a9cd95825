//! The thread that writes the trail.

use super::{
    OnFailure,
    files::Files,
    line::{LineHash, Record, is_audited, write},
    recovery::{Covered, Tail},
};
use sereno_core::ids::{LogId, Position};
use sereno_node::events::EventBatch;
use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
};
use tokio::sync::oneshot;

/// Lines are handed to the system in pieces of about this size.
const PIECE_BYTES: usize = 256 << 10;

/// What the thread is told.
pub(super) enum Message {
    Begin {
        log_id: LogId,
        replayed_after: Position,
    },
    Applied(Arc<EventBatch>),
    /// Everything up to this position was seen.
    Seen(Position),
    /// The node goes on from a snapshot at this position: what lies before it was not seen here.
    Jumped(Position),
    Durable(Position, oneshot::Sender<()>),
    Flush(oneshot::Sender<()>),
    Stop,
}

pub(super) struct Writer {
    files: Files,
    file: Option<File>,
    file_bytes: u64,
    next_seq: u64,
    hash: LineHash,
    log_id: Option<LogId>,
    covered: Covered,
    /// What came before `Begin`.
    early: Option<Vec<Message>>,
    buffer: Vec<u8>,
    /// Counted up by whoever sends.
    queued: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn open(files: Files, tail: Tail, queued: Arc<AtomicU64>) -> io::Result<Self> {
        let file = match &tail.file {
            Some((path, length)) => Some(Files::reopen(path, *length)?),
            None => None,
        };
        Ok(Self {
            files,
            file,
            file_bytes: tail.file.map_or(0, |(_, length)| length),
            next_seq: tail.next_seq,
            hash: tail.hash,
            log_id: tail.log_id,
            covered: tail.covered,
            early: Some(Vec::new()),
            queued,
            buffer: Vec::with_capacity(2 * PIECE_BYTES),
        })
    }

    pub(super) fn run(mut self, inbox: &mpsc::Receiver<Message>, on_failure: OnFailure) {
        if let Err(error) = self.serve(inbox) {
            on_failure(format!("the audit trail cannot be written: {error}"));
        }
    }

    fn serve(&mut self, inbox: &mpsc::Receiver<Message>) -> io::Result<()> {
        while let Ok(message) = inbox.recv() {
            let mut next = Some(message);
            while let Some(message) = next.take() {
                if matches!(message, Message::Stop) {
                    return self.sync();
                }
                self.handle(message)?;
                if self.buffer.len() < PIECE_BYTES {
                    next = inbox.try_recv().ok();
                }
            }
            self.write_out()?;
        }
        self.sync()
    }

    fn handle(&mut self, message: Message) -> io::Result<()> {
        match (message, &mut self.early) {
            (Message::Begin { log_id, replayed_after }, _) => {
                self.begin(log_id, replayed_after)?;
                let early = self.early.take().unwrap_or_default();
                early.into_iter().try_for_each(|message| self.handle(message))
            }
            (
                message @ (Message::Applied(_)
                | Message::Seen(_)
                | Message::Jumped(_)
                | Message::Durable(..)),
                Some(early),
            ) => {
                early.push(message);
                Ok(())
            }
            (Message::Applied(batch), None) => {
                self.queued.fetch_sub(1, Ordering::Relaxed);
                self.record(&batch)
            }
            (Message::Seen(position), None) if Covered::through(position.0) > self.covered => {
                self.checkpoint(position)
            }
            (Message::Seen(_), None) => Ok(()),
            (Message::Jumped(position), None) => {
                self.rotate_when_full()?;
                self.gap_up_to(position);
                Ok(())
            }
            (Message::Durable(position, done), None) => {
                self.checkpoint(position)?;
                self.sync()?;
                let _nobody_waits = done.send(()).is_err();
                Ok(())
            }
            (Message::Flush(done), _) => {
                self.write_out()?;
                let _nobody_waits = done.send(()).is_err();
                Ok(())
            }
            (Message::Stop, _) => Ok(()),
        }
    }

    /// Ties what follows to its log, and says so where something is missing before it.
    fn begin(&mut self, log_id: LogId, replayed_after: Position) -> io::Result<()> {
        if self.log_id != Some(log_id) {
            self.log_id = Some(log_id);
            self.covered = Covered::default();
            if self.file.is_none() {
                self.create_file()?;
            } else {
                self.push(Record::Log(log_id, Position(0)));
            }
        }
        self.gap_up_to(replayed_after);
        Ok(())
    }

    /// What comes next comes after `position`: if the trail does not reach it, it says so.
    fn gap_up_to(&mut self, position: Position) {
        let through = Covered::through(position.0);
        if through <= self.covered || position.0 == 0 {
            return;
        }
        let from = match self.covered {
            Covered { position, event: u64::MAX } => position + 1,
            // Perhaps not the last event of its entry.
            Covered { position, .. } => position.max(1),
        };
        tracing::warn!(from, to = position.0, "the audit trail has a gap");
        self.push(Record::Gap(Position(from), position));
        self.covered = through;
    }

    fn record(&mut self, batch: &EventBatch) -> io::Result<()> {
        let whole = Covered::through(batch.position.0);
        self.rotate_when_full()?;
        for (index, _) in batch.events.iter().enumerate().filter(|(_, event)| is_audited(event)) {
            let number = index + 1;
            let at = Covered { position: batch.position.0, event: number as u64 };
            if at > self.covered {
                self.push(Record::Event(batch, number));
            }
        }
        self.covered = self.covered.max(whole);
        Ok(())
    }

    fn checkpoint(&mut self, position: Position) -> io::Result<()> {
        let through = Covered::through(position.0);
        // A batch of that position may have left nothing to write: then nothing says yet that it was seen.
        if through >= self.covered {
            self.rotate_when_full()?;
            self.push(Record::Checkpoint(position));
            self.covered = through;
        }
        Ok(())
    }

    fn rotate_when_full(&mut self) -> io::Result<()> {
        let written = self.file_bytes + self.buffer.len() as u64;
        if written < self.files.file_bytes() {
            return Ok(());
        }
        self.sync()?;
        self.create_file()
    }

    /// Every file begins by naming its log, so that each can be read by itself.
    fn create_file(&mut self) -> io::Result<()> {
        self.file = Some(self.files.create(self.next_seq)?);
        self.file_bytes = 0;
        if let Some(log_id) = self.log_id {
            self.push(Record::Log(log_id, Position(self.covered.position)));
        }
        Ok(())
    }

    fn push(&mut self, record: Record<'_>) {
        self.hash = write(&mut self.buffer, self.next_seq, record, self.hash);
        self.next_seq += 1;
    }

    fn write_out(&mut self) -> io::Result<()> {
        if let (Some(file), false) = (&mut self.file, self.buffer.is_empty()) {
            // Written to all the same, it would be lost with the process, without a word.
            if file.metadata()?.nlink() == 0 {
                return Err(io::Error::other("its file was deleted while it was written"));
            }
            file.write_all(&self.buffer)?;
            self.file_bytes += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.write_out()?;
        match &self.file {
            Some(file) => file.sync_data(),
            None => Ok(()),
        }
    }
}
