//! What the cases write with: a holder of all leases, and small entries and batches. Tests of a
//! single store can use it too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wharf_domain::scope::WorldPath;
use wharf_domain::{
    Account, Actor, Artifact, ArtifactOp, AskEntry, AskSpec, Audience, AuditEvent, AuditRecord,
    Caller, Entry, LedgerOp, Outcome, Progress, Resolution, RunEntry, RunSpec, RunSummary, run,
};
use wharf_vocab::limits::LEASE_MS;
use wharf_vocab::{
    AccountId, AskId, AskKind, AttemptId, CommitNo, Digest, Direction, Durability, Epoch, HoldId,
    Micro, Mode, NodeId, Object, RunId, RunKey, RunStatus, Seq, ShardId, StreamId, Timestamp,
    ToolId, UnknownCost, WorldId,
};

use super::Subject;
use wharf_ports::{Append, Batch, Body, Claim, CommitError, Refusal, Store, StreamHead};

/// A core that holds every shard of the store under test.
#[derive(Debug)]
pub struct Desk {
    /// The store under test.
    pub subject: Subject,
    epochs: BTreeMap<ShardId, Epoch>,
    no: AtomicU64,
}

impl Desk {
    /// Takes all leases of an empty store.
    pub async fn open(subject: Subject) -> Self {
        let shards = ShardId::all().collect();
        let leases = subject.store.acquire(node("core-a"), shards, LEASE_MS).await;
        let leases = leases.expect("the shards of an empty store are free");
        let epochs = leases.iter().map(|lease| (lease.shard, lease.epoch)).collect();
        Self { subject, epochs, no: AtomicU64::new(0) }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.subject.store
    }

    /// An empty batch of a shard, with the next number.
    pub fn batch(&self, shard: ShardId) -> Batch {
        let no = self.no.fetch_add(1, Ordering::Relaxed) + 1;
        Batch {
            shard,
            epoch: self.epochs[&shard],
            no: CommitNo(no),
            at: Timestamp(1_000 + no),
            appends: Vec::new(),
            claims: Vec::new(),
            requires: Vec::new(),
            ledger: Vec::new(),
            audit: Vec::new(),
            artifacts: Vec::new(),
        }
    }

    /// The batch that accepts a run and begins its first attempt.
    pub fn creates(&self, key: &RunKey) -> Batch {
        let mut batch = self.batch(key.shard());
        let entries = vec![created(key), started(1)];
        batch.appends.push(append(key, 0, entries, RunStatus::Running));
        batch
    }

    /// The batch that ends a run.
    pub fn ends(&self, key: &RunKey, expected: u64) -> Batch {
        let mut batch = self.batch(key.shard());
        batch.appends.push(append(key, expected, vec![ended()], RunStatus::Succeeded));
        batch
    }

    /// The batch that raises an ask.
    pub fn asks(&self, ask: &AskId) -> Batch {
        let mut batch = self.batch(ask.shard());
        batch.appends.push(Append {
            stream: StreamId::Ask(ask.clone()),
            expected: Seq(0),
            body: Body::Entries(vec![Entry::Ask(AskEntry::Raised(Box::new(question(ask))))]),
            head: StreamHead::new(true, None),
        });
        batch
    }

    /// The batch that ends an ask.
    pub fn resolves(&self, ask: &AskId) -> Batch {
        let mut batch = self.batch(ask.shard());
        let entry = AskEntry::Resolved { resolution: Resolution::Declined, by: Actor::CORE };
        batch.appends.push(Append {
            stream: StreamId::Ask(ask.clone()),
            expected: Seq(1),
            body: Body::Entries(vec![Entry::Ask(entry)]),
            head: StreamHead::new(false, None),
        });
        batch
    }

    /// A batch that only moves money.
    pub fn moves(&self, shard: u8, ledger: Vec<LedgerOp>) -> Batch {
        Batch { ledger, ..self.batch(ShardId(shard)) }
    }

    /// A batch that only tells of files.
    pub fn tells(&self, artifacts: Vec<ArtifactOp>) -> Batch {
        Batch { artifacts, ..self.batch(ShardId(0)) }
    }

