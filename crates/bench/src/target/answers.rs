//! What the generator reads of an answer. It takes what it needs and steps over the rest.

use serde::Deserialize;
use sereno_api::{ErrorCode, Outcome};

/// 32 hexadecimal digits: the id of a lease, a reservation or a request, or the value of a Redis key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseId([u8; 32]);

impl LeaseId {
    /// In lower-case hexadecimal digits.
    pub fn from_bits(bits: u128) -> Self {
        let mut digits = [0; 32];
        for (index, digit) in digits.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(bits >> (124 - 4 * index) & 15) as usize];
        }
        Self(digits)
    }

    fn parse(text: &str) -> Option<Self> {
        let digits: [u8; 32] = text.as_bytes().try_into().ok()?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(Self(digits))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hexadecimal digits are ASCII")
    }
}

/// The answer to an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The lock is held.
    Granted(LeaseId),
    /// In the queue: repeat the same call.
    Waiting,
    /// No, and nothing was changed.
    Refused(&'static str),
    /// The service says that nobody knows.
    Unknown,
}

/// The answer to a renew-many: in the order asked for, `None` for those renewed, else why not.
pub type Renewals = Vec<Option<&'static str>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GrantedBody<'a> {
    lease_id: &'a str,
}

/// The lease of a 200 to acquire.
pub(super) fn granted(body: &[u8]) -> Result<LeaseId, String> {
    let body: GrantedBody<'_> = parse(body)?;
    LeaseId::parse(body.lease_id).ok_or_else(|| format!("no lease id: {:?}", body.lease_id))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReservedBody<'a> {
    reservation_id: &'a str,
}

/// The reservation of a 200 to reserve.
pub(super) fn reserved(body: &[u8]) -> Result<LeaseId, String> {
    let body: ReservedBody<'_> = parse(body)?;
    let wrong = || format!("no reservation id: {:?}", body.reservation_id);
    LeaseId::parse(body.reservation_id).ok_or_else(wrong)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommittedBody {
    #[serde(rename = "commitId")]
    _commit_id: u64,
}

/// Whether a 200 to commit names a commit.
pub(super) fn committed(body: &[u8]) -> Result<(), String> {
    parse::<CommittedBody>(body).map(drop)
}

#[derive(Deserialize)]
struct ReleasedBody<'a> {
    released: bool,
    #[serde(borrow, default)]
    reason: Option<&'a str>,
}

/// Why a 200 to release released nothing; `None`: it did.
pub(super) fn not_released(body: &[u8]) -> Result<Option<&'static str>, String> {
    let body: ReleasedBody<'_> = parse(body)?;
    Ok((!body.released).then_some(match body.reason {
        Some("released") => "not released: released",
        Some("expired") => "not released: expired",
        Some("unknown") => "not released: unknown",
        _ => "not released: other",
    }))
}

#[derive(Deserialize)]
struct RenewedManyBody {
    results: Vec<RenewResultBody>,
}

#[derive(Deserialize)]
struct RenewResultBody {
    ok: bool,
    #[serde(default)]
    code: Option<ErrorCode>,
}

/// The results of a 200 to renew-many.
pub(super) fn renewals(body: &[u8]) -> Result<Renewals, String> {
    let body: RenewedManyBody = parse(body)?;
    let why = |result: &RenewResultBody| result.code.map_or("UNRECOGNISED", ErrorCode::as_str);
    Ok(body.results.iter().map(|result| (!result.ok).then(|| why(result))).collect())
}

#[derive(Deserialize)]
struct ProblemBody {
    code: ErrorCode,
    outcome: Outcome,
}

