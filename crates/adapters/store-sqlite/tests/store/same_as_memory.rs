//! Whatever is done to it, the SQLite store answers as the memory store does, and the same can be
//! read from both afterwards.

use std::sync::Arc;

use crate::support::{Home, key as audit_key};
use proptest::prelude::*;
use wharf_contract::desk::{
    account, append, append_progress, claim, created, ended, hold, holds, node, opens, path,
    question, reads, record, removes, run_key, settles, started, text, tool, writes,
};
use wharf_domain::{Actor, ArtifactOp, LedgerOp, Rights};
use wharf_memory::{MemoryState, MemoryStore};
use wharf_ports::{
    Append, Batch, Body, CostBy, CostQuery, FileQuery, Require, RunQuery, StatsBy, StatsQuery,
    Store, StreamHead, TraceQuery,
};
use wharf_store_sqlite::migrations;
use wharf_vocab::{
    AskId, CommitNo, Digest, Epoch, GrantId, RunKey, RunStatus, Seq, ShardId, StreamId, StreamKind,
    Timestamp, WorldId,
};

const ACCOUNTS: [&str; 3] = ["world:w", "token:g", "run:w/r-1"];
const HOUR: u64 = 3_600_000;
/// When the last runs are accepted: sums of the minutes of the first ones are gone by then.
const LATE: u64 = 27 * HOUR;
const PATHS: [&str; 6] = ["/a", "/a/b", "/@r-1/a", "/@r-2/a", "/B", "/é_"];

#[derive(Debug, Clone)]
enum Op {
    Commit(Vec<Draft>),
    Purge(usize),
    PurgeAsk(usize),
    Acquire { node: bool, ttl_ms: u64 },
    Renew { node: bool },
    Pass { ms: u64 },
}

/// A batch, as far as it can be said before it is known what the store holds.
#[derive(Debug, Clone)]
struct Draft {
    run: usize,
    parts: Vec<Part>,
    claims: Vec<usize>,
    ledger: Vec<Move>,
    audit: usize,
    files: Vec<File>,
    /// Whether a file must be there, or not be used, and which.
    requires: Option<(bool, usize)>,
    /// How long before its number says the batch was decided.
    late: u64,
    wrong_epoch: bool,
}

/// Something done to one of the paths, and a size.
#[derive(Debug, Clone)]
enum File {
    Write(usize, u64),
    Read(usize, u64),
    Remove(usize),
}

