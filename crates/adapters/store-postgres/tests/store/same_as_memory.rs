//! Whatever is committed, the PostgreSQL store answers as the memory store does, and the same can be
//! read from both afterwards. Positions are each store's own; so is the order of what one call
//! brought for different shards.

use std::sync::Arc;

use proptest::prelude::*;
use wharf_contract::desk::{
    Desk, append, append_progress, claim, created, ended, node, path, reads, record, removes,
    run_key, started, text, writes,
};
use wharf_domain::{LedgerOp, RunSummary};
use wharf_memory::{MemoryState, MemoryStore};
use wharf_ports::{
    Append, Batch, CostBy, CostQuery, FileQuery, Require, RunQuery, StatsBy, StatsQuery, Store,
    TraceQuery,
};
use wharf_store_postgres::{integrity_check, verify_audit};
use wharf_vocab::limits::LEASE_MS;
use wharf_vocab::{RunKey, RunStatus, Seq, ShardId, StreamKind, Timestamp, WorldId};

use crate::ledger::{ACCOUNTS, moves};
use crate::support::{Database, key as audit_key};

const PATHS: [&str; 4] = ["/a", "/a/b", "/@r-1/a", "/B"];

/// A batch, as far as it can be said before it is known what the store holds.
#[derive(Debug, Clone)]
struct Draft {
    run: usize,
    what: What,
    /// How many places from where it should it appends.
    off: i64,
    claim: Option<usize>,
    ledger: Vec<LedgerOp>,
    audit: usize,
    file: Option<(usize, usize, u64)>,
    /// Whether a file must be there, or not be used, and which.
    requires: Option<(bool, usize)>,
    wrong_epoch: bool,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Create,
    Attempt,
    Progress(usize),
    End,
    Fail,
    Nothing,
}

#[derive(Debug, Clone)]
enum Op {
    Commit(Vec<Draft>),
    Purge(usize),
}

fn drafts() -> impl Strategy<Value = Draft> {
    let what = prop_oneof![
        6 => Just(What::Create),
        2 => Just(What::Attempt),
        3 => (1..4_usize).prop_map(What::Progress),
        3 => Just(What::End),
        1 => Just(What::Fail),
        1 => Just(What::Nothing),
    ];
    let money = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(moves(), 1..3)];
    let off = prop_oneof![8 => Just(0), 1 => Just(1), 1 => Just(-1)];
    let file = prop::option::of((0..3_usize, 0..PATHS.len(), any::<u64>()));
    let claims = prop::option::of(0..3_usize);
    let files = (file, prop::option::of((any::<bool>(), 0..PATHS.len())));
    (0..5_usize, what, off, claims, money, 0..3_usize, files, prop::bool::weighted(0.05)).prop_map(
        |(run, what, off, claim, ledger, audit, (file, requires), wrong_epoch)| Draft {
            run,
            what,
            off,
            claim,
            ledger,
            audit,
            file,
            requires,
            wrong_epoch,
        },
    )
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => prop::collection::vec(drafts(), 1..6).prop_map(Op::Commit),
        1 => (0..5_usize).prop_map(Op::Purge),
    ];
    prop::collection::vec(op, 1..15)
}

fn run(n: usize) -> RunKey {
    run_key(if n == 3 { "v" } else { "w" }, &format!("r-{n}"))
}

fn to_append(key: &RunKey, what: What, expected: u64) -> Append {
    let mut append = match what {
        What::Create => append(key, 0, vec![created(key), started(1)], RunStatus::Running),
        What::Attempt => append(key, expected, vec![started(2)], RunStatus::Queued),
        What::Progress(len) => append_progress(key, expected, vec![text("x"); len]),
        What::End => append(key, expected, vec![ended()], RunStatus::Succeeded),
        What::Fail => append(key, expected, vec![ended()], RunStatus::Failed),
        What::Nothing => append(key, expected, Vec::new(), RunStatus::Waiting),
    };
    if let Some(run) = &mut append.head.run {
        run.cost_micro = expected * 7;
        run.created_at = Timestamp(10 * key.run.as_str().len() as u64);
    }
    append
}

fn to_batch(desk: &Desk, draft: &Draft, state: &MemoryState) -> Batch {
    let key = run(draft.run);
    let seq = state.load(&key.stream()).map_or(0, |stored| stored.seq.0);
    let mut batch = desk.batch(key.shard());
    batch.appends.push(to_append(&key, draft.what, seq.saturating_add_signed(draft.off)));
    batch.claims.extend(draft.claim.map(|n| claim("s", &format!("k-\0{n}"), &key.to_string())));
    batch.ledger.clone_from(&draft.ledger);
    batch.audit.extend((0..draft.audit).map(|n| record(&format!("event.n_{n}"))));
    batch.artifacts.extend(draft.file.map(|(kind, at, bytes)| match kind {
        0 => writes(&key, PATHS[at], bytes),
        1 => reads(&key, PATHS[at], bytes),
        _ => removes(&key, PATHS[at]),
    }));
    batch.requires.extend(draft.requires.map(|(here, at)| {
        let (world, path) = (key.world.clone(), path(PATHS[at]));
        match here {
            true => Require::FileHere { world, path, run: key.run.clone() },
            false => Require::FileFree { world, path },
        }
    }));
    if draft.wrong_epoch {
        batch.epoch = wharf_vocab::Epoch(99);
    }
    batch
}

