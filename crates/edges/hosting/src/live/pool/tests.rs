//! Which processes are there and which attempt goes where.

use wharf_domain::{Caller, RunSpec};
use wharf_engine::EffectId;
use wharf_vocab::{
    AccountId, Code, CommitNo, Digest, Durability, Epoch, Mode, RunId, RunKey, Timestamp,
};

use super::admission::WAITING_MAX;
use super::*;

fn launch(name: &str) -> LaunchId {
    LaunchId::new(name).expect("valid")
}

/// A pool with one connected process, and what it is told.
fn pool(isolation: Isolation) -> (Pool, InstanceChannels, mpsc::Receiver<InboxCommand>) {
    let mut pool = Pool::default();
    pool.set_policy(PoolPolicy { isolation, ..PoolPolicy::default() });
    let begun = pool.begin(&launch("l1"));
    let (commands, told) = mpsc::channel(4);
    let slot = pool.slot(&launch("l1")).expect("begun");
    slot.conn = Some(commands);
    slot.phase = ProcessPhase::Running;
    (pool, begun, told)
}

#[test]
fn one_process_is_enough_for_all_and_one_spare_for_worlds_and_runs() {
    for isolation in [Isolation::Shared, Isolation::World, Isolation::Run] {
        let (mut pool, _begun, _told) = pool(isolation);
        assert_eq!(pool.missing(), 0, "{isolation}");
        pool.slots[0].leaving = true;
        assert_eq!(pool.missing(), 1, "{isolation}");
        for number in 0..INSTANCES_MAX - 1 {
            pool.begin(&launch(&format!("x{number}")));
        }
        pool.slots.iter_mut().for_each(|slot| slot.leaving = true);
        assert_eq!(pool.missing(), 0, "{isolation}: there are as many as may be");
    }
}

#[tokio::test(start_paused = true)]
async fn the_process_of_a_world_ends_when_it_had_nothing_to_do_for_long() {
    let (mut pool, mut begun, _told) = pool(Isolation::World);
    assert_eq!(pool.end_idle(Instant::now() + IDLE_MAX * 2), None, "a spare stays");
    pool.slots[0].owner = SlotOwner::World(WorldId::new("default").expect("valid"));
    pool.slots[0].calls = 1;
    assert_eq!(pool.end_idle(Instant::now() + IDLE_MAX * 2), None, "it works");
    let attempt = AttemptId::new("a1").expect("valid");
    pool.call_over(&launch("l1"), &attempt, false);
    let until = pool.end_idle(Instant::now()).expect("later");
    assert_eq!(until, Instant::now() + IDLE_MAX);
    assert!(begun.quits.try_recv().is_err());
    pool.end_idle(until);
    assert_eq!(begun.quits.try_recv(), Ok(ProcessStop::Stop));
    assert!(pool.slots[0].leaving);
}

const IDLE: Duration = Duration::from_secs(20);

/// A pool of processes that are there on demand.
fn on_demand(isolation: Isolation) -> Pool {
    let mut pool = Pool::default();
    pool.set_policy(PoolPolicy {
        isolation,
        upkeep: Upkeep::OnDemand { idle: IDLE },
        ..PoolPolicy::default()
    });
    pool
}

/// A process is connected and well.
fn connect(pool: &mut Pool, name: &str) -> mpsc::Receiver<InboxCommand> {
    let (commands, told) = mpsc::channel(4);
    let slot = pool.slot(&launch(name)).expect("begun");
    slot.conn = Some(commands);
    slot.phase = ProcessPhase::Running;
    told
}

fn dispatch(attempt: &str, world: &str) -> Dispatch {
    let digest = Digest::of(&[attempt.as_bytes()]);
    let world = WorldId::new(world).expect("valid");
    let spec: RunSpec = serde_json::from_value(serde_json::json!({
        "tool": "example/tool", "tool_hash": digest, "inputs": {}, "mode": Mode::Real,
        "durability": Durability::Journal, "caller": Caller::owner().to_ref(), "digest": digest,
        "timeout_ms": 1_000, "account": AccountId::of_world(&world),
    }))
    .expect("a run");
    let run = RunKey { world, run: RunId::new(attempt).expect("valid") };
    Dispatch {
        effect: EffectId { shard: run.shard(), epoch: Epoch(1), commit: CommitNo(1) },
        run,
        attempt_id: AttemptId::new(attempt).expect("valid"),
        attempt: 1,
        accepted: Timestamp(0),
        spec: Arc::new(spec),
        approval: None,
        deadline: None,
        reattach: false,
        notes: std::collections::BTreeMap::new(),
        trace: wharf_domain::trace::TraceHeaders::default(),
        lifeline: wharf_engine::Lifeline::default(),
    }
}

