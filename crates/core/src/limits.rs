//! Every maximum of the service in one place (DESIGN.md section 13; docs/limits.md repeats them for users).
//!
//! A limit that a namespace may lower is the *ceiling* of its policy; see [`crate::policy`].

/// Namespace names: 1 to this many bytes of `a-z 0-9 . _ -`.
pub const NAMESPACE_BYTES_MAX: usize = 64;
/// Namespaces that one service keeps.
pub const NAMESPACES_MAX: usize = 10_000;
/// Resource names: 1 to this many bytes.
pub const RESOURCE_BYTES_MAX: usize = 256;
/// Request ids: shortest. Shorter ones are guessable, and whoever can guess one can abandon a grant.
pub const REQUEST_ID_BYTES_MIN: usize = 8;
/// Request ids: longest.
pub const REQUEST_ID_BYTES_MAX: usize = 64;
/// Owner names: 1 to this many bytes of UTF-8 without control characters.
pub const OWNER_BYTES_MAX: usize = 128;
/// Authenticated callers' names (empty: anonymous).
pub const CALLER_BYTES_MAX: usize = 128;
/// Reasons given for a forced release.
pub const REASON_BYTES_MAX: usize = 512;
/// Labels on one request.
pub const LABELS_MAX: usize = 16;
/// Bytes of one label's key.
pub const LABEL_KEY_BYTES_MAX: usize = 64;
/// Bytes of one label's value.
pub const LABEL_VALUE_BYTES_MAX: usize = 256;

/// What a leader proclaims.
pub const VALUE_BYTES_MAX: usize = 4_096;
/// A job's schedule in the words of cron.
pub const SCHEDULE_BYTES_MAX: usize = 256;
/// The name of a time zone.
pub const ZONE_BYTES_MAX: usize = 64;
/// A job's name: shorter than a resource's, for `name/slot` is one.
pub const JOB_BYTES_MAX: usize = 200;

/// Shortest lease that any policy may allow.
pub const TTL_MS_MIN: u64 = 1_000;
/// Longest lease that any policy may allow.
pub const TTL_MS_MAX: u64 = 3_600_000;
/// Lease when neither the request nor the namespace names one.
pub const TTL_MS_DEFAULT: u64 = 30_000;
/// Shortest lease of a namespace that says nothing, where a takeover can take up to 3 s.
pub const TTL_MS_MIN_REPLICATED: u64 = 5_000;
/// Longest a request may wait in a queue.
pub const WAIT_TIMEOUT_MS_MAX: u64 = 600_000;
/// Longest `maxHold` that can be asked for or set.
pub const MAX_HOLD_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// Longest `lockDelay` of a namespace.
pub const LOCK_DELAY_MS_MAX: u64 = 60_000;
/// Waiters of one resource.
pub const WAITERS_PER_RESOURCE_MAX: usize = 10_000;
/// Waiters of one namespace, unless its policy says less.
pub const WAITERS_PER_NAMESPACE_MAX: u64 = 1_000_000;
/// Active leases of one namespace, unless its policy says less.
pub const LEASES_PER_NAMESPACE_MAX: u64 = 1_000_000;
/// Requests per second of one namespace that can be set.
pub const REQUESTS_PER_SECOND_MAX: u64 = 1_000_000;
/// Resources in one AcquireAll.
pub const ACQUIRE_ALL_RESOURCES_MAX: usize = 64;
/// Leases in one RenewMany.
pub const RENEW_MANY_LEASES_MAX: usize = 1_000;

/// Resources in one hold, and holds that one may replace.
pub const HOLD_RESOURCES_MAX: usize = 64;
/// Longest time for which the payment of a hold may take, once it has begun.
pub const HOLD_BEGUN_MS_MAX: u64 = 3_600_000;
/// Longest `holdCooldown` of a namespace.
pub const HOLD_COOLDOWN_MS_MAX: u64 = 24 * 3_600_000;
/// Requests of one owner that are answered with the hold they have already. Each is remembered as long as the hold.
pub const HOLD_REPEATS_MAX: usize = 100;