#[derive(Debug, Clone)]
enum Part {
    /// Appends to the run, `off` places from where it should.
    Run { what: What, off: i64 },
    /// Raises the run's ask.
    Raise,
    /// Ends the run's ask.
    Resolve,
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
enum Move {
    Open(usize, Option<usize>, Option<u64>),
    Limit(usize, Option<u64>),
    Hold(usize, usize, u64),
    Settle(usize, u64),
    Charge(usize, u64),
    Admit(usize),
    Report(usize, usize, u64, bool),
    Release(usize),
    Correct(usize, i64),
    Learn(usize, usize, u64),
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => prop::collection::vec(drafts(), 1..6).prop_map(Op::Commit),
        1 => (0..4_usize).prop_map(Op::Purge),
        1 => (0..3_usize).prop_map(Op::PurgeAsk),
        1 => (any::<bool>(), 1..100_u64).prop_map(|(node, ttl_ms)| Op::Acquire { node, ttl_ms }),
        1 => any::<bool>().prop_map(|node| Op::Renew { node }),
        1 => (1..150_u64).prop_map(|ms| Op::Pass { ms }),
    ]
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
    let off = prop_oneof![8 => Just(0), 1 => Just(1), 1 => Just(-1)];
    let part = prop_oneof![
        6 => (what, off).prop_map(|(what, off)| Part::Run { what, off }),
        1 => Just(Part::Raise),
        1 => Just(Part::Resolve),
    ];
    let limit = || prop::option::of(0..20_u64);
    let account = || 0..ACCOUNTS.len();
    let money = prop_oneof![
        (account(), prop::option::of(0..1_usize), limit())
            .prop_map(|(a, parent, limit)| Move::Open(a, parent.filter(|p| *p < a), limit)),
        (account(), limit()).prop_map(|(a, limit)| Move::Limit(a, limit)),
        (0..4_usize, account(), 0..9_u64).prop_map(|(h, a, amount)| Move::Hold(h, a, amount)),
        (0..4_usize, 0..30_u64).prop_map(|(h, spent)| Move::Settle(h, spent)),
        (account(), 0..5_u64).prop_map(|(a, spent)| Move::Charge(a, spent)),
        account().prop_map(Move::Admit),
        (0..4_usize, account(), 0..20_u64, any::<bool>())
            .prop_map(|(h, a, cost, beyond)| Move::Report(h, a, cost, beyond)),
        (0..4_usize).prop_map(Move::Release),
        (account(), -9..9_i64).prop_map(|(a, by)| Move::Correct(a, by)),
        (0..2_usize, 0..12_usize, 0..9_u64).prop_map(|(t, d, cost)| Move::Learn(t, d, cost)),
    ];
    let at = || 0..PATHS.len();
    let size = || prop_oneof![3 => 0..9_u64, 1 => any::<u64>()];
    let file = prop_oneof![
        3 => (at(), size()).prop_map(|(path, bytes)| File::Write(path, bytes)),
        2 => (at(), size()).prop_map(|(path, bytes)| File::Read(path, bytes)),
        1 => at().prop_map(File::Remove),
    ];
    let rare = prop::bool::weighted(0.05);
    (
        0..4_usize,
        prop::collection::vec(part, 0..3),
        prop::collection::vec(0..3_usize, 0..2),
        prop::collection::vec(money, 0..3),
        0..3_usize,
        (
            prop::collection::vec(file, 0..4),
            prop::option::weighted(0.3, (any::<bool>(), 0..PATHS.len())),
        ),
        prop_oneof![3 => Just(0), 1 => 0..60_u64],
        rare,
    )
        .prop_map(
            |(run, parts, claims, ledger, audit, (files, requires), late, wrong_epoch)| Draft {
                run,
                parts,
                claims,
                ledger,
                audit,
                files,
                requires,
                late,
                wrong_epoch,
            },
        )
}

/// The runs of the world, two worlds and three shards among them.
fn run(n: usize) -> RunKey {
    run_key(if n == 3 { "v" } else { "w" }, &format!("r-{n}"))
}

fn ask(n: usize) -> AskId {
    AskId::in_shard(run(n).shard(), &format!("q-{n}"))
}

fn shards() -> Vec<ShardId> {
    (0..4).map(|n| run(n).shard()).collect()
}

/// Makes a batch of a draft, looking at what the store would hold by then.
fn batch(draft: &Draft, state: &MemoryState, no: u64, epoch: Epoch) -> Batch {
    let key = run(draft.run);
    let mut batch = Batch {
        shard: key.shard(),
        epoch: if draft.wrong_epoch { Epoch(99) } else { epoch },
        no: CommitNo(no),
        at: Timestamp((no * 10).saturating_sub(draft.late)),
        appends: Vec::new(),
        claims: draft
            .claims
            .iter()
            .map(|n| claim("s", &format!("k-{n}"), &key.to_string()))
            .collect(),
        ledger: draft.ledger.iter().map(to_op).collect(),
        audit: (0..draft.audit).map(|n| record(&format!("event.{no}_{n}"))).collect(),
        artifacts: draft.files.iter().map(|file| to_artifact(&key, file)).collect(),
        requires: draft.requires.iter().map(|require| to_require(&key, *require)).collect(),
    };
    let mut seq = state.load(&key.stream()).map_or(0, |stored| stored.seq.0);
    for part in &draft.parts {
        let append = match part {
            Part::Run { what, off } => {
                let append = to_append(&key, *what, seq.saturating_add_signed(*off));
                seq = append.expected.0 + append.body.len() as u64;
                append
            }
            Part::Raise => to_ask(draft.run, true),
            Part::Resolve => to_ask(draft.run, false),
        };
        batch.appends.push(append);
    }
    batch
}

