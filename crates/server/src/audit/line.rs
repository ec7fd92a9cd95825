//! One line: from an event to its bytes, and the hash that chains it to the next.

use super::quota;
use crate::{time::rfc3339, wire};
use sereno_api::AuditKind;
use sereno_core::{
    event::{Event, EventKind, QuotaEvent},
    ids::{LogId, Position},
};
use sereno_node::events::EventBatch;
use sereno_schedule::instant;
use std::io::Write as _;

/// BLAKE3 of a line's bytes up to its `check`. The next line carries it as `previous`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LineHash([u8; 32]);

/// Every line begins so, with its number.
const SEQ: &[u8] = b"{\"seq\":";
/// Every line ends so: `,"previous":"64 digits","check":"16 digits"}`.
const PREVIOUS: &[u8] = b",\"previous\":\"";
const CHECK: &[u8] = b"\",\"check\":\"";
const HASH_DIGITS: usize = 64;
const CHECK_DIGITS: usize = 16;
const CHECK_BYTES: usize = CHECK.len() + CHECK_DIGITS + 2;

impl LineHash {
    /// What the very first line names.
    pub(super) const ZERO: Self = Self([0; 32]);

    fn of(body: &[u8]) -> Self {
        Self(*blake3::hash(body).as_bytes())
    }

    pub(super) fn to_hex(self) -> String {
        wire::hex(&self.0)
    }

    /// The line's own hash; `None`: it is no line of ours, or not what was written.
    pub(super) fn of_whole(line: &[u8]) -> Option<Self> {
        let (body, tail) = line.split_at_checked(line.len().checked_sub(CHECK_BYTES)?)?;
        let check = tail.strip_prefix(CHECK)?.strip_suffix(b"\"}")?;
        let hash = Self::of(body);
        is_hex_of(check, &hash.0[..CHECK_DIGITS / 2]).then_some(hash)
    }
}

/// What ties a line to its place: its number, and the line that it names as the one before.
pub(super) struct Link<'a> {
    pub(super) seq: u64,
    previous: &'a [u8],
}

impl<'a> Link<'a> {
    /// Of a line whose check fits; `None`: it is no line of ours.
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        let digits = line.strip_prefix(SEQ)?;
        let digits = &digits[..memchr::memchr(b',', digits)?];
        let seq = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let body = line.get(..line.len().checked_sub(CHECK_BYTES)?)?;
        let (before, previous) = body.split_at_checked(body.len().checked_sub(HASH_DIGITS)?)?;
        before.ends_with(PREVIOUS).then_some(Self { seq, previous })
    }

    /// The line before is the one with this hash.
    pub(super) fn names(&self, before: LineHash) -> bool {
        is_hex_of(self.previous, &before.0)
    }
}

/// Millions of lines are compared so at a start.
fn is_hex_of(digits: &[u8], bytes: &[u8]) -> bool {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let (pairs, rest) = digits.as_chunks::<2>();
    let hex = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    rest.is_empty()
        && pairs.len() == bytes.len()
        && pairs.iter().zip(bytes).all(|(pair, byte)| *pair == hex(byte))
}

/// What stands in the trail: an event of the log, or a remark about the trail itself.
#[derive(Clone, Copy)]
pub(super) enum Record<'a> {
    /// The event with this number (from 1) of a batch.
    Event(&'a EventBatch, usize),
    /// From here on the lines are of this log, from after this position.
    Log(LogId, Position),
    /// Everything up to this position is recorded.
    Checkpoint(Position),
    /// From and to: not recorded.
    Gap(Position, Position),
}

/// Whether an event belongs into the trail: queues and waits do not.
pub(super) fn is_audited(event: &Event) -> bool {
    !matches!(event.kind, EventKind::Queued | EventKind::WaitEnded { .. })
}

/// Appends the line's bytes, with its line end, to `out`.
pub(super) fn write(
    out: &mut Vec<u8>,
    seq: u64,
    record: Record<'_>,
    previous: LineHash,
) -> LineHash {
    let start = out.len();
    let mut line = Line { out };
    line.out.extend_from_slice(SEQ);
    line.digits(seq);
    match record {
        Record::Event(batch, number) => line.event(batch, number),
        Record::Log(log_id, position) => {
            line.kind(AuditKind::Log);
            line.number("position", position.0);
            line.plain("logId", &log_id.to_hex());
        }
        Record::Checkpoint(position) => {
            line.kind(AuditKind::Checkpoint);
            line.number("position", position.0);
        }
        Record::Gap(from, to) => {
            line.kind(AuditKind::Gap);
            line.number("position", to.0);
            line.number("gapFrom", from.0);
        }
    }
    out.extend_from_slice(PREVIOUS);
    wire::push_hex(out, &previous.0);
    let hash = LineHash::of(&out[start..]);
    out.extend_from_slice(CHECK);
    wire::push_hex(out, &hash.0[..CHECK_DIGITS / 2]);
    out.extend_from_slice(b"\"}\n");
    hash
}

