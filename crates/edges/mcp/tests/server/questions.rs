//! Questions of runs, answered by the client whose calls they are (M29–M34).

use serde_json::{Value, json};
use wharf_domain::{Ask, Caller, Resolution};
use wharf_vocab::{AskKind, Fault, RunStatus};

use crate::client::{ALL, Answer, Client, OF_06, OF_11, OF_26};
use crate::stage::{Stage, eventually};

const ASK: &str = "wharf__ask";

/// A client that shows forms.
async fn asked(stage: &Stage, revision: &'static str) -> Client {
    stage.client().able(json!({"elicitation": {}})).speaking(revision).await
}

/// What a modern client is asked first: key, request and state.
async fn required(answer: Answer) -> (String, Value, String) {
    let result = answer.result().await;
    assert_eq!(result["resultType"], "input_required", "{result}");
    let requests = result["inputRequests"].as_object().expect("requests");
    let (key, request) = requests.iter().next().expect("one");
    let state = result["requestState"].as_str().expect("a state").to_owned();
    (key.clone(), request.clone(), state)
}

/// Repeats a call with an answer.
async fn repeat(
    client: &Client,
    (tool, arguments): (&str, &Value),
    (state, answers): (&str, Value),
) -> Answer {
    let params = json!({
        "name": tool, "arguments": arguments, "requestState": state, "inputResponses": answers,
    });
    client.request(2, "tools/call", params).await
}

fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// The asks that are open, once there are some.
async fn open_asks(stage: &Stage) -> Vec<Ask> {
    eventually(async || {
        let views = stage.handle.asks().inbox(None, 10).await.expect("an inbox");
        let asks: Vec<Ask> = views.into_iter().map(|view| view.ask).collect();
        (!asks.is_empty()).then_some(asks)
    })
    .await
}

/// The owner decides an ask.
async fn decide(stage: &Stage, ask: &Ask, resolution: Resolution) -> Result<(), Fault> {
    let owner = Caller::owner();
    stage.handle.asks().resolve(&owner, &ask.spec.ask_id, resolution).await.map(drop)
}

fn answered(value: impl Into<Value>) -> Resolution {
    Resolution::Answered { value: value.into() }
}

#[tokio::test]
async fn m031_a_modern_client_is_asked_and_repeats_its_request_with_the_answer() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_26).await;
    let arguments = json!({"question": "Which color?"});
    let (key, request, state) = required(client.call(1, ASK, arguments.clone()).await).await;
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "Which color?");
    assert_eq!(request["params"]["mode"], "form");
    let fields = &request["params"]["requestedSchema"]["properties"];
    assert_eq!(fields, &json!({"answer": {"type": "string"}}));
    let run = stage.only_run().await;
    assert_eq!(run.status(), RunStatus::Waiting);
    assert_eq!(open_asks(&stage).await[0].spec.ask_id.as_str(), key);

    let answers = || json!({ key.clone(): accept(&json!({"answer": "blue"})) });
    let call = (ASK, &arguments);
    let result = repeat(&client, call, (&state, answers())).await.result().await;
    assert_eq!(result["structuredContent"], json!({"status": "answered", "answer": "blue"}));
    let via = stage.run(run.key.run.as_str()).await;
    let (_, by) = via.asks[0].ask.resolved.clone().expect("resolved");
    assert_eq!(by, wharf_domain::Actor::from(&run.spec.caller.grant));

    // Used twice it gives the same end, whatever is answered then.
    let other = json!({ key.clone(): accept(&json!({"answer": "red"})) });
    let again = repeat(&client, call, (&state, other)).await.result().await;
    assert_eq!(again["structuredContent"], result["structuredContent"]);
    assert_eq!(again["_meta"]["dev.wharf/run"], result["_meta"]["dev.wharf/run"]);
    stage.only_run().await;
}