fn to_require(key: &RunKey, (here, at): (bool, usize)) -> Require {
    let (world, path) = (key.world.clone(), path(PATHS[at]));
    match here {
        true => Require::FileHere { world, path, run: key.run.clone() },
        false => Require::FileFree { world, path },
    }
}

fn to_artifact(key: &RunKey, file: &File) -> ArtifactOp {
    match *file {
        File::Write(at, bytes) => writes(key, PATHS[at], bytes),
        File::Read(at, bytes) => reads(key, PATHS[at], bytes),
        File::Remove(at) => removes(key, PATHS[at]),
    }
}

fn to_append(key: &RunKey, what: What, expected: u64) -> Append {
    let mut append = to_plain_append(key, what, expected);
    if let Some(run) = &mut append.head.run {
        run.cost_micro = expected * 7;
        // A run's moment is fixed when it is made; some are not in the order of making.
        run.created_at = Timestamp(created_at(key));
    }
    append
}

fn created_at(key: &RunKey) -> u64 {
    match key.run.as_str() {
        "r-0" => HOUR + 20,
        "r-1" => HOUR - 1,
        _ => LATE,
    }
}

fn to_plain_append(key: &RunKey, what: What, expected: u64) -> Append {
    match what {
        What::Create => append(key, 0, vec![created(key), started(1)], RunStatus::Running),
        What::Attempt => append(key, expected, vec![started(2)], RunStatus::Queued),
        What::Progress(len) => append_progress(key, expected, vec![text("x"); len]),
        What::End => append(key, expected, vec![ended()], RunStatus::Succeeded),
        What::Fail => append(key, expected, vec![ended()], RunStatus::Failed),
        What::Nothing => append(key, expected, Vec::new(), RunStatus::Waiting),
    }
}

fn to_ask(n: usize, raise: bool) -> Append {
    use wharf_domain::{AskEntry, Entry, Resolution};
    let id = ask(n);
    let resolved = AskEntry::Resolved { resolution: Resolution::ALLOW, by: Actor::CORE };
    let entry = if raise { AskEntry::Raised(Box::new(question(&id))) } else { resolved };
    Append {
        stream: StreamId::Ask(id),
        expected: Seq(u64::from(!raise)),
        body: Body::Entries(vec![Entry::Ask(entry)]),
        head: StreamHead::new(raise, None),
    }
}

fn to_op(money: &Move) -> LedgerOp {
    let id = |n: usize| account(ACCOUNTS[n]);
    match *money {
        Move::Open(a, parent, limit) => opens(ACCOUNTS[a], parent.map(|p| ACCOUNTS[p]), limit),
        Move::Limit(a, limit) => LedgerOp::SetLimit { account: id(a), limit },
        Move::Hold(h, a, amount) => holds(&format!("h-{h}"), ACCOUNTS[a], amount),
        Move::Settle(h, spent) => settles(&format!("h-{h}"), spent),
        Move::Charge(a, spent) => LedgerOp::Charge { account: id(a), spent },
        Move::Admit(a) => LedgerOp::Admit { account: id(a) },
        Move::Report(h, a, cost, beyond) => {
            let hold = hold(&format!("h-{h}"));
            LedgerOp::Report { hold, account: id(a), cost, beyond }
        }
        Move::Release(h) => LedgerOp::Release { hold: hold(&format!("h-{h}")) },
        Move::Correct(a, by) => LedgerOp::Correct { account: id(a), by },
        Move::Learn(t, d, cost) => LedgerOp::Learn {
            tool: tool(["a/b", "a/c"][t]),
            tool_hash: Digest::of_bytes(&[u8::try_from(d).expect("small")]),
            cost,
        },
    }
}

