//! Long flows through an engine: what recovery reads of them, and what expressions see of results
//! that are not kept in memory.

use serde_json::{Value, json};
use wharf_domain::{Entry, Outcome, Run, RunEntry};
use wharf_engine::NewFlowSignal;
use wharf_vocab::{ShardId, StreamKind};

use crate::flows::{add, flow};
use crate::support::{Bench, default_world, outputs_of, owner};

/// Each item of `list` gives the text `long`; then it waits until it may tell of them.
fn shouts() -> Value {
    let step = json!({"id": "one",
        "call": {"tool": "wharf/echo", "inputs": {"text": "${inputs.long}"}}});
    flow(
        "shouts",
        json!([
            {"id": "all", "each": {"over": "${inputs.list}", "as": "n", "step": step}},
            {"id": "go", "signal": {"name": "go"}}
        ]),
        json!({"count": "${size(steps.all.outputs)}",
            "last": "${steps.all.outputs[size(steps.all.outputs) - 1].text == inputs.long}"}),
    )
}

fn inputs(count: usize, bytes: usize) -> Value {
    json!({"list": (0..count).collect::<Vec<_>>(), "long": "x".repeat(bytes)})
}

async fn go(bench: &Bench, run: &Run) {
    let signal = NewFlowSignal { name: "go".to_owned(), value: Value::Null, key: None };
    bench.handle.flows().signal(&owner(), &run.key, signal).await.expect("sent");
}

/// Whether all calls are over and it waits.
fn waits(run: &Run) -> bool {
    let (flow, spec) = (run.flow.as_ref().expect("a flow"), run.spec.flow.as_ref().expect("one"));
    !flow.awaited_signals(spec).is_empty()
}

#[tokio::test]
async fn f020_a_long_flow_goes_on_from_its_fold_after_a_kill() {
    const COUNT: usize = 300;
    let bench = Bench::new().await;
    add(&bench, shouts()).await;
    let run = bench.start("flow/shouts", inputs(COUNT, 3_000)).await.expect("accepted");
    let before = bench.until(&run.key, waits).await;

    let open = bench.store.state().load_open(StreamKind::Run, &ShardId::all().collect::<Vec<_>>());
    let (_, stored) = open.iter().find(|(stream, _)| *stream == run.key.stream()).expect("open");
    let is_flow = |entry: &Entry| matches!(entry, Entry::Run(RunEntry::Flow(_)));
    let read = stored.entries.iter().filter(|(_, entry)| is_flow(entry)).count();
    assert!(read < 2 * (COUNT - 200), "only what came after the fold is read: {read}");

    let bench = bench.killed().await;
    let after = bench.until(&run.key, waits).await;
    assert_eq!(after.flow, before.flow, "it stands where it stood");
    go(&bench, &run).await;
    let ended = bench.end_of(&run.key).await;
    assert_eq!(outputs_of(&ended), json!({"count": COUNT, "last": true}));
    let steps = bench.handle.flows().steps(&ended).await.expect("readable");
    assert_eq!(steps.len(), COUNT, "each was done once, and all of them are told");
    assert!(steps.iter().all(|step| step.status == "succeeded" && step.number == 1));
    assert_eq!(ended.key.world, default_world());
}

#[tokio::test]
async fn f046_large_results_take_little_memory_and_one_step_looks_at_so_many() {
    let bench = Bench::new().await;
    add(&bench, shouts()).await;
    for (count, fits) in [(40, true), (90, false)] {
        let run = bench.start("flow/shouts", inputs(count, 200_000)).await.expect("accepted");
        let waiting = bench.until(&run.key, waits).await;
        let weight = waiting.flow.as_ref().expect("a flow").fold(waiting.created_at);
        let bytes = serde_json::to_vec(&weight).expect("serializes").len();
        assert!(bytes < 100 * 200, "{bytes} bytes for {count} results");
        go(&bench, &run).await;
        let ended = bench.end_of(&run.key).await;
        let error = ended.outcome.as_ref().and_then(Outcome::error);
        assert_eq!(error.is_none(), fits, "{error:?}");
        if let Some(error) = error {
            let limit = (error.code.as_str(), &error.details["limit"]);
            assert_eq!(limit, ("flow.limit", &json!("results")));
        }
    }
}
