//! Money of a run: held with each attempt, settled with each end, refused when it is short.

use wharf_domain::run::{AttemptError, Decision, RunInput};
use wharf_domain::{Availability, LedgerOp, Resolution, RunEntry, RunSpec, Severity};
use wharf_vocab::limits::{CANCEL_GRACE_MS, COST_REPORT_MICRO_MIN};
use wharf_vocab::{AccountId, Code, Executed, Fault, Micro, Mode, RunStatus, UnknownCost};

use crate::stage::{
    Plan, Stage, assert_stands, cancel, effects, executed, gate, kinds, object, person, resolve,
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
        LedgerOp::Admit { .. } => ("admit", 0),
        LedgerOp::Hold { amount, .. } => ("hold", *amount),
        LedgerOp::Report { cost, .. } => ("report", *cost),
        LedgerOp::Settle { spent, .. } => ("settle", *spent),
        LedgerOp::Release { .. } => ("release", 0),
        LedgerOp::Charge { spent, .. } => ("charge", *spent),
        LedgerOp::Correct { by, .. } => ("correct", by.unsigned_abs()),
        LedgerOp::Learn { cost, .. } => ("learn", *cost),
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
    let mut cheap = Plan::default().start();
    assert_eq!(ops(&cheap.take(&cheap.succeeded())), [("", 0); 0]);
    assert_eq!(flag(&cheap), (false, Severity::Info));

    let (mut stage, created) = Plan::default().limit(1).try_start().expect("something is left");
    assert_eq!(ops(&created), [("admit", 0)]);
    let decision = stage.take(&stage.ended(Ok(object("result")), 12));
    assert_eq!(ops(&decision), [("charge", 12), ("learn", 12)]);
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

#[test]
fn t041_an_account_at_its_limit_admits_nothing_but_what_is_free() {
    let plan = |free: bool| Plan::of(|spec| spec.free = free).limit(0);
    let fault = plan(false).try_start().expect_err("nothing is left");
    assert!(fault.is(Code::BudgetExceeded));
    assert_eq!(fault.details["missing_micro"], 1);
    let (_, created) = plan(true).try_start().expect("it costs nothing");
    assert_eq!(ops(&created), [("", 0); 0]);
}

#[test]
fn t041_what_is_said_to_be_free_and_is_not_is_booked_and_told() {
    let mut stage = Plan::of(|spec| spec.free = true).limit(0).start();
    let ended = stage.take(&stage.ended(Ok(object("result")), 7));
    assert_eq!(ops(&ended), [("charge", 7), ("learn", 7)]);
    assert_eq!((stage.status(), stage.world()), (RunStatus::Succeeded, (0, 7)));
    let told = stage.audit.iter().find(|record| record.event == "tool.free_but_cost");
    assert_eq!(told.expect("told").facts["cost_micro"], 7);
}

#[test]
fn t041_the_next_attempt_holds_no_less_than_the_dearest_before_it_has_cost() {
    let mut stage = Plan::of(PRICED).start();
    let busy = AttemptError::Failed(Fault::new(Code::ToolBusy, "Not now."), Executed::Maybe);
    let failed = stage.take(&stage.ended(Err(busy), 3 * HOLD));
    assert_eq!(ops(&failed), [("settle", 3 * HOLD), ("learn", 3 * HOLD)]);
    assert_eq!(ops(&stage.wake()), [("hold", 3 * HOLD)]);
    stage.take(&stage.ended(Ok(object("result")), 3 * HOLD));
    assert!(stage.run.is_over_hold(), "the first attempt was");
}

#[test]
fn t041_cost_while_a_run_goes_on_raises_the_hold_and_counts_at_any_end() {
    let mut stage = Plan::of(PRICED).start();
    stage.take(&stage.reports(HOLD - 1));
    assert_eq!(stage.world(), (HOLD, 0), "as much as that is held already");
    stage.ignore(&stage.reports(HOLD - 2));
    stage.take(&stage.reports(HOLD + 20));
    assert_eq!((stage.world(), stage.run.cost_so_far()), ((HOLD + 20, 0), HOLD + 20));
    let ends: [fn(&mut Stage); 5] = [
        |stage| drop(stage.wake()),
        |stage| drop(stage.take(&RunInput::Recovered)),
        |stage| {
            let attempt_id = stage.attempt_id();
            stage.take(&RunInput::OutputTooLarge { attempt_id });
        },
        |stage| {
            stage.take(&cancel());
            stage.wait(CANCEL_GRACE_MS);
            stage.take(&RunInput::Tick);
        },
        |stage| drop(stage.take(&stage.failed(Code::ToolAgentLost, Executed::Maybe))),
    ];
    for end in ends {
        let mut stage = stage.clone();
        end(&mut stage);
        assert_eq!((stage.world(), stage.run.cost_micro), ((0, HOLD + 20), HOLD + 20));
        assert!(stage.run.is_incomplete(), "nobody gave a last account");
        assert!(stage.audit.iter().any(|record| record.facts.contains_key("incomplete")));
    }
    stage.take(&stage.ended(Ok(object("result")), HOLD));
    assert_eq!((stage.world(), stage.run.is_incomplete()), ((0, HOLD + 20), false));
}

#[test]
fn t041_a_world_may_book_the_hold_where_nobody_knows_the_cost() {
    let plan = || {
        Plan::of(|spec| {
            PRICED(spec);
            spec.unknown_cost = UnknownCost::Held;
        })
    };
    for (reported, booked) in [(0, HOLD), (HOLD + 5, HOLD + 5)] {
        let mut stage = plan().start();
        if reported > 0 {
            stage.take(&stage.reports(reported));
        }
        stage.wake();
        assert_eq!(stage.world(), (0, booked));
    }
    let mut stage = plan().start();
    stage.take(&stage.ended(Ok(object("result")), 3));
    assert_eq!(stage.world(), (0, 3), "it is known");
    let mut stage = plan().start();
    stage.take(&stage.failed(Code::ToolAgentLost, Executed::No));
    assert_eq!(stage.world(), (0, 0), "it never began");
}

#[test]
fn t041_a_budget_stops_the_run_that_passes_it() {
    let own: AccountId = "run:w/r".parse().expect("an account id");
    let mut stage = Plan::of(|spec| {
        spec.account = own.clone();
        spec.account_parent = Some(world_account());
        spec.budget_micro = Some(400);
    })
    .start();
    for so_far in [100, 200, 300, 400] {
        stage.take(&stage.reports(so_far));
        assert_stands(&stage, RunStatus::Running, None);
    }
    let stopped = stage.take(&stage.reports(500));
    assert_eq!(effects(&stopped.effects), ["cancel"]);
    assert_eq!(kinds(&stopped.entries), ["cost_reported", "ended"]);
    assert_stands(&stage, RunStatus::Failed, Some(Code::BudgetExceeded));
    assert_eq!(stage.error().details["account"], own.as_str());
    assert_eq!(stage.error().details["missing_micro"], 100);
    assert_eq!((stage.world(), stage.run.cost_micro), ((0, 500), 500));
}

#[test]
fn t041_an_account_above_stops_the_run_as_well_and_one_that_is_stopping_is_let_be() {
    let mut stage = Plan::of(PRICED).limit(2 * HOLD).start();
    let mut canceled = stage.clone();
    stage.take(&stage.reports(2 * HOLD + 1));
    assert_stands(&stage, RunStatus::Failed, Some(Code::BudgetExceeded));

    canceled.take(&cancel());
    canceled.take(&canceled.reports(5 * HOLD));
    assert_eq!(canceled.world(), (5 * HOLD, 0), "what is spent is spent");
    canceled.take(&canceled.ended(Ok(object("result")), 0));
    assert_eq!((canceled.status(), canceled.world()), (RunStatus::Succeeded, (0, 5 * HOLD)));
}

#[test]
fn t041_what_comes_after_the_end_is_booked_once_as_a_correction() {
    let mut stage = Plan::of(PRICED).limit(HOLD).start();
    stage.take(&stage.reports(40));
    let report = |cost_micro| RunInput::CostReported {
        attempt_id: "2a-u1".parse().expect("an id"),
        cost_micro,
    };
    let last = stage.ended(Ok(object("result")), 75);
    stage.wake();
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolTimeout));
    let late = stage.take(&report(60));
    assert_eq!(ops(&late), [("charge", 20)]);
    stage.ignore(&report(60));
    stage.ignore(&report(30));
    assert!(stage.run.is_incomplete());
    assert_eq!(ops(&stage.take(&last)), [("charge", 15)]);
    assert!(!stage.run.is_incomplete(), "now it has said all");
    stage.ignore(&last);
    assert_eq!(ops(&stage.take(&report(500))), [("charge", 425), ("learn", 500)]);
    assert_stands(&stage, RunStatus::Failed, Some(Code::ToolTimeout));
    assert_eq!((stage.world(), stage.run.cost_micro), ((0, 500), 500));
    let corrected = stage.audit.iter().filter(|record| record.event == "run.cost_corrected");
    assert_eq!(corrected.count(), 3);
}