/// Everything that can be read, as text.
async fn told(store: &dyn Store) -> Vec<String> {
    let mut told = Vec::new();
    let mut streams: Vec<_> = (0..4).map(|n| run(n).stream()).collect();
    streams.extend((0..4).map(|n| StreamId::Ask(ask(n))));
    for stream in streams {
        told.push(format!("{:?}", store.load(stream.clone()).await));
        for (after, limit) in [(0, 100), (0, 1), (1, 2), (3, 1), (4, 3)] {
            told.push(format!("{:?}", store.history(stream.clone(), Seq(after), limit).await));
        }
    }
    let base = RunQuery { limit: 2, ..RunQuery::default() };
    let mut queries = vec![base.clone(), RunQuery { limit: 9, ..base.clone() }];
    queries.push(RunQuery { world: Some(WorldId::new("w").expect("valid")), ..base.clone() });
    queries.extend(
        RunStatus::ALL.iter().map(|status| RunQuery { statuses: vec![*status], ..base.clone() }),
    );
    queries.extend((0..5).map(|before| RunQuery { before: Some(before), ..base.clone() }));
    for (since, until) in
        [(Some(HOUR - 1), None), (Some(HOUR), Some(3 * HOUR)), (None, Some(3 * HOUR))]
    {
        let (since, until) = (since.map(Timestamp), until.map(Timestamp));
        let timed = RunQuery { since, until, ..base.clone() };
        queries.push(RunQuery { before: Some(3), ..timed.clone() });
        queries.push(RunQuery { statuses: vec![RunStatus::Succeeded], ..timed.clone() });
        queries.push(RunQuery { statuses: vec![RunStatus::Failed], ..timed.clone() });
        queries.push(timed);
    }
    for query in queries {
        told.push(format!("{:?}", store.runs(query).await));
    }
    tell_sums(store, &mut told).await;
    for world in ["w", "v"] {
        tell_files(store, &WorldId::new(world).expect("valid"), &mut told).await;
    }
    for after in 0..3 {
        told.push(format!("{:?}", store.open_asks(after, 2).await));
    }
    for kind in [StreamKind::Run, StreamKind::Ask] {
        told.push(format!("{:?}", store.load_open(kind, shards()).await));
        told.push(format!("{:?}", store.load_open(kind, vec![run(0).shard()]).await));
    }
    for id in ACCOUNTS {
        told.push(format!("{:?}", store.account(account(id)).await));
    }
    told.push(format!("{:?}", store.holds(shards()).await));
    told.push(format!("{:?}", store.holds(vec![run(1).shard()]).await));
    told.push(format!("{:?}", store.prices().await));
    told.push(format!("{:?}", store.audit(0, 1_000).await));
    told.push(format!("{:?}", store.audit(2, 2).await));
    told
}

/// Times that begin and end with a run, with an hour, and between them.
fn times() -> Vec<(Option<Timestamp>, Option<Timestamp>)> {
    let times = [
        (None, None),
        (Some(1), None),
        (Some(HOUR), None),
        (Some(HOUR - 1), Some(3 * HOUR + 1)),
        (Some(HOUR + 21), Some(3 * HOUR)),
        (Some(HOUR + 5), Some(HOUR + 30)),
        (None, Some(HOUR + 20)),
        (Some(HOUR + 21), Some(4 * HOUR)),
        (Some(HOUR + 19), Some(LATE)),
        (Some(LATE - 61_000), Some(LATE + 1)),
        (Some(2 * HOUR + 1), Some(LATE + 61_000)),
    ];
    times.map(|(since, until)| (since.map(Timestamp), until.map(Timestamp))).to_vec()
}