/// The code of a problem document; `None`: its outcome is unknown.
pub(super) fn refusal(body: &[u8]) -> Result<Option<&'static str>, String> {
    let body: ProblemBody = parse(body)?;
    Ok((body.outcome != Outcome::Unknown).then(|| body.code.as_str()))
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| {
        format!("{error} in {}", String::from_utf8_lossy(&body[..body.len().min(200)]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_api::{
        Committed, Fencing, Granted, GrantedState, Problem, Reason, Released, RenewResult,
        RenewedMany, ReservationState, Reserved,
    };

    fn json(value: &impl serde::Serialize) -> Vec<u8> {
        serde_json::to_vec(value).unwrap()
    }

    #[test]
    fn ids_are_32_digits() {
        let id = LeaseId::from_bits(0x0123_4567_89ab_cdef_0000_0000_0000_00ff);
        assert_eq!(id.as_str(), "0123456789abcdef00000000000000ff");
        assert_eq!(LeaseId::parse(id.as_str()), Some(id));
        assert_eq!(LeaseId::parse("0123"), None);
    }

    #[test]
    fn a_grant_as_the_service_writes_it() {
        let lease_id = LeaseId::from_bits(7);
        let body = json(&Granted {
            state: GrantedState::Granted,
            resource: "a/b".into(),
            fence_key: "default/lock/a/b".into(),
            lease_id: lease_id.as_str().into(),
            fencing_token: 9,
            fencing: Fencing::BestEffort,
            expires_at: "2026-11-30T22:00:30Z".into(),
            expires_in_ms: 30_000,
            final_deadline_in_ms: None,
            replayed: false,
            original_revision: None,
            revision: 1,
            cluster_time_ms: 2,
        });
        assert_eq!(granted(&body), Ok(lease_id));
        assert!(granted(b"{}").unwrap_err().contains("leaseId"));
    }

    #[test]
    fn releases_and_renewals_as_the_service_writes_them() {
        let released = |released, reason| {
            not_released(&json(&Released { released, reason, revision: 1, cluster_time_ms: 2 }))
        };
        assert_eq!(released(true, None), Ok(None));
        assert_eq!(released(false, Some(Reason::Expired)), Ok(Some("not released: expired")));
        let result = |ok, code| RenewResult {
            resource: "r".into(),
            ok,
            code,
            outcome: None,
            retry_with: None,
            reason: None,
            fencing_token: None,
            expires_at: None,
            expires_in_ms: None,
            final_deadline_in_ms: None,
            clipped: false,
        };
        let results = vec![result(true, None), result(false, Some(ErrorCode::LeaseEnded))];
        let body = json(&RenewedMany { results, revision: 1, cluster_time_ms: 2 });
        assert_eq!(renewals(&body), Ok(vec![None, Some("LEASE_ENDED")]));
    }

    #[test]
    fn reservations_and_commits_as_the_service_writes_them() {
        let id = LeaseId::from_bits(7);
        let reserved_body = json(&Reserved {
            state: ReservationState::Reserved,
            reservation_id: id.as_str().into(),
            fence_key: format!("default/quota/{}", id.as_str()),
            fence: 9,
            items: Vec::new(),
            clipped: false,
            expires_at: "2026-11-30T22:00:30Z".into(),
            expires_in_ms: 30_000,
            final_deadline_in_ms: 60_000,
            replayed: false,
            original_revision: None,
            revision: 1,
            cluster_time_ms: 2,
        });
        assert_eq!(reserved(&reserved_body), Ok(id));
        let committed_body = json(&Committed {
            commit_id: 3,
            reservation_id: id.as_str().into(),
            taken: Vec::new(),
            returned: Vec::new(),
            left: Vec::new(),
            readmits: None,
            replayed: false,
            original_revision: None,
            revision: 1,
            cluster_time_ms: 2,
        });
        assert_eq!(committed(&committed_body), Ok(()));
        assert!(committed(&reserved_body).unwrap_err().contains("commitId"));
    }

    #[test]
    fn a_refusal_is_one_only_when_nothing_was_changed() {
        let mut problem = Problem::new(ErrorCode::Locked, "held");
        assert_eq!(refusal(&json(&problem)), Ok(Some("LOCKED")));
        problem.outcome = Outcome::Unknown;
        assert_eq!(refusal(&json(&problem)), Ok(None));
    }
}
