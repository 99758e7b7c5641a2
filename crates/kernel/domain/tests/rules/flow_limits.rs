//! Where flows end: how many steps, items, questions, messages and tries they have.

use serde_json::{Value, json};
use wharf_domain::flow::Document;
use wharf_domain::run::flow::{ChildEnd, FlowInput, FlowRunEntry, FlowWork, StepCall, StepEnd};
use wharf_domain::{Outcome, RunEntry};
use wharf_vocab::limits::{
    FLOW_ASKS_MAX, FLOW_ITEMS_MAX, FLOW_LAST_STEPS_MAX, FLOW_RUN_STEPS_MAX, FLOW_SIGNALS_MAX,
    RUN_ASKS_OPEN_MAX, RUN_SIGNALS_WAITING_MAX,
};
use wharf_vocab::{Code, Executed, Fault, RunStatus};

use crate::flows::{Flow, badly, call, looped, undone};

#[test]
fn f006_a_run_does_so_many_steps_and_no_more_whatever_they_are() {
    let set = |id: &str| json!({"id": id, "set": {"n": "1"}});
    let nap = json!({"id": "nap", "each": {"over": "[1]", "as": "it",
        "step": {"id": "z", "sleep": {"for": "1s"}}}});
    for (what, inner) in [("set", set("s")), ("call", call("c")), ("nap", nap)] {
        let caught = json!({"id": "t", "try": {"step": looped("l", &inner),
            "catch": [{"step": {"id": "c2", "set": {"caught": "true"}}}]}});
        let mut flow = Flow::begin(&json!([looped("around", &caught)]));
        while !flow.run.is_over() {
            flow.settle_well();
            if !flow.run.is_over() {
                flow.wake();
            }
        }
        assert_eq!(flow.error().code.as_str(), "flow.limit", "{what}");
        assert_eq!(flow.error().details["limit"], json!("steps"));
        let steps = flow.run.flow.as_ref().expect("a flow").steps_done();
        assert_eq!(u64::from(steps), FLOW_RUN_STEPS_MAX, "{what}");
        flow.is_replayed();
    }
}

#[test]
fn f006_what_is_done_at_last_has_a_reserve_and_no_more() {
    let endless = looped("late", &json!({"id": "s", "set": {"n": "1"}}));
    let guarded = json!({"id": "t", "try": {"step": {"id": "body", "seq": [undone("u"),
        looped("l", &json!({"id": "s2", "set": {"n": "1"}}))]}, "finally": endless}});
    let mut flow = Flow::begin(&json!([guarded]));
    flow.settle_well();
    assert_eq!(flow.error().code.as_str(), "flow.limit");
    assert_eq!(flow.paths(), ["u", "u~undo"], "what was done is undone all the same");
    let steps = u64::from(flow.run.flow.as_ref().expect("a flow").steps_done());
    assert_eq!(steps, FLOW_RUN_STEPS_MAX + FLOW_LAST_STEPS_MAX);
    flow.is_replayed();
}

#[test]
fn f006_lists_variables_and_questions_have_a_limit() {
    let items = |count: usize| {
        let mut flow = Flow::of(&json!({ "name": "f", "description": "A flow.", "output": {},
            "vars": {"list": (0..count).collect::<Vec<_>>()},
            "steps": [{"id": "e", "each": {"over": "vars.list", "as": "it",
                "step": {"id": "r", "return": {}}}}] }));
        flow.settle_well();
        flow.run
    };
    let too_many = items(FLOW_ITEMS_MAX + 1);
    let error = too_many.outcome.as_ref().and_then(Outcome::error).expect("too many");
    assert_eq!(
        (error.code.as_str(), &error.details["limit"]),
        ("flow.limit", &json!("each.items"))
    );
    assert_eq!(items(FLOW_ITEMS_MAX).status(), RunStatus::Succeeded);

    let mut flow = Flow::of(&json!({ "name": "f", "description": "A flow.", "output": {},
        "vars": {"long": "x".repeat(200_000)},
        "steps": [{"id": "s", "set": {"twice": "vars.long + vars.long"}}] }));
    flow.settle_well();
    assert_eq!(flow.error().details["limit"], json!("vars"));

    let question = json!({"id": "q", "ask": {"question": "Sure?"}});
    let each = json!({"id": "e", "each": {"over": "vars.list", "as": "it", "concurrency": 256,
        "step": question}});
    let mut flow = Flow::of(&json!({ "name": "f", "description": "A flow.", "output": {},
        "vars": {"list": (0..=FLOW_ASKS_MAX).collect::<Vec<_>>()}, "steps": [each] }));
    flow.settle_well();
    assert_eq!(flow.run.open_asks().count(), RUN_ASKS_OPEN_MAX, "further ones wait");
    while !flow.run.is_over() {
        flow.answer();
        flow.settle_well();
    }
    assert_eq!(flow.error().code.as_str(), "flow.limit");
    assert_eq!(flow.error().details["limit"], json!("asks"));
    assert_eq!(flow.run.asks.len(), FLOW_ASKS_MAX);
    flow.is_replayed();
}

