//! Closed vocabularies. A word that this version does not know is read as `Unrecognised`, never written.

/// An enum of camelCase words, with a catch-all for words of later versions.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A word of a later version of the service.
            Unrecognised,
        }

        impl $name {
            /// Every word of this version.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// As it stands in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Unrecognised => "unrecognised",
                }
            }

            /// What [`Self::as_str`] writes; [`Self::Unrecognised`] for anything else.
            pub fn parse(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    _ => Self::Unrecognised,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
                Ok(Self::parse(&word))
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$($word,)+]))
                    .into()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}
    };
}
pub(crate) use words;

words! {
    /// A family of names. Families do not see each other's names.
    Family {
        /// Locks.
        Lock = "lock",
        /// Operators' writes.
        Admin = "admin",
        /// Elections.
        Election = "election",
        /// Scheduled jobs.
        Job = "job",
        /// Holds.
        Hold = "hold",
        /// Quotas and their reservations.
        Quota = "quota",
    }
}

words! {
    /// How a lease or a wait ended.
    Reason {
        /// By its owner's release.
        Released = "released",
        /// The TTL passed without a renewal.
        Expired = "expired",
        /// `maxHold` was used up.
        MaxHold = "maxHold",
        /// By an operator.
        Forced = "forced",
        /// By the owner's abandon, or because nobody asked for it any more.
        Abandoned = "abandoned",
        /// Handed to a named successor (elections).
        HandedOff = "handedOff",
        /// No such lease is remembered.
        Unknown = "unknown",
        /// Of a run: by its own account.
        Finished = "finished",
        /// Of a hold: another took its place, as asked for.
        Replaced = "replaced",
        /// Of a reservation: all of it that was wanted is used.
        Committed = "committed",
        /// Of a reservation: it has not ended, an operator has to settle it.
        Quarantined = "quarantined",
        /// Of a wait: its own deadline passed.
        TimedOut = "timedOut",
        /// Of a wait: cleared by a restore from a backup.
        Restored = "restored",
        /// Of a wait: another region decides about the namespace since then.
        HomeMoved = "homeMoved",
    }
}

words! {
    /// What a request was when it was abandoned.
    AbandonedWas {
        /// Not seen yet: a copy that arrives later is refused.
        Unseen = "unseen",
        /// In the queue.
        Waiting = "waiting",
        /// Holding.
        Granted = "granted",
        /// Granted once and ended since.
        Ended = "ended",
        /// Refused before.
        Refused = "refused",
        /// A write that was done, and stays.
        Done = "done",
    }
}

/// Whether the protected resource checks the fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Fencing {
    /// The resource refuses lower tokens.
    Enforced,
    /// Nobody checks: a zombie's late write can get through.
    BestEffort,
}
