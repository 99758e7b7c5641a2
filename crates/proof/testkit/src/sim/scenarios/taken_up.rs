//! A shard alone that is loaded anew while an attempt is under way: what is taken up again, and who
//! is believed that it never began.

use serde_json::json;
use wharf_domain::run::{AttemptError, AttemptReport, RunInput};
use wharf_domain::{Availability, Run};
use wharf_engine::book::Adoption;
use wharf_engine::shard::{Create, Effect, Input, Output, Providers, Shard, StoredShard};
use wharf_memory::MemoryState;
use wharf_ports::Dispatch;
use wharf_vocab::limits::LEASE_MS;
use wharf_vocab::{
    AttemptId, Code, Durability, Executed, Fault, Incarnation, NodeId, Place, RunKey, RunStatus,
    ShardId, StreamKind, Timestamp,
};

use super::super::BEGIN;
use super::super::node::read_run;
use super::super::stage::{self, Names, Request, TOOLS};
use super::super::store::audit_key;

/// A shard whose batches are committed when it is let.
struct Alone {
    shard: Shard,
    /// Whether its core is one of several.
    among_others: bool,
    state: MemoryState,
    key: RunKey,
    now: Timestamp,
}

/// The lease of another life of the one core, and providers that are there.
fn loaded(state: &mut MemoryState, id: ShardId, life: u64, among_others: bool) -> Shard {
    let node = NodeId::new("core").expect("valid");
    let lease = state.acquire(&node, &[id], LEASE_MS, BEGIN).remove(0);
    let place = Place { node, incarnation: Incarnation(life) };
    let providers = Providers::at(place);
    let providers = if among_others { providers.among_others() } else { providers };
    for tool in TOOLS {
        providers.set(&tool.provider(), Availability::Up);
    }
    Shard::new(lease, life, providers)
}

impl Alone {
    /// A run of a provider that can be attached to, whose first attempt was handed over.
    fn begun(among_others: bool) -> (Self, AttemptId) {
        let world = stage::worlds()[0].0.clone();
        let key = Names::new().fresh(&world);
        let mut state = MemoryState::new(&audit_key());
        let shard = loaded(&mut state, key.shard(), 1, among_others);
        let mut alone = Self { shard, among_others, state, key: key.clone(), now: BEGIN };
        let request = Request {
            tool: TOOLS.iter().position(|tool| tool.name == "remote").expect("of the cast"),
            input: 1,
            durability: Durability::Journal,
            timeout_ms: 60_000,
            budget: None,
            idempotency_key: None,
            caller: stage::callers()[2].clone(),
            parent: None,
            flow: None,
            step: None,
        };
        let create = Create { spec: request.spec(&key, 0), key, claim: None, ticket: None };
        let effects = alone.does(Input::Create(Box::new(create)));
        let begun = dispatched(&effects);
        assert_eq!(begun.len(), 1, "{effects:?}");
        let attempt = begun[0].attempt_id.clone();
        (alone, attempt)
    }

    fn steps(&mut self, input: Input) -> Output {
        self.now = self.now.plus_ms(10);
        self.shard.step(self.now, input)
    }

    /// One input, and all that follows from it once it is committed.
    fn does(&mut self, input: Input) -> Vec<Effect> {
        let out = self.steps(input);
        self.settles(out)
    }

    fn settles(&mut self, out: Output) -> Vec<Effect> {
        let Output { batches, mut effects } = out;
        for batch in batches {
            self.state.commit_one(&batch).expect("nothing is in its way");
            effects.extend(self.does(Input::Committed(batch.no)));
        }
        effects
    }

    fn told(&mut self, input: RunInput) -> Vec<Effect> {
        self.does(Input::Run { key: self.key.clone(), input, ticket: None })
    }

    /// Somebody says that an attempt failed before it did anything.
    fn never_began(&mut self, attempt: &AttemptId, fault: Fault) -> Vec<Effect> {
        let report = AttemptReport::new(Err(AttemptError::Failed(fault, Executed::No)), 0);
        self.told(RunInput::AttemptEnded { attempt_id: attempt.clone(), report })
    }

    /// The shard is loaded anew by a later life of its core, with what the earlier one left.
    fn is_loaded_anew(&mut self) -> Vec<Effect> {
        let id = self.shard.id();
        let next = loaded(&mut self.state, id, 2, self.among_others);
        let left = std::mem::replace(&mut self.shard, next).unload();
        let runs = self.state.load_open(StreamKind::Run, &[id]);
        let runs = runs.iter().map(|(_, stored)| (read_run(stored).expect("a run"), stored.seq));
        self.shard.restore(StoredShard { runs: runs.collect(), ..StoredShard::default() });
        let mut out = self.shard.take_left(self.now, left);
        let more = self.shard.outstanding(self.now);
        out.batches.extend(more.batches);
        out.effects.extend(more.effects);
        self.settles(out)
    }

    fn adopts(&mut self, attempt: &AttemptId, found: Adoption) -> Vec<Effect> {
        let (key, attempt_id, epoch) = (self.key.clone(), attempt.clone(), self.shard.epoch());
        self.does(Input::Adopted { key, attempt_id, epoch, found })
    }

    fn run(&self) -> Run {
        let stored = self.state.load(&self.key.stream()).expect("it was made");
        read_run(&stored).expect("a run")
    }
}