/// Counts and sums of runs. The memory store walks over all runs for each of them, the other keeps
/// some of them by the hour.
async fn tell_sums(store: &dyn Store, told: &mut Vec<String>) {
    let only_w = Some(WorldId::new("w").expect("valid"));
    let rights = Rights { worlds: Some(only_w.iter().cloned().collect()), ..Rights::all() };
    let rights = [Arc::new(Rights::all()), Arc::new(rights)];
    for (since, until) in times() {
        for by in
            [CostBy::Tool, CostBy::World, CostBy::Agent, CostBy::Day, CostBy::Hour, CostBy::Caller]
        {
            let all = CostQuery { worlds: None, since, until, by };
            let one = CostQuery { worlds: Some(only_w.iter().cloned().collect()), ..all.clone() };
            for query in [all, one] {
                told.push(format!("{query:?}: {:?}", store.costs(query.clone()).await));
            }
        }
        let to_the_end = (since.unwrap_or_default(), until.unwrap_or(Timestamp(2 * LATE)));
        for (step_ms, within) in [
            (HOUR, &rights[0]),
            (2 * HOUR, &rights[1]),
            (60_000, &rights[0]),
            (120_000, &rights[1]),
            (1_000, &rights[0]),
        ] {
            for by in [StatsBy::Status, StatsBy::Tool, StatsBy::World] {
                let query = StatsQuery {
                    within: Arc::clone(within),
                    world: None,
                    tool: None,
                    since: to_the_end.0,
                    until: to_the_end.1,
                    step_ms,
                    by,
                };
                told.push(format!("{query:?}: {:?}", store.run_stats(query.clone()).await));
            }
        }
        let all = RunQuery { since, until, ..RunQuery::default() };
        let of_world = RunQuery { world: only_w.clone(), ..all.clone() };
        let of_tool = RunQuery { tool: Some(tool("wharf/echo")), ..all.clone() };
        let bad = vec![RunStatus::Failed, RunStatus::Refused];
        let failed = RunQuery { statuses: bad, ..of_tool.clone() };
        let done = RunQuery { statuses: vec![RunStatus::Succeeded], ..of_world.clone() };
        let nobody = RunQuery { caller: GrantId::new("g").ok(), ..all.clone() };
        for query in [all, of_world, of_tool, failed, done, nobody] {
            for within in &rights {
                let counted = store.count_runs(query.clone(), Arc::clone(within), 3).await;
                told.push(format!("{query:?}: {counted:?}"));
            }
            told.push(format!("{:?}", store.runs(RunQuery { limit: 2, ..query }).await));
        }
    }
}

/// All that can be read of the files of a world.
async fn tell_files(store: &dyn Store, world: &WorldId, told: &mut Vec<String>) {
    let base = FileQuery::new(world.clone(), 9);
    let mut queries = vec![base.clone(), FileQuery { locals: true, ..base.clone() }];
    for prefix in ["/a", "/@", "/@r-1/", "/é", "é"] {
        queries.push(FileQuery { prefix: Some(prefix.into()), ..base.clone() });
    }
    for after in ["/@r-1/a", "/a", "/B"] {
        let after = Some(path(after));
        queries.push(FileQuery { after, limit: 2, locals: true, ..base.clone() });
    }
    for since in [20, 50, 100, 200] {
        let unused_since = Some(Timestamp(since));
        queries.push(FileQuery { unused_since, locals: true, ..base.clone() });
    }
    for query in queries {
        told.push(format!("{:?}", store.files(query).await));
    }
    let all = TraceQuery { world: world.clone(), path: None, run: None, after: 0, limit: 1_000 };
    let (file, run) = (Some(path("/a")), Some(run(1).run));
    let some = [
        TraceQuery { after: 3, limit: 4, ..all.clone() },
        TraceQuery { path: file.clone(), ..all.clone() },
        TraceQuery { run: run.clone(), ..all.clone() },
        TraceQuery { path: file, run, after: 2, limit: 2, ..all.clone() },
    ];
    for query in some.into_iter().chain([all]) {
        told.push(format!("{:?}", store.trace(query).await));
    }
    told.push(format!("{:?}", store.usage(world.clone()).await));
}

/// From when on there are sums of minutes.
fn minutes_since(home: &Home) -> i64 {
    let conn = rusqlite::Connection::open(home.path()).expect("opens");
    conn.query_row("SELECT since FROM run_minutes_since", (), |row| row.get(0)).expect("one row")
}