#[tokio::test]
async fn m031_a_state_is_good_for_its_grant_and_its_request_only() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_26).await;
    let arguments = json!({"question": "Which color?"});
    let (key, _, state) = required(client.call(1, ASK, arguments.clone()).await).await;
    let answers = || json!({ key.clone(): accept(&json!({"answer": "blue"})) });
    let call = (ASK, &arguments);
    let other = stage.token(json!({"verbs": ["run", "read", "answer"]})).await;
    let other = asked(&stage, OF_26).await.bearing(&other);
    repeat(&other, call, (&state, answers())).await.refused(200, -32602).await;
    let changed = json!({"question": "Which size?"});
    repeat(&client, (ASK, &changed), (&state, answers())).await.refused(200, -32602).await;
    for at in [0, state.len() / 2, state.len() - 1] {
        let mut forged = state.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).expect("text");
        repeat(&client, call, (&forged, answers())).await.refused(200, -32602).await;
    }
    for bad in ["", "x", &"A".repeat(4_000)] {
        repeat(&client, call, (bad, answers())).await.refused(200, -32602).await;
    }
    assert_eq!(stage.only_run().await.status(), RunStatus::Waiting, "nothing was answered");
    repeat(&client, call, (&state, answers())).await.result().await;
}

#[tokio::test]
async fn m031_other_keys_are_ignored_and_what_is_missing_is_asked_again() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_26).await;
    let arguments = json!({});
    let (key, _, state) = required(client.call(1, ASK, arguments.clone()).await).await;
    // Somebody else's question, under a key that is there, is none of this request.
    let second = client.call(2, ASK, json!({"question": "Another?"})).await;
    let (foreign, _, _) = required(second).await;
    let answer = || accept(&json!({"answer": "x"}));
    for answers in [json!({}), json!({"nobody": answer()}), json!({ foreign.clone(): answer() })] {
        let answer = repeat(&client, (ASK, &arguments), (&state, answers)).await;
        assert_eq!(required(answer).await.0, key);
    }
    assert!(stage.runs().await.iter().all(|run| run.status() == RunStatus::Waiting));
}

#[tokio::test]
async fn m032_a_wrong_answer_is_asked_for_again_three_times() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_26).await;
    let arguments = json!({"question": "How many?", "schema": {"type": "integer", "minimum": 1}});
    let call = (ASK, &arguments);
    let wrong = || accept(&json!({"answer": 0}));
    let (first, _, mut state) = required(client.call(1, ASK, arguments.clone()).await).await;
    let mut key = first.clone();
    for time in 2..=4 {
        let answer = repeat(&client, call, (&state, json!({ key.clone(): wrong() }))).await;
        let (next, request, newer) = required(answer).await;
        assert_eq!(next, format!("{first}~{time}"));
        let message = request["params"]["message"].as_str().expect("text");
        assert!(message.starts_with("How many?") && message.contains("does not fit"), "{message}");
        // What was answered is not answered again by a repeat that came late.
        let late = repeat(&client, call, (&state, json!({ key: wrong() }))).await;
        assert_eq!(required(late).await.0, next);
        (key, state) = (next, newer);
    }
    let answer = repeat(&client, call, (&state, json!({ key: wrong() }))).await;
    let refused = answer.refused(200, -32602).await;
    assert!(refused["error"]["message"].as_str().expect("text").contains("does not fit"));
    // It waits for somebody else.
    let asks = open_asks(&stage).await;
    decide(&stage, &asks[0], answered(3)).await.expect("decided");
    let result = repeat(&client, call, (&state, json!({}))).await.result().await;
    assert_eq!(result["structuredContent"]["answer"], 3);
}

#[tokio::test]
async fn m032_what_a_person_does_with_a_form_is_how_the_question_ends() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_26).await;
    let flat = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]});
    let rich = json!({"type": "array", "items": {"type": "integer"}});
    for (schema, answer, outputs) in [
        (flat.clone(), json!({"action": "decline"}), json!({"status": "declined"})),
        (flat.clone(), json!({"action": "cancel"}), json!({"status": "cancelled"})),
        (
            flat.clone(),
            accept(&json!({"name": "Ada", "age": 36})),
            json!({"status": "answered", "answer": {"name": "Ada", "age": 36}}),
        ),
        (
            rich,
            accept(&json!({"answer": "[1, 2]"})),
            json!({"status": "answered", "answer": [1, 2]}),
        ),
    ] {
        let arguments = json!({ "schema": schema });
        let (key, request, state) = required(client.call(1, ASK, arguments.clone()).await).await;
        if schema == flat {
            assert_eq!(request["params"]["requestedSchema"], flat);
        }
        let answers = json!({ key: answer });
        let result = repeat(&client, (ASK, &arguments), (&state, answers)).await.result().await;
        assert_eq!(result["structuredContent"], outputs);
    }
}

