//! Writes by lease id, and ways to end one: `POST /v1/locks/{renew, renew-many, release, abandon, force-release}`.

use crate::{
    AbandonedWas, ErrorCode, Millis, Outcome, Reason, RetryWith, default_namespace, object,
};
use serde::{Deserialize, Serialize};

/// Names one holding and proves its ownership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseRef {
    /// The locked resource.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// The secret from the grant: 32 lower-case hexadecimal digits.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub lease_id: String,
}

/// `POST /v1/locks/renew`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewRequest {
    /// As in acquire.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// The locked resource.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// The secret from the grant: 32 lower-case hexadecimal digits.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub lease_id: String,
    /// Default: the TTL last granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl: Option<Millis>,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to renew: the lease goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Renewed {
    /// The token of the grant, unchanged.
    pub fencing_token: u64,
    /// For people.
    pub expires_at: String,
    /// Until the lease's deadline; the caller counts from when it sent this call.
    pub expires_in_ms: u64,
    /// Left of the whole ownership, where `maxHold` bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub final_deadline_in_ms: Option<u64>,
    /// The renewal was cut short by `maxHold`.
    pub clipped: bool,
    /// When this answer was decided, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}

/// `POST /v1/locks/renew-many`: each by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewManyRequest {
    /// As in acquire.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// 1 to 1,000 leases.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    #[serde(deserialize_with = "object::each")]
    pub leases: Vec<LeaseRef>,
    /// Default: for each the TTL last granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl: Option<Millis>,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// What became of one lease of a renew-many: `ok` with the deadline, or `code` with what that code says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewResult {
    /// The resource as asked for.
    pub resource: String,
    /// Renewed.
    pub ok: bool,
    /// Not renewed: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub code: Option<ErrorCode>,
    /// With a code: whether the renewal can have been applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub outcome: Option<Outcome>,
    /// With a code: how to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub retry_with: Option<RetryWith>,
    /// With `LEASE_ENDED`: how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reason: Option<Reason>,
    /// The token of the holding, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub fencing_token: Option<u64>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub expires_at: Option<String>,
    /// Until the lease's deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub expires_in_ms: Option<u64>,
    /// Left of the whole ownership, where `maxHold` bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub final_deadline_in_ms: Option<u64>,
    /// The renewal was cut short by `maxHold`.
    #[serde(default)]
    pub clipped: bool,
}

/// 200 to renew-many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewedMany {
    /// In the order asked for.
    pub results: Vec<RenewResult>,
    /// The last revision of this answer, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}

/// `POST /v1/locks/release`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseRequest {
    /// As in acquire.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// The locked resource. Of an acquire-all this ends the one resource named.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// The secret from the grant: 32 lower-case hexadecimal digits.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub lease_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to release: either way the lease is not held any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Released {
    /// This call ended the lease.
    pub released: bool,
    /// Where it did not: how the lease had ended, or `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reason: Option<Reason>,
    /// When this answer was decided, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}

/// `POST /v1/locks/abandon`: the request shall hold nothing, whatever became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AbandonRequest {
    /// The request's namespace.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// The acquire's or acquire-all's request id.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to abandon: the request holds nothing and will be granted nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Abandoned {
    /// What it was before.
    pub was: AbandonedWas,
    /// Of an ended one: how it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub reason: Option<Reason>,
    /// Of a refused one: its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub code: Option<ErrorCode>,
    /// When this answer was decided, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}

/// `POST /v1/locks/force-release`: an operator ends the lease with this token and no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForceReleaseRequest {
    /// As in acquire.
    #[serde(default = "default_namespace")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z0-9._-]{1,64}$"))]
    pub namespace: String,
    /// The locked resource.
    #[cfg_attr(
        feature = "openapi",
        schema(max_length = 256, pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$")
    )]
    pub resource: String,
    /// The token of the lease to end, from a read.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 9007199254740991u64))]
    pub fencing_token: u64,
    /// As in acquire.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9._:/@+-]{8,64}$"))]
    pub request_id: String,
    /// Why, for the audit trail: 1 to 512 bytes without control characters.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 512, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")
    )]
    pub reason: String,
    /// As in acquire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub born_at: Option<u64>,
}

/// 200 to force-release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForceReleased {
    /// Always true; a token that nobody holds is `NOT_HOLDER`.
    pub released: bool,
    /// The ended lease's token.
    pub fencing_token: u64,
    /// Whether this request was answered before.
    pub replayed: bool,
    /// Of a replayed answer: the first one's revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub original_revision: Option<u64>,
    /// When this answer was decided, in the total order.
    pub revision: u64,
    /// The cluster time of this answer.
    pub cluster_time_ms: u64,
}
