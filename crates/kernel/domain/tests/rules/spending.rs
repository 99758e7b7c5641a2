//! Many runs on one account: whatever is reported, in any order, before, with and after the end,
//! what is booked is what was reported, nothing stays held, and a limit is passed by no more than
//! what attempts reported beyond what was held for them, or when nothing was held any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wharf_domain::run::{AttemptError, AttemptReport, Cx, RunInput};
use wharf_domain::{Availability, Fresh, Ledger, LedgerOp, Run, RunSpec};
use wharf_vocab::limits::CANCEL_GRACE_MS;
use wharf_vocab::{
    AttemptId, Code, Executed, Fault, Micro, RunKey, ShardId, Timestamp, UnknownCost,
};

use crate::stage::{Plan, cancel, object, run_key, world_account};

const RUNS: usize = 6;

/// What happens to one of the runs.
#[derive(Debug, Clone, Copy)]
enum Step {
    Start,
    Report(Micro),
    Succeed(Micro),
    Fail(Micro),
    Lose(Micro),
    Kill,
    Cancel,
    TimeOut,
    /// A report of the attempt before the last one.
    Former(Micro),
}

fn step() -> impl Strategy<Value = Step> {
    let cost = || 0..160_u64;
    prop_oneof![
        4 => Just(Step::Start),
        5 => cost().prop_map(Step::Report),
        2 => cost().prop_map(Step::Succeed),
        2 => cost().prop_map(Step::Fail),
        1 => cost().prop_map(Step::Lose),
        1 => Just(Step::Kill),
        1 => Just(Step::Cancel),
        1 => Just(Step::TimeOut),
        2 => cost().prop_map(Step::Former),
    ]
}

struct Numbers(u64);

impl Fresh for Numbers {
    fn unique(&mut self) -> String {
        self.0 += 1;
        format!("u{}", self.0)
    }

    fn random(&mut self) -> u64 {
        self.0
    }
}

/// Runs that share a ledger, and what was said about each attempt.
struct Books {
    ledger: Ledger,
    spec: Arc<RunSpec>,
    runs: Vec<Option<Run>>,
    made: usize,
    now: Timestamp,
    fresh: Numbers,
    /// The largest report of each attempt, and what was held for it when it began.
    said: BTreeMap<AttemptId, (Micro, Micro)>,
    /// What came when nothing was held any more.
    late: Micro,
}

impl Books {
    fn new(limit: Micro, hold: Micro, retries: bool) -> Self {
        let mut ledger = Ledger::default();
        let open = LedgerOp::Open { account: world_account(), parent: None, limit: Some(limit) };
        ledger.apply(&[open]).expect("opens");
        let spec = Plan::of(|spec| {
            spec.hold_micro = hold;
            spec.side_effect_free = retries;
            spec.unknown_cost = UnknownCost::Reported;
        })
        .spec;
        let (now, fresh) = (Timestamp(1_000_000), Numbers(0));
        let (spec, runs) = (Arc::new(spec), vec![None; RUNS]);
        Self { ledger, spec, runs, made: 0, now, fresh, said: BTreeMap::new(), late: 0 }
    }

    fn start(&mut self, at: usize) {
        if self.runs[at].as_ref().is_some_and(|run| !run.is_over()) {
            return;
        }
        self.made += 1;
        let run = format!("r{}", self.made).parse().expect("a run id");
        let (provider, shard) = (Availability::Up, ShardId(0));
        let fresh = &mut self.fresh;
        let mut cx = Cx {
            now: self.now,
            shard,
            provider: &provider,
            full: false,
            place: None,
            refused: None,
            fresh,
        };
        let decision = Run::create(&mut cx, RunKey { run, ..run_key() }, Arc::clone(&self.spec));
        if self.ledger.apply(&decision.ledger).is_ok() {
            self.keep(at, decision.next);
        }
    }

    fn keep(&mut self, at: usize, run: Run) {
        if let Some(active) = &run.active {
            let held = active.hold.as_ref().map_or(0, |held| held.amount_micro);
            self.said.entry(active.id.clone()).or_insert((0, held));
        }
        self.runs[at] = Some(run);
    }

