//! Runs that are over go: many together, by age, and with their world; what needs them stays.

use std::sync::Arc;

use serde_json::json;
use wharf_domain::WorldSettings;
use wharf_engine::{CostRequest, NewRun, OVER, PurgedRuns, RunQuery, WorldRemoval};
use wharf_ports::{ManualClock, Store as _};
use wharf_vocab::{Code, RunKey, RunStatus, Timestamp, WorldId};

use crate::peer::{Peer, succeed, tool};
use crate::support::{Bench, LONG, default_world, new, object, owner};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp(1_767_225_600_000)))
}

async fn listed(bench: &Bench, query: RunQuery) -> Vec<wharf_domain::RunSummary> {
    let query = RunQuery { limit: 500, ..query };
    bench.handle.run_lists().list(query).await.expect("lists").runs
}

async fn left(bench: &Bench) -> Vec<RunKey> {
    let runs = listed(bench, RunQuery::default()).await;
    runs.into_iter().map(|run| run.key).collect()
}

async fn spent(bench: &Bench) -> (u64, u64) {
    let report = bench.handle.worlds().costs(&owner(), CostRequest::default()).await;
    let total = report.expect("readable").total;
    (total.runs, total.cost_micro)
}

#[tokio::test]
async fn many_runs_go_together_and_their_costs_and_the_audit_stay() {
    let bench = Bench::new().await;
    for n in 0..120 {
        bench.finish("wharf/sleep", json!({"ms": 0, "cost_micro": n})).await;
    }
    let failed = bench.finish("wharf/fail", json!({})).await;
    let before = (spent(&bench).await, bench.audit().await.len());
    let statuses = vec![RunStatus::Succeeded];
    let going = listed(&bench, RunQuery { statuses, ..RunQuery::default() }).await;
    let done = bench.handle.purges().purge_many(&owner(), &going, "request").await.expect("works");
    assert_eq!(done, PurgedRuns { purged: 120, kept: 0 });
    assert_eq!(left(&bench).await, std::slice::from_ref(&failed.key));
    assert_eq!(spent(&bench).await, before.0);
    let fault = bench.handle.runs().get(&going[7].key).await.expect_err("it is gone");
    assert!(fault.is(Code::RunNotFound));
    let audit = bench.audit().await;
    let records: Vec<_> = audit.iter().filter(|record| record.event == "run.purged").collect();
    let named: usize =
        records.iter().map(|it| it.facts["run_ids"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!((records.len(), named), (3, 120), "a record for each group names its runs");
    assert_eq!(audit.len(), before.1 + 3, "nothing else was taken from it");
    // A core that ends now comes back without them.
    let bench = bench.killed().await;
    assert_eq!(left(&bench).await, std::slice::from_ref(&failed.key));
    assert_eq!(spent(&bench).await, before.0);
}

#[tokio::test]
async fn what_a_run_under_way_needs_stays() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let before =
        NewRun { outputs: object(json!({"s.local": "/state"})), ..new("acme/work", json!({})) };
    let before = bench.handle.runs().create(&owner(), before).await.expect("accepted").run;
    peer.next().await.succeeded(object(json!({"s": "s"})), 0).await.expect("told");
    bench.end_of(&before.key).await;
    let wanted = NewRun {
        continues: Some(before.key.run.clone()),
        ..new("acme/work", json!({"state.local": "/state"}))
    };
    let open = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let attempt = peer.next().await;
    let all = listed(&bench, RunQuery::default()).await;
    assert_eq!(all.len(), 2);
    let done = bench.handle.purges().purge_many(&owner(), &all, "request").await.expect("works");
    assert_eq!(
        done,
        PurgedRuns { purged: 0, kept: 2 },
        "one is open and reads a file of the other"
    );
    succeed(&attempt, 0).await;
    bench.end_of(&open.key).await;
    let done = bench.handle.purges().purge_many(&owner(), &all, "request").await.expect("works");
    assert_eq!(done, PurgedRuns { purged: 2, kept: 0 });
    assert_eq!(bench.objects.keys(), [""; 0], "local files went along");
}

#[tokio::test]
async fn runs_go_when_their_world_keeps_them_no_longer() {
    let clock = clock();
    let bench = Bench::at(&clock).await;
    let settings = WorldSettings { run_retention_days: Some(30), ..WorldSettings::default() };
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("set");
    let old = bench.finish("wharf/sleep", json!({"ms": 0, "cost_micro": 5})).await;
    clock.advance_ms(20 * DAY_MS);
    let young = bench.finish("wharf/echo", json!({})).await;
    let world = bench.handle.worlds().get(&default_world()).await.expect("there").world;
    let caller = owner();
    let retain = || bench.handle.purges().retain(&caller, &world);
    assert_eq!(retain().await.expect("works"), PurgedRuns::default(), "none is old enough");
    clock.advance_ms(11 * DAY_MS);
    assert_eq!(retain().await.expect("works"), PurgedRuns { purged: 1, kept: 0 });
    assert_eq!(left(&bench).await, std::slice::from_ref(&young.key));
    let record = bench.audited(|record| record.event == "run.purged").await;
    assert_eq!(record.facts["reason"], "retention");
    assert_eq!(record.facts["run_ids"], json!([old.key.run.as_str()]));
    assert_eq!(spent(&bench).await, (2, 5));
    let fault = WorldSettings { run_retention_days: Some(0), ..WorldSettings::default() };
    let fault = bench.handle.worlds().set(&owner(), default_world(), fault).await;
    assert!(fault.expect_err("less than a day").is(Code::RequestInvalid));
}

#[tokio::test]
async fn runs_go_with_their_world_if_that_is_wanted_also_after_a_kill() {
    let bench = Bench::new().await;
    let world = |name: &str| WorldId::new(name).expect("valid");
    for (name, purge_runs) in [("goes", true), ("stays", false)] {
        let settings = WorldSettings::default();
        bench.handle.worlds().create(&owner(), world(name), settings).await.expect("made");
        for _ in 0..3 {
            let wanted = NewRun { world: world(name), ..new("wharf/echo", json!({})) };
            let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
            bench.end_of(&run.key).await;
        }
        // Until this core has done it, another one has it to do.
        let removal = WorldRemoval { force: false, purge_runs };
        bench.handle.worlds().remove(&owner(), &world(name), removal).await.expect("removed");
    }
    let of = |name: &str| RunQuery { world: Some(world(name)), ..RunQuery::default() };
    let deadline = tokio::time::Instant::now() + LONG;
    while !listed(&bench, of("goes")).await.is_empty() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "runs of the removed world are still there"
        );
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    assert_eq!(listed(&bench, of("stays")).await.len(), 3);
    assert_eq!(spent(&bench).await.0, 6);

    let settings = WorldSettings::default();
    bench.handle.worlds().create(&owner(), world("again"), settings).await.expect("made");
    let wanted = NewRun { world: world("again"), ..new("wharf/echo", json!({})) };
    let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    bench.end_of(&run.key).await;
    let removal = WorldRemoval { force: false, purge_runs: true };
    bench.handle.worlds().remove(&owner(), &world("again"), removal).await.expect("removed");
    let bench = bench.killed().await;
    bench.handle.purges().purge_removed().await.expect("works");
    assert_eq!(listed(&bench, of("again")).await.len(), 0);
    assert_eq!(bench.store.size().await.expect("known").bytes, 0, "memory has no file");
    assert!(OVER.iter().all(|status| status.is_terminal()));
}
