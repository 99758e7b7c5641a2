//! Operations over plain HTTP: in addresses, and the kinds and statuses of answers.

use serde_json::{Value, json};

use crate::support::{Answer, OWNER, Stage};

const GRAPHQL: &str = "application/graphql-response+json";

/// Asks by GET with these parameters, which are encoded already.
async fn get(stage: &Stage, token: &str, query: &str) -> Answer {
    stage.call(token, "GET", &format!("/graphql?{query}"), None).await
}

#[tokio::test]
async fn t045_queries_may_stand_in_an_address() {
    let stage = Stage::start().await;
    let plain = get(&stage, OWNER, "query=%7Btool(id:%22wharf/echo%22)%7Bname%7D%7D").await;
    assert_eq!(plain.data()["tool"]["name"], "echo");
    let named = "query=query+A%7Btools%7Bedges%7Bcursor%7D%7D%7D\
                 query+B(%24id:ID!)%7Btool(id:%24id)%7Bname%7D%7D\
                 &operationName=B&variables=%7B%22id%22:%22wharf/count%22%7D";
    assert_eq!(get(&stage, OWNER, named).await.data()["tool"]["name"], "count");
    let (_, reader) = stage.token(json!({"verbs": ["read"], "worlds": ["lab"]})).await;
    let foreign = get(&stage, &reader, "query=%7Brun(id:%22x%22)%7Bstatus%7D%7D").await;
    assert_eq!((foreign.status, foreign.code()), (200, Some("permission.denied")));
    for (query, status, code) in [
        ("", 400, "request.invalid"),
        ("query=", 400, "request.invalid"),
        ("query=%7B__typename%7D&variables=[1", 400, "request.invalid"),
        ("query=subscription%7BrunEvents(id:%22x%22)%7Bseq%7D%7D", 200, "request.invalid"),
    ] {
        let answer = get(&stage, OWNER, query).await;
        assert_eq!((answer.status, answer.code()), (status, Some(code)), "{query}");
    }
    for (token, code) in [("", "auth.required"), ("wrong", "auth.invalid")] {
        let answer = get(&stage, token, "query=%7B__typename%7D").await;
        assert_eq!((answer.status, answer.code()), (401, Some(code)), "{token}");
        assert!(answer.head.contains("www-authenticate: bearer"), "{}", answer.head);
    }
}

#[tokio::test]
async fn t045_nothing_is_changed_by_opening_an_address() {
    let stage = Stage::start().await;
    let make = "query=mutation%7BcreateWorld(id:%22sly%22)%7BcreatedAt%7D%7D";
    let answer = get(&stage, OWNER, make).await;
    assert_eq!((answer.status, answer.code()), (405, Some("request.method_unknown")));
    assert!(answer.head.contains("allow: post"), "{}", answer.head);
    let two = "query=query+A%7B__typename%7Dmutation+B%7BcreateWorld(id:%22sly%22)%7BcreatedAt%7D%7D\
               &operationName=B";
    assert_eq!(get(&stage, OWNER, two).await.status, 405);
    let world = stage.ask("{ world(id: \"sly\") { createdAt } }").await;
    assert_eq!(world.code(), Some("world.not_found"), "{}", world.body);
}

#[tokio::test]
async fn t045_answers_are_of_the_kind_that_is_asked_for() {
    let stage = Stage::start().await;
    let ask = async |accept: &str, query: &str| {
        let body = json!({"query": query}).to_string();
        let sent = ("application/json", body.as_bytes());
        stage.send_accepting(accept, OWNER, "POST /graphql", sent).await
    };
    let (good, lost) = ("{ __typename }", "{ run(id: \"none\") { status } }");
    for (accept, query, status, kind) in [
        ("*/*", good, 200, "application/json"),
        (GRAPHQL, good, 200, GRAPHQL),
        ("application/graphql-response+json, application/json;q=0.9", good, 200, GRAPHQL),
        // What went wrong in a field does not concern the request.
        (GRAPHQL, lost, 200, GRAPHQL),
        // What could not be understood does, where that can be told.
        (GRAPHQL, "{ nonsense }", 400, GRAPHQL),
        (GRAPHQL, "{", 400, GRAPHQL),
        ("application/json", "{ nonsense }", 200, "application/json"),
        ("application/json", "{", 200, "application/json"),
    ] {
        let answer = ask(accept, query).await;
        assert_eq!(answer.status, status, "{accept} {query}: {}", answer.body);
        assert!(answer.head.contains(&format!("content-type: {kind}\r\n")), "{}", answer.head);
        assert!(answer.body.is_object() && answer.body["error"] == Value::Null, "{}", answer.body);
    }
}
