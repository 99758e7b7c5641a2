//! What a store holds, part by part, as it is copied into another store.
//!
//! One store reads the parts and the other writes them; neither knows how the other keeps rows.
//! Bytes that seals are over (records of the audit, heads of chains) pass unchanged.

use wharf_vocab::{RunKey, ShardId, StreamId, Timestamp};

use crate::Claim;
use crate::plan::Class;

/// Some of what a store holds.
#[derive(Debug)]
pub enum CopyPart {
    /// Streams with all that belongs to them, in the order they were made.
    Streams(Vec<StoredStream>),
    /// Names that stand for no stream that is there.
    Claims(Vec<Claim>),
    /// Accounts.
    Accounts(Vec<StoredAccount>),
    /// Money set aside.
    Holds(Vec<StoredHold>),
    /// What tools have cost, in the order it was learnt.
    Prices(Vec<StoredPrice>),
    /// Records of the audit, in their order.
    Records(Vec<StoredRecord>),
    /// Who wrote and read files, in order.
    Files(Vec<StoredFile>),
    /// Which runs use which files.
    Uses(Vec<StoredUse>),
    /// What removed runs have cost.
    Costs(Vec<StoredCost>),
    /// How far shards have come. It comes last.
    Shards(Vec<StoredShard>),
}

/// Reads a store part by part.
pub trait StoredParts {
    /// The next part, until there is none.
    fn next_part(&mut self) -> Result<Option<CopyPart>, crate::StoreError>;
}

/// A stream.
#[derive(Debug)]
pub struct StoredStream {
    /// Its name.
    pub stream: StreamId,
    /// Its place among all streams in the order they were made.
    pub position: u64,
    /// The number of its last entry or piece of progress.
    pub seq: u64,
    /// Whether recovery loads it.
    pub open: bool,
    /// For a run: what lists show, as JSON.
    pub summary: Option<String>,
    /// The run with whose end its values go.
    pub sealed_with: Option<RunKey>,
    /// Its rows: entries first, then progress, each in order.
    pub rows: Vec<StoredRow>,
    /// Names that were taken for it.
    pub claims: Vec<Claim>,
}

/// What one append brought.
#[derive(Debug)]
pub struct StoredRow {
    /// Entries or progress.
    pub class: Class,
    /// The number of its first entry.
    pub first: u64,
    /// The number of its last.
    pub last: u64,
    /// When it was decided.
    pub at: Timestamp,
    /// The commit that brought it.
    pub commit_no: u64,
    /// The entries or pieces, packed as the journal packs them.
    pub body: Vec<u8>,
}

/// An account.
#[derive(Debug)]
pub struct StoredAccount {
    /// Its name.
    pub id: String,
    /// The account above it.
    pub parent: Option<String>,
    /// The most that may be spent.
    pub limit: Option<u64>,
    /// What is set aside.
    pub held: u64,
    /// What was spent.
    pub spent: u64,
}

/// Money set aside for an attempt.
#[derive(Debug)]
pub struct StoredHold {
    /// Its name.
    pub id: String,
    /// The shard that took it.
    pub shard: ShardId,
    /// The account it was taken from.
    pub account: String,
    /// How much.
    pub amount: u64,
    /// What was reported as spent so far.
    pub reported: u64,
}

/// The most that a definition of a tool has cost.
#[derive(Debug)]
pub struct StoredPrice {
    /// The tool.
    pub tool: String,
    /// Its definition.
    pub hash: String,
    /// What it has cost.
    pub cost: u64,
}

/// A record of the audit with its seal.
#[derive(Debug)]
pub struct StoredRecord {
    /// Its place among all records.
    pub id: u64,
    /// Whose chain it is in.
    pub shard: ShardId,
    /// Its place in the chain.
    pub n: u64,
    /// When it happened.
    pub at: Timestamp,
    /// Its seal.
    pub mac: [u8; 32],
    /// What the seal is over.
    pub json: String,
}

/// Who wrote or read a file.
#[derive(Debug)]
pub struct StoredFile {
    /// Its place among all such records.
    pub position: u64,
    /// The world of the file.
    pub world: String,
    /// Its path.
    pub path: String,
    /// How large it was.
    pub bytes: u64,
    /// Its hash.
    pub b3: Option<String>,
    /// Its type.
    pub media_type: String,
    /// The run that wrote or read it.
    pub run: Option<String>,
    /// Under which output or input.
    pub key: Option<String>,
    /// Whether it was written or read.
    pub direction: String,
    /// When.
    pub at: u64,
    /// When it went.
    pub gone_at: Option<u64>,
    /// When it was last used.
    pub used_at: Option<u64>,
}

/// A file that an open run uses.
#[derive(Debug)]
pub struct StoredUse {
    /// The world of both.
    pub world: String,
    /// The file.
    pub path: String,
    /// The run.
    pub run: String,
}

/// What removed runs of one hour, world, tool and caller have cost.
#[derive(Debug)]
pub struct StoredCost {
    /// When they were accepted.
    pub hour: u64,
    /// Their world.
    pub world: String,
    /// Their tool.
    pub tool: String,
    /// Who called for them.
    pub caller: String,
    /// How many there were.
    pub runs: u64,
    /// How many of them failed.
    pub failed: u64,
    /// What they have cost together.
    pub cost: u128,
    /// How long they took together.
    pub wall_ms: u128,
}

/// How far a shard has come.
#[derive(Debug)]
pub struct StoredShard {
    /// The shard.
    pub shard: ShardId,
    /// The epoch of its last lease.
    pub epoch: u64,
    /// Its last commit.
    pub commit_no: u64,
    /// How long its chain of the audit is.
    pub audit_n: u64,
    /// The last seal of the chain.
    pub audit_mac: [u8; 32],
    /// The signature of the chain's head.
    pub audit_sig: [u8; 32],
}
