//! Money of a run: held with each attempt, settled with each end, refused when it is short.

use wharf_domain::run::{AttemptError, Decision, RunInput};
use wharf_domain::{Availability, LedgerOp, Resolution, RunEntry, RunSpec, Severity};
use wharf_vocab::limits::CANCEL_GRACE_MS;
use wharf_vocab::{AccountId, Code, Executed, Fault, Micro, RunStatus};

use crate::stage::{
    Plan, Stage, assert_stands, cancel, executed, gate, kinds, object, person, resolve,
    world_account,
};

const HOLD: Micro = 100;

const PRICED: fn(&mut RunSpec) = |spec| {
    spec.hold_micro = HOLD;
    spec.side_effect_free = true;
};

fn ops(decision: &Decision) -> Vec<(&'static str, Micro)> {
    let op = |op: &LedgerOp| match op {
        LedgerOp::Open { limit, .. } => ("open", limit.unwrap_or(0)),
        LedgerOp::SetLimit { limit, .. } => ("set_limit", limit.unwrap_or(0)),
        LedgerOp::Hold { amount, .. } => ("hold", *amount),
        LedgerOp::Settle { spent, .. } => ("settle", *spent),
        LedgerOp::Charge { spent, .. } => ("charge", *spent),
    };
    decision.ledger.iter().map(op).collect()
}

fn lower_the_budget(stage: &mut Stage, limit: Micro) {
    let op = LedgerOp::SetLimit { account: world_account(), limit: Some(limit) };
    stage.ledger.apply(&[op]).expect("a limit can always be set");
}

/// Whether the last record of the audit is flagged, and how much it matters.
fn flag(stage: &Stage) -> (bool, Severity) {
    let last = stage.audit.last().expect("the end of a call is recorded");
    assert_eq!(last.event, "tool.call_completed");
    (last.facts.contains_key("over_hold"), last.severity)
}

#[test]
fn t041_a_run_holds_when_it_starts_and_settles_when_it_ends() {
    let (mut stage, created) = Plan::of(PRICED).limit(HOLD).try_start().expect("accepted");
    assert_eq!(ops(&created), [("hold", HOLD)]);
    assert_eq!(stage.world(), (HOLD, 0));
    let ended = stage.take(&stage.ended(Ok(object("result")), 30));
    assert_eq!(ops(&ended), [("settle", 30)]);
    assert_eq!(stage.world(), (0, 30));
}

#[test]
fn t041_every_end_settles_what_was_held() {
    type End = fn(&mut Stage) -> Decision;
    let fault = || Fault::new(Code::ToolFailed, "It did not work.");
    let failed = AttemptError::Failed(fault(), Executed::Yes);
    let cases: [(End, Micro); 4] = [
        (|stage| stage.wake(), 0),
        (
            |stage| {
                let attempt_id = stage.attempt_id();
                stage.take(&RunInput::OutputTooLarge { attempt_id })
            },
            0,
        ),
        (
            |stage| {
                stage.take(&cancel());
                stage.wait(CANCEL_GRACE_MS);
                stage.take(&RunInput::Tick)
            },
            0,
        ),
        (
            |stage| {
                stage.take(&cancel());
                stage.take(&stage.ended(Ok(object("result")), 40))
            },
            40,
        ),
    ];
    for (end, spent) in cases {
        let mut stage = Plan::of(PRICED).start();
        assert_eq!(ops(&end(&mut stage)), [("settle", spent)]);
        assert_eq!(stage.world(), (0, spent));
    }
    for error in [failed, AttemptError::Refused(fault()), AttemptError::Canceled(fault())] {
        let mut stage = Plan::of(PRICED).start();
        let decision = stage.take(&stage.ended(Err(error), 40));
        assert_eq!(ops(&decision), [("settle", 40)], "failed work costs too");
        assert_eq!((stage.world(), stage.run.cost_micro), ((0, 40), 40));
    }
}

#[test]
fn t041_each_attempt_holds_and_settles_for_itself() {
    let mut stage = Plan::of(PRICED).limit(2 * HOLD).start();
    let busy = AttemptError::Failed(Fault::new(Code::ToolBusy, "Not now."), Executed::Maybe);
    let failed = stage.take(&stage.ended(Err(busy), 60));
    assert_eq!(ops(&failed), [("settle", 60)]);
    assert_eq!(stage.world(), (0, 60), "nothing is held between attempts");
    assert_eq!(ops(&stage.wake()), [("hold", HOLD)]);
    assert_eq!(stage.world(), (HOLD, 60));
    stage.take(&stage.ended(Ok(object("result")), 5));
    assert_eq!((stage.world(), stage.run.cost_micro), ((0, 65), 65));
}

#[test]
fn a_run_without_a_price_holds_nothing_and_is_charged_what_it_reports() {
    let mut free = Plan::default().start();
    assert_eq!(ops(&free.take(&free.succeeded())), [("", 0); 0]);
    assert_eq!(flag(&free), (false, Severity::Info));

    let mut stage = Plan::default().limit(0).start();
    let decision = stage.take(&stage.ended(Ok(object("result")), 12));
    assert_eq!(ops(&decision), [("charge", 12)]);
    assert_eq!(stage.world(), (0, 12));
    assert_eq!(flag(&stage), (true, Severity::Warn), "nothing was held for it");
}

