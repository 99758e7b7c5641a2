//! Sums of what runs have cost.

use wharf_domain::RunSummary;
use wharf_vocab::{ProviderId, RunKey, RunStatus, Timestamp, WorldId};

use super::Subject;
use super::desk::{Desk, key, run_key, tool};
use wharf_ports::{Batch, CostBy, CostKey, CostQuery, CostRow, CostSum};

const DAY: u64 = 86_400_000;

/// A run as it is put into the store, and how it ends.
struct Case {
    key: RunKey,
    tool: &'static str,
    at: u64,
    cost: u64,
    status: RunStatus,
    took_ms: u64,
}

fn case(world: &str, run: &str, tool: &'static str, at: u64, cost: u64) -> Case {
    let status = RunStatus::Succeeded;
    Case { key: run_key(world, run), tool, at, cost, status, took_ms: 10 }
}

fn change(batch: &mut Batch, change: impl FnOnce(&mut RunSummary)) {
    change(batch.appends[0].head.run.as_mut().expect("a run"));
}

/// Accepts a run and ends it.
async fn put(desk: &Desk, case: &Case) {
    let mut creates = desk.creates(&case.key);
    change(&mut creates, |run| {
        run.tool = tool(case.tool);
        run.created_at = Timestamp(case.at);
    });
    desk.put(creates).await;
    let mut ends = desk.ends(&case.key, 2);
    change(&mut ends, |run| {
        run.tool = tool(case.tool);
        run.created_at = Timestamp(case.at);
        run.started_at = Some(Timestamp(case.at + 5));
        run.ended_at = Some(Timestamp(case.at + 5 + case.took_ms));
        run.cost_micro = case.cost;
        run.status = case.status;
    });
    desk.put(ends).await;
}

async fn sums(desk: &Desk, query: CostQuery) -> Vec<CostRow> {
    desk.store().costs(query).await.expect("readable")
}

async fn by(desk: &Desk, by: CostBy) -> Vec<CostRow> {
    sums(desk, CostQuery { by, ..CostQuery::default() }).await
}

fn world(name: &str) -> WorldId {
    WorldId::new(name).expect("valid")
}

fn row(key: CostKey, runs: u64, failed: u64, cost_micro: u64, wall_ms: u64) -> CostRow {
    CostRow { key, sum: CostSum { runs, failed, cost_micro, wall_ms, saturated: false } }
}

async fn fill(desk: &Desk) {
    let failed = RunStatus::Failed;
    for case in [
        case("a", "r1", "p.one/x", 0, 5),
        case("a", "r2", "p.one/y", DAY - 1, 7),
        case("a", "r3", "p.two/x", DAY, 100),
        Case { status: failed, took_ms: 30, ..case("a-b", "r1", "p.one/x", DAY, 1_000) },
        Case { status: RunStatus::Canceled, ..case("a0", "r1", "p.one/y", 3 * DAY, 0) },
    ] {
        put(desk, &case).await;
    }
}

/// Each run counts once in its row, whether it succeeded or not; the dearest row comes first.
pub async fn t041_costs_are_summed_by_tool_world_agent_and_day(subject: Subject) {
    let desk = Desk::open(subject).await;
    for kind in [CostBy::Tool, CostBy::World, CostBy::Agent, CostBy::Day] {
        assert_eq!(by(&desk, kind).await, [], "nothing ran yet");
    }
    fill(&desk).await;
    let of = |name| CostKey::Tool(tool(name));
    let tools = [
        row(of("p.one/x"), 2, 1, 1_005, 40),
        row(of("p.two/x"), 1, 0, 100, 10),
        row(of("p.one/y"), 2, 0, 7, 20),
    ];
    assert_eq!(by(&desk, CostBy::Tool).await, tools);
    let of = |name| CostKey::World(world(name));
    let worlds =
        [row(of("a-b"), 1, 1, 1_000, 30), row(of("a"), 3, 0, 112, 30), row(of("a0"), 1, 0, 0, 10)];
    assert_eq!(by(&desk, CostBy::World).await, worlds);
    let of = |name| CostKey::Agent(ProviderId::new(name).expect("valid"));
    let agents = [row(of("p.one"), 4, 1, 1_012, 60), row(of("p.two"), 1, 0, 100, 10)];
    assert_eq!(by(&desk, CostBy::Agent).await, agents);
    let of = |day| CostKey::Day(Timestamp(day * DAY));
    let days = [row(of(0), 2, 0, 12, 20), row(of(1), 2, 1, 1_100, 40), row(of(3), 1, 0, 0, 10)];
    assert_eq!(by(&desk, CostBy::Day).await, days, "days stand in their order");
}

