//! Whether the watchdog still runs: one that is gone is heard of at once, one that is stopped says nothing.

/// Counts looks of the wrapper, about four a second, and not time: so neither a suspended machine nor a wrapper that
/// was stopped itself takes its own absence for the watchdog's.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    looks: u32,
    asked: bool,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Nothing.
    Wait,
    /// Ask whether it is there.
    Ask,
    /// It has not answered for too long.
    Silent,
}

/// Ask that often: once a second.
const ASK_EACH: u32 = 4;
/// And give it so long: three seconds. It does nothing but this, and a machine may be busy.
const SILENT_AFTER: u32 = 12;

impl Heartbeat {
    /// The wrapper has looked again, and the watchdog had said nothing.
    pub(crate) fn look(&mut self) -> Beat {
        self.looks += 1;
        match self.asked {
            false if self.looks >= ASK_EACH => {
                *self = Self { looks: 0, asked: true };
                Beat::Ask
            }
            true if self.looks >= SILENT_AFTER => {
                *self = Self::default();
                Beat::Silent
            }
            _ => Beat::Wait,
        }
    }

    /// It has said something.
    pub(crate) fn heard(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_noticed_and_an_answer_ends_it() {
        let mut heartbeat = Heartbeat::default();
        let mut looks = |count| (0..count).map(|_| heartbeat.look()).collect::<Vec<_>>();
        assert_eq!(looks(4), [Beat::Wait, Beat::Wait, Beat::Wait, Beat::Ask]);
        assert_eq!(looks(11), [Beat::Wait; 11]);
        assert_eq!(looks(1), [Beat::Silent]);
        assert_eq!(looks(4)[3], Beat::Ask, "the next one is asked anew");
        assert_eq!(looks(11), [Beat::Wait; 11]);
        heartbeat.heard();
        assert_eq!(heartbeat.look(), Beat::Wait);
    }
}
