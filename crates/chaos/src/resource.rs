//! What the locks protect: sets that are read, changed and written back as a whole, and a room for one. It runs inside
//! the harness, no fault touches it, and it notes everything it did in its order.
//!
//! With a token it is a guarded resource (S3): reads and writes with a lower token than the highest seen are refused.

use crate::clock::{Micros, now};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// One line to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// Which set, or which room.
    pub name: String,
    /// The fence, where there is one.
    pub token: Option<u64>,
    /// What.
    pub what: What,
}

/// What is asked of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// The set's elements.
    Read,
    /// The set is this from now on.
    Write {
        /// The new element.
        element: u64,
        /// All elements.
        all: BTreeSet<u64>,
    },
    /// Enters the room.
    Enter,
    /// Leaves it.
    Leave,
}

/// Its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    /// It was done.
    pub done: bool,
    /// To a read.
    pub all: BTreeSet<u64>,
}

/// What it did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Visit {
    /// When.
    pub at: Micros,
    /// Which set or room.
    pub name: String,
    /// The fence that came along.
    pub token: Option<u64>,
    /// What came of it.
    pub fate: Fate,
}

/// What came of a visit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    /// A higher token had been seen.
    Refused,
    /// It was read.
    Read,
    /// It was changed.
    Wrote {
        /// The new element.
        element: u64,
        /// All that is left.
        all: BTreeSet<u64>,
    },
    /// Somebody came in.
    Entered {
        /// How many were inside.
        others: usize,
    },
}

/// The protected resource.
#[derive(Debug, Default)]
pub struct Resource {
    sets: BTreeMap<String, (u64, BTreeSet<u64>)>,
    inside: BTreeMap<String, usize>,
    /// All that it did.
    pub visits: Vec<Visit>,
}

impl Resource {
    /// Does what is asked, if the fence allows it.
    pub fn visit(&mut self, ask: Ask) -> Told {
        let Ask { name, token, what } = ask;
        let (highest, all) = self.sets.entry(name.clone()).or_default();
        let is_late = token.is_some_and(|token| token < *highest);
        *highest = token.unwrap_or_default().max(*highest);
        let inside = self.inside.entry(name.clone()).or_default();
        let fate = match what {
            _ if is_late => Fate::Refused,
            What::Read => Fate::Read,
            What::Write { element, all: new } => {
                *all = new.clone();
                Fate::Wrote { element, all: new }
            }
            What::Enter => {
                *inside += 1;
                Fate::Entered { others: *inside - 1 }
            }
            What::Leave => {
                *inside = inside.saturating_sub(1);
                return Told { done: true, all: BTreeSet::new() };
            }
        };
        let told = Told { done: fate != Fate::Refused, all: all.clone() };
        self.visits.push(Visit { at: now(), name, token, fate });
        told
    }
}

/// Serves it to all clients.
///
/// # Errors
/// It cannot listen there.
pub async fn serve(address: SocketAddr) -> io::Result<(SocketAddr, Arc<Mutex<Resource>>)> {
    let listener = TcpListener::bind(address).await?;
    let (address, resource) = (listener.local_addr()?, Arc::<Mutex<Resource>>::default());
    let shared = resource.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(attend(stream, shared.clone()));
        }
    });
    Ok((address, resource))
}

/// A client whose connection ends (it was killed) has left every room.
async fn attend(stream: TcpStream, resource: Arc<Mutex<Resource>>) -> io::Result<()> {
    let lock = || resource.lock().unwrap_or_else(PoisonError::into_inner);
    let mut stream = BufReader::new(stream);
    let (mut line, mut room) = (String::new(), None);
    loop {
        line.clear();
        // A line without its end was cut short by a kill: it is none.
        let is_whole = stream.read_line(&mut line).await.is_ok() && line.ends_with('\n');
        let ask = is_whole.then(|| serde_json::from_str::<Ask>(&line).ok()).flatten();
        let Some(ask) = ask else { break };
        match ask.what {
            What::Enter => room = Some(ask.name.clone()),
            What::Leave => room = None,
            _ => {}
        }
        let mut told = serde_json::to_vec(&lock().visit(ask))?;
        told.push(b'\n');
        stream.write_all(&told).await?;
    }
    if let Some(name) = room {
        lock().visit(Ask { name, token: None, what: What::Leave });
    }
    Ok(())
}

/// A client's way to it.
#[derive(Debug)]
pub struct Door(BufReader<TcpStream>);

impl Door {
    /// Connects.
    ///
    /// # Errors
    /// It is not there.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        Ok(Self(BufReader::new(TcpStream::connect(address).await?)))
    }

    /// Asks, and waits for what it says.
    ///
    /// # Errors
    /// It has gone.
    pub async fn ask(&mut self, name: &str, token: Option<u64>, what: What) -> io::Result<Told> {
        let mut line = serde_json::to_vec(&Ask { name: name.into(), token, what })?;
        line.push(b'\n');
        self.0.write_all(&line).await?;
        let mut told = String::new();
        self.0.read_line(&mut told).await?;
        Ok(serde_json::from_str(&told)?)
    }
}
