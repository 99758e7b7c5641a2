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
/// What inputs of a run that is written down may take in memory to stay there while it is open;
/// larger ones are read from the store when they are needed.
pub const RUN_INPUTS_KEPT_BYTES_MAX: usize = 1024;
/// Tools that one provider offers, with their schemas, as JSON text.
pub const OFFER_BYTES_MAX: usize = 1024 * 1024;
/// What the tools that a provider offers, and the definitions that were taken on before and are
/// not what it offers now, may take in memory together.
pub const OFFERS_KEPT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How often a provider's tools may change in a short time.
pub const OFFERS_AT_ONCE_MAX: u64 = 32;
/// After how long they may change once more.
pub const OFFER_EVERY_MS: u64 = 5_000;
/// Largest JSON Schema of a tool.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// What a socket may hold for its peer beyond the largest message that is sent over it: pongs, and
/// small messages that are written together.
pub const SOCKET_SPARE_BYTES: usize = 256 * 1024;
/// What a socket reads at once.
pub const SOCKET_READ_BYTES: usize = 16 * 1024;
/// Pings that a peer may send in [`SOCKET_PINGS_MS`]; one that sends more is ended.
pub const SOCKET_PINGS_MAX: u32 = 64;
/// Pings that a peer may send before it has said what it wants.
pub const SOCKET_PINGS_FIRST_MAX: u32 = 8;
/// The time in which pings are counted.
pub const SOCKET_PINGS_MS: u64 = 10_000;

/// Progress one run may write.
pub const RUN_PROGRESS_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Progress chunks one run may write.
pub const RUN_PROGRESS_CHUNKS_MAX: u64 = 100_000;
/// Progress of all runs of one shard that may wait for a commit.
pub const SHARD_PROGRESS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What everything that is open may take in memory, unless the owner says otherwise: runs, their
/// asks, attempts with their inputs, and histories of runs that no store has.
pub const HELD_BYTES_MAX: u64 = 96 * 1024 * 1024;
/// The least that an owner can say instead.
pub const HELD_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// What runs of one caller may take of it, as a fraction: a half.
pub const HELD_PER_CALLER: u64 = 2;
/// What runs of one provider may take of it, as a fraction: a half.
pub const HELD_PER_PROVIDER: u64 = 2;
/// What one run and all that it starts may take of it, as a fraction: a quarter.
pub const HELD_PER_FAMILY: u64 = 4;
/// What one run and all that it starts may make the journal keep.
pub const FAMILY_JOURNAL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// What may wait for the engine to take it; beyond it, senders wait.
pub const MESSAGES_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What may be on its way to the store; beyond it, nothing more is taken.
pub const COMMITS_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Progress of all runs that may wait for a commit; beyond it, nothing more is taken.
pub const PROGRESS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Finished runs of durability `memory` that are kept to be looked at, with all they wrote.
pub const MEMORY_RUNS_KEPT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Runs that are over and whose values are not written down: what they gave is kept in memory for
/// so long, for whoever asks again or comes back.
pub const VALUES_HELD_MS: u64 = 5 * 60 * 1000;
/// How much of that is kept at most; the oldest goes first.
pub const VALUES_HELD_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Largest commit that watchers are sent as it is; larger ones they read from the store.
pub const WATCH_BATCH_BYTES_MAX: u64 = 16 * 1024;
/// Inputs that may wait for one run's commit; beyond it the sender is told to wait.
pub const RUN_INPUTS_WAITING_MAX: usize = 1024;
/// Runs that one shard keeps open at once.
pub const SHARD_RUNS_OPEN_MAX: usize = 16_384;
/// Asks one run may have open at once.
pub const RUN_ASKS_OPEN_MAX: usize = 32;
/// Asks one run may raise in its whole life.
pub const RUN_ASKS_MAX: usize = 256;
/// What an answer to a question may take in memory.
pub const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// What the notes of one attempt may take in memory together.
pub const ATTEMPT_NOTES_BYTES_MAX: u64 = 256 * 1024;
/// Children one run may start.
pub const RUN_CHILDREN_MAX: usize = 1024;
/// Depth of child runs.
pub const RUN_DEPTH_MAX: u32 = 8;
/// Attempts of one run.
pub const ATTEMPTS_MAX: u32 = 5;

