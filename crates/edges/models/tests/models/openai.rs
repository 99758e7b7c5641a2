//! Chat completions.

use serde_json::{Value, json};
use wharf_models::Api;

use crate::server::{FakeProvider, chunks, done, finish, says, stream_head, usage};
use crate::stage::{KEY, Stage, outputs_of};

async fn stage(scripts: Vec<Vec<crate::server::Step>>) -> (FakeProvider, Stage) {
    let server = FakeProvider::new(scripts).await;
    let stage = Stage::facing(Api::OpenAi, &server.base_url).await;
    (server, stage)
}

#[tokio::test]
async fn text_grows_and_ends_with_tokens_and_a_cost() {
    let (server, stage) = stage(vec![says(&["Grü", "ße ", "🦀", "\n"])]).await;
    let run = stage.chat(json!({"prompt": "Hello", "temperature": 0.5})).await;
    assert_eq!(
        outputs_of(&run),
        json!({"text": "Grüße 🦀\n", "tool_calls": [], "finish_reason": "stop",
               "usage": {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150},
               "model": "test-1", "provider": "test", "price_known": true})
    );
    assert_eq!(run.cost_micro, 200, "100 tokens at $1 and 50 at $2 for a million");
    let (text, lines) = stage.streamed(&run.key).await;
    assert_eq!((text.as_str(), lines.len()), ("Grüße 🦀\n", 0));
    let [asked] = &server.asked()[..] else { panic!("asked once") };
    assert_eq!(asked.path, "/v1/chat/completions");
    assert!(asked.head.contains(&format!("authorization: Bearer {KEY}")), "{}", asked.head);
    assert_eq!(
        asked.body,
        json!({"model": "test", "messages": [{"role": "user", "content": "Hello"}],
               "stream": true, "stream_options": {"include_usage": true},
               "max_tokens": 4096, "temperature": 0.5})
    );
}

#[tokio::test]
async fn tools_go_out_and_calls_come_back() {
    let call = |delta: Value| json!({"choices": [{"index": 0, "delta": {"tool_calls": [delta]}, "finish_reason": null}]});
    let answer = vec![
        call(json!({"index": 0, "id": "call_1", "type": "function",
                    "function": {"name": "weather", "arguments": ""}})),
        call(json!({"index": 0, "function": {"arguments": "{\"city\": \"Ol"}})),
        call(json!({"index": 1, "id": "call_2", "function": {"name": "time", "arguments": ""}})),
        call(json!({"index": 0, "function": {"arguments": "denburg\"}"}})),
        finish("tool_calls"),
        usage(10, 5),
    ];
    let (server, stage) = stage(vec![vec![stream_head(), chunks(&answer), done()]]).await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let run = stage
        .chat(json!({
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": "And yesterday?"},
                {"role": "assistant", "content": null,
                 "tool_calls": [{"id": "c0", "name": "weather", "arguments": {"city": "Jever"}}]},
                {"role": "tool", "tool_call_id": "c0", "content": "rain"},
            ],
            "tools": [{"name": "weather", "description": "Looks out.", "input_schema": schema},
                      {"name": "time"}],
            "tool_choice": "weather",
            "response_schema": {"type": "object"},
            "max_tokens": 9,
            "stop": ["END"],
        }))
        .await;
    let outputs = outputs_of(&run);
    assert_eq!(outputs["finish_reason"], "tool_calls");
    assert_eq!(
        outputs["tool_calls"],
        json!([{"id": "call_1", "name": "weather", "arguments": {"city": "Oldenburg"}},
               {"id": "call_2", "name": "time", "arguments": {}}])
    );
    let body = &server.asked()[0].body;
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "Be brief."}));
    assert_eq!(
        body["messages"][2]["tool_calls"][0],
        json!({"id": "c0", "type": "function",
               "function": {"name": "weather", "arguments": "{\"city\":\"Jever\"}"}})
    );
    assert_eq!(body["messages"][3]["tool_call_id"], "c0");
    assert_eq!(body["tools"][0]["function"]["parameters"], schema);
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "weather"}}));
    assert_eq!(body["response_format"]["json_schema"]["schema"], json!({"type": "object"}));
    assert_eq!((&body["max_tokens"], &body["stop"]), (&json!(9), &json!(["END"])));
}

#[tokio::test]
async fn what_was_known_before_costs_less() {
    let counted = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 800}}});
    let answer = vec![crate::server::delta("x"), finish("length"), counted];
    let (_server, stage) = stage(vec![vec![stream_head(), chunks(&answer), done()]]).await;
    let run = stage.chat(json!({"prompt": "x"})).await;
    assert_eq!(run.cost_micro, 200 + 400);
    assert_eq!(outputs_of(&run)["usage"]["cached_tokens"], 800);
}

#[tokio::test]
async fn a_provider_that_does_not_count_is_estimated() {
    let answer = vec![crate::server::delta("12345678"), finish("stop")];
    let (_server, stage) = stage(vec![vec![stream_head(), chunks(&answer)]]).await;
    let run = stage.chat(json!({"prompt": "1234567890ab"})).await;
    let usage = &outputs_of(&run)["usage"];
    assert_eq!(
        *usage,
        json!({"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, "estimated": true})
    );
    assert_eq!(run.cost_micro, 7);
    let (_, lines) = stage.streamed(&run.key).await;
    assert!(lines[0].contains("estimated"), "{lines:?}");
}

#[tokio::test]
async fn the_sample_tool_uses_it() {
    let (_server, stage) = stage(vec![says(&["Moin"])]).await;
    let tool = wharf_vocab::ToolId::new("wharf/sample").expect("valid");
    let wanted = wharf_engine::NewRun { tool, ..crate::stage::new(json!({"prompt": "Hello"})) };
    let run = stage.start(wanted).await.expect("accepted");
    let run = stage.end_of(&run.key).await;
    assert_eq!(
        outputs_of(&run),
        json!({"text": "Moin", "model": "test-1", "finishReason": "stop", "usage":
               {"promptTokens": 100, "completionTokens": 50, "totalTokens": 150}})
    );
}