/// All that can be read, without positions.
async fn told(store: &dyn Store) -> Vec<String> {
    let mut told = Vec::new();
    let mut runs = async |query: RunQuery| {
        let page = store.runs(RunQuery { limit: 100, ..query }).await.expect("readable");
        let mut runs: Vec<RunSummary> = page.runs;
        runs.sort_by_key(|run| run.key.to_string());
        told.push(format!("{runs:?}"));
    };
    runs(RunQuery::default()).await;
    runs(RunQuery { world: WorldId::new("w").ok(), ..RunQuery::default() }).await;
    runs(RunQuery { id_prefix: Some("r-1".into()), ..RunQuery::default() }).await;
    for status in RunStatus::ALL {
        runs(RunQuery { statuses: vec![*status], ..RunQuery::default() }).await;
    }
    for n in 0..5 {
        let stream = run(n).stream();
        told.push(format!("{:?}", store.load(stream.clone()).await));
        for (after, limit) in [(0, 100), (1, 2), (3, 1)] {
            told.push(format!("{:?}", store.history(stream.clone(), Seq(after), limit).await));
        }
    }
    let mut open = store.load_open(StreamKind::Run, ShardId::all().collect()).await;
    if let Ok(open) = &mut open {
        open.sort_by_key(|(stream, _)| stream.key());
    }
    told.push(format!("{open:?}"));
    for id in ACCOUNTS {
        told.push(format!("{:?}", store.account(wharf_contract::desk::account(id)).await));
    }
    told.push(format!("{:?}", store.holds(ShardId::all().collect()).await));
    for by in [CostBy::Tool, CostBy::World, CostBy::Agent, CostBy::Day, CostBy::Hour] {
        told.push(format!("{:?}", store.costs(CostQuery { by, ..CostQuery::default() }).await));
    }
    let stats = StatsQuery {
        within: Arc::new(wharf_domain::Rights::all()),
        world: None,
        tool: None,
        since: Timestamp(0),
        until: Timestamp(1_000),
        step_ms: 20,
        by: StatsBy::Status,
    };
    told.push(format!("{:?}", store.run_stats(stats).await));
    let mut records = store.audit(0, 1_000).await.expect("readable");
    records.sort_by_key(|record| (record.shard, record.n));
    for record in records {
        told.push(format!("{:?}", (record.shard, record.n, record.at, record.record, record.mac)));
    }
    for world in ["w", "v"] {
        let world = WorldId::new(world).expect("valid");
        let query = FileQuery { locals: true, ..FileQuery::new(world.clone(), 9) };
        let all =
            TraceQuery { world: world.clone(), path: None, run: None, after: 0, limit: 1_000 };
        for records in [store.files(query).await, store.trace(all).await] {
            for file in records.expect("readable") {
                told.push(format!("{:?}", (file.at, file.artifact, file.gone_at)));
            }
        }
        told.push(format!("{:?}", store.usage(world).await));
    }
    told
}

async fn compare(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let Some(database) = Database::new() else { return Ok(()) };
    let postgres = database.open("core-a").await;
    let desk = database.desk(&postgres).await;
    let memory = MemoryStore::new(&audit_key(), database.clock.clone());
    let shards = ShardId::all().collect();
    memory.acquire(node("core-a"), shards, LEASE_MS).await.expect("free");
    for op in ops {
        match op {
            Op::Commit(drafts) => {
                // What earlier batches of the call will have changed by then.
                let mut scratch = memory.state();
                let mut batches = Vec::new();
                for draft in &drafts {
                    let batch = Arc::new(to_batch(&desk, draft, &scratch));
                    let _ = scratch.commit_one(&batch);
                    batches.push(batch);
                }
                let a = memory.commit(batches.clone()).await;
                prop_assert_eq!(a, postgres.commit(batches).await);
            }
            Op::Purge(n) => {
                let streams = vec![run(n).stream(), run(4).stream()];
                let a = memory.purge(streams.clone()).await;
                prop_assert_eq!(a, postgres.purge(streams).await);
            }
        }
    }
    let (a, b) = (told(&memory).await, told(postgres.as_ref()).await);
    for (a, b) in a.iter().zip(&b) {
        prop_assert_eq!(a, b);
    }
    prop_assert_eq!(a.len(), b.len());
    let anchors = wharf_journal::audit::Anchors { heads: memory.state().heads() };
    let report = verify_audit(&database.options(), &audit_key(), &anchors).await;
    prop_assert!(report.expect("readable").is_whole(), "the same chains");
    prop_assert_eq!(integrity_check(&database.options()).await.expect("readable"), [""; 0]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn s013_both_ways_to_commit_do_what_memory_does(ops in ops()) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(compare(ops))?;
    }
}
