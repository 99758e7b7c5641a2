//! What calls cost: as operatives tell the core, and as the core tells principals.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::stage::{OWNER, Peer, Stage, acting, eventually};

/// An operative says what a call has cost so far.
async fn spends(page: &mut Peer, id: &str, cost_micro: u64) {
    page.say(json!({"type": "progress", "id": id, "cost_micro": cost_micro})).await;
}

async fn cost_of(stage: &Stage, run: &str, micro: u64) {
    eventually(async || (stage.shown(run).await["cost_micro"] == micro).then_some(())).await;
}

#[tokio::test]
async fn k036_what_an_operative_says_is_the_cost_of_the_run_however_it_ends() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let accepted = json!({"status": "accepted", "content": {}});
    let other = json!({"status": "other", "content": "No."});
    for (told, response, last, status, cost) in [
        (vec![300, 700], accepted.clone(), json!(900), "succeeded", 900),
        (vec![700], accepted.clone(), Value::Null, "succeeded", 700),
        (vec![], accepted.clone(), json!(40), "succeeded", 40),
        (vec![700, 200], accepted, json!(100), "succeeded", 700),
        (vec![500], other, json!(500), "failed", 500),
        (vec![60], json!({"status": "denied"}), Value::Null, "refused", 60),
        (vec![70], json!({"status": "cancelled"}), Value::Null, "canceled", 70),
        (vec![80], json!({"status": "no status"}), Value::Null, "failed", 80),
    ] {
        let run = stage.run("browser/a", json!({})).await;
        let (id, _) = page.request().await;
        for micro in told {
            spends(&mut page, &id, micro).await;
        }
        let mut answer = json!({"type": "response", "id": id, "response": response});
        if !last.is_null() {
            answer["cost_micro"] = last;
        }
        page.say(answer).await;
        let ended = stage.until(&run, status).await;
        assert_eq!(ended["cost_micro"], cost, "{response}: {ended}");
    }
}

#[tokio::test]
async fn k036_a_lost_operative_and_a_canceled_run_cost_what_was_told() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    let (id, _) = page.request().await;
    spends(&mut page, &id, 250).await;
    stage.call(&format!("POST /v1/runs/{run}/cancel"), &json!({})).await;
    page.hear("cancel").await;
    // It was spent before the operative heard of it, and is told after.
    spends(&mut page, &id, 400).await;
    stage.until(&run, "canceled").await;
    cost_of(&stage, &run, 400).await;

    let run = stage.run("browser/a", json!({})).await;
    let (id, _) = page.request().await;
    spends(&mut page, &id, 90).await;
    page.stream.close(None).await.expect("closes");
    let failed = stage.until(&run, "failed").await;
    assert_eq!(
        (&failed["error"]["code"], &failed["cost_micro"]),
        (&json!("tool.agent_lost"), &json!(90))
    );
}

#[tokio::test]
async fn k036_what_is_told_after_the_answer_corrects_the_cost() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    let (id, _) = page.request().await;
    page.accept(&id, json!({})).await;
    stage.until(&run, "succeeded").await;
    spends(&mut page, &id, 33).await;
    cost_of(&stage, &run, 33).await;
    assert_eq!(stage.shown(&run).await["status"], "succeeded");
}

#[tokio::test]
async fn k036_a_plain_operative_is_not_believed_a_cost_and_its_progress_is_kept() {
    let stage = Stage::start().await;
    let query = "role=operative&provider=browser&tools=a";
    let mut page = stage.connect(query, OWNER, "").await.expect("connects");
    page.hear("offered").await;
    let mut peer = stage.principal().await;
    peer.ask("1", "browser/a", json!({})).await;
    let (id, _) = page.request().await;
    page.say(json!({"type": "progress", "id": id, "data": "half", "cost_micro": 10})).await;
    page.accept(&id, json!({})).await;
    assert_eq!(peer.hear("progress").await["data"], "half");
    let response = peer.hear("response").await;
    assert_eq!(response.get("cost_micro"), None, "{response}");
    assert_eq!(stage.runs_of("browser/a").await[0]["cost_micro"], 0);
}

#[tokio::test]
async fn k036_a_principal_sees_what_it_called_cost_while_it_goes_on_and_at_the_end() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let mut peer = stage.principal().await;
    peer.ask("1", "browser/a", json!({})).await;
    let (id, _) = page.request().await;
    for micro in [500, 900] {
        spends(&mut page, &id, micro).await;
        let told = peer.hear("progress").await;
        assert_eq!(told, json!({"type": "progress", "id": "1", "cost_micro": micro}));
    }
    page.say(json!({"type": "response", "id": id, "cost_micro": 1200,
                    "response": {"status": "accepted", "content": {"b": 1}}}))
        .await;
    let told = loop {
        let frame = peer.next().await.expect("a frame");
        if frame["type"] == "response" {
            break frame;
        }
    };
    assert_eq!(told["response"], json!({"status": "accepted", "content": {"b": 1}}));
    assert_eq!(told["cost_micro"], 1200, "{told}");
}

#[tokio::test]
async fn k036_a_plain_principal_is_told_nothing_of_costs() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let mut peer = stage.connect("role=principal", OWNER, "").await.expect("connects");
    peer.ask("1", "browser/a", json!({})).await;
    let (id, _) = page.request().await;
    spends(&mut page, &id, 500).await;
    page.accept(&id, json!({})).await;
    let Some(Ok(Message::Text(text))) = futures::StreamExt::next(&mut peer.stream).await else {
        panic!("a frame");
    };
    let frame: Value = serde_json::from_str(&text).expect("JSON");
    let expected = json!({"type": "response", "id": "1",
                          "response": {"status": "accepted", "content": {}}});
    assert_eq!(frame, expected, "no frame and no key that it does not know");
}

#[tokio::test]
async fn k036_a_budget_stops_an_operative() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let request = json!({"tool": "browser/a", "inputs": {}, "budget_micro": 1_000});
    let run = stage.call("POST /v1/runs", &request).await;
    let run = run.body["run_id"].as_str().expect("an id").to_owned();
    let (id, _) = page.request().await;
    page.say(json!({"type": "progress", "id": id, "data": "half of it", "cost_micro": 600})).await;
    spends(&mut page, &id, 1_500).await;
    assert_eq!(page.hear("cancel").await["id"], id);
    let failed = stage.until(&run, "failed").await;
    assert_eq!(failed["error"]["code"], "budget.exceeded", "{failed}");
    assert_eq!(failed["cost_micro"], 1_500, "{failed}");
}

#[tokio::test]
async fn k036_the_cost_of_a_child_is_told_to_the_operative_that_called_it() {
    let stage = Stage::start().await;
    let mut outer = stage.operative("outer", acting("a")).await;
    let mut inner = stage.operative("inner", acting("b")).await;
    let run = stage.run("outer/a", json!({})).await;
    let (id, _) = outer.request().await;
    outer.ask_within(&id, "c1", "inner/b", json!({})).await;
    let (child, _) = inner.request().await;
    inner
        .say(json!({"type": "response", "id": child, "cost_micro": 25,
                    "response": {"status": "accepted", "content": {}}}))
        .await;
    let told = loop {
        let frame = outer.next().await.expect("a frame");
        if frame["type"] == "response" {
            break frame;
        }
    };
    assert_eq!((&told["id"], &told["cost_micro"]), (&json!("c1"), &json!(25)), "{told}");
    outer.accept(&id, json!({})).await;
    let ended = stage.until(&run, "succeeded").await;
    assert_eq!(ended["cost_micro"], 0, "what a child costs is counted with the child");
}
