//! Long flows: what is kept of them, and from where they go on.

use serde_json::{Value, json};
use wharf_domain::RunEntry;
use wharf_domain::run::flow::{FlowRunEntry, StepEnd};
use wharf_vocab::limits::{FLOW_FOLD_STEPS, FLOW_STATE_BYTES_MAX};
use wharf_vocab::{Object, RunStatus};

use crate::flows::{Flow, call, looped, replayed, well};

/// A call that gave a text of so many characters.
fn gave(characters: usize) -> StepEnd {
    let text = Value::from("x".repeat(characters));
    StepEnd::Succeeded { outputs: Object::from_iter([("text".to_owned(), text)]) }
}

fn is_fold(entry: &RunEntry) -> bool {
    matches!(entry, RunEntry::Flow(entry) if matches!(**entry, FlowRunEntry::Folded(_)))
}

impl Flow {
    /// Lets so many calls end like this and the next one be under way.
    fn after(mut self, calls: usize, end: impl Fn() -> StepEnd) -> Self {
        let mut left = calls;
        self.settle(|_| {
            left = left.checked_sub(1)?;
            Some(end())
        });
        assert_eq!(self.begun.len() - calls, 1, "one call is under way");
        self
    }

    fn folds(&self) -> usize {
        self.journal.iter().filter(|(_, entry)| is_fold(entry)).count()
    }

    fn weight(&self) -> u64 {
        self.run.flow.as_ref().expect("a flow").weight()
    }

    /// How many bytes a fold takes now.
    fn fold_bytes(&self) -> usize {
        let flow = self.run.flow.as_ref().expect("a flow");
        serde_json::to_string(&flow.fold(self.now)).expect("serializes").len()
    }
}

#[test]
fn f020_a_long_flow_is_folded_and_goes_on_from_its_last_fold() {
    let calls = 3 * FLOW_FOLD_STEPS as usize + 100;
    let flow = Flow::begin(&json!([looped("l", &call("c"))])).after(calls, well);
    assert_eq!(flow.folds(), 3);
    flow.is_replayed();

    // Nothing of what is before the fold is needed but what happened to the run itself.
    let last = flow.journal.iter().rposition(|(_, entry)| is_fold(entry)).expect("folded");
    let mut journal = vec![flow.journal[0].clone()];
    journal.extend_from_slice(&flow.journal[last..]);
    assert!(journal.len() < 3 * 110 + 2, "{}", journal.len());
    assert_eq!(replayed(&journal), flow.run);
}

#[test]
fn f020_a_flow_that_waits_is_as_large_as_what_it_waits_for() {
    let steps = json!([looped("l", &call("c"))]);
    let [short, long] = [300, 3_000].map(|calls| Flow::begin(&steps).after(calls, || gave(1_000)));
    let (short, long) = (short.fold_bytes(), long.fold_bytes());
    assert!(long < short + 20, "{short} and {long}");
}

#[test]
fn f046_what_nothing_looks_at_is_not_kept() {
    let each = |output: &str| {
        Flow::of(&json!({ "name": "f", "description": "A flow.",
            "vars": {"list": (0..2_000).collect::<Vec<_>>()}, "output": {"n": output},
            "steps": [{"id": "all", "each": {"over": "vars.list", "as": "it", "concurrency": 1,
                "step": call("c")}}] }))
    };
    let unseen = |calls| each("none").after(calls, || gave(1_000)).fold_bytes();
    let (few, many) = (unseen(300), unseen(1_900));
    assert!(many < few + 100, "{few} and {many}");

    // What is looked at is kept; what is large is found by the run that gave it.
    let seen = |size| each("${steps.all.outputs}").after(1_000, move || gave(size)).fold_bytes();
    let (small, large) = (seen(500), seen(5_000));
    assert!(small > 500 * 1_000, "{small}");
    assert!(large < 150 * 1_000, "{large}");
}

#[test]
fn f046_what_a_flow_keeps_has_a_limit() {
    let item = "x".repeat(20);
    let list = |id: usize| {
        json!({"id": format!("e{id}"), "each": {"over": "vars.list", "as": "it",
        "step": {"id": format!("s{id}"), "signal": {"name": "go"}}, "concurrency": 1}})
    };
    let mut flow = Flow::of(&json!({ "name": "f", "description": "A flow.", "output": {},
        "vars": {"list": vec![item; 9_000]},
        "steps": [{"id": "p", "parallel": {"branches": (0..200).map(list).collect::<Vec<_>>()}}] }));
    flow.settle_well();
    assert_eq!(flow.run.status(), RunStatus::Failed, "{} bytes", flow.weight());
    assert_eq!(flow.error().code.as_str(), "flow.limit");
    assert_eq!(flow.error().details["limit"], json!("values"));
    assert!(flow.weight() < FLOW_STATE_BYTES_MAX + FLOW_STATE_BYTES_MAX / 2);
}

#[test]
fn f046_a_decision_does_not_cost_more_the_longer_a_flow_is() {
    // A copy of the state shares with it what was there before, so the whole journal of a flow
    // with as many items as there may be is worked off in little more than linear time.
    let steps = json!([{"id": "all", "each": {"over": "vars.list", "as": "it", "concurrency": 4,
        "step": call("c")}}]);
    let mut flow = Flow::of(&json!({ "name": "f", "description": "A flow.", "steps": steps,
        "vars": {"list": (0..9_000).collect::<Vec<_>>()}, "output": {"n": "${steps.all.outputs}"}}));
    flow.settle(|_| Some(gave(10)));
    assert_eq!(flow.begun.len(), 9_000);
    assert!((3..30).contains(&flow.folds()), "{}", flow.folds());
    flow.is_replayed();
}
