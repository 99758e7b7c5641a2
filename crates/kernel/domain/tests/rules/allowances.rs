//! Approvals that reach further than one run: for the parent run, or for a tool in a world.

use wharf_domain::run::{RunEffect, RunInput};
use wharf_domain::{Resolution, Scope};
use wharf_vocab::{AskKind, Code, RunKey, RunStatus};

use crate::stage::{
    Plan, Stage, allowed, assert_stands, cancel, denied, effects, gate, kinds, person, proposes,
    resolve,
};

const FOR_PARENT: Resolution = Resolution::Allow { scope: Scope::Parent };

fn parent() -> RunKey {
    RunKey { world: "w".parse().expect("valid"), run: "parent".parse().expect("valid") }
}

fn child() -> Stage {
    Plan::of(|spec| {
        spec.gate = gate();
        spec.parent = Some(parent());
    })
    .start()
}

#[test]
fn an_approval_for_the_parent_is_told_to_the_parent() {
    let mut stage = child();
    let ask_id = stage.open_ask();
    let decision = stage.take(&resolve(ask_id.clone(), FOR_PARENT, person("p")));
    assert_eq!(effects(&decision.effects), ["allow_children", "dispatch"]);
    let RunEffect::AllowChildren { parent: told, allowed } = &decision.effects[0] else {
        unreachable!()
    };
    assert_eq!((told, &allowed.ask_id), (&parent(), &ask_id));
    assert_eq!(allowed.tool_hash, stage.run.spec.tool_hash);
    assert_eq!(allowed.caller, stage.run.spec.caller.grant);

    let mut stage = child();
    let decision = stage.take(&resolve(stage.open_ask(), Resolution::ALLOW, person("p")));
    assert_eq!(effects(&decision.effects), ["dispatch"], "this run and no other");
}

#[test]
fn what_has_no_parent_cannot_be_allowed_for_it() {
    let mut alone = Plan::of(|spec| spec.gate = gate()).start();
    let input = resolve(alone.open_ask(), FOR_PARENT, person("p"));
    assert!(alone.reject(&input).is(Code::AskAnswerInvalid));
    assert_eq!(alone.status(), RunStatus::Waiting);

    // Neither can a single proposal or an approval that an attempt asks for on its way.
    let ungated = || Plan::of(|spec| spec.parent = Some(parent())).start();
    let mut proposing = ungated();
    proposing.take(&proposing.ended(Err(proposes("mail")), 0));
    let mut asking = ungated();
    asking.take(&RunInput::RaiseAsk(asking.asks(AskKind::Approval, "k")));
    for mut stage in [proposing, asking] {
        let input = resolve(stage.open_ask(), FOR_PARENT, person("p"));
        assert!(stage.reject(&input).is(Code::AskAnswerInvalid));
    }
}

#[test]
fn a_parent_remembers_a_tool_and_a_caller_once() {
    let mut stage = Plan::default().start();
    let (one, other) = (allowed("acme/one"), allowed("acme/other"));
    assert_eq!(stage.run.allows_child(&one.tool_hash, &one.caller), None);
    let decision = stage.take(&RunInput::AllowChildren(one.clone()));
    assert_eq!(kinds(&decision.entries), ["children_allowed"]);
    stage.ignore(&RunInput::AllowChildren(one.clone()));
    assert_eq!(stage.run.allows_child(&one.tool_hash, &one.caller), Some(&one.ask_id));
    assert_eq!(stage.run.allows_child(&other.tool_hash, &one.caller), None, "another definition");
    let stranger = "agent.stranger".parse().expect("a grant id");
    assert_eq!(stage.run.allows_child(&one.tool_hash, &stranger), None, "another caller");

    for number in 0..300 {
        stage.take(&RunInput::AllowChildren(allowed(&format!("acme/t{number}"))));
    }
    assert_eq!(stage.run.children_allowed.len(), 256, "and not without end");
    stage.take(&cancel());
    stage.ignore(&RunInput::AllowChildren(other));
}

#[test]
fn a_first_use_is_remembered_when_it_is_allowed_and_only_then() {
    for (resolution, remembered) in [(Resolution::ALLOW, true), (denied(), false)] {
        let mut stage = Plan::of(|spec| {
            spec.gate = gate().map(|gate| wharf_domain::Gate { remember: true, ..gate });
        })
        .start();
        let decision = stage.take(&resolve(stage.open_ask(), resolution, person("p")));
        let told = effects(&decision.effects).contains(&"allow_tool");
        assert_eq!(told, remembered);
    }
}

#[test]
fn a_run_that_was_allowed_before_starts_at_once_under_that_approval() {
    let mut stage = Plan::of(|spec| spec.approval = Some("2abefore".parse().expect("id"))).start();
    assert_eq!(stage.status(), RunStatus::Running);
    assert_eq!(stage.run.approval().map(|id| id.as_str()), Some("2abefore"));
    stage.take(&stage.succeeded());
    assert_stands(&stage, RunStatus::Succeeded, None);
}