/// Writes fields by hand: a line for every grant and every end is on the way of all traffic.
struct Line<'a> {
    out: &'a mut Vec<u8>,
}

impl Line<'_> {
    fn event(&mut self, batch: &EventBatch, number: usize) {
        let event = &batch.events[number - 1];
        self.kind(kind_of(&event.kind));
        self.plain("time", &rfc3339(batch.wall_us / 1_000));
        self.number("position", batch.position.0);
        self.number("event", number as u64);
        self.number("revision", event.revision.0);
        self.plain("entryHash", &wire::hex(&batch.hash.0));
        self.subject(event);
        self.what(&event.kind);
    }

    fn subject(&mut self, event: &Event) {
        if let Some(namespace) = &event.namespace {
            self.text("namespace", namespace.as_str());
            if let Some(resource) = &event.resource {
                let family = event.family.as_str();
                self.text("fenceKey", &format!("{namespace}/{family}/{resource}"));
            }
        }
        if let Some(hash) = event.lease_hash {
            self.plain("leaseHash", &wire::lease_hash(hash));
        }
        if let Some(owner) = &event.owner {
            self.text("owner", owner.as_str());
        }
        if !event.caller.as_str().is_empty() {
            self.text("caller", event.caller.as_str());
        }
    }

    fn what(&mut self, kind: &EventKind) {
        match kind {
            EventKind::Queued | EventKind::WaitEnded { .. } | EventKind::TrimHeld => {}
            EventKind::Granted { token, waited_ms } => {
                self.number("fencingToken", token.0);
                if let Some(waited_ms) = waited_ms {
                    self.number("waitedMs", *waited_ms);
                }
            }
            EventKind::Ended { token, end, held_ms, reason } => {
                self.number("fencingToken", token.0);
                self.plain("end", end.as_str());
                self.number("heldMs", *held_ms);
                if let Some(reason) = reason {
                    self.text("reason", reason.as_str());
                }
            }
            EventKind::Refused { code } => {
                self.plain("code", wire::code(*code).as_str());
            }
            EventKind::NamespacePut { version } => self.number("version", *version),
            EventKind::TokenFloorSet { floor } => self.number("floor", floor.0),
            EventKind::LevelRaised { level } => self.number("level", u64::from(*level)),
            EventKind::Proclaimed { term, version } => {
                self.number("fencingToken", term.0);
                self.number("version", *version);
            }
            EventKind::Begun { token } => self.number("fencingToken", token.0),
            EventKind::GuardSeen => {}
            EventKind::RegionSet { region } | EventKind::HomePut { home: region } => {
                if let Some(region) = region {
                    self.plain("region", region.as_str());
                }
            }
            EventKind::Quota(event) => self.quota(event),
            EventKind::FenceRefused { token, highest } => {
                self.number("fencingToken", token.0);
                if let Some(highest) = highest {
                    self.number("highest", highest.0);
                }
            }
            EventKind::JobPut { version } => self.number("version", *version),
            EventKind::JobPaused { reason, .. } => self.text("reason", reason.as_str()),
            EventKind::RunAsked { slot, reason } => {
                self.plain("slot", &instant::format(slot.0));
                self.text("reason", reason.as_str());
            }
            EventKind::RunClaimed { slot, attempt, token } => {
                self.number("fencingToken", token.0);
                self.plain("slot", &instant::format(slot.0));
                self.number("attempt", u64::from(*attempt));
            }
            EventKind::RunChanged { slot, attempt, state, reason } => {
                self.plain("slot", &instant::format(slot.0));
                self.number("attempt", u64::from(*attempt));
                self.plain("state", wire::run_state(*state).as_str());
                if let Some(reason) = reason {
                    self.text("reason", reason.as_str());
                }
            }
        }
    }

    fn quota(&mut self, event: &QuotaEvent) {
        if let Some((_, fence)) = event.reservation {
            self.number("fencingToken", fence.0);
        }
        if let Some(reason) = &event.reason {
            self.text("reason", reason.as_str());
        }
        self.name("quota");
        let entry = quota::entry(event);
        serde_json::to_writer(&mut *self.out, &entry).expect("writing to memory cannot fail");
    }

    fn kind(&mut self, kind: AuditKind) {
        self.plain("kind", kind.as_str());
    }

    fn name(&mut self, name: &str) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        self.digits(value);
    }

    fn digits(&mut self, value: u64) {
        write!(self.out, "{value}").expect("writing to memory cannot fail");
    }

    /// A value that needs no escaping.
    fn plain(&mut self, name: &str, value: &str) {
        self.name(name);
        self.out.push(b'"');
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
    }

    /// A value in somebody's own words.
    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        serde_json::to_writer(&mut *self.out, value).expect("writing to memory cannot fail");
    }
}

