//! Worlds: made, changed, removed, and made again.

use wharf_domain::permission::ToolPattern;
use wharf_domain::{
    Audience, Caller, LedgerOp, Rule, ToolAllowance, When, World, WorldEntry, WorldInput,
    WorldPatch, WorldSettings,
};
use wharf_vocab::limits::WORLD_RULES_MAX;
use wharf_vocab::{
    AccountId, AskId, Code, Digest, Direction, Fault, Publish, Retain, Timestamp, ToolId,
    UnknownCost, WorldId,
};

use crate::stage::CANARY;

fn id() -> WorldId {
    WorldId::new("w").expect("a world id")
}

fn tool() -> ToolId {
    ToolId::new("acme/work").expect("a tool id")
}

fn allowance(text: &str) -> ToolAllowance {
    ToolAllowance {
        tool_hash: Digest::of(&[text.as_bytes()]),
        ask_id: AskId::new("2a-1").expect("an ask id"),
    }
}

fn rule() -> Rule {
    Rule {
        tool: ToolPattern::parse("acme/*").expect("a pattern"),
        when: When::FirstUse,
        approve: true,
        audience: Audience::Person,
        patience_ms: None,
    }
}

fn create() -> WorldInput {
    WorldInput::Create(WorldSettings::default())
}

fn refused(world: Option<&World>, input: &WorldInput) -> Fault {
    World::decide(world, &id(), input, &Caller::owner().to_ref()).expect_err("refused")
}

/// Decides, checks the audit record, and applies what was decided.
fn after(world: Option<World>, input: &WorldInput, at: u64) -> (World, Option<LedgerOp>) {
    let by = Caller::owner().to_ref();
    let decided = World::decide(world.as_ref(), &id(), input, &by).expect("legal");
    let Some((entry, ledger, record)) = decided else { return (world.expect("there"), None) };
    assert_eq!((record.subject.as_str(), record.actor.as_str()), ("world:w", "grant:owner"));
    assert!(!format!("{record:?}").contains(CANARY));
    (World::apply(world, &id(), Timestamp(at), &entry).expect("follows"), ledger)
}

#[test]
fn a_world_is_made_once_and_changed_only_after_that() {
    let limit = WorldSettings::budget(Some(5), 1);
    let change = WorldInput::Change(limit.clone());
    let allow = WorldInput::AllowTool(tool(), allowance("old"));
    for input in [&change, &allow, &WorldInput::Remove { purge_runs: false }] {
        assert!(refused(None, input).is(Code::WorldNotFound));
    }
    let (world, _) = after(None, &create(), 1);
    assert!(refused(Some(&world), &create()).is(Code::WorldExists));
    let (world, ledger) = after(Some(world), &change, 2);
    assert_eq!((world.settings, world.created_at), (limit, Timestamp(1)));
    let account = AccountId::of_world(&id());
    assert_eq!(ledger, Some(LedgerOp::SetLimit { account, limit: Some(5) }));
}

#[test]
fn t041_two_who_change_different_settings_both_have_their_way() {
    let budget = WorldPatch {
        limit_micro: Some(Some(9)),
        default_hold_micro: Some(2),
        ..Default::default()
    };
    let rest = WorldPatch {
        publish: Some(Publish::Staged),
        retention_days: Some(Some(7)),
        run_retention_days: Some(Some(90)),
        policy: Some(vec![rule()]),
        retain: Some(Retain::Digest),
        unknown_cost: Some(UnknownCost::Held),
        ..Default::default()
    };
    assert!(refused(None, &WorldInput::Patch(budget.clone())).is(Code::WorldNotFound));
    let (world, _) = after(None, &create(), 1);
    let (world, ledger) = after(Some(world), &WorldInput::Patch(budget.clone()), 2);
    let account = AccountId::of_world(&id());
    assert_eq!(ledger, Some(LedgerOp::SetLimit { account, limit: Some(9) }));
    let (world, _) = after(Some(world), &WorldInput::Patch(rest), 3);
    let all = WorldSettings {
        limit_micro: Some(9),
        default_hold_micro: 2,
        publish: Publish::Staged,
        retention_days: Some(7),
        run_retention_days: Some(90),
        retain: Retain::Digest,
        policy: vec![rule()],
        unknown_cost: UnknownCost::Held,
    };
    assert_eq!(world.settings, all);
    let by = Caller::owner().to_ref();
    let same = World::decide(Some(&world), &id(), &WorldInput::Patch(budget), &by);
    assert_eq!(same.expect("legal"), None, "nothing is to be changed");
    let wrong = WorldPatch { retention_days: Some(Some(0)), ..Default::default() };
    assert!(refused(Some(&world), &WorldInput::Patch(wrong)).is(Code::RequestInvalid));
    let none =
        WorldPatch { limit_micro: Some(None), retention_days: Some(None), ..Default::default() };
    let (world, _) = after(Some(world), &WorldInput::Patch(none), 4);
    assert_eq!(world.settings, WorldSettings { limit_micro: None, retention_days: None, ..all });
}

#[test]
fn a_tool_stays_allowed_until_its_definition_changes() {
    let (old, new) = (allowance("old"), allowance("new"));
    let allow = |what: &ToolAllowance| WorldInput::AllowTool(tool(), what.clone());
    let (made, _) = after(None, &create(), 1);
    let (world, _) = after(Some(made), &allow(&old), 2);
    assert_eq!(world.allows(&tool(), &old.tool_hash), Some(&old.ask_id));
    assert_eq!(world.allows(&tool(), &new.tool_hash), None);
    let by = Caller::owner().to_ref();
    let again = World::decide(Some(&world), &world.id, &allow(&old), &by).expect("legal");
    assert_eq!(again, None, "the same again is not written");
    let (world, _) = after(Some(world), &allow(&new), 3);
    assert_eq!(world.allows(&tool(), &old.tool_hash), None, "only the newest definition counts");
}

