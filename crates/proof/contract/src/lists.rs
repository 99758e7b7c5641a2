//! Lists of runs and of asks.

use std::sync::Arc;

use wharf_domain::{Actor, AuditEvent, AuditRecord, Rights};
use wharf_vocab::{AskId, Code, Fault, GrantId, RunKey, RunStatus, ShardId, Timestamp, WorldId};

use super::Subject;
use super::desk::{Desk, key, question, run_key, tool};
use wharf_ports::{AuditQuery, RunQuery, StatsBy, StatsQuery};

fn names(runs: &[wharf_domain::RunSummary]) -> Vec<&str> {
    runs.iter().map(|run| run.key.run.as_str()).collect()
}

/// Pages meet without a gap or an overlap, and the last one says that it is the last.
pub async fn runs_are_paged_newest_first(subject: Subject) {
    let desk = Desk::open(subject).await;
    let page = async |before, limit| {
        let query = RunQuery { before, limit, ..RunQuery::default() };
        desk.store().runs(query).await.expect("readable")
    };
    assert_eq!(page(None, 10).await, wharf_ports::RunPage::default());
    let runs: Vec<RunKey> = (0..5).map(|n| key(&format!("r-{n}"))).collect();
    desk.accept(&runs).await;
    desk.put(desk.asks(&AskId::in_shard(ShardId(1), "q"))).await;
    desk.put(desk.ends(&runs[0], 2)).await;
    let first = page(None, 2).await;
    assert_eq!(names(&first.runs), ["r-4", "r-3"]);
    let second = page(first.next, 2).await;
    assert_eq!(names(&second.runs), ["r-2", "r-1"]);
    let third = page(second.next, 2).await;
    assert_eq!((names(&third.runs), third.next), (vec!["r-0"], None));
    assert_eq!(third.runs[0].status, RunStatus::Succeeded, "the newest summary is shown");
    let exact = page(None, 5).await;
    assert_eq!((exact.runs.len(), exact.next), (5, None), "nothing follows a full last page");
}

/// A cursor keeps its place while new runs arrive and old ones change.
pub async fn runs_keep_their_pages_while_others_are_added(subject: Subject) {
    let desk = Desk::open(subject).await;
    let runs: Vec<RunKey> = (0..6).map(|n| key(&format!("r-{n}"))).collect();
    desk.accept(&runs).await;
    let query = RunQuery { limit: 3, ..RunQuery::default() };
    let first = desk.store().runs(query.clone()).await.expect("readable");
    assert_eq!(names(&first.runs), ["r-5", "r-4", "r-3"]);
    desk.accept(&[key("new-1"), key("new-2")]).await;
    desk.put(desk.ends(&runs[1], 2)).await;
    let rest = RunQuery { before: first.next, limit: 100, ..RunQuery::default() };
    let second = desk.store().runs(rest).await.expect("readable");
    assert_eq!(names(&second.runs), ["r-2", "r-1", "r-0"]);
    assert_eq!(second.next, None);
}

/// World, tool and status narrow the list, alone and together, also across pages.
pub async fn runs_are_filtered(subject: Subject) {
    let desk = Desk::open(subject).await;
    for n in 0..12_u32 {
        let world = if n % 2 == 0 { "even" } else { "odd" };
        let run = run_key(world, &format!("r-{n}"));
        let mut batches = vec![desk.creates(&run)];
        if n < 4 {
            batches.push(desk.ends(&run, 2));
        }
        for mut batch in batches {
            if n % 3 == 0
                && let Some(summary) = &mut batch.appends[0].head.run
            {
                summary.tool = tool("llm/litellm@1");
            }
            desk.put(batch).await;
        }
    }
    let list = async |world: Option<&str>, name: Option<&str>, status: Option<RunStatus>, limit| {
        let mut query = RunQuery {
            world: world.map(|world| WorldId::new(world).expect("valid")),
            tool: name.map(tool),
            statuses: status.into_iter().collect(),
            limit,
            ..RunQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = desk.store().runs(query.clone()).await.expect("readable");
            assert!(page.runs.len() <= limit);
            found.extend(page.runs.iter().map(|run| run.key.run.as_str()[2..].to_owned()));
            if page.next.is_none() {
                return found;
            }
            query.before = page.next;
        }
    };
    for limit in [1, 2, 100] {
        assert_eq!(list(Some("even"), None, None, limit).await, ["10", "8", "6", "4", "2", "0"]);
        let llm = list(None, Some("llm/litellm@1"), None, limit).await;
        assert_eq!(llm, ["9", "6", "3", "0"]);
        let over = Some(RunStatus::Succeeded);
        assert_eq!(list(None, None, over, limit).await, ["3", "2", "1", "0"]);
        assert_eq!(list(Some("odd"), Some("wharf/echo"), over, limit).await, ["1"]);
        assert_eq!(list(Some("ev"), None, None, limit).await, [""; 0]);
        assert_eq!(list(None, None, Some(RunStatus::Failed), limit).await, [""; 0]);
    }
}