fn kind_of(kind: &EventKind) -> AuditKind {
    match kind {
        EventKind::Granted { .. } => AuditKind::Granted,
        EventKind::Ended { .. } => AuditKind::Ended,
        EventKind::Refused { .. } => AuditKind::Refused,
        EventKind::NamespacePut { .. } => AuditKind::NamespacePut,
        EventKind::TokenFloorSet { .. } => AuditKind::TokenFloorSet,
        EventKind::LevelRaised { .. } => AuditKind::LevelRaised,
        EventKind::TrimHeld => AuditKind::TrimHeld,
        EventKind::Proclaimed { .. } => AuditKind::Proclaimed,
        EventKind::Begun { .. } => AuditKind::Begun,
        EventKind::JobPut { .. } => AuditKind::JobPut,
        EventKind::JobPaused { paused: true, .. } => AuditKind::JobPaused,
        EventKind::JobPaused { paused: false, .. } => AuditKind::JobResumed,
        EventKind::RunAsked { .. } => AuditKind::RunAsked,
        EventKind::RunClaimed { .. } => AuditKind::RunClaimed,
        EventKind::RunChanged { .. } => AuditKind::RunChanged,
        EventKind::GuardSeen => AuditKind::GuardSeen,
        EventKind::FenceRefused { .. } => AuditKind::FenceRefused,
        EventKind::Quota(_) => AuditKind::QuotaChanged,
        EventKind::RegionSet { .. } => AuditKind::RegionSet,
        EventKind::HomePut { .. } => AuditKind::HomePut,
        EventKind::Queued | EventKind::WaitEnded { .. } => {
            unreachable!("only audited events become lines")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::testing::{batch, granted};
    use sereno_api::AuditLine;

    #[test]
    fn a_line_is_the_json_that_the_interface_promises() {
        let batch = batch(7, vec![granted("orders/\u{e9}\"42", 5)]);
        let mut out = Vec::new();
        let hash = write(&mut out, 3, Record::Event(&batch, 1), LineHash([0xab; 32]));
        let text = std::str::from_utf8(&out).unwrap().strip_suffix('\n').unwrap();
        let line: AuditLine = serde_json::from_str(text).unwrap();
        assert_eq!(line.seq, 3);
        assert_eq!((line.kind, line.position, line.event), (AuditKind::Granted, 7, Some(1)));
        assert_eq!(line.fencing_token, Some(5));
        assert_eq!(line.owner.as_deref(), Some("orders/\u{e9}\"42"));
        assert_eq!(line.fence_key.as_deref(), Some("default/lock/r"));
        assert_eq!(line.previous, "ab".repeat(32));
        assert_eq!(
            serde_json::to_value(&line).unwrap(),
            serde_json::from_str::<serde_json::Value>(text).unwrap()
        );
        assert_eq!(LineHash::of_whole(text.as_bytes()), Some(hash));
        let link = Link::of(text.as_bytes()).unwrap();
        assert!(link.seq == 3 && link.names(LineHash([0xab; 32])) && !link.names(LineHash::ZERO));
        assert!(hash.to_hex().starts_with(&line.check));
        for at in 0..text.len() {
            let mut flipped = text.as_bytes().to_vec();
            flipped[at] ^= 0x01;
            assert_eq!(LineHash::of_whole(&flipped), None, "byte {at}");
        }
        assert_eq!(LineHash::of_whole(b"{}"), None);
        assert!(Link::of(b"{}").is_none() && Link::of(b"{\"seq\":1,").is_none());
    }
}
