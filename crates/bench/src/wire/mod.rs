//! One keep-alive connection with one call in flight, for whatever protocol.
//!
//! The generator shares its machine with what it measures, so a call costs one write, one read and no allocation.

pub mod http;
pub mod resp;

use std::{io, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Longest answer that is taken. A renewal of 1,000 leases is answered with some 200 KiB.
const ANSWER_BYTES_MAX: usize = 8 << 20;
const READ_BYTES: usize = 8 << 10;

/// Why an exchange has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No connection was made: the call never left.
    #[error("no connection: {0}")]
    NotSent(String),
    /// It left and was not answered: nobody knows what became of it.
    #[error("no answer: {0}")]
    Silent(String),
}

/// What a protocol makes of the bytes that are there.
pub trait Framing {
    /// A whole answer, by positions in the bytes.
    type Frame;

    /// The answer at the start of `bytes` and its length; `None` while it is incomplete.
    ///
    /// # Errors
    /// The bytes are no answer of this protocol.
    fn frame(bytes: &[u8]) -> Result<Option<(Self::Frame, usize)>, String>;
}

/// One connection.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    /// The next call, to be filled before [`Self::exchange`].
    pub output: Vec<u8>,
    input: Vec<u8>,
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// [`Fault::NotSent`]
    pub async fn connect(address: SocketAddr) -> Result<Self, Fault> {
        let not_sent = |error: io::Error| Fault::NotSent(format!("{address}: {error}"));
        let stream = TcpStream::connect(address).await.map_err(not_sent)?;
        stream.set_nodelay(true).map_err(not_sent)?;
        Ok(Self { stream, output: Vec::with_capacity(512), input: Vec::with_capacity(READ_BYTES) })
    }

    /// Sends `output` and waits for the whole answer. After a fault the connection must not be used again.
    ///
    /// # Errors
    /// [`Fault::Silent`]
    pub async fn exchange<F: Framing>(&mut self) -> Result<F::Frame, Fault> {
        let silent = |error: io::Error| Fault::Silent(error.to_string());
        self.input.clear();
        self.stream.write_all(&self.output).await.map_err(silent)?;
        self.output.clear();
        loop {
            self.input.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.input).await.map_err(silent)? == 0 {
                return Err(Fault::Silent("the connection was closed".into()));
            }
            match F::frame(&self.input).map_err(Fault::Silent)? {
                Some((frame, length)) if length == self.input.len() => return Ok(frame),
                Some(_) => return Err(Fault::Silent("more came than was asked for".into())),
                None if self.input.len() > ANSWER_BYTES_MAX => {
                    return Err(Fault::Silent(format!("an answer over {ANSWER_BYTES_MAX} bytes")));
                }
                None => {}
            }
        }
    }

    /// The bytes of the last answer, into which its frame points.
    pub fn input(&self) -> &[u8] {
        &self.input
    }

    /// Whether the other side still has it open, as far as can be told without sending.
    pub fn is_open(&self) -> bool {
        let mut byte = [0];
        matches!(self.stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}
