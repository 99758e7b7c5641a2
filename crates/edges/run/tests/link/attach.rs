//! Connections come and go; the attempt goes on, or its end names the true cause.

use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::Progress;
use wharf_vocab::{Code, Fault, RunStatus};

use crate::stage::{Moving, Plan, lines};
use crate::troupe::Troupe;

#[tokio::test]
async fn t042_a_connection_lost_mid_run_is_made_again_and_nothing_is_said_twice() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({"a": 1})).await;
    let (mut actor, first) = troupe.take().await;
    actor.log("one").await;
    actor.log("two").await;
    stage
        .until_written(&run, |piece| matches!(piece, Progress::Log { text, .. } if text == "two"))
        .await;
    drop(actor);

    let (mut actor, again) = troupe.take().await;
    assert_eq!(again["control"]["after"], 2);
    for part in ["run_id", "mode", "refs"] {
        assert_eq!(again["control"][part], first["control"][part], "{part}");
    }
    assert_eq!((&again["inputs"], &again["outputs"]), (&first["inputs"], &first["outputs"]));
    // A careless server says all of it again.
    for line in ["one", "two", "three"] {
        actor.log(line).await;
    }
    actor.succeed(json!({"n": 1})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"n": 1}));
    assert_eq!(lines(&stage.progress_of(&run).await), ["one", "two", "three"]);
    let run = stage.end_of(&run).await;
    assert_eq!((run.attempt, run.cost_micro), (1, 5));
}

#[tokio::test]
async fn t042_a_run_survives_many_lost_connections() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).with(|settings| settings.replays = true).open().await;
    let run = stage.start(json!({})).await;
    let expected: Vec<String> = (0..8).map(|n| format!("line {n}")).collect();
    for line in &expected {
        let (mut actor, request) = troupe.take().await;
        actor.seq = request["control"]["after"].as_u64().unwrap_or(0);
        actor.log(line).await;
        stage
            .until_written(
                &run,
                |piece| matches!(piece, Progress::Log { text, .. } if text == line),
            )
            .await;
    }
    let (mut actor, _) = troupe.take().await;
    actor.seq = 8;
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
    assert_eq!(lines(&stage.progress_of(&run).await), expected);
}

#[tokio::test]
async fn t042_a_result_that_was_reached_while_nobody_listened_is_fetched() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.log("one").await;
    stage.until_written(&run, |_| true).await;
    actor.close(1013, "the reader is too slow").await;
    let (mut actor, _) = troupe.take().await;
    actor.seq = 1;
    actor.succeed(json!({"late": true})).await;
    assert_eq!(stage.outputs_of(&run).await, json!({"late": true}));
}

#[tokio::test]
async fn t042_what_is_missing_between_two_connections_is_told() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.log("one").await;
    stage.until_written(&run, |_| true).await;
    drop(actor);
    let (mut actor, _) = troupe.take().await;
    actor.seq = 4;
    actor.succeed(json!({})).await;
    let pieces = stage.progress_of(&run).await;
    assert!(pieces.contains(&Progress::Gap { from: 2, to: 4 }), "{pieces:?}");
}

#[tokio::test]
async fn t042_a_server_without_numbers_is_lost_with_its_connection() {
    let troupe = Troupe::tcp().await;
    let stage = Plan::new(troupe.endpoint()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.say(json!({"kind": "Log", "data": {"msg": "unnumbered"}})).await;
    stage.until_written(&run, |_| true).await;
    actor.close(1011, "worker pool broken").await;
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert!(fault.message.contains("1011 (worker pool broken)"), "{fault}");
    assert_eq!(fault.details["executed"], "maybe");
    assert_eq!(stage.end_of(&run).await.attempt, 1, "it may have acted, so it is not repeated");
}

#[tokio::test]
async fn t042_a_server_that_stays_away_is_named_as_the_cause() {
    let troupe = Troupe::tcp().await;
    let plan = Plan::new(troupe.endpoint());
    let stage = plan.with(|settings| settings.apart_max = Duration::from_millis(200)).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.log("one").await;
    stage.until_written(&run, |_| true).await;
    drop((actor, troupe));
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolWorkerLost) && fault.retryable, "{fault}");
    assert!(fault.message.contains("nobody listens there"), "{fault}");
    assert_eq!(fault.details["executed"], "maybe");
}

