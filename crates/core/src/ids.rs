//! Numbers and random identities. Units are in the names; nothing here knows where a value comes from.

use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            BorshSerialize, BorshDeserialize,
        )]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// Cluster time in milliseconds: it lives in the log and nowhere else (DESIGN.md section 3).
    ClusterTime
}
number! {
    /// A log position; the first entry has position 1, and 0 stands before it.
    Position
}
number! {
    /// A leader's epoch: the position of its announce. 0: nobody has led yet.
    Epoch
}
number! {
    /// The count of commands applied and objects swept: a total order of all that happened.
    Revision
}
number! {
    /// A fencing token: rises with every grant of the whole service, never falls (DESIGN.md section 4).
    Token
}
number! {
    /// An object with a deadline (a request that waits or holds, a lock delay, a cool-down), numbered as created.
    /// Reservations and commits of quotas are numbered with them.
    ObjectId
}
number! {
    /// When a job is due: a UTC instant in milliseconds since 1970.
    Slot
}

impl ClusterTime {
    /// This time plus `ms`; stays at the end of time rather than wrap.
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from now (`self`) until `deadline`; 0 when it is past.
    pub fn until(self, deadline: Self) -> u64 {
        deadline.0.saturating_sub(self.0)
    }
}

impl Position {
    /// The position after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
        )]
        pub struct $name(pub [u8; 16]);

        impl $name {
            /// 32 lower-case hexadecimal digits.
            pub fn to_hex(self) -> String {
                let digit = |n: u8| char::from(b"0123456789abcdef"[usize::from(n)]);
                self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
            }

            /// Reads what [`Self::to_hex`] writes; `None` for anything else.
            pub fn from_hex(text: &str) -> Option<Self> {
                from_hex(text).map(Self)
            }
        }
    };
}

/// Bytes from twice as many lower-case hexadecimal digits; `None` for anything else.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
    }
    Some(bytes)
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

random_id! {
    /// Names one ownership, and proves it: a secret. Print [`LeaseId::public_hash`] instead.
    LeaseId
}
random_id! {
    /// Drawn by the first announce of a log; a node that meets another one stops.
    LogId
}

random_id! {
    /// Names a reservation of a quota. No secret, but nobody can guess it.
    ReservationId
}

impl fmt::Debug for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReservationId({})", self.to_hex())
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl LeaseId {
    /// What stands for the lease in logs, lists and the audit trail: 64 bits of its hash.
    pub fn public_hash(self) -> u64 {
        let hash = blake3::hash(&self.0);
        u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseId(#{:016x})", self.public_hash())
    }
}

impl fmt::Debug for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogId({})", self.to_hex())
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl Slot {
    /// Whether it is of a run that an operator asked for. Schedules have whole seconds; extra runs are put between them, so
    /// that neither is ever taken for the other.
    #[must_use]
    pub fn is_extra(self) -> bool {
        !self.0.is_multiple_of(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_and_refuses_the_rest() {
        let id = LeaseId([0, 1, 0xab, 0xff, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(LeaseId::from_hex(&id.to_hex()), Some(id));
        for wrong in ["", "00", &"g".repeat(32), &"A".repeat(32), &"é".repeat(16)] {
            assert_eq!(LeaseId::from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_lease_id_is_never_printed() {
        let id = LeaseId([7; 16]);
        assert!(!format!("{id:?}").contains(&id.to_hex()));
    }
}