    fn offer(&mut self, at: usize, input: &RunInput) {
        let Some(run) = self.runs[at].clone() else { return };
        let (provider, shard) = (Availability::Up, ShardId(0));
        let mut refused = None;
        for _ in 0..2 {
            let (now, fresh) = (self.now, &mut self.fresh);
            let mut cx = Cx {
                now,
                shard,
                provider: &provider,
                full: false,
                place: None,
                refused: refused.as_ref(),
                fresh,
            };
            let decision = run.decide(&mut cx, input).expect("these are never rejected");
            match self.ledger.apply(&decision.ledger) {
                Ok(()) => return self.keep(at, decision.next),
                Err(funds) => refused = Some(funds),
            }
        }
        panic!("a refused input is taken the second time");
    }

    /// Says that an attempt has cost so much.
    fn note(&mut self, attempt: &AttemptId, cost: Micro, active: bool) {
        if let Some((said, _)) = self.said.get_mut(attempt) {
            self.late += if active { 0 } else { cost.saturating_sub(*said) };
            *said = (*said).max(cost);
        }
    }

    fn play(&mut self, at: usize, step: Step) {
        if matches!(step, Step::Start) {
            return self.start(at);
        }
        let Some(run) = &self.runs[at] else { return };
        let booked: Vec<_> = run.booked.iter().map(|booked| booked.attempt_id.clone()).collect();
        let active = run.active.as_ref().map(|attempt| attempt.id.clone());
        let last = active.clone().or(booked.last().cloned());
        let ends = |attempt_id: AttemptId, result, cost| RunInput::AttemptEnded {
            attempt_id,
            report: AttemptReport::new(result, cost),
        };
        let failed = |code| Err(AttemptError::Failed(Fault::new(code, "No."), Executed::Maybe));
        let told = |attempt: Option<AttemptId>, cost| attempt.map(|attempt| (attempt, cost));
        let told = match step {
            Step::Report(cost) | Step::Succeed(cost) | Step::Fail(cost) | Step::Lose(cost) => {
                told(last, cost)
            }
            Step::Former(cost) => told(booked.first().cloned(), cost),
            _ => None,
        };
        if let Some((attempt, cost)) = &told {
            self.note(attempt, *cost, active.as_ref() == Some(attempt));
        }
        let input = match (step, told) {
            (Step::Report(_) | Step::Former(_), Some((attempt_id, cost_micro))) => {
                RunInput::CostReported { attempt_id, cost_micro }
            }
            (Step::Succeed(_), Some((attempt, cost))) => ends(attempt, Ok(object("out")), cost),
            (Step::Fail(_), Some((attempt, cost))) => ends(attempt, failed(Code::ToolBusy), cost),
            (Step::Lose(_), Some((attempt, cost))) => {
                ends(attempt, failed(Code::ToolAgentLost), cost)
            }
            (Step::Kill, _) => RunInput::Recovered,
            (Step::Cancel, _) => cancel(),
            (Step::TimeOut, _) => {
                self.now = self.now.plus_ms(120_000);
                RunInput::Tick
            }
            _ => return,
        };
        self.offer(at, &input);
    }

    fn check(&self) {
        let account = self.ledger.account(&world_account()).expect("opened");
        let beyond: Micro = self.said.values().map(|(said, held)| said.saturating_sub(*held)).sum();
        let beyond = beyond + self.late;
        assert!(account.over() <= beyond, "{account:?} is over by more than {beyond}");
        let cost: Micro = self.runs.iter().flatten().map(|run| run.cost_micro).sum();
        assert!(account.spent >= cost);
    }

    /// Lets all runs come to their end, and compares what is booked with what was said.
    fn close(&mut self) {
        for at in 0..RUNS {
            for _ in 0..8 {
                self.now = self.now.plus_ms(120_000 + CANCEL_GRACE_MS);
                self.offer(at, &RunInput::Tick);
            }
            assert!(self.runs[at].as_ref().is_none_or(Run::is_over));
        }
        let account = self.ledger.account(&world_account()).expect("opened");
        let said: Micro = self.said.values().map(|(said, _)| said).sum();
        assert_eq!((account.held, account.spent), (0, said), "booked is what was reported");
        assert_eq!(self.ledger.holds().count(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        rng_seed: RngSeed::Fixed(41),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn t041_what_is_booked_is_what_was_reported_whatever_the_order(
        limit in 0..900_u64,
        hold in prop_oneof![Just(0_u64), Just(100)],
        retries in any::<bool>(),
        steps in prop::collection::vec((0..RUNS, step()), 1..80),
    ) {
        let mut books = Books::new(limit, hold, retries);
        for (at, step) in steps {
            books.play(at, step);
            books.check();
        }
        books.close();
    }
}
