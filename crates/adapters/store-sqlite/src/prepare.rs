//! Turns a batch into what the writer binds, on the thread of whoever commits it.

use wharf_domain::{ArtifactOp, LedgerOp, RunSummary};
use wharf_ports::{Append, Batch, Body, Claim, StoreError, wall_ms};
use wharf_vocab::{CommitNo, Epoch, RunKey, ShardId, StreamId, Timestamp, ToolId};

use crate::error::unavailable;
use crate::number::{Class, clamp};

/// About how much a record of a file and its places in three indexes take.
const ARTIFACT_BYTES: usize = 512;

/// A batch whose parts are bytes already.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) shard: ShardId,
    pub(crate) epoch: Epoch,
    pub(crate) no: CommitNo,
    pub(crate) at: Timestamp,
    pub(crate) appends: Vec<PreparedAppend>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) ledger: Vec<LedgerOp>,
    /// The records' JSON.
    pub(crate) audit: Vec<String>,
    pub(crate) artifacts: Vec<ArtifactOp>,
    /// About how much the writer has to write.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
pub(crate) struct PreparedAppend {
    pub(crate) stream: StreamId,
    pub(crate) key: String,
    pub(crate) expected: u64,
    pub(crate) class: Class,
    /// How many sequence numbers it takes.
    pub(crate) len: u64,
    pub(crate) body: Vec<u8>,
    /// Whether less is kept of earlier entries from now on.
    pub(crate) replaces: bool,
    pub(crate) open: bool,
    pub(crate) run: Option<PreparedRun>,
    /// The run with whose end its values go.
    pub(crate) sealed_with: Option<RunKey>,
}

#[derive(Debug)]
pub(crate) struct PreparedRun {
    pub(crate) tool: ToolId,
    pub(crate) status: &'static str,
    pub(crate) summary: String,
    /// What sums are made of, each kept in SQLite's signed number.
    pub(crate) created_at: i64,
    pub(crate) cost_micro: i64,
    pub(crate) wall_ms: i64,
    /// Whose list it stands in, if a client called for it.
    pub(crate) caller: Option<String>,
    pub(crate) called_by: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) correlation: Option<String>,
    pub(crate) over_hold: bool,
}

impl Prepared {
    pub(crate) fn of(batch: &Batch) -> Result<Self, StoreError> {
        let audit: Vec<String> = batch.audit.iter().map(to_json).collect::<Result<_, _>>()?;
        let appends: Vec<_> = batch.appends.iter().map(prepare).collect::<Result<_, _>>()?;
        let bytes = audit.iter().map(String::len).sum::<usize>()
            + appends.iter().map(PreparedAppend::bytes).sum::<usize>()
            + batch.artifacts.len() * ARTIFACT_BYTES;
        Ok(Self {
            shard: batch.shard,
            epoch: batch.epoch,
            no: batch.no,
            at: batch.at,
            appends,
            claims: batch.claims.clone(),
            ledger: batch.ledger.clone(),
            audit,
            artifacts: batch.artifacts.clone(),
            bytes,
        })
    }
}

impl PreparedAppend {
    fn bytes(&self) -> usize {
        self.body.len() + self.run.as_ref().map_or(0, |run| run.summary.len())
    }
}

fn prepare(append: &Append) -> Result<PreparedAppend, StoreError> {
    let (class, body) = match &append.body {
        Body::Entries(entries) => (Class::Entries, wharf_journal::encode(entries)),
        Body::Progress(pieces) => (Class::Progress, wharf_journal::encode_progress(pieces)),
    };
    Ok(PreparedAppend {
        key: append.stream.key(),
        stream: append.stream.clone(),
        expected: append.expected.0,
        class,
        len: append.body.len() as u64,
        body,
        replaces: append.body.replaces_earlier(),
        open: append.head.open,
        run: append.head.run.as_ref().map(prepare_run).transpose()?,
        sealed_with: append.head.sealed_with.clone(),
    })
}

fn prepare_run(run: &RunSummary) -> Result<PreparedRun, StoreError> {
    Ok(PreparedRun {
        tool: run.tool.clone(),
        status: run.status.as_str(),
        summary: to_json(run)?,
        created_at: clamp(run.created_at.0),
        cost_micro: run.cost_micro.cast_signed(),
        wall_ms: clamp(wall_ms(run)),
        caller: run.grant.as_ref().map(ToString::to_string),
        called_by: run.caller.as_ref().map(ToString::to_string),
        parent: run.parent.as_ref().map(ToString::to_string),
        correlation: run.correlation_id.clone(),
        over_hold: run.over_hold,
    })
}

fn to_json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| unavailable(format!("failed to write a value as JSON: {error}")))
}
