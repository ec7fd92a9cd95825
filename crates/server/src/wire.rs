//! The core's words as the interface spells them.

use sereno_api as api;
use sereno_core::{
    command::Family,
    outcome::{AbandonedWas, Code, End, NotReleased, RunState, WaitEnd},
    policy::Fencing,
};

pub(crate) fn code(code: Code) -> api::ErrorCode {
    match code {
        Code::InvalidArgument => api::ErrorCode::InvalidArgument,
        Code::FencingRequired => api::ErrorCode::FencingRequired,
        Code::NotFound => api::ErrorCode::NotFound,
        Code::Locked => api::ErrorCode::Locked,
        Code::WaitTimeout => api::ErrorCode::WaitTimeout,
        Code::LeaseEnded => api::ErrorCode::LeaseEnded,
        Code::NotHolder => api::ErrorCode::NotHolder,
        Code::MaxHoldReached => api::ErrorCode::MaxHoldReached,
        Code::Abandoned => api::ErrorCode::Abandoned,
        Code::VersionConflict => api::ErrorCode::VersionConflict,
        Code::RequestIdReused => api::ErrorCode::RequestIdReused,
        Code::QueueFull => api::ErrorCode::QueueFull,
        Code::LimitReached => api::ErrorCode::LimitReached,
        Code::Overloaded => api::ErrorCode::Overloaded,
        Code::Unavailable => api::ErrorCode::Unavailable,
        Code::Taken => api::ErrorCode::Taken,
        Code::RunClaimed => api::ErrorCode::RunClaimed,
        Code::RunFinished => api::ErrorCode::RunFinished,
        Code::RunPaused => api::ErrorCode::RunPaused,
        Code::RetriesExhausted => api::ErrorCode::RetriesExhausted,
        Code::QuotaExhausted => api::ErrorCode::QuotaExhausted,
        Code::ReservationEnded => api::ErrorCode::ReservationEnded,
        Code::ExceedsReservation => api::ErrorCode::ExceedsReservation,
        Code::ExpiredNoCapacity => api::ErrorCode::ExpiredNoCapacity,
        Code::StaleReport => api::ErrorCode::StaleReport,
        Code::WrongRegion => api::ErrorCode::WrongRegion,
    }
}

pub(crate) fn end(end: End) -> api::Reason {
    match end {
        End::Released => api::Reason::Released,
        End::Expired => api::Reason::Expired,
        End::MaxHold => api::Reason::MaxHold,
        End::Forced => api::Reason::Forced,
        End::Abandoned => api::Reason::Abandoned,
        End::HandedOff => api::Reason::HandedOff,
        End::Finished => api::Reason::Finished,
        End::Replaced => api::Reason::Replaced,
        End::Committed => api::Reason::Committed,
    }
}

pub(crate) fn not_released(why: NotReleased) -> api::Reason {
    match why {
        NotReleased::Ended(how) => end(how),
        NotReleased::Unknown => api::Reason::Unknown,
    }
}

pub(crate) fn wait_end(why: WaitEnd) -> api::Reason {
    match why {
        WaitEnd::TimedOut => api::Reason::TimedOut,
        WaitEnd::Deserted => api::Reason::Abandoned,
        WaitEnd::Restored => api::Reason::Restored,
        WaitEnd::Replaced => api::Reason::Replaced,
        WaitEnd::HomeMoved => api::Reason::HomeMoved,
    }
}

pub(crate) fn abandoned_was(was: AbandonedWas) -> api::AbandonedWas {
    match was {
        AbandonedWas::Unseen => api::AbandonedWas::Unseen,
        AbandonedWas::Waiting => api::AbandonedWas::Waiting,
        AbandonedWas::Granted => api::AbandonedWas::Granted,
        AbandonedWas::Ended(_) => api::AbandonedWas::Ended,
        AbandonedWas::Refused(_) => api::AbandonedWas::Refused,
        AbandonedWas::Done => api::AbandonedWas::Done,
    }
}

pub(crate) fn fencing(fencing: Fencing) -> api::Fencing {
    match fencing {
        Fencing::Enforced => api::Fencing::Enforced,
        Fencing::BestEffort => api::Fencing::BestEffort,
    }
}

pub(crate) fn to_fencing(fencing: api::Fencing) -> Fencing {
    match fencing {
        api::Fencing::Enforced => Fencing::Enforced,
        api::Fencing::BestEffort => Fencing::BestEffort,
    }
}

pub(crate) fn family(family: Family) -> api::Family {
    match family {
        Family::Lock => api::Family::Lock,
        Family::Admin => api::Family::Admin,
        Family::Election => api::Family::Election,
        Family::Job => api::Family::Job,
        Family::Hold => api::Family::Hold,
        Family::Quota => api::Family::Quota,
    }
}

/// The other way round; `None`: no family of this version is called so.
pub(crate) fn to_family(word: &str) -> Option<Family> {
    [Family::Lock, Family::Election, Family::Job, Family::Hold, Family::Quota, Family::Admin]
        .into_iter()
        .find(|family| family.as_str() == word)
}

pub(crate) fn run_state(state: RunState) -> api::RunState {
    match state {
        RunState::Asked => api::RunState::Asked,
        RunState::Claimed => api::RunState::Claimed,
        RunState::Retry => api::RunState::Retry,
        RunState::Succeeded => api::RunState::Succeeded,
        RunState::Failed => api::RunState::Failed,
        RunState::Lost => api::RunState::Lost,
        RunState::Skipped => api::RunState::Skipped,
    }
}

/// A lease's public hash as everybody sees it.
pub(crate) fn lease_hash(hash: u64) -> String {
    hex(&hash.to_be_bytes())
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(2 * bytes.len());
    push_hex(&mut text, bytes);
    String::from_utf8(text).expect("digits are ASCII")
}

/// The same at the end of `out`.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 0xf)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_that_of_the_core() {
        let id =
            sereno_core::ids::LeaseId([0, 1, 0xab, 0xff, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(hex(&id.0), id.to_hex());
        assert_eq!(lease_hash(0xab), "00000000000000ab");
    }
}
