//! Every limit of the core in one place. Names carry their unit last.

/// Slices of all streams.
pub const SHARDS: u16 = 256;
/// Longest id.
pub const ID_BYTES_MAX: usize = 128;

/// Largest request body.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Deepest nesting of JSON that is read.
pub const JSON_DEPTH_MAX: usize = 64;
/// Largest inputs or outputs of one run, as JSON text.
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Largest JSON Schema of a tool.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// Progress one run may write.
pub const RUN_PROGRESS_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Progress chunks one run may write.
pub const RUN_PROGRESS_CHUNKS_MAX: u64 = 100_000;
/// Progress of all runs of one shard that may wait for a commit.
pub const SHARD_PROGRESS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Inputs that may wait for one run's commit; beyond it the sender is told to wait.
pub const RUN_INPUTS_WAITING_MAX: usize = 1024;
/// Runs that one shard keeps open at once.
pub const SHARD_RUNS_OPEN_MAX: usize = 16_384;
/// Asks one run may have open at once.
pub const RUN_ASKS_OPEN_MAX: usize = 32;
/// Asks one run may raise in its whole life.
pub const RUN_ASKS_MAX: usize = 256;
/// Children one run may start.
pub const RUN_CHILDREN_MAX: usize = 1024;
/// Depth of child runs.
pub const RUN_DEPTH_MAX: u32 = 8;
/// Attempts of one run.
pub const ATTEMPTS_MAX: u32 = 5;

/// How long a run may wait for a provider that is starting or away.
pub const PROVIDER_WAIT_MS: u64 = 30_000;
/// Default running time of an attempt.
pub const TIMEOUT_DEFAULT_MS: u64 = 60_000;
/// Longest running time of an attempt.
pub const TIMEOUT_MAX_MS: u64 = 24 * 60 * 60 * 1000;
/// How long a canceled attempt may take to end by itself.
pub const CANCEL_GRACE_MS: u64 = 5_000;
/// First pause before a retry; it doubles with each.
pub const RETRY_BACKOFF_MS: u64 = 200;
/// Longest pause before a retry.
pub const RETRY_BACKOFF_MAX_MS: u64 = 10_000;
/// How long an approval may stay open.
pub const APPROVAL_DEADLINE_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// How long a question may stay open unless it says otherwise.
pub const QUESTION_DEADLINE_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// How long a shard waits before it offers the store a batch again that the store could not take.
pub const COMMIT_RETRY_MS: u64 = 250;

/// Life of a lease on a shard.
pub const LEASE_MS: u64 = 30_000;
/// Events a watcher may be behind before it reads from the store again.
pub const WATCH_QUEUE_MAX: usize = 256;
/// Finished runs of durability `memory` that are kept to be looked at.
pub const MEMORY_RUNS_KEPT_MAX: usize = 4_096;
/// Items on one page of a list.
pub const PAGE_ITEMS_MAX: usize = 200;
/// Items on one page of a list when the caller does not say.
pub const PAGE_ITEMS_DEFAULT: usize = 50;
/// Longest reason a person may give.
pub const REASON_BYTES_MAX: usize = 2_000;
/// Longest message of an error.
pub const MESSAGE_BYTES_MAX: usize = 4_000;