/// The first moment counts and the last does not; a world's name is not taken for the beginning
/// of another's.
pub async fn t041_costs_are_narrowed_by_world_and_time(subject: Subject) {
    let desk = Desk::open(subject).await;
    fill(&desk).await;
    let all = CostQuery { by: CostBy::World, ..CostQuery::default() };
    let names = |rows: &[CostRow]| {
        let mut names: Vec<_> =
            rows.iter().map(|row| (format!("{:?}", row.key), row.sum.runs)).collect();
        names.sort();
        names
    };
    let named = |list: &[(&str, u64)]| {
        let name =
            |(name, runs): &(&str, u64)| (format!("{:?}", CostKey::World(world(name))), *runs);
        let mut names: Vec<_> = list.iter().map(name).collect();
        names.sort();
        names
    };
    for (worlds, expect) in [
        (vec!["a"], vec![("a", 3)]),
        (vec!["a", "a0"], vec![("a", 3), ("a0", 1)]),
        (vec!["none"], vec![]),
        (vec![], vec![]),
    ] {
        for since in [None, Some(Timestamp(0))] {
            let worlds = Some(worlds.iter().map(|name| world(name)).collect());
            let query = CostQuery { worlds, since, ..all.clone() };
            let rows = sums(&desk, query.clone()).await;
            assert_eq!(names(&rows), named(&expect), "{query:?}");
        }
    }
    for (since, until, expect) in [
        (Some(DAY), None, vec![("a", 1), ("a-b", 1), ("a0", 1)]),
        (None, Some(DAY), vec![("a", 2)]),
        (Some(DAY - 1), Some(DAY), vec![("a", 1)]),
        (Some(DAY), Some(DAY), vec![]),
        (Some(u64::MAX), None, vec![]),
        (None, Some(u64::MAX), vec![("a", 3), ("a-b", 1), ("a0", 1)]),
    ] {
        let (since, until) = (since.map(Timestamp), until.map(Timestamp));
        let rows = sums(&desk, CostQuery { since, until, ..all.clone() }).await;
        assert_eq!(names(&rows), named(&expect), "{since:?} {until:?}");
    }
}

/// Every number of 64 bits is summed exactly; what is more is said to be more.
pub async fn t041_costs_beyond_64_bits_are_flagged_and_not_wrapped(subject: Subject) {
    let desk = Desk::open(subject).await;
    let half = 1 << 63;
    put(&desk, &case("w", "r1", "p/half", 0, half)).await;
    put(&desk, &case("w", "r2", "p/half", 0, half - 1)).await;
    put(&desk, &case("w", "r3", "p/more", 0, u64::MAX)).await;
    put(&desk, &case("w", "r4", "p/more", 0, 1)).await;
    let rows = by(&desk, CostBy::Tool).await;
    assert_eq!(rows[0], row(CostKey::Tool(tool("p/half")), 2, 0, u64::MAX, 20));
    let more = CostSum { saturated: true, ..rows[0].sum };
    assert_eq!(rows[1], CostRow { key: CostKey::Tool(tool("p/more")), sum: more });
}

/// An open run has cost what its attempts were settled for; a removed one is in no sum.
pub async fn t041_open_runs_count_with_what_is_settled_and_purged_ones_stay_in_the_sums(
    subject: Subject,
) {
    let desk = Desk::open(subject).await;
    let open = key("open");
    desk.put(desk.creates(&open)).await;
    let mut goes_on = desk.batch(open.shard());
    goes_on.appends.push(super::desk::append(
        &open,
        2,
        vec![super::desk::started(2)],
        RunStatus::Running,
    ));
    change(&mut goes_on, |run| run.cost_micro = 40);
    desk.put(goes_on).await;
    let over = case("default", "over", "wharf/echo", 1, 2);
    put(&desk, &over).await;
    let key = CostKey::Tool(tool("wharf/echo"));
    assert_eq!(by(&desk, CostBy::Tool).await, [row(key.clone(), 2, 0, 42, 10)]);
    assert_eq!(desk.store().purge(vec![over.key.stream()]).await.expect("purges"), 1);
    assert_eq!(by(&desk, CostBy::Tool).await, [row(key, 2, 0, 42, 10)]);
}

/// Whatever sums are asked for, they say after a purge what they said before, and runs of the same
/// hour, world, tool and caller add up.
pub async fn t041_sums_are_the_same_after_a_purge(subject: Subject) {
    let desk = Desk::open(subject).await;
    fill(&desk).await;
    put(&desk, &Case { cost: u64::MAX - 3, ..case("a", "r9", "p.two/x", DAY + 1, 0) }).await;
    put(&desk, &case("a", "r10", "p.one/x", 2, 9)).await;
    let all =
        [CostBy::Tool, CostBy::World, CostBy::Agent, CostBy::Day, CostBy::Hour, CostBy::Caller];
    let queries: Vec<CostQuery> = all
        .into_iter()
        .flat_map(|by| {
            let none = CostQuery { by, ..CostQuery::default() };
            let since = CostQuery { since: Some(Timestamp(DAY)), ..none.clone() };
            let until = CostQuery { until: Some(Timestamp(DAY)), ..none.clone() };
            let of = CostQuery { worlds: Some(vec![world("a"), world("a0")]), ..none.clone() };
            let nowhere = CostQuery { worlds: Some(Vec::new()), ..none.clone() };
            [none, since, until, of, nowhere]
        })
        .collect();
    let mut before = Vec::new();
    for query in &queries {
        before.push(sums(&desk, query.clone()).await);
    }
    let runs = [("a", "r1"), ("a", "r2"), ("a", "r9"), ("a", "r10"), ("a-b", "r1"), ("a0", "r1")];
    let gone: Vec<_> = runs.iter().map(|(world, run)| run_key(world, run).stream()).collect();
    assert_eq!(desk.store().purge(gone.clone()).await.expect("purges"), 6);
    assert_eq!(desk.store().purge(gone).await.expect("purges"), 0);
    for (query, before) in queries.into_iter().zip(before) {
        assert_eq!(sums(&desk, query.clone()).await, before, "{query:?}");
    }
}