#[tokio::test]
async fn m029_what_the_client_cannot_or_may_not_answer_stays_in_the_inbox() {
    let secret = json!({"schema": {"type": "string", "format": "password"}});
    let tokens = json!({"verbs": ["run", "read"]});
    for revision in ALL {
        for (case, able, arguments) in [
            ("no forms", json!({}), json!({})),
            ("a secret", json!({"elicitation": {}}), secret.clone()),
            ("no right", json!({"elicitation": {}}), json!({})),
        ] {
            let stage = Stage::start().await;
            let mut client = stage.client().able(able);
            if case == "no right" {
                client = client.bearing(&stage.token(tokens.clone()).await);
            }
            let client = client.speaking(revision).await;
            let answer = client.call(1, ASK, arguments).await;
            let asks = open_asks(&stage).await;
            decide(&stage, &asks[0], answered("blue")).await.expect("decided");
            for event in answer.rest().await {
                let message = event.data;
                assert_ne!(message["method"], "elicitation/create", "{case} {revision}");
                if message.get("id").is_some() {
                    let outputs = &message["result"]["structuredContent"];
                    assert_eq!(outputs["answer"], "blue", "{case} {revision}: {message}");
                }
            }
        }
    }
}

#[tokio::test]
async fn m033_approvals_are_neither_offered_nor_decided() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_11).await;
    let mut answer = client.call(1, "wharf__approve-me", json!({})).await;
    let asks = open_asks(&stage).await;
    assert_eq!(asks[0].spec.kind, AskKind::Approval);
    let id = asks[0].spec.ask_id.as_str();
    for result in
        [accept(&json!({})), accept(&json!({"answer": "allow"})), json!({"status": "allow"})]
    {
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
        assert_eq!(client.raw(&body, &client.headers(&body)).await.status, 202);
    }
    assert_eq!(stage.only_run().await.status(), RunStatus::Waiting);
    decide(&stage, &asks[0], Resolution::ALLOW).await.expect("decided");
    let last = loop {
        let message = answer.message().await;
        assert_ne!(message["method"], "elicitation/create");
        if message.get("result").is_some() {
            break message;
        }
    };
    assert_eq!(last["result"]["structuredContent"]["approved"], true);
    let modern = asked(&stage, OF_26).await;
    let answer = modern.call(2, "wharf__approve-me", json!({"purpose": "again"})).await;
    let asks = open_asks(&stage).await;
    decide(&stage, &asks[0], Resolution::ALLOW).await.expect("decided");
    assert_eq!(answer.result().await["structuredContent"]["purpose"], "again");
}

#[tokio::test]
async fn m034_clients_answer_nothing_where_that_is_turned_off() {
    let stage = Stage::with(|options| options.server.own_questions = false).await;
    let client = asked(&stage, OF_11).await;
    let answer = client.call(1, ASK, json!({})).await;
    let asks = open_asks(&stage).await;
    answer_legacy(&client, asks[0].spec.ask_id.as_str(), accept(&json!({"answer": "x"}))).await;
    assert_eq!(stage.only_run().await.status(), RunStatus::Waiting);
    decide(&stage, &asks[0], answered("blue")).await.expect("decided");
    assert_eq!(answer.result().await["structuredContent"]["answer"], "blue");
}

/// A legacy client answers what it was asked.
async fn answer_legacy(client: &Client, id: &str, result: Value) {
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
    let answer = client.raw(&body, &client.headers(&body)).await;
    assert_eq!(answer.status, 202);
}

/// The next question on a stream.
async fn question(answer: &mut Answer) -> Value {
    loop {
        let message = answer.message().await;
        if message["method"] == "elicitation/create" {
            return message;
        }
        assert!(message.get("id").is_none(), "{message}");
    }
}