#[tokio::test]
async fn t042_a_tool_that_does_not_act_is_tried_again_elsewhere_when_its_server_is_lost() {
    let troupe = Troupe::tcp().await;
    let mut plan = Plan::new(troupe.endpoint());
    plan.side_effects = Some(false);
    let stage = plan.open().await;
    let run = stage.start(json!({})).await;
    let (actor, first) = troupe.take().await;
    assert_eq!(first["control"]["attempt"], Value::Null, "the first is not written");
    drop(actor);
    let (mut actor, second) = troupe.take().await;
    assert_eq!(second["control"]["attempt"], 2);
    assert_eq!(second["control"]["after"], Value::Null);
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn t042_a_run_does_not_outlive_the_start_of_its_server() {
    let troupe = Troupe::tcp().await;
    let doors = Moving::to(troupe.endpoint().of_life(1));
    let stage = Plan::new(doors.clone()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.log("one").await;
    stage.until_written(&run, |_| true).await;
    doors.set(Ok(troupe.endpoint().of_life(2)));
    drop(actor);
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert!(fault.message.contains("started anew"), "{fault}");
}

#[tokio::test]
async fn t042_a_server_that_died_is_named_with_how_it_died() {
    let troupe = Troupe::tcp().await;
    let doors = Moving::to(troupe.endpoint());
    let stage = Plan::new(doors.clone()).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.log("one").await;
    stage.until_written(&run, |_| true).await;
    doors.set(Err(Fault::new(Code::ToolUnavailable, "Its process was killed by signal 9.")));
    drop(actor);
    let fault = stage.fault_of(&run).await;
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert!(fault.message.contains("killed by signal 9"), "{fault}");
}

#[tokio::test]
async fn t013_a_server_that_gives_no_sign_of_life_is_attached_to_anew() {
    let troupe = Troupe::tcp().await;
    let plan = Plan::new(troupe.endpoint());
    let stage = plan.with(|settings| settings.session.silence_ms = 100).open().await;
    let run = stage.start(json!({})).await;
    let (mut deaf, _) = troupe.take().await;
    deaf.log("one").await;
    let (mut actor, again) = troupe.take().await;
    assert_eq!(again["control"]["after"], 1);
    actor.seq = 1;
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
    // It is told, unless its own late answer to a ping resets the connection first.
    deaf.gone().await;
}

#[tokio::test]
async fn t013_a_silent_server_that_answers_pings_is_left_in_peace() {
    let troupe = Troupe::tcp().await;
    let plan = Plan::new(troupe.endpoint());
    let stage = plan.with(|settings| settings.session.silence_ms = 200).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    // Reading answers pings.
    let quiet = tokio::time::timeout(Duration::from_millis(600), actor.hear()).await;
    assert!(quiet.is_err(), "nothing is said");
    actor.succeed(json!({})).await;
    assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn t042_a_server_that_hangs_up_at_once_is_asked_ever_more_rarely_and_then_given_up() {
    let troupe = Troupe::tcp().await;
    let adjust = |settings: &mut wharf_run::link::Settings| {
        settings.replays = true;
        settings.apart_max = Duration::from_secs(1);
    };
    let stage = Plan::new(troupe.endpoint()).with(adjust).open().await;
    let run = stage.start(json!({})).await;
    let mut connections = 0;
    let hang_up = async {
        loop {
            let (mut actor, _) = troupe.take().await;
            connections += 1;
            actor.close(1001, "later").await;
        }
    };
    let fault = tokio::select! {
        () = hang_up => unreachable!("it goes on for ever"),
        fault = stage.fault_of(&run) => fault,
    };
    assert!(fault.is(Code::ToolWorkerLost), "{fault}");
    assert!(connections < 10, "{connections} connections in a second");
}
