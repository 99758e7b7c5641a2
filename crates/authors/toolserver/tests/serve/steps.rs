//! Steps of a handler's code: asked of whoever watches, until somebody has answered.

use serde_json::{Value, json};
use wharf_toolserver::{Call, Done, Reporter};
use wharf_vocab::{Object, StepName};

use super::kit::{Client, Stage, done, failed, request};

/// Fetches something and keeps a value.
async fn walk(call: Call, _: Reporter) -> Done {
    let Some(steps) = call.steps else { return failed("tool.unavailable", "There are none.") };
    let name = |name| StepName::new(name, 1).expect("a name");
    let fetched = steps.call(name("fetch"), "web/fetch".to_owned(), Object::new()).await;
    let fetched = match fetched {
        Ok(outputs) => json!(outputs),
        Err(failure) => json!(failure.code),
    };
    let kept = steps.keep(name("dice"), Some(json!(4))).await.expect("it is kept");
    done(json!({"fetched": fetched, "kept": kept}))
}

fn durable(run_id: &str) -> Value {
    let mut request = request(run_id, json!({}));
    request["control"]["steps"] = json!(true);
    request
}

async fn asked(client: &mut Client) -> Value {
    loop {
        let frame = client.frame().await;
        if frame["kind"] == "Step" {
            return frame;
        }
    }
}

async fn answer(client: &mut Client, asked: &Value, more: Value) {
    let mut answer = json!({"kind": "Stepped", "step": asked["step"]});
    for (key, value) in more.as_object().expect("an object") {
        answer[key] = value.clone();
    }
    client.send(&answer).await;
}

#[tokio::test]
async fn t048_f028_steps_are_asked_of_whoever_watches() {
    let stage = Stage::new(walk).await;
    let mut client = stage.ask(&durable("r1")).await;
    let fetch = asked(&mut client).await;
    assert_eq!((&fetch["tool"], &fetch["step"]["name"]), (&json!("web/fetch"), &json!("fetch")));
    assert_eq!(fetch["control"], json!({"run_id": "r1"}), "it has no number");
    answer(&mut client, &fetch, json!({"outputs": {"size": 7}})).await;
    let keep = asked(&mut client).await;
    assert_eq!(keep["value"], 4);
    // Neither what fits no open step nor what does not say enough counts.
    answer(&mut client, &fetch, json!({"outputs": {"size": 8}})).await;
    answer(&mut client, &keep, json!({})).await;
    answer(&mut client, &keep, json!({"value": 9})).await;
    let heard = client.rest().await;
    assert_eq!(heard.end()["outputs"], json!({"fetched": {"size": 7}, "kept": 9}));
}

#[tokio::test]
async fn t048_a_step_without_an_answer_is_said_to_each_connection() {
    let stage = Stage::new(walk).await;
    let mut first = stage.ask(&durable("r1")).await;
    let fetch = asked(&mut first).await;
    let mut second = stage.ask(&durable("r1")).await;
    assert_eq!(asked(&mut second).await, fetch);
    drop(first);
    let error = json!({"error": {"code": "tool.not_found", "message": "There is none."}});
    answer(&mut second, &fetch, error).await;
    let keep = asked(&mut second).await;
    drop(second);
    let mut third = stage.ask(&durable("r1")).await;
    assert_eq!(asked(&mut third).await, keep, "what was answered is not asked again");
    answer(&mut third, &keep, json!({"value": null})).await;
    let heard = third.rest().await;
    assert_eq!(heard.end()["outputs"], json!({"fetched": "tool.not_found", "kept": null}));
}

#[tokio::test]
async fn t048_whoever_does_no_steps_is_not_asked_for_any() {
    let stage = Stage::new(walk).await;
    let heard = stage.run(&request("r1", json!({}))).await;
    assert_eq!(heard.code(), "tool.unavailable");
    assert!(!heard.kinds().contains(&"Step"), "{:?}", heard.kinds());
}