#[tokio::test]
async fn m030_a_legacy_client_is_asked_on_the_stream_of_its_call() {
    let stage = Stage::start().await;
    for revision in [OF_06, OF_11] {
        let client = asked(&stage, revision).await;
        let mut answer = client.call(1, ASK, json!({"question": "Which color?"})).await;
        let asks = open_asks(&stage).await;
        let message = question(&mut answer).await;
        let id = message["id"].as_str().expect("an id");
        assert_eq!(id, asks[0].spec.ask_id.as_str());
        let params = &message["params"];
        assert_eq!(params["message"], "Which color?");
        let mode = if revision == OF_06 { Value::Null } else { json!("form") };
        assert_eq!(params["mode"], mode);
        // Nobody else's answer counts, and no second one.
        let other = stage.token(json!({"verbs": ["run", "read", "answer"]})).await;
        let other = stage.client().bearing(&other).speaking(revision).await;
        answer_legacy(&other, id, accept(&json!({"answer": "stolen"}))).await;
        answer_legacy(&client, "nobody", accept(&json!({"answer": "lost"}))).await;
        answer_legacy(&client, id, accept(&json!({"answer": "blue"}))).await;
        answer_legacy(&client, id, accept(&json!({"answer": "late"}))).await;
        let result = answer.result().await;
        assert_eq!(result["structuredContent"]["answer"], "blue", "{revision}");
    }
}

#[tokio::test]
async fn m030_what_is_decided_elsewhere_is_taken_back() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_11).await;
    let mut answer = client.call(1, ASK, json!({})).await;
    let id = question(&mut answer).await["id"].clone();
    let asks = open_asks(&stage).await;
    decide(&stage, &asks[0], answered("blue")).await.expect("decided");
    let events = answer.rest().await;
    let canceled: Vec<&Value> = events
        .iter()
        .map(|event| &event.data)
        .filter(|message| message["method"] == "notifications/cancelled")
        .collect();
    assert_eq!(canceled.len(), 1, "{events:?}");
    assert_eq!(canceled[0]["params"]["requestId"], id);
}

#[tokio::test]
async fn m032_a_legacy_client_is_asked_again_on_the_same_stream() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_11).await;
    let schema = json!({"type": "integer", "minimum": 1});
    let mut answer = client.call(1, ASK, json!({ "schema": schema })).await;
    let first = question(&mut answer).await["id"].as_str().expect("an id").to_owned();
    answer_legacy(&client, &first, accept(&json!({"answer": "many"}))).await;
    let second = question(&mut answer).await;
    let id = second["id"].as_str().expect("an id");
    assert_eq!(id, format!("{first}~2"));
    assert!(second["params"]["message"].as_str().expect("text").contains("does not fit"));
    answer_legacy(&client, &first, accept(&json!({"answer": 1}))).await;
    answer_legacy(&client, id, accept(&json!({"answer": 2}))).await;
    assert_eq!(answer.result().await["structuredContent"]["answer"], 2, "an old id is over");
}

#[tokio::test]
async fn m030_a_client_that_cannot_answer_leaves_the_question_to_others() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_11).await;
    let mut answer = client.call(1, ASK, json!({})).await;
    let id = question(&mut answer).await["id"].clone();
    let error = json!({"code": -32603, "message": "no"});
    let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
    assert_eq!(client.raw(&body, &client.headers(&body)).await.status, 202);
    assert_eq!(stage.only_run().await.status(), RunStatus::Waiting);
    let asks = open_asks(&stage).await;
    decide(&stage, &asks[0], answered("blue")).await.expect("decided");
    assert_eq!(answer.result().await["structuredContent"]["answer"], "blue");
}