/// Runs of one client are found by its grant, in the order they were made, whatever else there is.
pub async fn m036_runs_are_narrowed_by_grant(subject: Subject) {
    let desk = Desk::open(subject).await;
    let grant = |name: &str| Some(GrantId::new(name).expect("valid"));
    for n in 0..9_u32 {
        let run = run_key("w", &format!("r-{n}"));
        let of = [grant("g-1"), grant("g-2"), None][n as usize % 3].clone();
        let mut batches = vec![desk.creates(&run)];
        if n < 4 {
            batches.push(desk.ends(&run, 2));
        }
        for mut batch in batches {
            batch.appends[0].head.run.as_mut().expect("a run").grant.clone_from(&of);
            desk.put(batch).await;
        }
    }
    let list = async |name: &str, status: Option<RunStatus>, limit| {
        let mut query = RunQuery {
            grant: grant(name),
            statuses: status.into_iter().collect(),
            limit,
            ..RunQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = desk.store().runs(query.clone()).await.expect("readable");
            let named = page.runs.iter().map(|run| {
                assert_eq!(run.grant, grant(name));
                run.key.run.as_str()[2..].to_owned()
            });
            found.extend(named);
            if page.next.is_none() {
                return found;
            }
            query.before = page.next;
        }
    };
    for limit in [1, 2, 100] {
        assert_eq!(list("g-1", None, limit).await, ["6", "3", "0"]);
        assert_eq!(list("g-2", None, limit).await, ["7", "4", "1"]);
        assert_eq!(list("g-1", Some(RunStatus::Succeeded), limit).await, ["3", "0"]);
        assert_eq!(list("g", None, limit).await, [""; 0]);
    }
}

/// A beginning counts, an end does not, and pages stay in the order runs were made, whatever
/// their times.
pub async fn t045_runs_are_narrowed_by_time(subject: Subject) {
    let desk = Desk::open(subject).await;
    // A clock that was set back in between.
    for (n, at) in [10, 20, 50, 30, 20, 40, 50, 60].into_iter().enumerate() {
        let world = if n % 2 == 0 { "even" } else { "odd" };
        let run = run_key(world, &format!("r-{n}"));
        let mut batches = vec![desk.creates(&run)];
        if n < 4 {
            batches.push(desk.ends(&run, 2));
        }
        for mut batch in batches {
            let summary = batch.appends[0].head.run.as_mut().expect("a run");
            summary.created_at = Timestamp(at);
            desk.put(batch).await;
        }
    }
    let list = async |since: Option<u64>, until: Option<u64>, query: RunQuery| {
        let (since, until) = (since.map(Timestamp), until.map(Timestamp));
        let mut query = RunQuery { since, until, ..query };
        let mut found = String::new();
        loop {
            let page = desk.store().runs(query.clone()).await.expect("readable");
            found.extend(page.runs.iter().map(|run| &run.key.run.as_str()[2..]));
            assert!(found.len() <= 8, "pages do not go on: {found}");
            if page.next.is_none() {
                return found;
            }
            query.before = page.next;
        }
    };
    for limit in [1, 2, 100] {
        let all = RunQuery { limit, ..RunQuery::default() };
        assert_eq!(list(None, None, all.clone()).await, "76543210");
        assert_eq!(list(Some(20), None, all.clone()).await, "7654321");
        assert_eq!(list(Some(21), None, all.clone()).await, "76532");
        assert_eq!(list(Some(60), None, all.clone()).await, "7");
        assert_eq!(list(Some(61), None, all.clone()).await, "");
        assert_eq!(list(None, Some(50), all.clone()).await, "54310");
        assert_eq!(list(None, Some(10), all.clone()).await, "");
        assert_eq!(list(Some(20), Some(50), all.clone()).await, "5431");
        assert_eq!(list(Some(50), Some(50), all.clone()).await, "");
        assert_eq!(list(Some(50), Some(20), all.clone()).await, "");
        assert_eq!(list(Some(0), Some(u64::MAX), all.clone()).await, "76543210");
        let even = RunQuery { world: Some(WorldId::new("even").expect("valid")), ..all.clone() };
        assert_eq!(list(Some(20), Some(60), even).await, "642");
        let over = RunQuery { statuses: vec![RunStatus::Succeeded], ..all.clone() };
        assert_eq!(list(Some(20), Some(50), over).await, "31");
        let open = RunQuery { statuses: vec![RunStatus::Running], ..all };
        assert_eq!(list(Some(20), Some(50), open).await, "54");
    }
}

