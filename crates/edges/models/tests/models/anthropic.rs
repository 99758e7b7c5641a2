//! Messages.

use serde_json::{Value, json};
use wharf_models::Api;

use crate::server::{FakeProvider, Step, events, stream_head};
use crate::stage::{KEY, Stage, error_of, outputs_of};

async fn stage(scripts: Vec<Vec<Step>>) -> (FakeProvider, Stage) {
    let server = FakeProvider::new(scripts).await;
    let stage = Stage::facing(Api::Anthropic, &server.base_url).await;
    (server, stage)
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "m1", "model": "test-2", "usage": {
        "input_tokens": 40, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 10,
        "output_tokens": 1}}})
}

fn text(text: &str) -> Value {
    json!({"type": "content_block_delta", "index": 0,
           "delta": {"type": "text_delta", "text": text}})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason},
               "usage": {"output_tokens": 25}}),
        json!({"type": "message_stop"}),
    ]
}

#[tokio::test]
async fn text_and_calls_come_in_blocks() {
    let [delta, stop] = end("tool_use");
    let script = vec![
        stream_head(),
        events(&[
            start(),
            json!({"type": "content_block_start", "index": 0,
                   "content_block": {"type": "text", "text": ""}}),
            json!({"type": "ping"}),
            text("Grü"),
            text("ße"),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1,
                   "content_block": {"type": "thinking", "thinking": ""}}),
            json!({"type": "content_block_delta", "index": 1,
                   "delta": {"type": "thinking_delta", "thinking": "hm"}}),
            json!({"type": "content_block_start", "index": 2, "content_block":
                   {"type": "tool_use", "id": "tu_1", "name": "weather", "input": {}}}),
            json!({"type": "content_block_delta", "index": 2,
                   "delta": {"type": "input_json_delta", "partial_json": "{\"city\":"}}),
            json!({"type": "content_block_delta", "index": 2,
                   "delta": {"type": "input_json_delta", "partial_json": "\"Jever\"}"}}),
            json!({"type": "something_new", "field": 1}),
            delta,
            stop,
        ]),
    ];
    let (server, stage) = stage(vec![script]).await;
    let picture = json!({"type": "image_url",
        "image_url": {"url": "data:image/png;base64,AAAA"}});
    let run = stage
        .chat(json!({
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "See"}, picture]},
                {"role": "assistant", "content": "I look.",
                 "tool_calls": [{"id": "t0", "name": "weather", "arguments": {"city": "Aurich"}}]},
                {"role": "tool", "tool_call_id": "t0", "content": "rain"},
            ],
            "prompt": "And Jever?",
            "tools": [{"name": "weather"}],
            "tool_choice": "required",
            "response_schema": {"type": "object"},
            "stop": ["END"],
        }))
        .await;
    assert_eq!(
        outputs_of(&run),
        json!({"text": "Grüße", "finish_reason": "tool_calls", "model": "test-2",
               "provider": "test", "price_known": true,
               "tool_calls": [{"id": "tu_1", "name": "weather", "arguments": {"city": "Jever"}}],
               "usage": {"input_tokens": 100, "output_tokens": 25, "total_tokens": 125,
                         "cached_tokens": 50, "cache_write_tokens": 10}})
    );
    // 50 at $1 (writing to the cache costs the same here), 50 at $0.50, 25 at $2.
    assert_eq!(run.cost_micro, 50 + 25 + 50);
    assert_eq!(stage.streamed(&run.key).await.0, "Grüße");
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1/messages");
    assert!(asked.head.contains(&format!("x-api-key: {KEY}")), "{}", asked.head);
    assert!(asked.head.contains("anthropic-version: 2023-06-01"), "{}", asked.head);
    assert!(!asked.head.to_ascii_lowercase().contains("authorization"), "{}", asked.head);
    assert_eq!(
        asked.body,
        json!({
            "model": "test", "stream": true, "max_tokens": 4096, "system": "Be brief.",
            "stop_sequences": ["END"], "tool_choice": {"type": "any"},
            "tools": [{"name": "weather",
                       "input_schema": {"type": "object", "properties": {}}}],
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "See"},
                    {"type": "image", "source":
                     {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t0", "name": "weather",
                     "input": {"city": "Aurich"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t0",
                     "content": [{"type": "text", "text": "rain"}]},
                    {"type": "text", "text": "And Jever?"}]},
            ],
        })
    );
}

#[tokio::test]
async fn an_error_within_the_answer_ends_it_and_what_came_is_paid_for() {
    let overloaded = json!({"type": "error",
        "error": {"type": "overloaded_error", "message": format!("Overloaded\n {KEY}")}});
    let plain = json!({"type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let (server, stage) = stage(vec![
        vec![stream_head(), events(&[start(), text("12345678"), overloaded])],
        vec![stream_head(), events(&[start(), plain])],
    ])
    .await;
    let run = stage.chat(json!({"prompt": "x"})).await;
    let (code, message, executed) = error_of(&run);
    assert_eq!((code.as_str(), executed.as_str()), ("llm.stream_cut", "yes"));
    assert_eq!(message, "The provider ended its answer with an error.");
    assert_eq!(run.cost_micro, 50 + 25 + 4, "the input as counted, two tokens of text");
    let run = stage.chat(json!({"prompt": "x"})).await;
    let (code, message, executed) = error_of(&run);
    assert_eq!((code.as_str(), executed.as_str()), ("llm.unavailable", "maybe"));
    assert_eq!(message, "The provider ended its answer with an error: Overloaded.");
    assert_eq!(server.asked().len(), 2, "neither was asked for again");
}

#[tokio::test]
async fn its_reasons_have_the_same_names() {
    for (reason, name) in [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
    ] {
        let [delta, stop] = end(reason);
        let (_server, stage) =
            stage(vec![vec![stream_head(), events(&[start(), text("a"), delta, stop])]]).await;
        let run = stage.chat(json!({"prompt": "x"})).await;
        assert_eq!(outputs_of(&run)["finish_reason"], name);
    }
}
