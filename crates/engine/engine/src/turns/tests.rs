use serde_json::json;
use wharf_domain::Caller;
use wharf_vocab::{AccountId, Digest, RunId};

use super::*;

const NOW: Timestamp = Timestamp(1_000);

fn turn(caller: &str, run: &str) -> Turn {
    let digest = Digest::of(&[run.as_bytes()]);
    let world = WorldId::new("w").expect("valid");
    let mut spec: RunSpec = serde_json::from_value(json!({
        "tool": "acme/work", "tool_hash": digest, "inputs": {}, "mode": "real",
        "durability": "journal", "caller": Caller::owner().to_ref(), "digest": digest,
        "timeout_ms": 1_000, "account": AccountId::of_world(&world),
    }))
    .expect("a run");
    spec.caller.grant = caller.parse().expect("valid");
    let run = RunKey { world, run: RunId::new(run).expect("valid") };
    Turn { run, spec: Arc::new(spec), from: NOW, again: false }
}

fn acme() -> ProviderId {
    ProviderId::new("acme").expect("valid")
}

fn names(runs: &[RunKey]) -> Vec<&str> {
    runs.iter().map(|key| key.run.as_str()).collect()
}

/// Calls as many as fit beside those that were called before.
fn call(turns: &mut Turns, room: usize) -> Vec<RunKey> {
    turns.call(NOW, |_, called| called < room)
}

#[test]
fn callers_take_turns_however_much_one_of_them_has_asked_for() {
    let mut turns = Turns::default();
    for n in 0..5 {
        turns.push(turn("ann", &format!("a{n}")));
    }
    turns.push(turn("bob", "b0"));
    turns.push(turn("cid", "c0"));
    assert_eq!(names(&call(&mut turns, 4)), ["a0", "b0", "c0", "a1"]);
    assert_eq!(names(&call(&mut turns, 4)), [""; 0], "nobody was handed over yet");
    turns.remove(&acme(), &turn("ann", "a0").run);
    assert_eq!(names(&call(&mut turns, 4)), ["a2"]);
}

#[test]
fn nobody_passes_those_who_wait_unless_it_is_their_turn() {
    let mut turns = Turns::default();
    let (first, second) = (turn("ann", "a0"), turn("ann", "a1"));
    assert!(turns.may_pass(&acme(), &first.run), "nobody waits");
    turns.push(first.clone());
    assert!(turns.is_full(&acme()) && !turns.may_pass(&acme(), &second.run));
    assert_eq!(names(&call(&mut turns, 1)), ["a0"]);
    assert!(turns.may_pass(&acme(), &first.run), "it is its turn");
    assert!(!turns.may_pass(&acme(), &second.run), "its place is taken");
    turns.remove(&acme(), &first.run);
    assert!(!turns.is_full(&acme()) && turns.may_pass(&acme(), &second.run));
}

#[test]
fn whoever_had_its_turn_in_vain_is_the_next_of_its_lane() {
    let mut turns = Turns::default();
    for run in ["a0", "a1"] {
        turns.push(turn("ann", run));
    }
    assert_eq!(names(&call(&mut turns, 1)), ["a0"]);
    turns.push(Turn { again: true, ..turn("ann", "a0") });
    turns.push(Turn { again: true, ..turn("ann", "a0") });
    assert_eq!(turns.waiting(&acme()), 2, "it stands in line once");
    assert_eq!(names(&call(&mut turns, 2)), ["a0", "a1"]);
}

#[test]
fn a_run_for_which_there_is_no_room_does_not_block_the_others() {
    let mut turns = Turns::default();
    turns.push(Turn { from: NOW.plus_ms(5), ..turn("ann", "later") });
    turns.push(turn("bob", "fits-not"));
    turns.push(turn("cid", "fits"));
    let called = turns.call(NOW, |turn, _| turn.run.run.as_str() != "fits-not");
    assert_eq!(names(&called), ["fits"]);
    assert_eq!(turns.next_at(), Some(NOW), "somebody may have room at any moment");
}

#[test]
fn r093_the_line_is_bounded_for_all_and_for_each() {
    let mut turns = Turns::default();
    let (ann, bob) = (turn("ann", "x"), turn("bob", "x"));
    for n in 0..CALLER_RUNS_IN_LINE_MAX {
        assert_eq!(turns.admit(&ann.run, &ann.spec), Ok(()));
        turns.push(turn("ann", &format!("a{n}")));
    }
    let fault = turns.admit(&ann.run, &ann.spec).expect_err("her share is used up");
    assert!(fault.is(Code::ToolBusy) && fault.details["retry_after_ms"] == 1_000, "{fault}");
    assert_eq!(turns.admit(&bob.run, &bob.spec), Ok(()), "his is not");
    for n in 0..PROVIDER_RUNS_IN_LINE_MAX - CALLER_RUNS_IN_LINE_MAX {
        turns.push(turn("bob", &format!("b{n}")));
    }
    let cid = turn("cid", "x");
    assert!(turns.admit(&cid.run, &cid.spec).is_err(), "the line is full");
}

#[test]
fn what_waits_in_a_shard_is_forgotten_with_it() {
    let mut turns = Turns::default();
    let (one, other) = (turn("ann", "a0"), turn("ann", "a1"));
    turns.push(one.clone());
    turns.push(other.clone());
    assert_eq!(names(&call(&mut turns, 1)), ["a0"]);
    turns.forget(&[one.run.shard(), other.run.shard()]);
    assert!(!turns.is_full(&acme()));
    assert_eq!(turns.next_at(), None);
}
