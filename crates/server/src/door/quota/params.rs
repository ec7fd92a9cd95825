//! Parameters of reads, for the document.

use utoipa::IntoParams;

/// Which nodes of quotas.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(in crate::door) struct ListQuotasParams {
    /// The nodes of this quota. Default: the roots of all.
    #[param(nullable = false, pattern = "^[A-Za-z0-9._:@+-]{1,64}$")]
    quota: Option<String>,
    /// Only paths that begin so; without `quota`: only quotas.
    #[param(nullable = false, max_length = 256, pattern = "^[A-Za-z0-9._:/@+-]*$")]
    prefix: Option<String>,
    /// Rows at most. Default: 100.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// The `nextCursor` of the page before: a path, or a quota's name.
    #[param(
        nullable = false,
        max_length = 190,
        pattern = "^([A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+){0,7})?$"
    )]
    cursor: Option<String>,
}

/// Owners with committed use of one node.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(in crate::door) struct QuotaOwnersParams {
    /// Owners at most. Default: 100.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// The `nextCursor` of the page before.
    #[param(
        nullable = false,
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"
    )]
    cursor: Option<String>,
}

/// Which node is to be explained.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(in crate::door) struct ExplainParams {
    /// What is counted.
    #[param(pattern = "^[A-Za-z0-9._:@+-]{1,64}$")]
    quota: String,
    /// Where in its tree. Default: the root.
    #[param(
        nullable = false,
        max_length = 190,
        pattern = "^([A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+){0,7})?$"
    )]
    path: Option<String>,
    /// Holders at most. Default: 100.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u64>,
}

/// Which reservations.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(in crate::door) struct ListReservationsParams {
    /// Only with something of this quota.
    #[param(nullable = false, pattern = "^[A-Za-z0-9._:@+-]{1,64}$")]
    quota: Option<String>,
    /// Only with something of this node of it or below. Needs `quota`.
    #[param(
        nullable = false,
        max_length = 190,
        pattern = "^([A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+){0,7})?$"
    )]
    path: Option<String>,
    /// Only in this state.
    #[param(nullable = false, inline)]
    state: Option<sereno_api::ReservationState>,
    /// Rows at most. Default: 100.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// The `nextCursor` of the page before.
    #[param(nullable = false, pattern = "^[0-9]{1,15}$")]
    cursor: Option<String>,
}
