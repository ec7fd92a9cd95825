//! Who may link: both ends prove that they know the cluster's secret, and each frame carries a proof that it comes
//! from the other end and in its order. (What is said can be read on the way; it cannot be changed.)

use sereno_core::ids::LogId;
use std::{fmt, io};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const CONTEXT: &str = "sereno 2026 link secret";
const NONCE_BYTES: usize = 32;
/// Bytes of a frame's proof.
pub(super) const PROOF_BYTES: usize = 16;

/// What all nodes of a cluster know. The empty one is for loopback, where everybody is trusted.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// From the bytes that an operator has chosen.
    pub fn new(bytes: &[u8]) -> Self {
        Self(blake3::derive_key(CONTEXT, bytes))
    }

    /// For links about this log alone: a node at an address that another service has taken over is a stranger.
    pub(super) fn of_log(&self, log_id: LogId) -> Self {
        Self(*blake3::keyed_hash(&self.0, &log_id.0).as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Which end of a link this is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The one that has dialled.
    Standby,
    Leader,
}

impl End {
    fn other(self) -> Self {
        match self {
            Self::Standby => Self::Leader,
            Self::Leader => Self::Standby,
        }
    }

    fn label(self) -> &'static [u8] {
        match self {
            Self::Standby => b"standby",
            Self::Leader => b"leader",
        }
    }
}

/// Proves one direction's frames.
pub(super) struct Prover {
    key: [u8; 32],
    frames: u64,
}

impl Prover {
    /// The proof of the next frame.
    pub(super) fn next(&mut self, bytes: &[u8]) -> [u8; PROOF_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.frames.to_le_bytes()).update(bytes);
        self.frames += 1;
        let mut proof = [0; PROOF_BYTES];
        proof.copy_from_slice(&hasher.finalize().as_bytes()[..PROOF_BYTES]);
        proof
    }

    /// Whether a frame with this proof is the next one.
    pub(super) fn is_next(&mut self, bytes: &[u8], proof: &[u8; PROOF_BYTES]) -> bool {
        let due = self.next(bytes);
        // Without regard to where they differ: time must not tell.
        due.iter().zip(proof).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

/// Exchanges fresh random bits and proofs over a new stream. Gives what proves outgoing and incoming frames.
///
/// # Errors
/// When the other end does not know the secret, or the stream breaks.
pub(super) async fn shake_hands(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    secret: &Secret,
    end: End,
) -> io::Result<(Prover, Prover)> {
    let own: [u8; NONCE_BYTES] = rand::random();
    let mut theirs = [0; NONCE_BYTES];
    stream.write_all(&own).await?;
    stream.flush().await?;
    stream.read_exact(&mut theirs).await?;
    let (standby, leader) = match end {
        End::Standby => (own, theirs),
        End::Leader => (theirs, own),
    };
    let mut hasher = blake3::Hasher::new_keyed(&secret.0);
    hasher.update(&standby).update(&leader);
    let session = *hasher.finalize().as_bytes();
    let prover =
        |end: End| Prover { key: *blake3::keyed_hash(&session, end.label()).as_bytes(), frames: 0 };
    let (mut outgoing, mut incoming) = (prover(end), prover(end.other()));
    stream.write_all(&outgoing.next(b"hello")).await?;
    stream.flush().await?;
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).await?;
    if !incoming.is_next(b"hello", &proof) {
        let why = "the two nodes' cluster secrets, or their logs, differ";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok((outgoing, incoming))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn meet(standby: &str, leader: &str) -> [io::Result<(Prover, Prover)>; 2] {
        let (mut here, mut there) = tokio::io::duplex(1_024);
        let (standby, leader) = (Secret::new(standby.as_bytes()), Secret::new(leader.as_bytes()));
        let (one, other) = tokio::join!(
            shake_hands(&mut here, &standby, End::Standby),
            shake_hands(&mut there, &leader, End::Leader),
        );
        [one, other]
    }

    #[tokio::test]
    async fn frames_are_proven_in_their_order() {
        let [Ok((mut out, _)), Ok((_, mut back))] = meet("s", "s").await else {
            panic!("they know the same secret")
        };
        let (first, second) = (out.next(b"one"), out.next(b"two"));
        assert!(back.is_next(b"one", &first));
        assert!(back.is_next(b"two", &second));
        assert!(!back.is_next(b"two", &second), "a frame sent twice");
        let changed = out.next(b"three");
        let _ = out.next(b"four");
        assert!(!back.is_next(b"tree", &changed), "a changed frame");
    }

    #[tokio::test]
    async fn a_stranger_is_refused_on_both_sides() {
        let [one, other] = meet("s", "t").await;
        for result in [one, other] {
            assert_eq!(result.err().unwrap().kind(), io::ErrorKind::PermissionDenied);
        }
    }

    #[test]
    fn each_log_has_links_of_its_own() {
        let secret = Secret::new(b"s");
        let of = |byte| secret.of_log(LogId([byte; 16])).0;
        assert!(of(1) == of(1) && of(1) != of(2) && of(1) != secret.0);
    }

    #[tokio::test]
    async fn an_echo_is_no_proof() {
        let (mut here, there) = tokio::io::duplex(1_024);
        let (mut from, mut to) = tokio::io::split(there);
        tokio::spawn(async move { tokio::io::copy(&mut from, &mut to).await });
        let shaken = shake_hands(&mut here, &Secret::new(b"s"), End::Standby).await;
        assert_eq!(shaken.err().unwrap().kind(), io::ErrorKind::PermissionDenied);
    }
}
