//! Turns a batch into what a writer binds, on the thread of whoever commits it.

use wharf_domain::{ArtifactOp, LedgerOp, RunSummary};
use wharf_vocab::{CommitNo, Epoch, Micro, RunKey, ShardId, StreamId, Timestamp, ToolId};

use crate::{Append, Batch, Body, Claim, Require, StoreError, StoreErrorKind, wall_ms};

/// About how much a record of a file and its places in three indexes take.
const ARTIFACT_BYTES: usize = 512;

/// What a row of the journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Entries, which recovery reads.
    Entries,
    /// Progress, which recovery does not read.
    Progress,
}

/// A batch whose parts are bytes already.
#[derive(Debug)]
pub struct Prepared {
    /// The shard whose streams are written.
    pub shard: ShardId,
    /// The epoch of the lease it is written under.
    pub epoch: Epoch,
    /// Its number within the shard.
    pub no: CommitNo,
    /// When it was decided.
    pub at: Timestamp,
    /// What is appended, in order.
    pub appends: Vec<PreparedAppend>,
    /// Names that must not be taken yet.
    pub claims: Vec<Claim>,
    /// What must be so of files.
    pub requires: Vec<Require>,
    /// Money to move.
    pub ledger: Vec<LedgerOp>,
    /// The records' JSON.
    pub audit: Vec<String>,
    /// What becomes of the index of files.
    pub artifacts: Vec<ArtifactOp>,
    /// About how much the writer has to write.
    pub bytes: usize,
}

/// An append whose body is bytes already.
#[derive(Debug)]
pub struct PreparedAppend {
    /// The stream.
    pub stream: StreamId,
    /// The stream's name among those of its kind.
    pub key: String,
    /// The number of its last entry; 0 makes the stream.
    pub expected: u64,
    /// What is appended.
    pub class: Class,
    /// How many sequence numbers it takes.
    pub len: u64,
    /// What is appended, as bytes.
    pub body: Vec<u8>,
    /// Whether less is kept of earlier entries from now on.
    pub replaces: bool,
    /// Whether recovery must load the stream afterwards.
    pub open: bool,
    /// For a run: what lists show.
    pub run: Option<PreparedRun>,
    /// The run with whose end its values go.
    pub sealed_with: Option<RunKey>,
}

/// What lists and sums need to know of a run.
#[derive(Debug)]
pub struct PreparedRun {
    /// Its tool.
    pub tool: ToolId,
    /// Its status.
    pub status: &'static str,
    /// What lists show, as JSON.
    pub summary: String,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// What it has cost so far.
    pub cost_micro: Micro,
    /// How long it took, if it is over.
    pub wall_ms: u64,
    /// Whose list it stands in, if a client called for it.
    pub caller: Option<String>,
    /// Who called for it.
    pub called_by: Option<String>,
    /// The run that started it.
    pub parent: Option<String>,
    /// What it is part of.
    pub correlation: Option<String>,
    /// Whether it cost more than was held for it.
    pub over_hold: bool,
    /// Why it did not succeed: a code, and what was said in small letters.
    pub error: Option<(String, String)>,
}

impl Prepared {
    /// Turns a batch into bytes; how the body of an append is written is the store's to say.
    pub fn of(batch: &Batch, encode: fn(&Body) -> Vec<u8>) -> Result<Self, StoreError> {
        let json = |record| serde_json::to_string(record).map_err(|error| unwritable(&error));
        let audit: Vec<String> = batch.audit.iter().map(json).collect::<Result<_, _>>()?;
        let appends = batch.appends.iter().map(|append| prepare(append, encode));
        let appends: Vec<_> = appends.collect::<Result<_, _>>()?;
        let bytes = audit.iter().map(String::len).sum::<usize>()
            + appends.iter().map(PreparedAppend::bytes).sum::<usize>()
            + (batch.artifacts.len() + batch.requires.len()) * ARTIFACT_BYTES;
        Ok(Self {
            shard: batch.shard,
            epoch: batch.epoch,
            no: batch.no,
            at: batch.at,
            appends,
            claims: batch.claims.clone(),
            requires: batch.requires.clone(),
            ledger: batch.ledger.clone(),
            audit,
            artifacts: batch.artifacts.clone(),
            bytes,
        })
    }
}

impl PreparedRun {
    /// What lists and sums need, taken from what lists show.
    pub fn of(run: &RunSummary) -> Result<Self, StoreError> {
        Ok(Self {
            tool: run.tool.clone(),
            status: run.status.as_str(),
            summary: serde_json::to_string(run).map_err(|error| unwritable(&error))?,
            created_at: run.created_at,
            cost_micro: run.cost_micro,
            wall_ms: wall_ms(run),
            caller: run.grant.as_ref().map(ToString::to_string),
            called_by: run.caller.as_ref().map(ToString::to_string),
            parent: run.parent.as_ref().map(ToString::to_string),
            correlation: run.correlation_id.clone(),
            over_hold: run.over_hold,
            error: run
                .error
                .as_ref()
                .map(|error| (error.code.as_str().to_owned(), error.message.to_ascii_lowercase())),
        })
    }
}

impl PreparedAppend {
    fn bytes(&self) -> usize {
        self.body.len() + self.run.as_ref().map_or(0, |run| run.summary.len())
    }
}

fn prepare(append: &Append, encode: fn(&Body) -> Vec<u8>) -> Result<PreparedAppend, StoreError> {
    let class = match &append.body {
        Body::Entries(_) => Class::Entries,
        Body::Progress(_) => Class::Progress,
    };
    Ok(PreparedAppend {
        key: append.stream.key(),
        stream: append.stream.clone(),
        expected: append.expected.0,
        class,
        len: append.body.len() as u64,
        body: encode(&append.body),
        replaces: append.body.replaces_earlier(),
        open: append.head.open,
        run: append.head.run.as_ref().map(PreparedRun::of).transpose()?,
        sealed_with: append.head.sealed_with.clone(),
    })
}

fn unwritable(error: &serde_json::Error) -> StoreError {
    StoreError {
        kind: StoreErrorKind::Unavailable,
        message: format!("failed to write a value as JSON: {error}"),
    }
}