/// What whoever speaks with a process takes.
fn calls(pool: &mut Pool, name: &str) -> Vec<String> {
    let taken = std::iter::from_fn(|| match pool.take(&launch(name))? {
        NextAttempt::Taken(dispatch) => Some(dispatch.attempt_id.to_string()),
        NextAttempt::Look(..) => None,
    });
    taken.collect()
}

fn over(pool: &mut Pool, name: &str, attempt: &str) {
    pool.call_over(&launch(name), &AttemptId::new(attempt).expect("valid"), false);
}

#[tokio::test(start_paused = true)]
async fn on_demand_no_process_is_there_before_an_attempt_waits_for_it() {
    for isolation in [Isolation::Shared, Isolation::World, Isolation::Run] {
        let mut pool = on_demand(isolation);
        assert_eq!(pool.missing(), 0, "{isolation}: nothing waits");
        pool.place(dispatch("a1", "one")).expect("waits");
        pool.place(dispatch("a2", "two")).expect("waits");
        let needed = if isolation == Isolation::Shared { 1 } else { 2 };
        assert_eq!(pool.missing(), needed, "{isolation}");
        let _begun = pool.begin(&launch("l1"));
        assert_eq!(pool.missing(), needed - 1, "{isolation}: one is on its way");
        let _told = connect(&mut pool, "l1");
        let got = calls(&mut pool, "l1");
        let both = isolation == Isolation::Shared;
        assert_eq!(got, if both { vec!["a1", "a2"] } else { vec!["a1"] }, "{isolation}");
        assert_eq!(pool.missing(), needed - 1, "{isolation}: no spare");
    }
}

#[tokio::test(start_paused = true)]
async fn on_demand_a_process_ends_when_it_had_nothing_to_do_for_long() {
    let mut pool = on_demand(Isolation::Shared);
    pool.place(dispatch("a1", "one")).expect("waits");
    let mut begun = pool.begin(&launch("l1"));
    assert_eq!(pool.end_idle(Instant::now() + IDLE * 2), None, "it only starts");
    let _told = connect(&mut pool, "l1");
    assert_eq!(calls(&mut pool, "l1"), ["a1"]);
    assert_eq!(pool.end_idle(Instant::now() + IDLE * 2), None, "it works");
    pool.call_over(&launch("l1"), &AttemptId::new("a1").expect("valid"), false);
    assert_eq!(pool.end_idle(Instant::now()), Some(Instant::now() + IDLE));
    assert!(begun.quits.try_recv().is_err());
    pool.end_idle(Instant::now() + IDLE);
    assert_eq!(begun.quits.try_recv(), Ok(ProcessStop::Stop));
    pool.place(dispatch("a2", "one")).expect("waits for the next");
    assert_eq!(pool.missing(), 1);
}