/// What one report of cost may say, as a multiple of what was held; more is cut down to it.
pub const COST_REPORT_MULTIPLE_MAX: u64 = 1_000;
/// What one report of cost may always say, however little was held: 100 dollars.
pub const COST_REPORT_MICRO_MIN: u64 = 100_000_000;
/// Definitions of one tool whose highest cost is remembered; beyond it the oldest is forgotten.
pub const PRICES_PER_TOOL_MAX: usize = 8;
/// Runs that may wait in line for room at one provider; beyond it none is accepted.
pub const PROVIDER_RUNS_IN_LINE_MAX: usize = 32_768;
/// Runs of one caller in one world among them.
pub const CALLER_RUNS_IN_LINE_MAX: usize = 16_384;

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
/// How long a seat is waited for before others are asked.
pub const SEAT_DEADLINE_MS: u64 = 5 * 60 * 1000;
/// How long a shard waits before it offers the store a batch again that the store could not take.
pub const COMMIT_RETRY_MS: u64 = 250;

/// Life of a lease on a shard.
pub const LEASE_MS: u64 = 30_000;
/// How long a core acts under its leases, counted from before it asked for them to be prolonged:
/// less than they last, so that it has stopped before anybody else may begin.
pub const LEASE_SAFE_MS: u64 = 25_000;
/// How long a core waits before it tries again to prolong its leases.
pub const LEASE_RETRY_MS: u64 = 1_000;
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

/// Longest path within a world.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Longest key of an object: a world's name and a path together, as S3 has it.
pub const OBJECT_KEY_BYTES_MAX: usize = 1_024;
/// Longest segment of a path.
pub const PATH_SEGMENT_BYTES_MAX: usize = 255;
/// Rules about approvals that one world may have.
pub const WORLD_RULES_MAX: usize = 100;
/// References that one run may have among its inputs, and as many among its outputs.
pub const RUN_REFERENCES_MAX: usize = 256;
/// Runs that are looked at along a chain of runs that continue each other.
pub const CONTINUES_DEPTH_MAX: usize = 1_024;
/// Least time that a presigned address is good for, unless it is one for reading that only its
/// time can end.
pub const PRESIGN_S_MIN: u64 = 3_600;
/// What a presigned address is good for beyond the end of its attempt.
pub const PRESIGN_SLACK_S: u64 = 300;
/// Smallest part of an upload, except the last.
pub const UPLOAD_PART_BYTES_MIN: u64 = 5 * 1024 * 1024;
/// Largest part of an upload.
pub const UPLOAD_PART_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Parts of one upload.
pub const UPLOAD_PARTS_MAX: u32 = 10_000;
/// Largest file that is taken in one piece.
pub const FILE_BYTES_MAX: u64 = 5 * 1024 * 1024 * 1024 * 1024;
/// How long an upload may stay unfinished, and a replaced version be kept, unless a world says.
pub const SWEEP_AFTER_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// How long a launched process may take from being asked for to being started.
pub const LAUNCH_START_MS: u64 = 10_000;
/// How long a process that is told to stop may take before it is killed.
pub const STOP_GRACE_MS: u64 = 5_000;
/// How long the killing of everything below a launch may take before it is given up.
pub const SWEEP_MS: u64 = 5_000;
/// Largest description of a launch, environment and arguments included.
pub const LAUNCH_ORDER_BYTES_MAX: usize = 2 * 1024 * 1024;
/// First pause before a crashed provider is started again; it doubles with each crash.
pub const RESTART_PAUSE_MS: u64 = 1_000;
/// Longest pause before a crashed provider is started again.
pub const RESTART_PAUSE_MAX_MS: u64 = 60_000;
/// How far chance may lengthen or shorten a pause before a restart.
pub const RESTART_JITTER_PERCENT: u64 = 20;
/// How long a provider must have run for its earlier crashes to be forgotten.
pub const RESTART_STABLE_MS: u64 = 10 * 60 * 1000;
/// Crashes within [`RESTART_WINDOW_MS`] after which a provider is not started again.
pub const RESTART_CRASHES_MAX: usize = 5;
/// The time in which crashes are counted.
pub const RESTART_WINDOW_MS: u64 = 10 * 60 * 1000;

