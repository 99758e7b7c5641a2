//! Streams: many readers, slow readers, readers who never read, and peers of the older wire.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wharf_toolserver::server::Profile;
use wharf_toolserver::{Call, Report, Reporter};
use wharf_wire::run_v1::LogLevel;

use super::kit::{Stage, done, one, request};

#[tokio::test]
async fn t018_a_slow_reader_is_cut_and_the_others_hear_everything() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let stage = Stage::with(
        move |_: Call, report: Reporter| {
            let gate = Arc::clone(&opened);
            async move {
                for n in 0..400_u32 {
                    gate.acquire().await.expect("open").forget();
                    let large = format!("{n}{}", "x".repeat(50_000));
                    report.say(Report::Partial(one("x", json!(large)))).await;
                }
                done(json!({"n": 400}))
            }
        },
        |options| {
            options.limits.queue_bytes_max = 2_000_000;
            options.limits.output_bytes_max = 100_000_000;
        },
    )
    .await;
    let mut slow = stage.ask(&request("r", json!({}))).await;
    slow.until("started").await;
    let mut fast = Vec::new();
    for _ in 0..3 {
        let mut client = stage.ask(&request("r", json!({}))).await;
        client.until("started").await;
        fast.push(client);
    }
    // The handler is as fast as those who read, and not as the one who does not.
    for n in 0..400 {
        gate.add_permits(1);
        for client in &mut fast {
            let text = client.frame().await["outputs"]["x"].to_string();
            assert!(text.starts_with(&format!("\"{n}x")), "{n}");
        }
    }
    let heard = futures::future::join_all(fast.into_iter().map(super::kit::Client::rest)).await;
    for heard in &heard {
        assert_eq!(heard.end()["outputs"], json!({"n": 400}));
        assert_eq!(heard.kinds(), ["Response", "completed"]);
    }
    let slow = slow.rest().await;
    assert!(slow.close.is_none_or(|code| code == 1013), "{:?}", slow.close);
    assert!(slow.frames.len() < 402);
}

#[tokio::test]
async fn t018_a_reader_that_never_reads_does_not_stall_the_run() {
    let stage = Stage::with(
        |_, report: Reporter| async move {
            for n in 0..200_u32 {
                let large = format!("{n}{}", "x".repeat(100_000));
                report.say(Report::Partial(one("x", json!(large)))).await;
            }
            done(json!({}))
        },
        |options| {
            options.limits.queue_bytes_max = 1_000_000;
            options.limits.output_bytes_max = 100_000_000;
        },
    )
    .await;
    let dead = stage.ask(&request("r", json!({}))).await;
    let mut again = request("r", json!({}));
    again["control"]["after"] = json!(200);
    loop {
        // The run may not have got there yet; who asks again sees whether it has ended.
        let heard = stage.run(&again).await;
        if heard.frames.iter().any(|frame| frame["control"]["final"] == true) {
            break;
        }
    }
    drop(dead);
}

#[tokio::test]
async fn a_handler_that_says_much_at_once_loses_no_reader() {
    let stage = Stage::with(
        |_, report: Reporter| async move {
            for n in 0..5_000 {
                report.log(LogLevel::Info, format!("line {n}")).await;
            }
            done(json!({}))
        },
        |options| {
            options.limits.log_bytes_max = 10_000_000;
        },
    )
    .await;
    let heard = stage.run(&request("r", json!({}))).await;
    assert_eq!(heard.frames.len(), 5_004);
    assert_eq!(heard.close, Some(1000));
}

#[tokio::test]
async fn the_older_wire_finds_its_content_and_tokens_and_the_default_has_none() {
    let stream = |_: Call, report: Reporter| async move {
        report.log(LogLevel::Info, "line").await;
        for text in ["Hello", "Hello world"] {
            report.say(Report::Partial(one("text", json!(text)))).await;
        }
        done(json!({}))
    };
    let stage = Stage::with(stream, |options| options.profile = Profile::Upstream).await;
    let heard = stage.run(&request("r", json!({}))).await;
    assert_eq!(heard.frames[0]["content"]["run_id"], "r");
    assert_eq!(heard.frames[1]["content"]["phase"], "started");
    assert_eq!(heard.frames[2]["content"]["msg"], "line");
    let tokens: Vec<&Value> = heard.frames.iter().filter(|f| f["kind"] == "Token").collect();
    assert_eq!(tokens.len(), 2);
    assert_eq!(tokens[1]["content"], json!({"text": " world"}));
    let beside = heard.frames.iter().find(|frame| frame["outputs"]["text"] == "Hello world");
    let beside = beside.expect("the response");
    assert_eq!(tokens[1]["control"]["seq"], beside["control"]["seq"], "known as the same text");
    let stage = Stage::new(stream).await;
    let heard = stage.run(&request("r", json!({}))).await;
    assert!(heard.frames.iter().all(|f| f.get("content").is_none() && f["kind"] != "Token"));
}

