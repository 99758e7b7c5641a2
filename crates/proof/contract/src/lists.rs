//! Lists of runs and of asks.

use wharf_vocab::{AskId, GrantId, RunKey, RunStatus, ShardId, Timestamp, WorldId};

use super::Subject;
use super::desk::{Desk, key, question, run_key, tool};
use wharf_ports::RunQuery;

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