    /// Commits batches and gives their answers.
    pub async fn commit(&self, batches: Vec<Batch>) -> Vec<Result<(), CommitError>> {
        let count = batches.len();
        let answers = self.store().commit(batches.into_iter().map(Arc::new).collect()).await;
        assert_eq!(answers.len(), count, "one answer per batch");
        answers
    }

    /// Commits a batch that must be taken.
    pub async fn put(&self, batch: Batch) {
        assert_eq!(self.commit(vec![batch]).await, [Ok(())]);
    }

    /// Commits a batch that must be refused.
    pub async fn refused(&self, batch: Batch) -> Refusal {
        match self.commit(vec![batch]).await.remove(0) {
            Err(CommitError::Refused(refusal)) => refusal,
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    /// Commits a list of runs that must be taken.
    pub async fn accept(&self, keys: &[RunKey]) {
        for key in keys {
            self.put(self.creates(key)).await;
        }
    }

    /// The last number of a run's stream, if there is one.
    pub async fn seq(&self, key: &RunKey) -> Option<u64> {
        let stored = self.store().load(key.stream()).await.expect("readable");
        stored.map(|stored| stored.seq.0)
    }

    /// An account that must be there.
    pub async fn account(&self, id: &str) -> Account {
        let found = self.store().account(account(id)).await.expect("readable");
        found.unwrap_or_else(|| panic!("there is no account {id}"))
    }
}

/// A node by name.
pub fn node(name: &str) -> NodeId {
    NodeId::new(name).expect("valid")
}

/// A run by world and name.
pub fn run_key(world: &str, run: &str) -> RunKey {
    RunKey { world: WorldId::new(world).expect("valid"), run: RunId::new(run).expect("valid") }
}

/// A run of the default world by name.
pub fn key(run: &str) -> RunKey {
    run_key("default", run)
}

/// A tool by name.
pub fn tool(name: &str) -> ToolId {
    ToolId::new(name).expect("valid")
}

/// An account by name.
pub fn account(id: &str) -> AccountId {
    AccountId::new(id).expect("valid")
}

/// A hold by name.
pub fn hold(id: &str) -> HoldId {
    HoldId::new(id).expect("valid")
}

/// The move that takes a hold.
pub fn holds(id: &str, on: &str, amount: Micro) -> LedgerOp {
    LedgerOp::Hold { hold: hold(id), account: account(on), amount }
}

/// The move that ends a hold.
pub fn settles(id: &str, spent: Micro) -> LedgerOp {
    LedgerOp::Settle { hold: hold(id), spent }
}

/// The move that makes an account.
pub fn opens(id: &str, parent: Option<&str>, limit: Option<Micro>) -> LedgerOp {
    LedgerOp::Open { account: account(id), parent: parent.map(account), limit }
}

/// A claim on a name.
pub fn claim(scope: &str, key: &str, value: &str) -> Claim {
    Claim { scope: scope.into(), key: key.into(), value: value.into() }
}

/// A path within a world, or a local one of a run.
pub fn path(text: &str) -> WorldPath {
    WorldPath::parse_any(text).expect("valid")
}

/// What a run wrote or read; the key is named after the direction.
pub fn artifact(run: &RunKey, at: &str, bytes: u64, direction: Direction) -> Artifact {
    Artifact {
        world: run.world.clone(),
        path: path(at),
        bytes,
        b3: None,
        media_type: "text/plain".into(),
        run: Some(run.run.clone()),
        key: Some(direction.to_string()),
        direction,
    }
}

/// A run wrote a file.
pub fn writes(run: &RunKey, at: &str, bytes: u64) -> ArtifactOp {
    ArtifactOp::Record(artifact(run, at, bytes, Direction::Out))
}

/// A run read a file.
pub fn reads(run: &RunKey, at: &str, bytes: u64) -> ArtifactOp {
    ArtifactOp::Record(artifact(run, at, bytes, Direction::In))
}

/// A file of a run's world is removed.
pub fn removes(run: &RunKey, at: &str) -> ArtifactOp {
    ArtifactOp::Remove { world: run.world.clone(), path: path(at) }
}

/// A record for the audit.
pub fn record(event: &str) -> AuditRecord {
    AuditRecord::new(AuditEvent::named(event), Actor::CORE, &key("r")).fact("n", 1)
}

/// A piece of text.
pub fn text(text: &str) -> Progress {
    Progress::Text { channel: "stdout".into(), text: text.into() }
}

/// An append of entries to a run.
pub fn append(key: &RunKey, expected: u64, entries: Vec<Entry>, status: RunStatus) -> Append {
    Append {
        stream: key.stream(),
        expected: Seq(expected),
        body: Body::Entries(entries),
        head: head(key, status),
    }
}

/// An append of progress to a run.
pub fn append_progress(key: &RunKey, expected: u64, pieces: Vec<Progress>) -> Append {
    Append {
        stream: key.stream(),
        expected: Seq(expected),
        body: Body::Progress(pieces),
        head: head(key, RunStatus::Running),
    }
}

/// What lists know of a run in this status.
pub fn head(key: &RunKey, status: RunStatus) -> StreamHead {
    StreamHead::new(!status.is_terminal(), Some(summary(key, status)))
}

/// What lists show of a run in this status.
pub fn summary(key: &RunKey, status: RunStatus) -> RunSummary {
    RunSummary {
        key: key.clone(),
        tool: tool("wharf/echo"),
        status,
        mode: Mode::Real,
        durability: Durability::Journal,
        attempt: 1,
        cost_micro: 0,
        created_at: Timestamp(1),
        started_at: Some(Timestamp(2)),
        ended_at: status.is_terminal().then_some(Timestamp(3)),
        digest: Digest::of(&[key.run.as_str().as_bytes()]),
        correlation_id: None,
        parent: None,
        grant: None,
        caller: None,
        over_hold: false,
        error: None,
    }
}

/// A run is accepted.
pub fn created(key: &RunKey) -> Entry {
    let spec = RunSpec {
        flow: None,
        step: None,
        tool: tool("wharf/echo"),
        tool_hash: Digest::of(&[b"tool"]),
        inputs: Object::new().into(),
        inputs_kept: None,
        retain: wharf_vocab::Retain::Full,
        outputs: Object::new(),
        bindings: wharf_domain::scope::Bindings::default(),
        addresses: run::Addresses::default(),
        publish: wharf_vocab::Publish::Direct,
        mode: Mode::Real,
        durability: Durability::Journal,
        caller: Caller::owner().to_ref(),
        digest: Digest::of(&[key.run.as_str().as_bytes()]),
        parent: None,
        depth: 0,
        trigger_depth: 0,
        continues: None,
        idempotency_key: None,
        correlation_id: None,
        timeout_ms: 60_000,
        account: AccountId::of_world(&key.world),
        account_parent: None,
        budget_micro: None,
        hold_micro: 0,
        free: false,
        unlimited: false,
        unknown_cost: UnknownCost::Reported,
        gate: None,
        approval: None,
        context: run::RunContext::default(),
        senior: None,
        mcp: None,
        side_effect_free: false,
        idempotent: false,
        keys_kept: None,
        traceparent: None,
        tracestate: None,
        reattach: false,
        durable: false,
    };
    Entry::Run(RunEntry::Created(run::Created { key: key.clone(), spec: Arc::new(spec) }))
}

/// An attempt begins.
pub fn started(attempt: u32) -> Entry {
    Entry::Run(RunEntry::AttemptStarted(run::AttemptStarted {
        attempt,
        attempt_id: AttemptId::new(format!("a-{attempt}")).expect("valid"),
        hold: None,
        place: None,
    }))
}

/// A run succeeds.
pub fn ended() -> Entry {
    let outcome = Outcome::Succeeded { outputs: Object::new() };
    Entry::Run(RunEntry::Ended(run::Ended::new(outcome, 0)))
}

/// What an ask asks.
pub fn question(ask: &AskId) -> AskSpec {
    AskSpec {
        ask_id: ask.clone(),
        kind: AskKind::Question,
        run: key("r"),
        tool: tool("wharf/ask"),
        key: "k".into(),
        title: "Which?".into(),
        detail: None,
        schema: None,
        args_digest: None,
        files: std::collections::BTreeMap::new(),
        tool_hash: None,
        audience: Audience::Any,
        caller: Caller::owner().to_ref(),
        deadline: Timestamp(9_000),
        escalates: None,
        then_person: false,
        task: None,
    }
}