/// Open asks stand in the order they were raised; decided ones leave.
pub async fn open_asks_come_oldest_first(subject: Subject) {
    let desk = Desk::open(subject).await;
    let asks: Vec<_> = [9_u8, 3, 200, 3, 7]
        .iter()
        .enumerate()
        .map(|(n, &shard)| AskId::in_shard(ShardId(shard), &format!("q-{n}")))
        .collect();
    desk.accept(&[key("r")]).await;
    let mut moments = Vec::new();
    for ask in &asks {
        let batch = desk.asks(ask);
        moments.push(batch.at);
        desk.put(batch).await;
    }
    let open = async |after, limit| desk.store().open_asks(after, limit).await.expect("readable");
    let ids = |found: &[wharf_ports::OpenAsk]| {
        found.iter().map(|open| open.ask.spec.ask_id.clone()).collect::<Vec<_>>()
    };
    let all = open(0, 100).await;
    assert_eq!(ids(&all), asks);
    assert_eq!(all[2].ask.spec, question(&asks[2]));
    assert_eq!(all[2].ask.created_at, moments[2]);
    assert!(all.iter().all(|open| open.ask.is_open()));

    desk.put(desk.resolves(&asks[1])).await;
    let first = open(0, 2).await;
    assert_eq!(ids(&first), [asks[0].clone(), asks[2].clone()]);
    let rest = open(first[1].position, 2).await;
    assert_eq!(ids(&rest), asks[3..]);
    assert_eq!(open(rest[1].position, 2).await, []);
}