#[test]
fn t041_more_than_was_held_is_booked_and_flagged() {
    for (spent, flagged) in [(HOLD - 1, false), (HOLD, false), (HOLD + 1, true)] {
        let mut stage = Plan::of(PRICED).limit(HOLD).start();
        stage.take(&stage.ended(Ok(object("result")), spent));
        assert_eq!(stage.world(), (0, spent));
        let severity = if flagged { Severity::Warn } else { Severity::Info };
        assert_eq!(flag(&stage), (flagged, severity));
    }
}

#[test]
fn t041_more_than_was_held_is_flagged_for_an_attempt_that_is_tried_again() {
    let mut stage = Plan::of(PRICED).start();
    let busy = AttemptError::Failed(Fault::new(Code::ToolBusy, "Not now."), Executed::Maybe);
    stage.take(&stage.ended(Err(busy), HOLD + 1));
    assert_eq!(flag(&stage), (true, Severity::Error));
}

#[test]
fn t041_a_run_is_refused_only_if_less_is_available_than_it_holds() {
    for (limit, accepted) in [(HOLD + 1, true), (HOLD, true), (HOLD - 1, false), (0, false)] {
        let result = Plan::of(PRICED).limit(limit).try_start();
        match result {
            Ok(_) => assert!(accepted, "{limit}"),
            Err(fault) => {
                assert!(!accepted, "{limit}");
                assert!(fault.is(Code::BudgetExceeded));
                assert_eq!(fault.details["missing_micro"], HOLD - limit);
                assert_eq!(fault.details["account"], "world:w");
            }
        }
    }
}

#[test]
fn a_budget_that_ran_out_while_the_run_waited_refuses_it() {
    type Go = fn(&mut Stage) -> Decision;
    let approved: Go =
        |stage| stage.take(&resolve(stage.open_ask(), Resolution::ALLOW, person("p")));
    let gated = Plan::of(|spec| {
        PRICED(spec);
        spec.gate = gate();
    });
    let queued = Plan::of(PRICED).provider(Availability::Coming);
    let cases: [(Plan, Go, &[&str]); 3] = [
        (gated, approved, &["ask_resolved", "ended"]),
        (queued.clone(), |stage| stage.provider(Availability::Up), &["ended"]),
        (
            queued,
            |stage| {
                stage.provider = Availability::Up;
                stage.take(&RunInput::Recovered)
            },
            &["ended"],
        ),
    ];
    for (plan, go, entries) in cases {
        let mut stage = plan.limit(HOLD).start();
        lower_the_budget(&mut stage, HOLD - 1);
        let decision = go(&mut stage);
        assert_eq!(kinds(&decision.entries), entries);
        assert_eq!(decision.effects, []);
        assert_stands(&stage, RunStatus::Refused, Some(Code::BudgetExceeded));
        assert_eq!((stage.run.attempt, stage.world()), (0, (0, 0)));
        assert_eq!(flag(&stage), (false, Severity::Security));
    }
}

#[test]
fn a_retry_that_finds_too_little_money_refuses_the_run() {
    let mut stage = Plan::of(PRICED).limit(HOLD + 59).start();
    let busy = AttemptError::Failed(Fault::new(Code::ToolBusy, "Not now."), Executed::Maybe);
    stage.take(&stage.ended(Err(busy), 60));
    stage.wake();
    assert_stands(&stage, RunStatus::Refused, Some(Code::BudgetExceeded));
    assert_eq!(stage.error().details["missing_micro"], 1);
    assert_eq!(executed(stage.error()), Some("maybe"), "the first attempt may have acted");
    assert_eq!((stage.run.attempt, stage.world()), (1, (0, 60)));
}

#[test]
fn t041_a_run_with_a_budget_has_an_account_below_its_parents() {
    let own: AccountId = "run:w/r".parse().expect("an account id");
    let plan = |budget: Micro| {
        Plan::of(|spec| {
            PRICED(spec);
            spec.account = own.clone();
            spec.account_parent = Some(world_account());
            spec.budget_micro = Some(budget);
        })
    };
    let (mut stage, created) = plan(HOLD).try_start().expect("accepted");
    assert_eq!(ops(&created), [("open", HOLD), ("hold", HOLD)]);
    assert_eq!(stage.world(), (HOLD, 0), "the hold reaches up to the root");
    stage.take(&stage.ended(Ok(object("result")), 30));
    assert_eq!(stage.ledger.account(&own).expect("opened").available(), Some(HOLD - 30));

    let fault = plan(HOLD - 1).try_start().expect_err("its own budget is short");
    assert_eq!(fault.details["account"], own.as_str());
    let fault = plan(HOLD).limit(HOLD - 1).try_start().expect_err("the world's is");
    assert_eq!(fault.details["account"], "world:w");
}

#[test]
fn the_hold_is_named_after_its_attempt() {
    let stage = Plan::of(PRICED).start();
    let attempt = stage.run.active.as_ref().expect("under way");
    let hold = attempt.hold.as_ref().expect("money is held");
    assert_eq!(hold.hold.as_str(), attempt.id.as_str());
    assert!(stage.journal.iter().any(|(_, entry)| match entry {
        RunEntry::AttemptStarted(started) => started.hold.as_ref() == Some(hold),
        _ => false,
    }));
}
