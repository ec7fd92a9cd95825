//! Problem documents (RFC 9457, `application/problem+json`).

use crate::{ErrorCode, Holder, Outcome, QuotaExcess, QuotaLayer, QuotaStale, Reason, RetryWith};
use serde::{Deserialize, Serialize};

/// One resource that is not free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InTheWay {
    /// The resource.
    pub resource: String,
    /// Who holds it; absent during a lock delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub holder: Option<Holder>,
    /// Left of the lock delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub lock_delay_ms: Option<u64>,
    /// How many wait for it.
    pub waiters: u64,
}

/// An error. `code`, `outcome`, `retryWith` and `retryAfterMs` are for programs; the other optional fields are
/// there where the code has them to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The code's page, relative to the service.
    #[serde(rename = "type")]
    pub type_url: String,
    /// One line for people, the same for each code.
    pub title: String,
    /// The HTTP status.
    #[cfg_attr(feature = "openapi", schema(minimum = 400, maximum = 599))]
    pub status: u16,
    /// The stable code.
    pub code: ErrorCode,
    /// What went wrong this time, for people.
    pub detail: String,
    /// Whether the call changed anything.
    pub outcome: Outcome,
    /// How to go on; absent: do not repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub retry_with: Option<RetryWith>,
    /// When another try makes sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub retry_after_ms: Option<u64>,
    /// `INVALID_ARGUMENT`: the field, header or parameter that breaks a rule, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub field: Option<String>,
    /// `LOCKED`: who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub holder: Option<Holder>,
    /// `LOCKED`: left of the lock delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub lock_delay_ms: Option<u64>,
    /// `LOCKED`: how many wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub waiters: Option<u64>,
    /// `LOCKED` to an acquire-all: everything that is in the way, in the order asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_the_way: Vec<InTheWay>,
    /// `LEASE_ENDED`, `RESERVATION_ENDED`, `WAIT_TIMEOUT`: how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reason: Option<Reason>,
    /// `LEASE_ENDED`, `RESERVATION_ENDED`, `MAX_HOLD_REACHED`: the token of the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub fencing_token: Option<u64>,
    /// `MAX_HOLD_REACHED`: when the ownership ends for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub final_deadline_in_ms: Option<u64>,
    /// `VERSION_CONFLICT`: the version in force; 0: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub current_version: Option<u64>,
    /// `LIMIT_REACHED`, `QUEUE_FULL`, `OVERLOADED`: which limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub limit: Option<String>,
    /// The limit's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub max: Option<u64>,
    /// Ended objects are still counted; the count falls when they are swept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub sweep_pending: Option<bool>,
    /// `QUOTA_EXHAUSTED`, `EXPIRED_NO_CAPACITY`: every layer that is exhausted; of each tree the root first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<QuotaLayer>,
    /// `EXCEEDS_RESERVATION`: what was named, and what there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub excess: Option<QuotaExcess>,
    /// `STALE_REPORT`: the reporter's last report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub last_report: Option<QuotaStale>,
    /// `WRONG_REGION`: the region to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub home: Option<String>,
    /// `RESYNC`: follow from here after reading the present state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub cursor: Option<String>,
    /// Whether this request was answered before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub replayed: Option<bool>,
    /// Of a replayed answer: the first one's revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub original_revision: Option<u64>,
    /// Where the log decided: when, in the total order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub revision: Option<u64>,
    /// The cluster time of this answer, where the node knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub cluster_time_ms: Option<u64>,
}

impl Problem {
    /// A problem with what the code says by itself; nothing was applied, and it makes no sense to repeat it.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            type_url: format!("/errors/{code}"),
            title: code.title().into(),
            status: code.status(),
            code,
            detail: detail.into(),
            outcome: Outcome::NotApplied,
            retry_with: None,
            retry_after_ms: None,
            field: None,
            holder: None,
            lock_delay_ms: None,
            waiters: None,
            in_the_way: Vec::new(),
            reason: None,
            fencing_token: None,
            final_deadline_in_ms: None,
            current_version: None,
            limit: None,
            max: None,
            sweep_pending: None,
            layers: Vec::new(),
            excess: None,
            last_report: None,
            home: None,
            cursor: None,
            replayed: None,
            original_revision: None,
            revision: None,
            cluster_time_ms: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_only_what_it_has_to_say() {
        let problem = Problem::new(ErrorCode::NotHolder, "never heard of it");
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "type": "/errors/NOT_HOLDER", "title": "Not the holder", "status": 409, "code": "NOT_HOLDER",
                "detail": "never heard of it", "outcome": "notApplied",
            })
        );
        assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
    }

    #[test]
    fn fields_and_words_of_later_versions_are_taken() {
        let text = r#"{"type":"/errors/NEW","title":"t","status":409,"code":"NEW","detail":"d",
            "outcome":"unknown","reason":"handedAround","newField":1}"#;
        let problem: Problem = serde_json::from_str(text).unwrap();
        assert_eq!(problem.code, ErrorCode::Unrecognised);
        assert_eq!(problem.reason, Some(Reason::Unrecognised));
    }
}