/// Who called for runs, what started them, what they are part of and how their ids begin narrow
/// the list, alone and together, also across pages; counts say the same.
pub async fn c011_runs_are_narrowed_as_the_console_does(subject: Subject) {
    let desk = Desk::open(subject).await;
    let grant = |name: &str| GrantId::new(name).expect("valid");
    for n in 0..12_u32 {
        let run = run_key(if n % 2 == 0 { "even" } else { "odd" }, &format!("r-{n:02}"));
        let mut batches = vec![desk.creates(&run)];
        if n < 4 {
            batches.push(desk.ends(&run, 2));
        }
        for mut batch in batches {
            let summary = batch.appends[0].head.run.as_mut().expect("a run");
            summary.caller = Some(grant(if n % 3 == 0 { "g-1" } else { "g-2" }));
            summary.parent = (n > 5).then(|| run_key("even", "r-00"));
            summary.correlation_id = (n % 4 == 0).then(|| "batch".to_owned());
            summary.over_hold = n == 2;
            summary.cost_micro = if n % 5 == 2 { u64::MAX - 1 } else { 0 };
            if n % 5 == 4 {
                let code = if n == 4 { Code::ToolTimeout } else { Code::ToolFailed };
                summary.status = RunStatus::Failed;
                summary.error = Some(Fault::new(code, format!("It is 100% Gone after {n}.")));
            }
            desk.put(batch).await;
        }
    }
    let all = || RunQuery::default();
    let says = |text: &str| RunQuery { text: Some(text.to_owned()), ..all() };
    let prefix = |text: &str| RunQuery { id_prefix: Some(text.to_owned()), ..all() };
    let even = WorldId::new("even").ok();
    let statuses = vec![RunStatus::Succeeded, RunStatus::Failed];
    for (query, expect) in [
        (RunQuery { caller: Some(grant("g-1")), ..all() }, "09 06 03 00"),
        (RunQuery { caller: Some(grant("g")), ..all() }, ""),
        (RunQuery { parent: Some(run_key("even", "r-00")), ..all() }, "11 10 09 08 07 06"),
        (RunQuery { parent: Some(run_key("odd", "r-00")), ..all() }, ""),
        (RunQuery { correlation_id: Some("batch".to_owned()), ..all() }, "08 04 00"),
        (RunQuery { over_hold: true, ..all() }, "02"),
        (RunQuery { paid: true, ..all() }, "07 02"),
        (RunQuery { paid: true, world: even.clone(), ..all() }, "02"),
        (RunQuery { paid: true, caller: Some(grant("g-2")), ..all() }, "07 02"),
        (RunQuery { paid: true, caller: Some(grant("g-1")), ..all() }, ""),
        (RunQuery { statuses, ..all() }, "09 04 03 02 01 00"),
        (RunQuery { error: Some("tool.timeout".to_owned()), ..all() }, "04"),
        (RunQuery { error: Some("tool.*".to_owned()), ..all() }, "09 04"),
        (RunQuery { error: Some("tool".to_owned()), ..all() }, ""),
        (RunQuery { error_text: Some("100% gone AFTER 9".to_owned()), ..all() }, "09"),
        (says("100% gone AFTER 9"), "09"),
        (says("TOOL.time"), "04"),
        (says("Batch"), "08 04 00"),
        (says("even/R-0"), "08 06 04 02 00"),
        (says("%"), "09 04"),
        (says("nobody says so"), ""),
        (
            RunQuery {
                error: Some("tool.*".to_owned()),
                caller: Some(grant("g-1")),
                error_text: Some("gone".to_owned()),
                ..all()
            },
            "09",
        ),
        (
            RunQuery { statuses: vec![RunStatus::Running, RunStatus::Failed], ..all() },
            "11 10 09 08 07 06 05 04",
        ),
        (prefix("r-1"), "11 10"),
        (prefix("r-"), "11 10 09 08 07 06 05 04 03 02 01 00"),
        (prefix("x"), ""),
        (RunQuery { world: even.clone(), ..prefix("r-0") }, "08 06 04 02 00"),
        (RunQuery { caller: Some(grant("g-2")), world: even.clone(), ..prefix("r-0") }, "08 04 02"),
        (
            RunQuery { caller: Some(grant("g-1")), statuses: vec![RunStatus::Succeeded], ..all() },
            "03 00",
        ),
    ] {
        for limit in [1, 5, 100] {
            let mut query = RunQuery { limit, ..query.clone() };
            let mut found = Vec::new();
            loop {
                let page = desk.store().runs(query.clone()).await.expect("readable");
                found.extend(page.runs.iter().map(|run| run.key.run.as_str()[2..].to_owned()));
                if page.next.is_none() {
                    break;
                }
                query.before = page.next;
            }
            assert_eq!(found.join(" "), expect, "{query:?}");
        }
        let count = async |rights: Rights, up_to| {
            let rights = Arc::new(rights);
            desk.store().count_runs(query.clone(), rights, up_to).await.expect("readable")
        };
        let expect: Vec<&str> = expect.split_whitespace().collect();
        assert_eq!(count(Rights::all(), 100).await, expect.len() as u64, "{query:?}");
        assert_eq!(count(Rights::all(), 2).await, (expect.len() as u64).min(2), "{query:?}");
        let only = Rights { worlds: Some([run_key("odd", "r").world].into()), ..Rights::all() };
        let odd = expect.iter().filter(|id| id.ends_with(['1', '3', '5', '7', '9'])).count();
        assert_eq!(count(only, 100).await, odd as u64, "{query:?}");
    }
}