#[test]
fn t041_what_pretends_costs_nothing_and_says_what_it_would_have_cost() {
    let mut stage = Plan::of(|spec| spec.mode = Mode::Mock).limit(0).start();
    stage.take(&stage.reports(70));
    let ended = stage.take(&stage.ended(Ok(object("result")), 90));
    assert_eq!(ops(&ended), [("", 0); 0]);
    let run = &stage.run;
    assert_eq!((run.cost_micro, run.would_cost_micro, run.is_over_hold()), (0, 90, false));
    assert_eq!(stage.world(), (0, 0));
}

#[test]
fn t041_one_report_is_believed_up_to_a_multiple_of_the_hold() {
    for (hold, most) in [(0, COST_REPORT_MICRO_MIN), (1_000_000, 1_000_000_000)] {
        let mut during = Plan::of(|spec| spec.hold_micro = hold).start();
        let mut after = during.clone();
        let ended = during.ended(Ok(object("result")), 0);
        during.take(&during.reports(u64::MAX));
        during.take(&ended);
        after.take(&after.ended(Ok(object("result")), most + 1));
        for stage in [during, after] {
            assert_eq!((stage.world(), stage.run.capped), ((0, most), true));
            assert_stands(&stage, RunStatus::Succeeded, None);
            let told = stage.audit.iter().find(|record| record.event == "run.cost_capped");
            assert_eq!(told.expect("told").facts["cost_micro"], most);
        }
        let mut exact = Plan::of(|spec| spec.hold_micro = hold).start();
        exact.take(&exact.ended(Ok(object("result")), most));
        assert_eq!((exact.world(), exact.run.capped), ((0, most), false));
    }
}