/// Jobs of one namespace.
pub const JOBS_PER_NAMESPACE_MAX: usize = 10_000;
/// Slots of one job that may still run (asked for, claimed, to be tried again).
pub const RUNS_OPEN_MAX: usize = 1_000;
/// Slots of one job that will not run again and are still listed; older ones are below its watermark.
pub const RUNS_CLOSED_KEPT: usize = 100;
/// How often a run may be tried again.
pub const RETRIES_MAX: u32 = 100;
/// Longest time that one attempt may take.
pub const MAX_RUN_MS_MAX: u64 = 24 * 3_600_000;
/// So far ahead of the leader's wall clock may a slot be claimed.
pub const SLOT_AHEAD_MS_MAX: u64 = 5_000;

/// Names of quotas: 1 to this many bytes.
pub const QUOTA_BYTES_MAX: usize = 64;
/// Bytes of a quota's path: shorter than a resource's name, for `quota/path` is one.
pub const QUOTA_PATH_BYTES_MAX: usize = 190;
/// Segments of a quota's path.
pub const QUOTA_DEPTH_MAX: usize = 8;
/// Quotas of one namespace.
pub const QUOTAS_PER_NAMESPACE_MAX: usize = 1_000;
/// Nodes of one quota's tree.
pub const QUOTA_NODES_MAX: usize = 100_000;
/// Largest amount, limit plus burst, and use of a whole tree: sums of two still are plain JSON numbers.
pub const QUOTA_AMOUNT_MAX: u64 = (1 << 52) - 1;
/// Largest weight of a node.
pub const QUOTA_WEIGHT_MAX: u64 = 1_000_000;
/// Items of one reservation.
pub const QUOTA_ITEMS_MAX: usize = 16;
/// Reservations of one namespace: those that live, and the expired ones that may still be committed.
pub const RESERVATIONS_PER_NAMESPACE_MAX: u64 = 2_000_000;
/// Waiting reservations of one quota.
pub const QUOTA_WAITERS_MAX: usize = 10_000;
/// Owners with committed use or a reservation, counted at each node, in one namespace.
pub const QUOTA_ACCOUNTS_MAX: u64 = 2_000_000;
/// Bound of a reservation's life over all extensions, when it names none.
pub const RESERVATION_LIFETIME_MS_DEFAULT: u64 = 24 * 3_600_000;
/// The longest that it can name.
pub const RESERVATION_LIFETIME_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// Longest step of a reservation's deadline while its outside work is under way.
pub const IN_FLIGHT_MS_MAX: u64 = 3_600_000;
/// So long after its end can an expired reservation be committed late.
pub const LATE_WINDOW_MS: u64 = 3_600_000;
/// So long does a waiting reservation queue by share before it goes ahead of all, unless its quota says otherwise.
pub const QUOTA_PATIENCE_MS_DEFAULT: u64 = 30_000;
/// The longest patience that a quota can have.
pub const QUOTA_PATIENCE_MS_MAX: u64 = 600_000;
/// Commits of one owner at one node that are kept one by one; older ones are folded into a sum.
pub const COMMITS_KEPT_MAX: usize = 32;
/// Waiting reservations granted at one look; the others follow at the next.
pub const QUOTA_GRANTS_MAX: usize = 1_000;
/// Those who report the use of one node.
pub const QUOTA_REPORTERS_MAX: usize = 8;
/// Reports of use that are older than this are refused.
pub const REPORT_AGE_MS_MAX: u64 = 3_600_000;

/// Shares of one namespace's quotas that other regions hold.
pub const QUOTA_SHARES_MAX: usize = 1_000;