#[tokio::test(start_paused = true)]
async fn t042_an_attempt_that_is_taken_up_again_goes_to_whoever_has_it() {
    let mut pool = on_demand(Isolation::Run);
    pool.place(dispatch("a1", "one")).expect("waits");
    let _begun = pool.begin(&launch("l1"));
    let _told = connect(&mut pool, "l1");
    assert_eq!(calls(&mut pool, "l1"), ["a1"]);
    let again = Dispatch { reattach: true, ..dispatch("a1", "one") };
    pool.place(again.clone()).expect("known");
    assert!(calls(&mut pool, "l1").is_empty(), "whoever has it goes on");
    assert_eq!((pool.slots[0].calls, pool.missing()), (1, 0), "it is still one call");
    pool.end(&launch("l1"));
    pool.place(again).expect("waits like any other");
    assert_eq!(pool.missing(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_attempts_wait_for_a_process() {
    let mut pool = on_demand(Isolation::Shared);
    for number in 0..WAITING_MAX {
        pool.place(dispatch(&format!("a{number}"), "one")).expect("waits");
    }
    let fault = pool.place(dispatch("more", "one")).expect_err("too many");
    assert!(fault.is(Code::ToolBusy), "{fault}");
}

/// Connected processes that all runs share.
fn shared(names: &[&str]) -> (Pool, Vec<mpsc::Receiver<InboxCommand>>) {
    let mut pool = Pool::default();
    let told = names.iter().map(|name| {
        let _channels = pool.begin(&launch(name));
        connect(&mut pool, name)
    });
    let told = told.collect();
    (pool, told)
}

#[tokio::test(start_paused = true)]
async fn attempts_wait_in_one_queue_until_there_is_room_and_keep_their_order() {
    let (mut pool, _told) = shared(&["l1"]);
    pool.limit_calls(4);
    pool.limit_calls_of(&launch("l1"), 2);
    pool.place(dispatch("a1", "one")).expect("taken");
    pool.place(dispatch("a2", "two")).expect("taken");
    let fault = pool.place(dispatch("a3", "one")).expect_err("both are about to come");
    assert!(fault.is(Code::ToolBusy), "{fault}");
    assert!(!pool.has_room(&WorldId::new("one").expect("valid"), 0));
    assert_eq!(calls(&mut pool, "l1"), ["a1", "a2"]);
    over(&mut pool, "l1", "a2");
    assert!(pool.has_room(&WorldId::new("one").expect("valid"), 0));
    assert!(!pool.has_room(&WorldId::new("one").expect("valid"), 1), "for one, not for two");
    pool.place(dispatch("a3", "one")).expect("taken");
    assert_eq!(calls(&mut pool, "l1"), ["a3"]);
}

#[tokio::test(start_paused = true)]
async fn all_processes_share_what_a_provider_takes_at_once() {
    let (mut pool, _told) = shared(&["l1", "l2"]);
    pool.limit_calls(2);
    pool.place(dispatch("a1", "one")).expect("taken");
    assert!(calls(&mut pool, "l1").is_empty(), "the newest takes the calls of all");
    assert_eq!(calls(&mut pool, "l2"), ["a1"]);
    pool.slots[1].phase = ProcessPhase::Unhealthy;
    pool.place(dispatch("a2", "one")).expect("taken");
    assert!(calls(&mut pool, "l2").is_empty(), "a well one comes first");
    assert_eq!(calls(&mut pool, "l1"), ["a2"]);
    assert!(pool.place(dispatch("a3", "one")).is_err(), "both processes share the room");
    pool.limit_calls(3);
    pool.place(dispatch("a3", "one")).expect("a limit that was raised holds at once");
    pool.limit_calls(1);
    assert!(calls(&mut pool, "l1").is_empty(), "and so does one that was lowered");
    over(&mut pool, "l1", "a2");
    over(&mut pool, "l2", "a1");
    assert_eq!(calls(&mut pool, "l1"), ["a3"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_process_that_is_gone_is_given_up_or_waits_for_the_next() {
    let (mut pool, _told) = shared(&["l1"]);
    pool.place(dispatch("a1", "one")).expect("taken");
    assert!(pool.take_stranded().is_empty(), "it will be taken");
    pool.slots[0].conn = None;
    assert_eq!(pool.take_stranded().len(), 1, "nobody waits for a start without an end");
    let mut pool = on_demand(Isolation::Run);
    pool.place(dispatch("a1", "one")).expect("waits");
    let _channels = pool.begin(&launch("l1"));
    pool.end(&launch("l1"));
    assert!(pool.take_stranded().is_empty());
    assert_eq!(pool.missing(), 1, "another is started");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_taken_once_the_files_were_looked_at_after_it_came() {
    let (mut pool, _told) = shared(&["l1"]);
    pool.watch = Some(Arc::new(FileWatch::of_nothing()));
    pool.place(dispatch("a1", "one")).expect("taken");
    let seen = must_look(&mut pool).expect("somebody must look");
    pool.place(dispatch("a2", "one")).expect("taken");
    pool.looked(seen);
    assert_eq!(calls(&mut pool, "l1"), ["a1"], "the other came after the look");
    let canceled = pool.take_queued(&AttemptId::new("a2").expect("valid"));
    assert!(canceled.is_some(), "what waits can be canceled");
    assert_eq!(must_look(&mut pool), None, "for nobody");
    pool.looked(seen - 1);
    pool.place(dispatch("a3", "one")).expect("taken");
    assert!(must_look(&mut pool).is_some(), "somebody must look again");
}

#[tokio::test(start_paused = true)]
async fn files_that_look_different_are_compared_once_before_anything_is_taken() {
    let (mut pool, _told) = shared(&["l1"]);
    pool.watch = Some(Arc::new(FileWatch::of_nothing()));
    pool.place(dispatch("a1", "one")).expect("taken");
    assert_eq!(pool.compare(), None, "they do not");
    pool.doubted();
    assert_eq!(must_look(&mut pool), None, "another look would find the same");
    let seen = pool.compare().expect("somebody must compare them");
    pool.doubted();
    assert_eq!(pool.compare(), None, "somebody does already");
    pool.place(dispatch("a2", "one")).expect("taken");
    assert!(calls(&mut pool, "l1").is_empty(), "nothing meanwhile");
    pool.compared(seen);
    assert_eq!(calls(&mut pool, "l1"), ["a1"], "the other came after that");
    pool.doubted();
    pool.compare().expect("somebody must compare them again");
    assert_eq!(pool.give_up_doubted().len(), 1);
    pool.place(dispatch("a3", "one")).expect("taken");
    assert!(must_look(&mut pool).is_some(), "which holds nobody up");
}

/// On behalf of how many attempts somebody must look at the files before any is taken.
fn must_look(pool: &mut Pool) -> Option<u64> {
    match pool.take(&launch("l1"))? {
        NextAttempt::Look(_, placed) => Some(placed),
        NextAttempt::Taken(dispatch) => panic!("{} was taken", dispatch.attempt_id),
    }
}

#[test]
fn m048_a_provider_that_must_be_seen_first_is_started_once_without_an_attempt() {
    let mut pool = Pool::default();
    let upkeep = Upkeep::OnDemand { idle: IDLE_MAX };
    pool.set_policy(PoolPolicy { upkeep, looks_first: true, ..PoolPolicy::default() });
    assert_eq!(pool.missing(), 1);
    let launch = LaunchId::new("l1").expect("valid");
    pool.begin(&launch);
    assert_eq!(pool.missing(), 0);
    pool.end(&launch);
    assert_eq!(pool.missing(), 1, "it was never connected");
    pool.begin(&launch);
    let (commands, _inbox) = mpsc::channel(1);
    assert!(pool.connect(&launch, commands).is_some());
    pool.end(&launch);
    assert_eq!(pool.missing(), 0, "from now on only attempts start it");
}

#[tokio::test(start_paused = true)]
async fn m048_while_runs_have_processes_of_their_own_one_more_is_kept_warm() {
    let mut pool = Pool::default();
    let upkeep = Upkeep::OnDemand { idle: IDLE };
    let isolation = Isolation::Run;
    pool.set_policy(PoolPolicy { isolation, upkeep, spare: true, ..PoolPolicy::default() });
    assert_eq!(pool.missing(), 0, "nothing waits");
    pool.place(dispatch("a1", "one")).expect("waits");
    assert_eq!(pool.missing(), 2, "one for it and one for the next");
    let _first = pool.begin(&launch("l1"));
    let mut second = pool.begin(&launch("l2"));
    let (_one, _two) = (connect(&mut pool, "l1"), connect(&mut pool, "l2"));
    assert_eq!(calls(&mut pool, "l1"), ["a1"]);
    assert_eq!(pool.missing(), 0, "one is there");
    assert_eq!(pool.end_idle(Instant::now() + IDLE * 2), None, "as long as there is work");
    over(&mut pool, "l1", "a1");
    let until = pool.end_idle(Instant::now()).expect("later");
    assert_eq!(until, Instant::now() + IDLE, "it waits from now on");
    pool.end_idle(until);
    assert_eq!(second.quits.try_recv(), Ok(ProcessStop::Stop));
    assert_eq!(pool.missing(), 0, "and no other takes its place");
}