#[tokio::test]
async fn t011_costs_are_passed_on_while_the_run_goes_on() {
    let stage = Stage::new(|call: Call, report: Reporter| async move {
        report.spent(400);
        report.spent(300);
        call.cancel.cancelled().await;
        report.spent(900);
        done(json!({}))
    })
    .await;
    let mut client = stage.ask(&request("r", json!({}))).await;
    let frame = loop {
        let frame = client.frame().await;
        if !frame["control"]["cost_micro"].is_null() {
            break frame;
        }
    };
    assert_eq!(frame["control"]["cost_micro"], 400);
    assert_eq!(frame["control"].get("final"), None, "before the end");
    client.send(&json!({"kind": "Cancel", "control": {"run_id": "r"}})).await;
    let heard = client.rest().await;
    assert_eq!(heard.end()["error"]["code"], "ERR_CANCELED");
    assert_eq!(heard.end()["control"]["cost_micro"], 900, "the last report, not the answer's 1");
}

#[tokio::test]
async fn t011_a_run_that_is_cut_off_costs_what_it_reported() {
    let stage = Stage::with(
        |_: Call, report: Reporter| async move {
            report.spent(70);
            std::future::pending().await
        },
        |options| {
            options.timeout = std::time::Duration::from_millis(50);
            options.cancel_grace = std::time::Duration::from_millis(10);
        },
    )
    .await;
    let heard = stage.run(&request("r", json!({}))).await;
    assert_eq!(heard.end()["error"]["code"], "ERR_TIMEOUT");
    assert_eq!(heard.end()["control"]["cost_micro"], 70);
}

#[tokio::test]
async fn t008_frames_that_the_protocol_does_not_have_pass_in_the_older_wire_only() {
    let paused =
        json!({"kind": "Event", "content": {"phase": "paused", "progress": 0.25, "by": "c"}});
    let picture = json!({"kind": "Frame", "content": {"n": 1}});
    let emit = move |_: Call, report: Reporter| {
        let frames = [paused.clone(), picture.clone()];
        async move {
            report.say(Report::Text("Mock ".to_owned())).await;
            for frame in frames {
                report.say(Report::Other(frame.as_object().expect("one").clone())).await;
            }
            done(json!({}))
        }
    };
    let stage = Stage::with(emit.clone(), |options| options.profile = Profile::Upstream).await;
    let heard = stage.run(&request("r", json!({}))).await;
    let kind = |kind: &'static str| heard.frames.iter().filter(move |f| f["kind"] == kind);
    assert_eq!(kind("Token").next().expect("a token")["content"], json!({"text": "Mock "}));
    assert_eq!(kind("Frame").next().expect("a frame")["content"], json!({"n": 1}));
    let paused = kind("Event").find(|f| f["content"]["phase"] == "paused").expect("an event");
    assert_eq!(
        (&paused["content"]["by"], &paused["control"]["run_id"]),
        (&json!("c"), &json!("r"))
    );
    let stage = Stage::new(emit).await;
    let heard = stage.run(&request("r", json!({}))).await;
    let has = |wanted: &dyn Fn(&Value) -> bool| heard.frames.iter().any(wanted);
    assert!(has(&|f| f["outputs"]["text"] == "Mock "), "text is an output that grows");
    let paused = json!({"phase": "checkpoint", "progress": 0.25, "text": "paused"});
    assert!(has(&|f| f["kind"] == "Event" && f["data"] == paused));
    assert!(!has(&|f| f["kind"] == "Frame" || f["kind"] == "Token"));
}