#[tokio::test]
async fn m029_questions_of_child_runs_are_the_clients_own() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_26).await;
    let call = ("test__parent", &json!({}));
    let (below, request, state) = required(client.call(1, call.0, json!({})).await).await;
    assert_eq!(request["params"]["message"], "From below?");
    let answers = json!({ below: accept(&json!({"answer": "x"})) });
    let (above, request, state) = required(repeat(&client, call, (&state, answers)).await).await;
    assert_eq!(request["params"]["message"], "From above?");
    let answers = json!({ above: accept(&json!({"answer": "y"})) });
    let result = repeat(&client, call, (&state, answers)).await.result().await;
    assert_eq!(result["structuredContent"], json!({"child": "succeeded", "own": "answered"}));

    let client = asked(&stage, OF_11).await;
    let mut answer = client.call(1, call.0, json!({})).await;
    for text in ["From below?", "From above?"] {
        let message = question(&mut answer).await;
        assert_eq!(message["params"]["message"], text);
        let id = message["id"].as_str().expect("an id");
        answer_legacy(&client, id, accept(&json!({"answer": "x"}))).await;
    }
    let result = answer.result().await;
    assert_eq!(result["structuredContent"], json!({"child": "succeeded", "own": "answered"}));
}

#[tokio::test]
async fn m030_m031_an_open_question_is_answered_after_a_restart() {
    let stage = Stage::start().await;
    let legacy = asked(&stage, OF_11).await;
    let mut answer = legacy.call(1, ASK, json!({"question": "Legacy?"})).await;
    let message = loop {
        let event = answer.next().await.expect("an event");
        if event.data["method"] == "elicitation/create" {
            break event;
        }
    };
    let modern = asked(&stage, OF_26).await;
    let arguments = json!({"question": "Modern?"});
    let (key, _, state) = required(modern.call(2, ASK, arguments.clone()).await).await;

    let stage = stage.killed().await;
    let legacy = legacy.moved(stage.addr());
    let id = message.data["id"].as_str().expect("an id");
    answer_legacy(&legacy, id, accept(&json!({"answer": "old"}))).await;
    let resumed = legacy.get(message.id.as_deref()).await;
    assert_eq!(resumed.result().await["structuredContent"]["answer"], "old");

    let modern = modern.moved(stage.addr());
    let answers = json!({ key: accept(&json!({"answer": "new"})) });
    let result = repeat(&modern, (ASK, &arguments), (&state, answers)).await.result().await;
    assert_eq!(result["structuredContent"]["answer"], "new");
}

#[tokio::test]
async fn m031_m040_a_resource_of_a_server_may_ask_first() {
    let stage = Stage::start().await;
    let client = asked(&stage, OF_26).await.at("/mcp/test");
    let read = async |state: Option<&str>, answers: Value| {
        let mut params = json!({"uri": "test://one"});
        if let Some(state) = state {
            params["requestState"] = state.into();
            params["inputResponses"] = answers;
        }
        client.request(1, "resources/read", params).await
    };
    let (key, request, state) = required(read(None, Value::Null).await).await;
    assert_eq!(request["params"]["message"], "Which name?");
    let other = json!({"uri": "test://two", "requestState": state, "inputResponses": {}});
    client.request(2, "resources/read", other).await.refused(200, -32602).await;
    let answers = json!({ key: accept(&json!({"answer": "Ada"})) });
    let result = read(Some(&state), answers).await.result().await;
    assert_eq!(result["contents"], json!([{"uri": "test://one", "text": "Ada"}]));

    for revision in [OF_06, OF_11] {
        let client = stage.client().able(json!({"elicitation": {}})).at("/mcp/test");
        let client = client.speaking(revision).await;
        let params = json!({"uri": "test://one"});
        let mut answer = client.request(1, "resources/read", params).await;
        let id = question(&mut answer).await["id"].as_str().expect("an id").to_owned();
        answer_legacy(&client, &id, json!({"action": "decline"})).await;
        assert_eq!(answer.result().await["contents"][0]["text"], "declined", "{revision}");
    }
    // Whoever leaves ends what it began.
    let answer = client.request(3, "resources/read", json!({"uri": "test://one"})).await;
    required(answer).await;
    let silent = stage.client().at("/mcp/test").speaking(OF_26).await;
    drop(silent.request(4, "resources/read", json!({"uri": "test://gone"})).await);
    eventually(async || {
        let runs = stage.runs().await;
        let gone =
            runs.iter().find(|run| run.spec.inputs.get("uri") == Some(&json!("test://gone")));
        (gone?.status() == RunStatus::Canceled).then_some(())
    })
    .await;
}
