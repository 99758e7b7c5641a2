//! Providers that refuse, break off, fall silent or never end.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use wharf_domain::Caller;
use wharf_models::Api;

use crate::server::{FakeProvider, Step, chunks, delta, refuses, says, stream_head};
use crate::stage::{KEY, LONG, Stage, error_of, new, options, outputs_of};

async fn stage(scripts: Vec<Vec<Step>>) -> (FakeProvider, Stage) {
    let server = FakeProvider::new(scripts).await;
    let stage = Stage::facing(Api::OpenAi, &server.base_url).await;
    (server, stage)
}

fn said(message: &str) -> Value {
    json!({"message": message, "type": "error"})
}

#[tokio::test]
async fn who_asks_for_patience_is_asked_again() {
    let (server, stage) = stage(vec![
        refuses(429, "Retry-After: 0\r\n", &said("Slow down.")),
        refuses(503, "Retry-After: 0.01\r\n", &said("Busy.")),
        says(&["at last"]),
    ])
    .await;
    let run = stage.chat(json!({"prompt": "x"})).await;
    assert_eq!(outputs_of(&run)["text"], "at last");
    assert_eq!((server.asked().len(), run.attempt), (3, 1));
    assert_eq!(run.cost_micro, 200, "only the answer costs");
    let (_, lines) = stage.streamed(&run.key).await;
    assert!(lines[0].contains("answered 429") && lines[1].contains("answered 503"), "{lines:?}");
}

#[tokio::test]
async fn without_a_wish_the_core_tries_again_by_itself() {
    let (server, stage) = stage(vec![
        refuses(529, "", &said("Overloaded.")),
        refuses(429, "", &said("Slow down.")),
        says(&["at last"]),
    ])
    .await;
    let run = stage.chat(json!({"prompt": "x"})).await;
    assert_eq!(outputs_of(&run)["text"], "at last");
    assert_eq!((server.asked().len(), run.attempt), (3, 3));
}

