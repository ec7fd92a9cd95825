//! The stable codes of problem documents (DESIGN.md section 12), with what each says by itself.

/// Whether the refused call changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Outcome {
    /// It changed nothing and never will.
    NotApplied,
    /// It had its effect (a spent request was granted once).
    Applied,
    /// Nobody knows. Ask again the way `retryWith` says.
    Unknown,
}

/// How to go on. Absent in an answer: the same question will get the same answer, do not repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RetryWith {
    /// Send the same call again: the same requestId where it has one.
    SameRequestId,
    /// This answer is final and remembered. To try again, draw a new requestId.
    NewRequestId,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $status:literal, $title:literal;)+) => {
        /// What went wrong, as a stable word. Each has a page at `/errors/CODE`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)+
            /// A code of a later version of the service: go by `outcome` and `retryWith`.
            Unrecognised,
        }

        impl ErrorCode {
            /// Every code of this version.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The stable word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Unrecognised => "UNRECOGNISED",
                }
            }

            /// What [`Self::as_str`] writes; [`Self::Unrecognised`] for anything else.
            pub fn parse(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    _ => Self::Unrecognised,
                }
            }

            /// The HTTP status that goes with it.
            pub fn status(self) -> u16 {
                match self {
                    $(Self::$variant => $status,)+
                    Self::Unrecognised => 500,
                }
            }

            /// One line for people, the same each time.
            pub fn title(self) -> &'static str {
                match self {
                    $(Self::$variant => $title,)+
                    Self::Unrecognised => "An error of a later version",
                }
            }
        }
    };
}

codes! {
    /// The request breaks a rule; `field` names where.
    InvalidArgument = "INVALID_ARGUMENT", 400, "The request breaks a rule";
    /// Nobody is logged in.
    Unauthenticated = "UNAUTHENTICATED", 401, "Credentials are missing or wrong";
    /// The caller may not do this.
    PermissionDenied = "PERMISSION_DENIED", 403, "Not allowed";
    /// The namespace demands `fencing: enforced`.
    FencingRequired = "FENCING_REQUIRED", 403, "The namespace requires enforced fencing";
    /// No such namespace, reservation or route.
    NotFound = "NOT_FOUND", 404, "Not found";
    /// The route exists for other methods; see `Allow`.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "Method not allowed here";
    /// The body did not arrive in time.
    RequestTimeout = "REQUEST_TIMEOUT", 408, "The request arrived too slowly";
    /// Somebody else holds the lock, or it is in its lock delay.
    Locked = "LOCKED", 409, "The lock is held";
    /// Somebody else has the hold.
    Taken = "TAKEN", 409, "The resource is taken";
    /// The wait ended without a grant.
    WaitTimeout = "WAIT_TIMEOUT", 409, "The wait ended without a grant";
    /// The lease was granted once and has ended.
    LeaseEnded = "LEASE_ENDED", 409, "The lease has ended";
    /// Nobody holds the resource by this name.
    NotHolder = "NOT_HOLDER", 409, "Not the holder";
    /// `maxHold` leaves nothing to add.
    MaxHoldReached = "MAX_HOLD_REACHED", 409, "The longest hold is reached";
    /// The request was abandoned before.
    Abandoned = "ABANDONED", 409, "The request was abandoned";
    /// Another version is in force.
    VersionConflict = "VERSION_CONFLICT", 409, "Another version is in force";
    /// A layer of the quota has nothing left.
    QuotaExhausted = "QUOTA_EXHAUSTED", 409, "The quota is exhausted";
    /// The reservation has ended.
    ReservationEnded = "RESERVATION_ENDED", 409, "The reservation has ended";
    /// More than what is reserved.
    ExceedsReservation = "EXCEEDS_RESERVATION", 409, "More than what is reserved";
    /// A late commit found no capacity.
    ExpiredNoCapacity = "EXPIRED_NO_CAPACITY", 409, "Expired, and no capacity is left";
    /// Another claim on the run is live.
    RunClaimed = "RUN_CLAIMED", 409, "The run is claimed";
    /// The run has finished.
    RunFinished = "RUN_FINISHED", 409, "The run has finished";
    /// The job is paused.
    RunPaused = "RUN_PAUSED", 409, "The job is paused";
    /// The job's retries are used up.
    RetriesExhausted = "RETRIES_EXHAUSTED", 409, "The retries are used up";
    /// The slot lies in the future.
    TooEarly = "TOO_EARLY", 409, "Too early for this slot";
    /// The report rests on a state that is too old.
    StaleReport = "STALE_REPORT", 409, "The report is too old";
    /// The cursor cannot be followed: read the state, then go on from `cursor`.
    Resync = "RESYNC", 410, "The cursor cannot be followed";
    /// A body or a command is too large.
    TooLarge = "TOO_LARGE", 413, "Too large";
    /// The body is not `application/json`.
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", 415, "The body must be application/json";
    /// Another region is home.
    WrongRegion = "WRONG_REGION", 421, "Another region is home";
    /// The same requestId came with other content.
    RequestIdReused = "REQUEST_ID_REUSED", 422, "The requestId was used with other content";
    /// The resource's queue is full.
    QueueFull = "QUEUE_FULL", 429, "The queue is full";
    /// The namespace's limit is reached.
    LimitReached = "LIMIT_REACHED", 429, "A limit of the namespace is reached";
    /// The service, or the namespace's reply memory, has more work than it takes.
    Overloaded = "OVERLOADED", 429, "Overloaded";
    /// No quorum, stopping, or granting is paused.
    Unavailable = "UNAVAILABLE", 503, "Unavailable";
    /// The call may have been applied; nobody knows yet.
    UnknownOutcome = "UNKNOWN_OUTCOME", 504, "The outcome is unknown";
}

impl ErrorCode {
    /// The code that a text begins with, as `UNAVAILABLE: no leader` does: an answer of a service, and no silence.
    pub fn leading(text: &str) -> Option<Self> {
        let (code, _) = text.split_once(": ")?;
        Self::ALL.iter().copied().find(|known| known.as_str() == code)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for ErrorCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        Ok(Self::parse(&word))
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for ErrorCode {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .enum_values(Some(Self::ALL.iter().map(|code| code.as_str())))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for ErrorCode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back_and_has_an_error_status() {
        for &code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), code);
            assert_eq!(ErrorCode::leading(&format!("{code}: so it is")), Some(code));
            assert!((400..600).contains(&code.status()), "{code}");
        }
        let later: ErrorCode = serde_json::from_str("\"FROM_THE_FUTURE\"").unwrap();
        assert_eq!(later, ErrorCode::Unrecognised);
    }
}