/// Longest line of a launch's log; the rest of a longer one is dropped.
pub const LOG_LINE_BYTES_MAX: usize = 8 * 1024;
/// Largest log of one launch, both of its files together.
pub const LOG_BYTES_MAX: u64 = 5_000_000;
/// Last lines of a launch's log that are kept in memory.
pub const LOG_LINES_KEPT_MAX: usize = 500;
/// Last lines of a launch's log that are shown when the caller does not say.
pub const LOG_LINES_SHOWN_DEFAULT: usize = 200;
/// Most lines of a launch's log that are shown at once.
pub const LOG_LINES_SHOWN_MAX: usize = 10_000;
/// Memory that the last lines of one launch's log may take.
pub const LOG_MEMORY_BYTES_MAX: usize = 1024 * 1024;
/// Output of one launch that is taken per second; a faster writer is held up by its pipe.
pub const LOG_BYTES_PER_SECOND_MAX: u64 = 8 * 1024 * 1024;

/// Most days that something is kept which could go: about a hundred years.
pub const RETENTION_DAYS_MAX: u32 = 36_500;
/// Tools that metrics name; all others count together.
pub const METRIC_TOOLS_MAX: usize = 100;
/// Worlds that metrics name; all others count together.
pub const METRIC_WORLDS_MAX: usize = 50;
/// Providers that metrics name; all others count together.
pub const METRIC_PROVIDERS_MAX: usize = 100;

/// Worlds that are there at once.
pub const WORLDS_MAX: usize = 65_536;
/// Worlds made with one token and those made from it.
pub const GRANT_WORLDS_MAX: usize = 4_096;
/// Tokens that are good at once.
pub const TOKENS_MAX: usize = 65_536;
/// Tokens made with one token and those made from it.
pub const GRANT_TOKENS_MAX: usize = 4_096;
/// Triggers that are there at once.
pub const TRIGGERS_MAX: usize = 4_096;
/// Triggers made with one token and those made from it.
pub const GRANT_TRIGGERS_MAX: usize = 1_024;
/// Receivers of notifications that are there at once.
pub const RECEIVERS_MAX: usize = 64;
/// Notifications that one receiver is owed at once; further ones are given up.
pub const NOTIFICATIONS_OWED_MAX: usize = 500;
/// How long a delivery of a hook is known, so that one that comes again gets the same run.
pub const DELIVERY_KNOWN_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Triggers that may stand behind a run; what would be deeper starts nothing.
pub const TRIGGER_DEPTH_MAX: u32 = 16;
/// Runs that one trigger starts within a minute because of files and runs; then it is paused.
pub const TRIGGER_FIRINGS_A_MINUTE_MAX: usize = 60;
/// Runs that a trigger owes; then it is paused.
pub const TRIGGER_FIRINGS_OWED_MAX: usize = 1_000;
/// Schedules that are there at once.
pub const SCHEDULES_MAX: usize = 65_536;
/// Schedules made with one token and those made from it.
pub const GRANT_SCHEDULES_MAX: usize = 16_384;
/// Browsers that are signed in at the console at once.
pub const CONSOLE_SESSIONS_MAX: usize = 1_024;
/// Browsers that are signed in with one token; another one ends the one that is used the least.
pub const GRANT_CONSOLE_SESSIONS_MAX: usize = 16;
/// Seats that one token and those made from it have, or had within the last minute.
pub const GRANT_SEATS_MAX: usize = 256;
/// Names that operatives of one token and those made from it serve.
pub const GRANT_OPERATIVES_MAX: usize = 128;
/// How often it is looked whether the token of an open connection is still good.
pub const RECHECK_MS: u64 = 1_000;