#[tokio::test]
async fn a_wish_that_is_too_long_is_told_and_not_waited_for() {
    let (server, stage) = stage(vec![refuses(429, "Retry-After: 3600\r\n", &said("No."))]).await;
    let run = stage.chat(json!({"prompt": "x"})).await;
    let (code, _, executed) = error_of(&run);
    assert_eq!((code.as_str(), executed.as_str()), ("llm.rate_limited", "no"));
    let fault = run.outcome.as_ref().and_then(|it| it.error()).expect("failed");
    assert_eq!(fault.details["retry_after_s"], 3600);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn what_may_have_been_done_is_not_asked_again() {
    for (status, code) in
        [(500, "llm.unavailable"), (502, "llm.unavailable"), (408, "llm.unavailable")]
    {
        let (server, stage) = stage(vec![refuses(status, "", &said("Oops.")), says(&["no"])]).await;
        let run = stage.chat(json!({"prompt": "x"})).await;
        let (found, message, executed) = error_of(&run);
        assert_eq!((found.as_str(), executed.as_str()), (code, "maybe"), "{status}");
        assert!(message.contains(&status.to_string()), "{message}");
        assert_eq!((server.asked().len(), run.cost_micro), (1, 0), "{status}");
    }
}

#[tokio::test]
async fn refusals_are_told_without_the_key() {
    for (status, message, code, shown) in [
        (
            401,
            format!("Incorrect API key provided: {KEY}"),
            "llm.unauthorized",
            "did not take the key",
        ),
        (403, "sk-te**cdef may not".to_owned(), "llm.unauthorized", "did not take the key"),
        (400, format!("Bad. Your key is {KEY}"), "llm.refused", "it answered 400."),
        (404, "Unknown\n model".to_owned(), "llm.refused", "refused: Unknown model."),
    ] {
        let (_server, stage) = stage(vec![refuses(status, "", &said(&message))]).await;
        let run = stage.chat(json!({"prompt": "x"})).await;
        let (found, message, executed) = error_of(&run);
        assert_eq!((found.as_str(), executed.as_str()), (code, "no"), "{status}");
        assert!(message.contains(shown), "{message}");
        assert!(!message.contains("sk-te"), "{message}");
    }
    let quota =
        json!({"message": "You exceeded your current quota.", "code": "insufficient_quota"});
    let (server, stage) = stage(vec![refuses(429, "Retry-After: 0\r\n", &quota)]).await;
    let (code, message, _) = error_of(&*stage.chat(json!({"prompt": "x"})).await);
    assert_eq!(code, "llm.refused");
    assert!(message.contains("exceeded your current quota"), "{message}");
    assert_eq!(server.asked().len(), 1, "no waiting helps");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_paid_for_and_not_asked_again() {
    let (server, stage) =
        stage(vec![vec![stream_head(), chunks(&[delta("1234"), delta("5678")])], says(&["no"])])
            .await;
    let run = stage.chat(json!({"prompt": "12345678"})).await;
    let (code, _, executed) = error_of(&run);
    assert_eq!((code.as_str(), executed.as_str()), ("llm.stream_cut", "yes"));
    assert_eq!(run.cost_micro, 2 + 4, "two tokens in, two out, by an estimate");
    assert_eq!(stage.streamed(&run.key).await.0, "12345678", "what came is kept");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_may_have_cost_something() {
    let (server, stage) = stage(vec![Vec::new(), says(&["no"])]).await;
    let run = stage.chat(json!({"prompt": "12345678"})).await;
    let (code, _, executed) = error_of(&run);
    assert_eq!((code.as_str(), executed.as_str()), ("llm.unavailable", "maybe"));
    assert_eq!((server.asked().len(), run.cost_micro), (1, 2));
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_tried_again_since_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    drop(listener);
    let stage = Stage::facing(Api::OpenAi, &base_url).await;
    let run = stage.chat(json!({"prompt": "x"})).await;
    let (code, message, executed) = error_of(&run);
    assert_eq!((code.as_str(), executed.as_str()), ("llm.unreachable", "no"));
    assert!(!message.contains("127.0.0.1"), "{message}");
    assert_eq!((run.attempt, run.cost_micro), (5, 0));
}

#[tokio::test]
async fn silence_ends_a_call() {
    for script in [vec![Step::AwaitEnd], vec![stream_head(), chunks(&[delta("a")]), Step::AwaitEnd]]
    {
        let began = script.len() > 1;
        let server = FakeProvider::new(vec![script]).await;
        let mut options = options(Api::OpenAi, &server.base_url);
        options.silence = Duration::from_millis(200);
        let stage = Stage::with(options).await;
        stage.keep("TEST_KEY", KEY).await;
        let run = stage.chat(json!({"prompt": "x"})).await;
        let wanted = if began { ("llm.stream_cut", "yes") } else { ("llm.unavailable", "maybe") };
        let (code, _, executed) = error_of(&run);
        assert_eq!((code.as_str(), executed.as_str()), wanted);
        let closed = tokio::time::timeout(LONG, server.ended.notified()).await;
        closed.expect("the connection was kept open");
    }
}

#[tokio::test]
async fn what_is_no_stream_of_events_is_not_read() {
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let nonsense = Step::Send("data: {nonsense\n\n".to_owned());
    for script in [vec![Step::Send(json.to_owned())], vec![stream_head(), nonsense]] {
        let (_server, stage) = stage(vec![script]).await;
        let (code, message, executed) = error_of(&*stage.chat(json!({"prompt": "x"})).await);
        assert_eq!((code.as_str(), executed.as_str()), ("llm.answer_invalid", "maybe"));
        assert!(message.contains("wharf.toml"), "{message}");
    }
}

#[tokio::test]
async fn a_model_that_never_ends_is_cut_off() {
    let long = "x".repeat(512 * 1024);
    let endless = vec![stream_head(), chunks(&vec![delta(&long); 8]), Step::AwaitEnd];
    let event = vec![stream_head(), chunks(&[delta(&"x".repeat(1024 * 1024))]), Step::AwaitEnd];
    for script in [endless, event] {
        let (server, stage) = stage(vec![script]).await;
        let run = stage.chat(json!({"prompt": "x"})).await;
        let (code, message, _) = error_of(&run);
        assert_eq!(code, "tool.output_too_large", "{message}");
        let closed = tokio::time::timeout(LONG, server.ended.notified()).await;
        closed.expect("the connection was kept open");
    }
}

#[tokio::test]
async fn cancel_closes_the_connection_and_what_came_is_paid_for() {
    let script = vec![stream_head(), chunks(&[delta("12345678")]), Step::AwaitEnd];
    let (server, stage) = stage(vec![script]).await;
    let run = stage.start(new(json!({"prompt": "12345678"}))).await.expect("accepted");
    let mut watch =
        stage.handle.run_events().watch(&run.key, wharf_vocab::Seq(0)).await.expect("known");
    let streamed = async {
        while let Some(event) = watch.next().await {
            let item = event.expect("readable").item;
            if let wharf_engine::HistoryItem::Progress(wharf_domain::Progress::Text { .. }) = item {
                return;
            }
        }
        panic!("the run ended without text");
    };
    tokio::time::timeout(LONG, streamed).await.expect("text");
    let owner = Caller::owner();
    stage.handle.runs().cancel(&owner, &run.key, "enough").await.expect("canceled");
    let closed = tokio::time::timeout(LONG, server.ended.notified()).await;
    closed.expect("the connection was kept open");
    let ended = stage.end_of(&run.key).await;
    assert_eq!(ended.status(), wharf_vocab::RunStatus::Canceled);
    stage.until(&run.key, "what it cost", |run| run.cost_micro == 2 + 4).await;
}
