//! Every way a run ends: one final response, whatever the handler did.

use serde_json::{Value, json};
use wharf_toolserver::{Call, Done, Report, Reporter};
use wharf_wire::run_v1::{LogLevel, Phase};

use super::kit::{Heard, Stage, done, echo, failed, one, request};

/// Does what the input `do` says.
async fn various(call: Call, report: Reporter) -> Done {
    match call.inputs.get("do").and_then(Value::as_str).unwrap_or_default() {
        "raise" => failed("ERR_HANDLER", "ValueError"),
        "own" => failed("quota.used_up", "Come back tomorrow."),
        "nameless" => failed("", ""),
        "leak" => failed("ERR_HANDLER", "Oops\nTraceback (most recent call last):\n /etc/x"),
        "panic" => panic!("the handler breaks"),
        "cost" => {
            let cost = call.inputs.get("cost").cloned();
            Done { result: Ok(one("x", json!(1))), cost }
        }
        "phases" => {
            for phase in [Phase::Started, Phase::Completed, Phase::Preempted] {
                report.say(Report::Event { phase, progress: None }).await;
            }
            report.say(Report::Event { phase: Phase::Checkpoint, progress: Some(7.0) }).await;
            report.log(LogLevel::Error, "a line").await;
            done(json!({}))
        }
        "large" => {
            let mut text = String::new();
            loop {
                text.push_str(&"x".repeat(10_000));
                report.say(Report::Partial(one("text", json!(text)))).await;
                if call.cancel.is_cancelled() {
                    return done(json!({}));
                }
            }
        }
        _ => done(json!({})),
    }
}

async fn ran(stage: &Stage, inputs: Value) -> Heard {
    let run_id = inputs.to_string();
    let heard = stage.run(&request(&run_id, inputs)).await;
    assert_eq!(heard.close, Some(1000));
    assert_eq!(heard.frames.last().expect("a frame")["data"]["phase"], "completed");
    heard
}

#[tokio::test]
async fn t010_failures_of_a_handler_are_final_responses() {
    let stage = Stage::new(various).await;
    for (what, code, message) in [
        ("raise", "ERR_HANDLER", "ValueError"),
        ("own", "quota.used_up", "Come back tomorrow."),
        ("nameless", "UNKNOWN", "The run failed."),
        ("panic", "ERR_HANDLER", "The handler panicked."),
        ("leak", "ERR_HANDLER", "Oops"),
    ] {
        let heard = ran(&stage, json!({"do": what})).await;
        let end = heard.end();
        assert_eq!(end["error"], json!({"code": code, "message": message}), "{what}");
        assert_eq!((&end["control"]["status"], &end["outputs"]), (&json!("error"), &json!({})));
    }
    let after = ran(&stage, json!({})).await;
    assert_eq!(after.end()["control"]["status"], "success");
}

#[tokio::test]
async fn t011_the_cost_is_judged() {
    let stage = Stage::new(various).await;
    for (cost, expect) in [
        (json!(75), Some(75)),
        (json!(75.0), Some(75)),
        (Value::Null, Some(0)),
        (json!(-1), None),
        (json!(0.5), None),
        (json!(1e30), None),
        (json!("75"), None),
    ] {
        let heard = ran(&stage, json!({"do": "cost", "cost": cost})).await;
        let end = heard.end();
        match expect {
            Some(expect) => assert_eq!(end["control"]["cost_micro"], json!(expect), "{cost}"),
            None => {
                assert_eq!(heard.code(), "ERR_COST", "{cost}");
                assert_eq!(end["control"]["cost_micro"], 0);
            }
        }
        assert_eq!(heard.kinds().contains(&"Log"), cost.is_null(), "{cost}");
    }
}

#[tokio::test]
async fn t008_phases_are_the_servers_and_progress_is_clamped() {
    let stage = Stage::new(various).await;
    let heard = ran(&stage, json!({"do": "phases"})).await;
    let expect = ["Ack", "started", "Log", "checkpoint", "Log", "Response", "completed"];
    assert_eq!(heard.kinds(), expect);
    assert_eq!(heard.frames[3]["data"]["progress"], json!(1.0));
    let line = &heard.frames[4];
    assert_eq!((&line["data"]["msg"], &line["data"]["level"]), (&json!("a line"), &json!("error")));
    assert!(line["data"]["timestamp"].as_f64().expect("a time") > 1.6e9);
    let seqs: Vec<_> = heard.frames[1..].iter().map(|f| f["control"]["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=6).map(Some).collect::<Vec<_>>());
}

#[tokio::test]
async fn t020_a_run_that_gives_too_much_is_stopped() {
    let stage = Stage::with(various, |options| {
        options.limits.output_bytes_max = 200_000;
        options.limits.frame_bytes_max = 1_000_000;
    })
    .await;
    assert_eq!(ran(&stage, json!({"do": "large"})).await.code(), "ERR_LIMIT");
}

#[tokio::test]
async fn t020_outputs_that_fit_no_frame_fail_the_run() {
    let stage = Stage::with(
        |_, _| async { done(json!({"x": "y".repeat(300_000)})) },
        |options| options.limits.frame_bytes_max = 200_000,
    )
    .await;
    assert_eq!(ran(&stage, json!({})).await.code(), "ERR_LIMIT");
}

#[tokio::test]
async fn t028_what_was_asked_for_and_not_produced_is_null_and_said() {
    let stage = Stage::new(various).await;
    let mut asked = request("r", json!({}));
    asked["outputs"] = json!({"image": "/artifacts/r/image.png"});
    let heard = stage.run(&asked).await;
    assert_eq!(heard.end()["outputs"], json!({"image": null}));
    let is_warning = |f: &&Value| f["data"]["level"] == "warn";
    let warning = heard.frames.iter().find(is_warning).expect("a warning");
    assert!(warning["data"]["msg"].as_str().expect("text").contains("`image`"));
    asked["control"]["run_id"] = json!("r2");
    asked["control"]["required"] = json!(["image"]);
    asked["outputs"] = json!({"image": "/artifacts/r2/image.png"});
    assert_eq!(stage.run(&asked).await.code(), "ERR_OUTPUT_MISSING");
}

#[tokio::test]
async fn t028_t030_what_was_written_is_confirmed() {
    let stage = Stage::new(echo).await;
    let mut asked = request("r", json!({"text": "hello", "n": 1}));
    asked["outputs"] = json!({"text": "/artifacts/r/text.txt"});
    let heard = stage.run(&asked).await;
    let end = heard.end();
    assert_eq!(end["outputs"], json!({"text": "/artifacts/r/text.txt", "n": 1}));
    assert_eq!(end["control"]["written"]["text"]["bytes"], 5);
    let file = stage.folder.path().join("artifacts/r/text.txt");
    assert_eq!(std::fs::read_to_string(file).expect("written"), "hello");
}

#[tokio::test]
async fn t028_a_place_that_cannot_be_written_is_refused_before_the_handler_starts() {
    let stage = Stage::new(|_, _| async { panic!("it must not start") }).await;
    for place in ["/artifacts/other/x", "ftp://x/y", "relative", "http://example.com/x"] {
        let mut asked = request("r", json!({}));
        asked["control"]["run_id"] = json!(format!("r-{}", place.len()));
        asked["outputs"] = json!({"x": place});
        let heard = stage.run(&asked).await;
        assert_ne!(heard.code(), "ERR_HANDLER", "{place}");
        assert!(!heard.kinds().contains(&"started"), "{place}");
    }
}