/// Longest name of a flow.
pub const FLOW_NAME_BYTES_MAX: usize = 64;
/// Largest document of a flow, as JSON text.
pub const FLOW_BYTES_MAX: usize = 1024 * 1024;
/// Steps of one document.
pub const FLOW_STEPS_MAX: usize = 1_000;
/// Versions of one flow.
pub const FLOW_VERSIONS_MAX: usize = 256;
/// Flows that are there at once.
pub const FLOWS_MAX: usize = 4_096;
/// What all documents of flows may take together, as JSON text.
pub const FLOWS_KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How deep steps may stand in each other.
pub const FLOW_DEPTH_MAX: usize = 32;
/// Deepest nesting of the JSON of a document.
pub const FLOW_JSON_DEPTH_MAX: usize = 120;
/// Steps that one run of a flow may do.
pub const FLOW_RUN_STEPS_MAX: u64 = 10_000;
/// Most steps that a run does at last once it is to stop, beside those that undo something.
pub const FLOW_LAST_STEPS_MAX: u64 = 1_000;
/// What a run takes over from another one, when it is run again from a step.
pub const FLOW_CITED_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// What a flow keeps in memory of what a call gave; more is found by the call's run.
pub const FLOW_VALUE_KEPT_BYTES_MAX: u64 = 2 * 1024;
/// What a run of a flow keeps of its steps together.
pub const FLOW_STATE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// What the results may take together that one step's expressions look at.
pub const FLOW_RESULTS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// After so many calls a flow writes down where it stands.
pub const FLOW_FOLD_STEPS: u32 = 256;
/// A flow is weighed anew after about so much was written about it.
pub const FLOW_WEIGH_BYTES: u64 = 256 * 1024;
/// Most messages that a run takes in all.
pub const FLOW_SIGNALS_MAX: usize = 10_000;
/// Items that one step may go through.
pub const FLOW_ITEMS_MAX: usize = 10_000;
/// Items that are worked on at once when a step does not say.
pub const FLOW_CONCURRENCY_DEFAULT: u32 = 16;
/// Items that are worked on at once at most.
pub const FLOW_CONCURRENCY_MAX: u32 = 256;
/// Asks that one run of a flow may raise in its whole life.
pub const FLOW_ASKS_MAX: usize = 1_000;
/// What the variables of one run of a flow may take, as JSON text.
pub const FLOW_VARS_BYTES_MAX: usize = 256 * 1024;
/// Times that one call may be tried.
pub const FLOW_TRIES_MAX: u32 = 20;
/// Longest life of a run of a flow, and longest time that one step may wait: a year.
pub const FLOW_DEADLINE_MAX_MS: u64 = 366 * 24 * 60 * 60 * 1000;
/// How long a flow that is canceled may work on when its document does not say.
pub const FLOW_CLOSING_DEFAULT_MS: u64 = 5 * 60 * 1000;
/// How long it may work on at most.
pub const FLOW_CLOSING_MAX_MS: u64 = 60 * 60 * 1000;
/// Operations that evaluating one step's expressions may take.
pub const EXPRESSION_OPERATIONS_MAX: u64 = 100_000;
/// Largest result of one step's expressions, as JSON text.
pub const EXPRESSION_RESULT_BYTES_MAX: usize = 1024 * 1024;
/// Longest text of one expression.
pub const EXPRESSION_BYTES_MAX: usize = 16 * 1024;
/// Longest name of a step of durable code.
pub const STEP_NAME_BYTES_MAX: usize = 128;
/// Steps and kept values that one durable run may have.
pub const DURABLE_STEPS_MAX: usize = 10_000;
/// What the kept values of one durable run may take in memory.
pub const DURABLE_VALUES_BYTES_MAX: u64 = 1024 * 1024;
/// Attempts of a durable run in a row that may fail without a newly finished step.
pub const DURABLE_FAILURES_MAX: u32 = 5;
/// Signals that may wait for one run.
pub const RUN_SIGNALS_WAITING_MAX: usize = 100;
/// Largest value of a signal, as JSON text.
pub const SIGNAL_BYTES_MAX: usize = 64 * 1024;
