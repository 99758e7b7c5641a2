//! Handlers that are generators, asynchronous, or use threads.

use serde_json::json;
use wharf_toolserver::Report;

use crate::kit::{Outcome, Tool};

fn partials(outcome: &Outcome) -> Vec<serde_json::Value> {
    let partial = |report: &Report| match report {
        Report::Partial(outputs) => Some(serde_json::Value::Object(outputs.clone())),
        _ => None,
    };
    outcome.reports.iter().filter_map(partial).collect()
}

#[tokio::test]
async fn t009_a_generator_streams_and_its_return_value_is_the_answer() {
    let tool = Tool::python(
        "def entry(p):\n    yield {'text': 'a'}\n    yield {'kind': 'Log', 'data': {'msg': 'between'}}\n    yield {'text': 'ab'}\n    return {'text': 'abc', 'cost_micro': 2}\n",
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(partials(&outcome), [json!({"text": "a"}), json!({"text": "ab"})]);
    assert_eq!(outcome.lines(), ["between"]);
    assert_eq!(outcome.outputs(), json!({"text": "abc"}));
    assert_eq!(outcome.done.cost, Some(json!(2)));
}

#[tokio::test]
async fn t009_a_generator_without_a_return_value_answers_with_all_it_gave() {
    let tool = Tool::python("def entry(p):\n    yield {'a': 1, 'b': 1}\n    yield {'b': 2}\n");
    assert_eq!(tool.run(json!({})).await.outputs(), json!({"a": 1, "b": 2}));
}

#[tokio::test]
async fn t016_asynchronous_handlers_work() {
    let tool = Tool::python(
        r#"
import asyncio
async def entry(payload, emit, ctrl):
    one, two = await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.sleep(0.01, 2))
    emit({"kind": "Log", "data": {"msg": "awaited"}})
    return {"sum": one + two, "cost_micro": 0}
"#,
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.outputs(), json!({"sum": 3}));
    assert_eq!(outcome.lines(), ["awaited"]);
}

#[tokio::test]
async fn t016_asynchronous_generators_stream() {
    let tool = Tool::python(
        "import asyncio\nasync def entry(p):\n    for n in range(3):\n        await asyncio.sleep(0)\n        yield {'n': n}\n",
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(partials(&outcome), [json!({"n": 0}), json!({"n": 1}), json!({"n": 2})]);
    assert_eq!(outcome.outputs(), json!({"n": 2}));
}

#[tokio::test]
async fn t016_threads_may_emit_side_by_side() {
    let tool = Tool::python(
        r#"
import threading
def entry(payload, emit, ctrl):
    def say(name):
        for n in range(50):
            emit({"kind": "Log", "data": {"msg": "%s %d" % (name, n)}})
            ctrl.is_set()
    threads = [threading.Thread(target=say, args=(name,)) for name in "abcd"]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return {"ok": 1, "cost_micro": 0}
"#,
    );
    let outcome = tool.run(json!({})).await;
    assert_eq!(outcome.outputs(), json!({"ok": 1}));
    assert_eq!(outcome.lines().len(), 200);
}

#[tokio::test]
async fn t015_processes_of_the_handler_itself_work() {
    let tool = Tool::python(
        r#"
import multiprocessing, subprocess
def double(n):
    return n * 2
def entry(p):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        doubled = pool.map(double, [1, 2, 3])
    said = subprocess.run(["sh", "-c", "echo out; exit 3"], capture_output=True, text=True)
    return {"doubled": doubled, "said": said.stdout, "status": said.returncode, "cost_micro": 0}
"#,
    );
    let outcome = tool.run(json!({})).await;
    let expected = json!({"doubled": [2, 4, 6], "said": "out\n", "status": 3});
    assert_eq!(outcome.outputs(), expected);
}

#[tokio::test]
async fn t015_numbers_of_numpy_are_random_anew() {
    // Whether the real one is installed or not: what counts is that its numbers are begun anew in
    // each worker, which has a copy of its parent's.
    let tool = Tool::python(
        r#"
import random, sys, types
state = random.Random(1)
numpy = types.ModuleType("numpy")
numpy.random = types.SimpleNamespace(seed=state.seed, random=state.random)
sys.modules["numpy"] = numpy
def entry(p):
    return {"random": numpy.random.random(), "cost_micro": 0}
"#,
    );
    let first = tool.run(json!({})).await.outputs();
    let second = tool.run(json!({})).await.outputs();
    assert!(first["random"].is_number(), "{first:?}");
    assert_ne!(first["random"], second["random"]);
}
