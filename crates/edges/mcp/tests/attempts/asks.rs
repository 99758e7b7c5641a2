//! What servers ask of people.

use serde_json::{Value, json};
use wharf_domain::run::McpTerms;
use wharf_domain::{Audience, Resolution};
use wharf_vocab::{AskKind, Code, RunStatus};

use crate::peers::{
    answer, asked, asked_beside, fault, let_go_on, marks, peer, peer_elsewhere, resolve, start,
    start_for, until, words,
};

#[tokio::test]
async fn m066_a_form_is_a_question_to_anybody() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        let run = start(&stage, "ask", json!({"message": "Which city?"})).await;
        let ask = asked(&stage, &run).await;
        assert_eq!((ask.kind, &ask.audience), (AskKind::Question, &Audience::Any));
        assert_eq!(ask.title, "Which city?");
        assert_eq!(ask.schema.as_ref().expect("a form")["required"], json!(["name"]));
        let detail = ask.detail.as_ref().expect("what the server asked");
        assert_eq!(detail["mcp"]["method"], "elicitation/create");
        let key = (era == "modern").then(|| json!("name"));
        assert_eq!(detail["mcp"].get("key"), key.as_ref(), "its own name for it");
        let waiting = stage.handle.runs().live(&run.key).expect("open");
        assert_eq!(waiting.status(), RunStatus::Waiting);
        answer(&stage, &ask, json!({"name": "Paris"})).await;
        let said = stage.said(&run).await;
        assert_eq!(said, json!({"action": "accept", "content": {"name": "Paris"}}));
    }
}

#[tokio::test]
async fn m066_no_and_never_mind_are_answers() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        let off = Resolution::OffScript { text: "What?".to_owned() };
        for (how, action) in
            [(Resolution::Declined, "decline"), (Resolution::Cancelled, "cancel"), (off, "cancel")]
        {
            let run = start(&stage, "ask", json!({})).await;
            let ask = asked(&stage, &run).await;
            resolve(&stage, &ask, how).await;
            assert_eq!(stage.said(&run).await, json!({"action": action}));
        }
    }
}

#[tokio::test]
async fn m066_words_are_escaped_and_the_clients_are_the_servers_own() {
    let stage = peer("modern", "").await;
    let message = "Two\nlines \u{1b}[2J\u{202e}";
    let run = start(&stage, "ask", json!({"message": message})).await;
    let ask = asked(&stage, &run).await;
    assert_eq!(ask.title, "Two lines [2J");
    assert_eq!(ask.detail.expect("told")["mcp"]["params"], json!({"message": message}));
}

#[tokio::test]
async fn m066_a_form_that_is_none_is_refused() {
    let stage = peer("legacy", "").await;
    let said = stage.call("ask_badly", json!({})).await;
    assert_eq!(said["error"]["code"], -32602, "{said}");
}

#[tokio::test]
async fn m066_an_address_is_shown_and_only_if_it_is_safe() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        let inputs = json!({"url": "https://example.com/login?x=1"});
        let run = start(&stage, "ask_to_open", inputs).await;
        let ask = asked(&stage, &run).await;
        assert!(ask.title.contains("https://example.com/login?x=1"), "{}", ask.title);
        let detail = ask.detail.as_ref().expect("told");
        assert_eq!(detail["url"], "https://example.com/login?x=1");
        assert_eq!(detail["mcp"]["params"]["mode"], "url");
        assert_eq!(detail["mcp"]["params"]["elicitationId"], "e1");
        answer(&stage, &ask, json!(true)).await;
        assert_eq!(stage.said(&run).await, json!({"action": "accept"}));

        let run = start(&stage, "ask_to_open", json!({"url": "https://example.com"})).await;
        answer(&stage, &asked(&stage, &run).await, json!(false)).await;
        assert_eq!(stage.said(&run).await, json!({"action": "decline"}));
    }
    let stage = peer("legacy", "").await;
    for url in ["http://example.com", "file:///etc/passwd", "https://a@b.com", "javascript:x"] {
        let said = stage.call("ask_to_open", json!({"url": url})).await;
        assert_eq!(said["error"]["code"], -32602, "{url}: {said}");
    }
}

#[tokio::test]
async fn m066_a_question_that_is_taken_back_is_closed() {
    let stage = peer("legacy", "").await;
    let run = start(&stage, "ask_and_forget", json!({})).await;
    let ask = asked(&stage, &run).await;
    let_go_on(&stage, "forget");
    let is_closed = || {
        let live = stage.handle.runs().live(&run.key).expect("open");
        live.open_asks().count() == 0
    };
    until(is_closed, "closed").await;
    let late = Resolution::Answered { value: json!({"name": "x"}) };
    let refused = stage.handle.asks().resolve(&crate::stage::owner(), &ask.ask_id, late).await;
    assert!(refused.is_err_and(|fault| fault.is(Code::AskDecided)));
    let_go_on(&stage, "forgotten");
    assert_eq!(words(&stage, &run).await, "forgotten");
}

