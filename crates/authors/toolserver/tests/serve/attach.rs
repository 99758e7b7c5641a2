//! One run and several connections.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;
use wharf_toolserver::{Call, Report, Reporter};

use super::kit::{Heard, Stage, done, echo, one, request};

/// A handler that says something for each permit, and ends after three.
async fn gated() -> (Stage, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let handler = move |_: Call, report: Reporter| {
        let gate = Arc::clone(&opened);
        async move {
            let mut text = String::new();
            for n in 0..3 {
                gate.acquire().await.expect("open").forget();
                text.push_str(&format!("piece {n} "));
                report.say(Report::Partial(one("text", json!(text)))).await;
            }
            done(json!({"text": text}))
        }
    };
    (Stage::new(handler).await, gate)
}

#[tokio::test]
async fn t017_two_clients_of_one_run_hear_the_same() {
    let (stage, gate) = gated().await;
    let mut first = stage.ask(&request("r", json!({}))).await;
    first.until("started").await;
    gate.add_permits(1);
    assert_eq!(first.frame().await["outputs"]["text"], "piece 0 ");
    let second = stage.ask(&request("r", json!({}))).await;
    gate.add_permits(2);
    let (first, second) = tokio::join!(first.rest(), second.rest());
    assert_eq!(second.kinds()[..3], ["Ack", "started", "Response"]);
    assert_eq!(second.frames[3..], first.frames[..]);
    assert_eq!(second.end()["outputs"]["text"], "piece 0 piece 1 piece 2 ");
    let late = stage.run(&request("r", json!({}))).await;
    assert_eq!(late, second);
}

#[tokio::test]
async fn t017_two_requests_at_once_start_one_run() {
    let started = Arc::new(Semaphore::new(0));
    let counted = Arc::clone(&started);
    let stage = Stage::new(move |call, report| {
        counted.add_permits(1);
        echo(call, report)
    })
    .await;
    let asked = request("r", json!({"a": 1}));
    let all = futures::future::join_all((0..8).map(|_| stage.run(&asked))).await;
    assert!(all.iter().all(|heard| *heard == all[0]));
    assert_eq!(started.available_permits(), 1);
}

#[tokio::test]
async fn t017_a_client_that_comes_back_gets_only_what_it_missed() {
    let (stage, gate) = gated().await;
    let mut first = stage.ask(&request("r", json!({}))).await;
    first.until("started").await;
    gate.add_permits(1);
    let seen = first.frame().await["control"]["seq"].as_u64().expect("a number");
    drop(first);
    gate.add_permits(2);
    let mut again = request("r", json!({}));
    again["control"]["after"] = json!(seen);
    let heard: Heard = stage.run(&again).await;
    let seqs: Vec<_> = heard.frames[1..].iter().map(|f| f["control"]["seq"].as_u64()).collect();
    assert_eq!(seqs, (seen + 1..=seen + 4).map(Some).collect::<Vec<_>>());
}

#[tokio::test]
async fn t017_another_request_under_the_same_id_is_closed_with_1008() {
    let (stage, gate) = gated().await;
    let mut first = stage.ask(&request("r", json!({}))).await;
    first.until("started").await;
    let other = stage.run(&request("r", json!({"x": 1}))).await;
    assert_eq!((other.frames.len(), other.close), (0, Some(1008)));
    gate.add_permits(3);
    assert_eq!(first.rest().await.code(), "");
}

#[tokio::test]
async fn t017_who_comes_back_to_a_server_that_forgot_is_told() {
    let stage = Stage::new(|_, _| async { panic!("it must not start") }).await;
    let mut again = request("r", json!({}));
    for after in [0, 3] {
        again["control"]["after"] = json!(after);
        let heard = stage.run(&again).await;
        assert_eq!((heard.code(), heard.close), ("ERR_WORKER", Some(1000)), "{after}");
    }
}

#[tokio::test]
async fn t017_runs_of_two_worlds_with_one_id_are_two_runs() {
    let stage = Stage::new(echo).await;
    let of = |world: &str| {
        let mut asked = request("r", json!({"of": world}));
        asked["control"]["world"] = json!(world);
        asked
    };
    for world in ["red", "blue", "red"] {
        let heard = stage.run(&of(world)).await;
        assert_eq!(heard.end()["outputs"]["of"], world, "{heard:?}");
    }
    for odd in [json!(""), json!(7), json!("a\nb")] {
        let mut asked = request("r", json!({}));
        asked["control"]["world"] = odd;
        assert_eq!(stage.run(&asked).await.code(), "ERR_INPUTS");
    }
}