/// Reply memory: records of one namespace.
pub const REPLY_RECORDS_MAX: u64 = 2_000_000;
/// Reply memory: how long refusals and grants released by their owner are remembered.
pub const REPLY_REFUSALS_MS_DEFAULT: u64 = 90_000;
/// Reply memory: how long other endings are remembered.
pub const REPLY_ENDINGS_MS_DEFAULT: u64 = 300_000;
/// Shortest reply memory that can be set. Below the 55 s for which a client repeats a request plus the 30 s of
/// [`BORN_AT_MS_MAX`], a repeat could be taken for a new request.
pub const REPLY_MS_MIN: u64 = 90_000;
/// Longest reply memory that can be set.
pub const REPLY_MS_MAX: u64 = 24 * 3_600_000;

/// A command is refused when its entry is stamped more than this after the command's `bornAt`.
pub const BORN_AT_MS_MAX: u64 = 30_000;
/// Most that one entry may add to cluster time.
pub const MAX_STEP_MS: u64 = 1_000;
/// Objects (leases, waits, lock delays, reservations) ended by the sweep of one entry.
pub const SWEEP_OBJECTS_MAX: usize = 1_000;
/// Reply records forgotten in one entry. Above [`BATCH_COMMANDS_MAX`], so that forgetting always keeps up.
pub const FORGET_RECORDS_MAX: usize = 4_096;

/// Commands in one entry.
pub const BATCH_COMMANDS_MAX: usize = 1_024;
/// Bytes of one entry's batch. etcd takes 1.5 MiB a request; a third of that leaves room and keeps p99 low.
pub const BATCH_BYTES_MAX: usize = 512 * 1_024;
/// Bytes of one entry: its batch, and what every entry has.
pub const ENTRY_BYTES_MAX: usize = BATCH_BYTES_MAX + 16 * 1_024;
/// Bytes of one encoded command.
pub const COMMAND_BYTES_MAX: usize = 128 * 1_024;
/// Calls of the ordinary kind queued for the next entries; beyond it they are refused as overload.
pub const INTAKE_ORDINARY_MAX: usize = 20_000;
/// Renewals queued: one RenewMany of every process of a large fleet.
pub const INTAKE_RENEWALS_MAX: usize = 20_000;
/// Releases and abandons queued. What was taken is never dropped, so in a long outage, with clients that repeat
/// theirs, only this bounds them; beyond it they are refused, and repeated later.
pub const INTAKE_ENDINGS_MAX: usize = 200_000;
/// Events that a node remembers for watchers who come back.
pub const EVENTS_REMEMBERED_MAX: usize = 200_000;

/// Bytes of an HTTP body.
pub const BODY_BYTES_MAX: usize = 1_024 * 1_024;
/// Bytes of all bodies that a door is reading, without what each connection has a buffer for.
pub const BODIES_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Rows in one page of a list.
pub const PAGE_ROWS_MAX: usize = 1_000;
/// Rows in one page of a list when the caller does not say.
pub const PAGE_ROWS_DEFAULT: usize = 100;
/// Rows looked at for one page: a filter that matches nothing must not stop the node.
pub const PAGE_EXAMINED_MAX: usize = 20_000;
/// Waiters shown for one resource.
pub const QUEUE_ROWS_MAX: usize = 1_000;

/// A restore leaves out so many numbers of objects: more than can have been created since its backup.
pub const RESTORED_OBJECTS_SKIPPED: u64 = 1 << 32;

/// Earliest wall clock a leader may have (2025-01-01), in microseconds since 1970.
pub const WALL_US_MIN: u64 = 1_735_689_600_000_000;
/// Latest wall clock a leader may have (2100-01-01), in microseconds since 1970.
pub const WALL_US_MAX: u64 = 4_102_444_800_000_000;
/// Tokens stay plain JSON numbers: below 2^53.
pub const TOKEN_MAX: u64 = (1 << 53) - 1;
/// So far ahead of the first leader's wall clock begin the tokens of a new log, and of a restored one.
pub const TOKEN_HEADROOM_US: u64 = 5 * 60 * 1_000_000;