#[tokio::test]
async fn m066_an_address_to_open_first_is_a_question_and_then_another_attempt() {
    let stage = peer("legacy", "").await;
    let run = start(&stage, "open_first", json!({})).await;
    let ask = asked(&stage, &run).await;
    assert!(ask.title.contains("https://example.com/login"), "{}", ask.title);
    answer(&stage, &ask, json!(true)).await;
    assert_eq!(words(&stage, &run).await, "logged in");
    assert_eq!(stage.end_of(&run).await.attempt, 2);

    let stage = peer("legacy", "").await;
    let run = start(&stage, "open_first", json!({})).await;
    resolve(&stage, &asked(&stage, &run).await, Resolution::Declined).await;
    let fault = fault(&stage, &run).await;
    assert_eq!(
        (&fault.details["executed"], &fault.details["code"]),
        (&json!("no"), &json!(-32042))
    );
    assert_eq!(marks(&stage, "called").len(), 1);
}

#[tokio::test]
async fn m063_rounds_ask_one_after_the_other_in_one_attempt() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        let run = start(&stage, "ask_twice", json!({})).await;
        let first = asked(&stage, &run).await;
        assert_eq!(first.title, "First?");
        answer(&stage, &first, json!({"name": "one"})).await;
        let second = asked_beside(&stage, &run, &[&first]).await;
        assert_eq!(second.title, "Second?");
        answer(&stage, &second, json!({"name": "two"})).await;
        assert_eq!(stage.said(&run).await, json!(["one", "two"]));
        assert_eq!(stage.end_of(&run).await.attempt, 1);
    }
}

#[tokio::test]
async fn m063_a_server_may_not_ask_for_ever() {
    let stage = peer("modern", "").await;
    let run = start(&stage, "ask_for_ever", json!({})).await;
    let fault = fault(&stage, &run).await;
    assert!(fault.is(Code::ToolProtocolViolation), "{fault}");
    assert_eq!(marks(&stage, "rounds").len(), 11);
}

#[tokio::test]
async fn m063_a_task_asks_as_well() {
    let (stage, _elsewhere) = peer_elsewhere("").await;
    let run = start(&stage, "job_that_asks", json!({})).await;
    let ask = asked(&stage, &run).await;
    assert_eq!(ask.title, "Sure?");
    answer(&stage, &ask, json!({"ok": true})).await;
    assert_eq!(words(&stage, &run).await, "done");
    let told: Value = serde_json::from_str(&marks(&stage, "answered")[0]).expect("JSON");
    assert_eq!(told["sure"], json!({"action": "accept", "content": {"ok": true}}));
}

#[tokio::test]
async fn m029_where_nobody_else_is_asked_a_server_learns_what_the_caller_can() {
    let stage = peer("modern", "").await;
    let alone = McpTerms { inbox_off: true, url: true, ..McpTerms::default() };
    let run = start_for(&stage, "declared", json!({}), alone).await;
    let said = stage.said(&run).await;
    assert_eq!(said["elicitation"], json!({"url": {}}));
    assert_eq!((said.get("sampling"), said.get("roots")), (None, None));
    // One that asks all the same is told what its caller lacks, and so is the caller.
    let run = start_for(&stage, "ask", json!({}), alone).await;
    let fault = fault(&stage, &run).await;
    assert_eq!(fault.details["mcp_code"], -32021);
    let required = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
    assert_eq!(fault.details["mcp_data"], required);

    let stage = peer("legacy", "").await;
    let run = start_for(&stage, "ask", json!({}), alone).await;
    assert_eq!(stage.said(&run).await["error"]["code"], -32601);
    let run = start(&stage, "ask", json!({})).await;
    answer(&stage, &asked(&stage, &run).await, json!({"name": "x"})).await;
    assert_eq!(stage.said(&run).await["action"], "accept");
}

#[tokio::test]
async fn m029_a_server_is_told_what_somebody_can() {
    let stage = peer("modern", "").await;
    let said = stage.call("declared", json!({})).await;
    assert_eq!(said["elicitation"], json!({"form": {}, "url": {}}));
    assert_eq!(said["roots"], json!({}));
    assert_eq!(said.get("sampling"), None, "there is no model that may be asked");
    let terms = McpTerms { sampling: true, sampling_tools: true, ..McpTerms::default() };
    let run = start_for(&stage, "declared", json!({}), terms).await;
    assert_eq!(stage.said(&run).await["sampling"], json!({"tools": {}}));
}

#[tokio::test]
async fn m061_whoever_waits_for_an_answer_learns_that_the_server_is_gone() {
    let stage = peer("modern", "").await;
    let run = start(&stage, "ask", json!({})).await;
    asked(&stage, &run).await;
    let other = start(&stage, "die", json!({})).await;
    assert!(fault(&stage, &other).await.is(Code::ToolAgentLost));
    assert!(fault(&stage, &run).await.is(Code::ToolAgentLost));
}
