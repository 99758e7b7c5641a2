//! Steps of a run's code: asked for once on each connection, and answered.

use serde_json::{Value, json};
use wharf_protocol::Outgoing;
use wharf_protocol::run::client::{Ended, RunClientEvent};
use wharf_vocab::StepName;
use wharf_wire::run_v1::{Control, SteppedMessage, code, limits};

use super::Stage;

fn asks(name: &str) -> Value {
    json!({"kind": "Step", "step": {"name": name, "n": 1}, "tool": "web/fetch", "inputs": {"u": 1}})
}

fn kept(name: &str, value: Option<Value>) -> SteppedMessage {
    let step = StepName::new(name, 1).expect("a name");
    SteppedMessage { control: Control::default(), step, outputs: None, value, error: None }
}

#[test]
fn t048_f028_a_step_is_told_once_and_its_answer_is_sent() {
    let mut stage = Stage::open();
    let events = stage.say(&asks("a"));
    let [RunClientEvent::Step(step)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((step.tool.as_deref(), &step.inputs["u"]), (Some("web/fetch"), &json!(1)));
    assert_eq!(stage.say(&asks("a")), [], "it is under way");
    stage.session.answer_step(kept("a", Some(Value::Null)));
    let sent = json!({"kind": "Stepped", "control": {"run_id": "r1"},
        "step": {"name": "a", "n": 1}, "value": null});
    assert_eq!(stage.messages(), [sent]);
    // The same name is asked for again when the code has something to keep.
    let keep = json!({"kind": "Step", "step": {"name": "a", "n": 1}, "value": 7});
    let events = stage.say(&keep);
    assert!(matches!(&events[..], [RunClientEvent::Step(step)] if step.value == Some(json!(7))));
}

#[test]
fn t048_what_is_not_answered_is_asked_for_again_on_the_next_connection() {
    let mut stage = Stage::open();
    stage.say(&json!({"kind": "Event", "control": {"seq": 1}, "data": {"phase": "started"}}));
    assert_eq!(stage.say(&asks("a")).len(), 1);
    stage.drop_connection();
    stage.session.answer_step(kept("a", None));
    stage.session.connected(stage.now());
    stage.say(&json!({"kind": "Ack"}));
    let kinds: Vec<Value> = stage.messages().into_iter().map(|sent| sent["kind"].clone()).collect();
    assert_eq!(kinds, ["Request"], "an answer without a connection is lost");
    assert_eq!(stage.say(&asks("a")).len(), 1);
}

#[test]
fn t049_a_server_that_asks_for_too_many_steps_at_once_is_cut_off() {
    let mut stage = Stage::open();
    for n in 0..limits::STEPS_OPEN_MAX {
        assert_eq!(stage.say(&asks(&format!("a{n}"))).len(), 1);
    }
    let events = stage.say(&asks("one too many"));
    let ended = |event: &RunClientEvent| match event {
        RunClientEvent::Ended(Ended::Broken { code, .. }) => Some(*code),
        _ => None,
    };
    assert_eq!(events.iter().find_map(ended), Some(code::LIMIT), "{events:?}");
    assert!(stage.sent().iter().any(|sent| matches!(sent, Outgoing::Close { .. })));
}

#[test]
fn t048_a_step_that_is_none_is_a_breach() {
    for unfit in [
        json!({"kind": "Step"}),
        json!({"kind": "Step", "step": {"name": "", "n": 1}}),
        json!({"kind": "Step", "step": {"name": "a", "n": 0}}),
        json!({"kind": "Step", "step": {"name": "a", "n": 1}, "tool": 7}),
        json!({"kind": "Step", "step": {"name": "a", "n": 1}, "inputs": []}),
    ] {
        let events = Stage::open().say(&unfit);
        let broken = |event: &RunClientEvent| {
            matches!(event, RunClientEvent::Ended(Ended::Broken { code: code::PROTOCOL, .. }))
        };
        assert!(events.iter().any(broken), "{unfit}: {events:?}");
    }
}