/// The rows of sums as they are, those of minutes from one on.
fn stored_sums(home: &Home, minutes: i64) -> Vec<String> {
    let conn = rusqlite::Connection::open(home.path()).expect("opens");
    let mut stored = Vec::new();
    for (table, at, from) in [("run_sums", "hour", 0), ("run_minutes", "minute", minutes)] {
        let sql = format!(
            "SELECT json_array({at}, world, tool, caller, status, runs, cost_high, cost_low,
                               wall_high, wall_low) FROM {table} WHERE {at} >= ?1 ORDER BY 1"
        );
        let mut select = conn.prepare(&sql).expect("prepares");
        let rows = select.query_map([from], |row| row.get::<_, String>(0));
        stored.extend(rows.and_then(|rows| rows.collect::<Result<Vec<_>, _>>()).expect("readable"));
    }
    stored
}

async fn compare(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let home = Home::new();
    let sqlite = home.open();
    let memory = MemoryStore::new(&audit_key(), home.clock.clone());
    let name = |first: bool| node(if first { "core-a" } else { "core-b" });
    let mut epochs: std::collections::BTreeMap<ShardId, Epoch> = Default::default();
    let mut no = 0;
    let first = Op::Acquire { node: true, ttl_ms: 100 };
    for op in std::iter::once(first).chain(ops) {
        match op {
            Op::Commit(drafts) => {
                // What earlier batches of the call will have changed by then.
                let mut scratch = memory.state();
                let mut batches = Vec::new();
                for draft in &drafts {
                    no += 1;
                    let epoch = epochs.get(&run(draft.run).shard()).copied().unwrap_or_default();
                    let batch = Arc::new(batch(draft, &scratch, no, epoch));
                    let _ = scratch.commit_one(&batch);
                    batches.push(batch);
                }
                let (a, b) = (memory.commit(batches.clone()).await, sqlite.commit(batches).await);
                prop_assert_eq!(a, b);
            }
            Op::Purge(n) => {
                let stream = run(n).stream();
                let streams = vec![stream];
                prop_assert_eq!(memory.purge(streams.clone()).await, sqlite.purge(streams).await);
            }
            Op::PurgeAsk(n) => {
                let stream = StreamId::Ask(ask(n));
                let streams = vec![stream];
                prop_assert_eq!(memory.purge(streams.clone()).await, sqlite.purge(streams).await);
            }
            Op::Acquire { node, ttl_ms } => {
                let a = memory.acquire(name(node), shards(), ttl_ms).await;
                let b = sqlite.acquire(name(node), shards(), ttl_ms).await;
                prop_assert_eq!(&a, &b);
                epochs.extend(a.expect("works").iter().map(|lease| (lease.shard, lease.epoch)));
            }
            Op::Renew { node } => {
                let a = memory.renew(name(node), 100).await.expect("works");
                let b = sqlite.renew(name(node), 100).await.expect("works");
                prop_assert_eq!(a.owners, b.owners);
            }
            Op::Pass { ms } => home.clock.advance_ms(ms),
        }
        let (a, b) = (told(&memory).await, told(sqlite.as_ref()).await);
        for (a, b) in a.iter().zip(&b) {
            prop_assert_eq!(a, b);
        }
    }
    sqlite.close().await.expect("closes");
    let anchors = wharf_journal::audit::Anchors { heads: memory.state().heads() };
    let report = wharf_store_sqlite::verify_audit(&home.path(), &audit_key(), &anchors);
    prop_assert!(report.expect("readable").is_whole(), "the same chains");
    prop_assert!(wharf_store_sqlite::integrity_check(&home.path()).expect("readable").is_empty());
    // Where the latest runs were removed, there are fewer minutes than would be made anew.
    let since = minutes_since(&home);
    let kept = stored_sums(&home, since);
    migrations::down(&home.path(), 8).expect("steps down");
    migrations::up(&home.path()).expect("climbs");
    prop_assert_eq!(
        kept,
        stored_sums(&home, since),
        "kept step by step, and made of the rows at once"
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_do_the_same(ops in prop::collection::vec(ops(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .expect("a runtime");
        runtime.block_on(compare(ops))?;
    }
}

#[test]
fn the_worlds_runs_lie_in_several_shards() {
    let shards: std::collections::BTreeSet<_> = shards().into_iter().collect();
    assert!(shards.len() > 1);
}