#[test]
fn t047_a_world_says_when_outputs_are_seen_and_how_long_files_are_kept() {
    let settings = WorldSettings {
        publish: Publish::Staged,
        retention_days: Some(30),
        policy: vec![rule()],
        ..WorldSettings::budget(Some(1_000), 10)
    };
    let (world, ledger) = after(None, &WorldInput::Create(settings.clone()), 1);
    assert_eq!(world.settings, settings);
    assert!(matches!(ledger, Some(LedgerOp::Open { limit: Some(1_000), parent: None, .. })));
    // What is usual is not written, so that journals of old read the same.
    let usual = serde_json::to_value(WorldSettings::default()).expect("JSON");
    assert_eq!(usual, serde_json::json!({ "limit_micro": null, "default_hold_micro": 0 }));
    let read: WorldSettings = serde_json::from_value(usual).expect("read back");
    assert_eq!(read, WorldSettings::default());
    assert_eq!(read.publish, Publish::Direct);
    let all = serde_json::to_value(&settings).expect("JSON");
    assert_eq!(serde_json::from_value::<WorldSettings>(all).expect("read back"), settings);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let (world, _) = after(None, &create(), 1);
    let rules = |count| WorldSettings { policy: vec![rule(); count], ..Default::default() };
    let wrong = [
        WorldSettings { retention_days: Some(0), ..Default::default() },
        rules(WORLD_RULES_MAX + 1),
    ];
    for settings in wrong {
        assert!(refused(None, &WorldInput::Create(settings.clone())).is(Code::RequestInvalid));
        let fault = refused(Some(&world), &WorldInput::Change(settings));
        assert!(fault.is(Code::RequestInvalid) && fault.message.ends_with('.'));
    }
    after(Some(world), &WorldInput::Change(rules(WORLD_RULES_MAX)), 2);
}

#[test]
fn a_world_that_was_removed_is_there_for_nobody_and_can_be_made_again() {
    let (made, _) = after(None, &WorldInput::Create(WorldSettings::budget(Some(5), 0)), 1);
    let old = allowance("old");
    let (world, _) = after(Some(made), &WorldInput::AllowTool(tool(), old.clone()), 2);
    let (gone, ledger) = after(Some(world), &WorldInput::Remove { purge_runs: true }, 3);
    assert!(gone.removed);
    assert_eq!(gone.allows(&tool(), &old.tool_hash), None, "what was allowed went with it");
    let account = AccountId::of_world(&id());
    assert_eq!(ledger, Some(LedgerOp::SetLimit { account, limit: None }));
    let change = WorldInput::Change(WorldSettings::default());
    let allow = WorldInput::AllowTool(tool(), old.clone());
    for input in [&change, &allow, &WorldInput::Remove { purge_runs: false }] {
        assert!(refused(Some(&gone), input).is(Code::WorldNotFound), "as if it had never been");
    }
    let (again, _) = after(Some(gone), &create(), 9);
    assert_eq!((again.removed, again.created_at), (false, Timestamp(9)));
    assert_eq!(again.earlier, 1, "it can be told from the one before");
    assert_eq!(again.settings, WorldSettings::default());
    assert_eq!(again.allows(&tool(), &old.tool_hash), None);
}

#[test]
fn entries_that_cannot_follow_are_not_applied() {
    let by = Caller::owner().to_ref();
    let allowed =
        WorldEntry::ToolAllowed { tool: tool(), allowance: allowance("x"), by: by.clone() };
    for entry in [allowed, WorldEntry::Removed { by, purge_runs: false }] {
        assert_eq!(World::apply(None, &id(), Timestamp(1), &entry), None);
    }
}

#[test]
fn words_of_files_are_read_and_shown() {
    for (direction, text) in [(Direction::In, "in"), (Direction::Out, "out")] {
        assert_eq!(direction.as_str(), text);
    }
    for (publish, text) in [(Publish::Direct, "direct"), (Publish::Staged, "staged")] {
        assert_eq!(publish.as_str(), text);
    }
}

#[test]
fn an_account_is_corrected_by_an_entry_that_says_why() {
    let (world, _) = after(None, &create(), 1);
    let correct =
        |by_micro: i64, reason: &str| WorldInput::Correct { by_micro, reason: reason.to_owned() };
    let (same, ledger) = after(Some(world.clone()), &correct(-1_200, "given back"), 2);
    assert_eq!(same, world, "its settings stay");
    let account = AccountId::of_world(&id());
    assert_eq!(ledger, Some(LedgerOp::Correct { account, by: -1_200 }));
    for wrong in [correct(0, "nothing"), correct(1, "  "), correct(1, &"x".repeat(2_001))] {
        assert!(refused(Some(&world), &wrong).is(Code::RequestInvalid));
    }
    assert!(refused(None, &correct(1, "why")).is(Code::WorldNotFound));
    let by = Caller::owner().to_ref();
    let change = World::decide(Some(&world), &id(), &correct(5, "billed by hand"), &by);
    let (_, _, record) = change.expect("legal").expect("a change");
    assert_eq!(record.event, "world.corrected");
    assert_eq!(
        (&record.facts["by_micro"], &record.facts["reason"]),
        (&5.into(), &"billed by hand".into())
    );
}