fn dispatched(effects: &[Effect]) -> Vec<&Dispatch> {
    let dispatched = effects.iter().filter_map(|effect| match effect {
        Effect::Dispatch { dispatch, .. } => Some(&**dispatch),
        _ => None,
    });
    dispatched.collect()
}

fn busy() -> Fault {
    Fault::new(Code::ToolBusy, "There is no room.")
}

#[test]
fn s030_an_attempt_that_began_while_its_shard_was_loaded_is_not_taken_up_again() {
    let (mut alone, first) = Alone::begun(false);
    alone.never_began(&first, busy());
    assert_eq!(alone.run().status(), RunStatus::Queued, "it waits for room");
    // Its turn has come, and the shard goes before that is written down.
    let turn = Input::Run { key: alone.key.clone(), input: RunInput::Turn, ticket: None };
    assert_eq!(alone.steps(turn).batches.len(), 1);
    let effects = alone.is_loaded_anew();
    let handed_over: Vec<_> = dispatched(&effects).iter().map(|it| it.reattach).collect();
    assert_eq!(handed_over, [false], "once, as what it is: {effects:?}");
    let active = alone.run().active.map(|active| active.id);
    assert!(active.is_some_and(|active| active != first), "another attempt");
}

#[test]
fn s030_what_was_taken_up_again_is_not_said_never_to_have_begun() {
    // Whether the run waits for room after its attempt was said never to have begun.
    let found = [
        (Adoption::Gone, false),
        (Adoption::TakenUp, false),
        // Where it began is still there, so nobody else was given it.
        (Adoption::Working, true),
    ];
    for (found, believed) in found {
        let (mut alone, attempt) = Alone::begun(true);
        alone.is_loaded_anew();
        let effects = alone.adopts(&attempt, found);
        let again: Vec<_> = dispatched(&effects).iter().map(|it| it.reattach).collect();
        assert_eq!(again, vec![true; usize::from(found == Adoption::Gone)], "{found:?}");

        // It was on its way since before, from the place that is gone.
        alone.never_began(&attempt, busy());
        let run = alone.run();
        if believed {
            assert_eq!(run.status(), RunStatus::Queued, "{found:?}");
        } else {
            assert_eq!((run.status(), run.attempt), (RunStatus::Failed, 1), "{found:?}");
            let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("why");
            assert_eq!(error.details["executed"], "maybe", "{found:?}: {error}");
        }
    }
}

#[test]
fn s030_nobody_is_believed_before_it_is_known_where_an_attempt_is() {
    let (mut alone, attempt) = Alone::begun(true);
    alone.is_loaded_anew();
    alone.never_began(&attempt, busy());
    assert_eq!(alone.run().status(), RunStatus::Failed, "another core may have taken it up again");
}

#[test]
fn s030_a_place_that_answers_when_it_is_gone_is_too_late() {
    for late in [Adoption::NeverBegun, Adoption::Working] {
        let (mut alone, attempt) = Alone::begun(true);
        alone.is_loaded_anew();
        alone.adopts(&attempt, Adoption::Gone);
        let effects = alone.adopts(&attempt, late);
        assert!(effects.is_empty(), "{late:?}: {effects:?}");
        let active = alone.run().active.map(|active| active.id);
        assert_eq!(active.as_ref(), Some(&attempt), "{late:?}: it goes on");
        alone.never_began(&attempt, busy());
        assert_eq!(alone.run().status(), RunStatus::Failed, "{late:?}");
    }
}

#[test]
fn s030_a_core_that_is_alone_hears_no_words_of_other_places() {
    let (mut alone, attempt) = Alone::begun(false);
    alone.is_loaded_anew();
    alone.adopts(&attempt, Adoption::Gone);
    alone.never_began(&attempt, busy());
    assert_eq!(alone.run().status(), RunStatus::Queued, "it waits for room");
}

#[test]
fn s030_a_provider_proposes_what_it_was_given_again() {
    let (mut alone, attempt) = Alone::begun(true);
    alone.is_loaded_anew();
    alone.adopts(&attempt, Adoption::Gone);
    let wanted = Fault::new(Code::ToolDirectiveRequired, "It acts only when it is allowed to.")
        .with("proposal", json!({ "what": 1 }));
    alone.never_began(&attempt, wanted);
    let run = alone.run();
    assert_eq!(run.status(), RunStatus::Waiting, "{:?}", run.outcome);
}

#[test]
fn s030_what_was_to_be_gone_on_with_is_found_out_anew_by_each_life() {
    let (mut alone, attempt) = Alone::begun(true);
    alone.is_loaded_anew();
    // Its place was gone, and the shard goes before that has led to anything.
    let note = RunInput::CostReported { attempt_id: attempt.clone(), cost_micro: 1 };
    let note = Input::Run { key: alone.key.clone(), input: note, ticket: None };
    alone.steps(note);
    let (key, epoch) = (alone.key.clone(), alone.shard.epoch());
    alone.steps(Input::Adopted { key, attempt_id: attempt, epoch, found: Adoption::Gone });
    let effects = alone.is_loaded_anew();
    assert!(dispatched(&effects).is_empty(), "its place is asked first: {effects:?}");
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Adopt { .. })), "{effects:?}");
}