#[test]
fn f017_signals_that_wait_and_all_of_them_have_a_limit() {
    let wait = json!({"id": "w", "signal": {"name": "go"}});
    let mut flow = Flow::begin(&json!([{"id": "nap", "sleep": {"for": "1h"}}, wait]));
    for _ in 0..RUN_SIGNALS_WAITING_MAX {
        flow.signal("go", None).expect("it waits for its step");
    }
    let fault = flow.signal("go", None).expect_err("too many wait");
    assert_eq!((fault.code.as_str(), fault.retryable), ("flow.signal_limit", true));

    // Steps that take messages and nothing else: so many that the messages run out.
    let row: Vec<_> =
        (0..100).map(|n| json!({"id": format!("g{n}"), "signal": {"name": "go"}})).collect();
    let each = json!({"id": "e", "each": {"over": "vars.list", "as": "it", "concurrency": 1,
        "step": {"id": "row", "seq": row}}});
    let mut flow = Flow::of(&json!({ "name": "f", "description": "A flow.", "output": {},
        "vars": {"list": (0..FLOW_SIGNALS_MAX / 100).collect::<Vec<_>>()}, "steps": [each, wait] }));
    flow.settle_well();
    for n in 0..FLOW_SIGNALS_MAX {
        flow.signal("go", Some(format!("key-{n}"))).expect("taken");
        flow.signal("go", Some(format!("key-{n}"))).expect("the same once more");
    }
    let signaled = flow.journal.iter().filter(|(_, entry)| {
        matches!(entry, RunEntry::Flow(it) if matches!(**it, FlowRunEntry::Signaled(_)))
    });
    assert_eq!(signaled.count(), FLOW_SIGNALS_MAX, "a key is taken once");
    let fault = flow.signal("go", None).expect_err("no more in all");
    assert_eq!(fault.code.as_str(), "flow.signal_limit");
    flow.is_replayed();
}

#[test]
fn f015_tries_are_bounded_wait_longer_and_fit_their_errors() {
    let call = |retry: Value| json!([{"id": "w", "call": {"tool": "acme/work", "inputs": {}, "retry": retry}}]);
    let tries = |retry: Value, code: Code| {
        let mut flow = Flow::begin(&call(retry));
        let mut at = vec![flow.now];
        loop {
            flow.settle(|_| Some(badly(code)));
            if flow.run.is_over() {
                return at;
            }
            flow.wake();
            at.push(flow.now);
        }
    };
    let at = tries(json!({"max": 4, "backoff": "1s"}), Code::ToolFailed);
    let pauses: Vec<u64> = at.windows(2).map(|two| two[1].ms_since(two[0])).collect();
    assert_eq!(pauses, [1_000, 2_000, 4_000]);
    let long = tries(json!({"max": 20, "backoff": "1s"}), Code::ToolFailed);
    let longest = long.windows(2).map(|two| two[1].ms_since(two[0])).max();
    assert_eq!((long.len(), longest), (20, Some(3_600_000)));
    let on = json!({"max": 4, "backoff": "1s", "on": ["tool.timeout"]});
    assert_eq!(tries(on.clone(), Code::ToolFailed).len(), 1);
    assert_eq!(tries(on, Code::ToolTimeout).len(), 4);
    let form = json!({ "name": "f", "description": "A flow.", "output": {},
        "steps": call(json!({"max": 21})) });
    Document::read(&form).expect_err("twenty at most");
}

#[test]
fn f015_what_may_have_acted_is_tried_again_while_its_key_is_known_or_at_a_risk_that_is_audited() {
    let retry = |is_unsafe: bool| {
        let retry = json!({"max": 2, "backoff": "10s", "unsafe": is_unsafe});
        let mut flow = Flow::begin(
            &json!([{"id": "w", "call": {"tool": "acme/work", "inputs": {}, "retry": retry}}]),
        );
        let Some(FlowWork::Begin(call)) = flow.wanted.pop_front() else { panic!("no call") };
        (flow, call)
    };
    let maybe = |call: &StepCall, repeatable: bool, known_for_ms: Option<u64>| {
        let error = Fault::new(Code::ToolTimeout, "Who knows.").executed(Executed::Maybe);
        FlowInput::Ended(Box::new(ChildEnd {
            child: call.child.clone(),
            path: call.path.clone(),
            number: 1,
            end: StepEnd::Failed { error },
            cost_micro: 0,
            repeatable,
            known_for_ms,
            executed: Executed::Maybe,
        }))
    };
    for (is_unsafe, repeatable, known_for_ms, again, audited) in [
        (false, false, None, false, 0),
        (false, true, None, true, 0),
        (false, true, Some(60_000), true, 0),
        // By the time it is tried again, its key is forgotten.
        (false, true, Some(10_000), false, 0),
        (true, true, None, true, 0),
        (true, false, None, true, 1),
    ] {
        let (mut flow, call) = retry(is_unsafe);
        flow.tell(maybe(&call, repeatable, known_for_ms));
        assert_eq!(!flow.run.is_over(), again, "{is_unsafe} {repeatable} {known_for_ms:?}");
        let uses = flow.audit.iter().filter(|it| it.event == "flow.retried_unsafe");
        assert_eq!(uses.count(), audited);
    }
}