/// Counts of a time say what was accepted in each piece of it, within rights.
pub async fn c010_runs_are_counted_by_pieces_of_time(subject: Subject) {
    let desk = Desk::open(subject).await;
    for (n, at) in [1_000, 1_999, 2_000, 5_500, 9_000].into_iter().enumerate() {
        let run = run_key(if n == 0 { "lab" } else { "w" }, &format!("r-{n}"));
        let mut batch = desk.creates(&run);
        let summary = batch.appends[0].head.run.as_mut().expect("a run");
        summary.created_at = Timestamp(at);
        summary.cost_micro = 5;
        if n == 1 {
            summary.tool = tool("llm/chat");
        }
        desk.put(batch).await;
    }
    let stats = async |by, rights: Rights| {
        let query = StatsQuery {
            within: Arc::new(rights),
            world: None,
            tool: None,
            since: Timestamp(1_000),
            until: Timestamp(9_000),
            step_ms: 1_000,
            by,
        };
        let rows = desk.store().run_stats(query).await.expect("readable");
        let rows =
            rows.into_iter().map(|row| (row.at.0, row.key, row.sum.runs, row.sum.cost_micro));
        rows.collect::<Vec<_>>()
    };
    let row = |at: u64, key: &str, runs: u64| (at, key.to_owned(), runs, 5 * runs);
    let by_status = stats(StatsBy::Status, Rights::all()).await;
    let status = |at, runs| row(at, "running", runs);
    assert_eq!(by_status, [status(1_000, 2), status(2_000, 1), status(5_000, 1)]);
    let by_tool = stats(StatsBy::Tool, Rights::all()).await;
    assert_eq!(by_tool[..2], [row(1_000, "llm/chat", 1), row(1_000, "wharf/echo", 1)]);
    let only = Rights { worlds: Some([run_key("lab", "r").world].into()), ..Rights::all() };
    assert_eq!(stats(StatsBy::World, only).await, [row(1_000, "lab", 1)]);
}

/// Asks that were decided come newest first, and with when and by whom.
pub async fn c013_decided_asks_come_newest_first(subject: Subject) {
    let desk = Desk::open(subject).await;
    let asks: Vec<_> = (0..4).map(|n| AskId::in_shard(ShardId(n), &format!("q-{n}"))).collect();
    desk.accept(&[key("r")]).await;
    for ask in &asks {
        desk.put(desk.asks(ask)).await;
    }
    let mut moments = Vec::new();
    for ask in [&asks[2], &asks[0], &asks[3]] {
        let batch = desk.resolves(ask);
        moments.push(batch.at);
        desk.put(batch).await;
    }
    let decided =
        async |before, limit| desk.store().decided_asks(before, limit).await.expect("readable");
    let all = decided(u64::MAX, 10).await;
    let ids: Vec<_> = all.iter().map(|it| it.ask.spec.ask_id.clone()).collect();
    assert_eq!(ids, [asks[3].clone(), asks[2].clone(), asks[0].clone()]);
    assert_eq!(all[0].ask.resolved_at, Some(moments[2]));
    assert!(all.iter().all(|it| it.ask.resolved.is_some()));
    let first = decided(u64::MAX, 1).await;
    let rest = decided(first[0].position, 10).await;
    assert_eq!(rest, all[1..]);
}

/// Records of the audit are found by who, what and when, in both directions and page by page.
pub async fn c019_the_audit_is_searched(subject: Subject) {
    let desk = Desk::open(subject).await;
    let runs: Vec<RunKey> = (0..5).map(|n| key(&format!("r-{n}"))).collect();
    desk.accept(&runs).await;
    for run in &runs {
        let mut batch = desk.ends(run, 2);
        let ended = AuditRecord::new(AuditEvent::named("tool.call_completed"), Actor::CORE, run);
        batch.audit.push(ended);
        desk.put(batch).await;
    }
    let search = async |query: AuditQuery| {
        let (mut found, mut query) = (Vec::new(), query);
        loop {
            let page = desk.store().find_audit(query.clone()).await.expect("readable");
            found.extend(page.records.into_iter().map(|it| it.record.subject.to_string()));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return found,
            }
        }
    };
    let of = |event: &str| AuditQuery { event: Some(event.to_owned()), ..AuditQuery::default() };
    let subjects: Vec<String> = runs.iter().map(|run| format!("run:{run}")).collect();
    let backwards: Vec<String> = subjects.iter().rev().cloned().collect();
    for limit in [1, 2, 50] {
        for event in ["tool.call_completed", "tool.call_c*"] {
            assert_eq!(search(AuditQuery { limit, ..of(event) }).await, subjects);
            let newest = AuditQuery { limit, newest_first: true, ..of(event) };
            assert_eq!(search(newest).await, backwards);
        }
        let one = AuditQuery { subject: Some(subjects[3].clone()), limit, ..of("tool.*") };
        assert_eq!(search(one).await, subjects[3..4]);
        assert_eq!(search(AuditQuery { limit, ..of("tool.call") }).await, [""; 0]);
        let nobody = AuditQuery { actor: Some("nobody".to_owned()), limit, ..of("tool.*") };
        assert_eq!(search(nobody).await, [""; 0]);
        let early = AuditQuery { until: Some(Timestamp(0)), limit, ..of("tool.*") };
        assert_eq!(search(early).await, [""; 0]);
    }
}
