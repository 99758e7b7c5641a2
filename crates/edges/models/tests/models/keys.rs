//! Keys, and calls that need none.

use serde_json::json;
use wharf_engine::NewRun;
use wharf_models::{Api, ModelOptions, ModelProvider, ModelProviders, PriceTable};
use wharf_vocab::{Mode, ToolId};

use crate::server::{FakeProvider, Step, chunks, delta, done, finish, says, stream_head, usage};
use crate::stage::{KEY, Stage, error_of, new, options, outputs_of};

#[tokio::test]
async fn a_missing_key_is_told_before_anybody_is_asked() {
    let server = FakeProvider::new(vec![says(&["no"])]).await;
    let stage = Stage::with(options(Api::OpenAi, &server.base_url)).await;
    let run = stage.chat(json!({"prompt": "x", "model": "test"})).await;
    let (code, message, executed) = error_of(&run);
    assert_eq!((code.as_str(), executed.as_str()), ("llm.key_missing", "no"));
    assert!(message.contains("`wharf secret set TEST_KEY`"), "{message}");
    assert_eq!((server.asked().len(), run.attempt), (0, 1));
    // With no model named, every provider is looked at.
    let (_, message, _) = error_of(&*stage.chat(json!({"prompt": "x"})).await);
    for name in ["TEST_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        assert!(message.contains(name), "{message}");
    }
    stage.keep("TEST_KEY", KEY).await;
    assert_eq!(outputs_of(&*stage.chat(json!({"prompt": "x"})).await)["text"], "no");
}

#[tokio::test]
async fn the_key_stands_nowhere() {
    // A provider that repeats it everywhere, in pieces as well.
    let (first, last) = KEY.split_at(9);
    let answer =
        [delta(first), delta(last), delta(&format!(" {KEY} ")), finish("stop"), usage(1, 1)];
    let cut = vec![
        stream_head(),
        chunks(&[delta(KEY)]),
        Step::Send(format!(
            "data: {}\n\n",
            json!({"error": {"message": format!("bad key {KEY}")}})
        )),
    ];
    let server = FakeProvider::new(vec![vec![stream_head(), chunks(&answer), done()], cut]).await;
    let stage = Stage::facing(Api::OpenAi, &server.base_url).await;
    let good = stage.chat(json!({"prompt": "x"})).await;
    assert_eq!(outputs_of(&good)["text"], "[redacted] [redacted] ");
    let bad = stage.chat(json!({"prompt": "x"})).await;
    assert_eq!(error_of(&bad).0, "llm.stream_cut");
    for run in [good, bad] {
        let all = stage.everything(&run.key).await;
        assert!(all.contains("llm/chat@1"), "there is something to look at");
        assert!(!all.contains(KEY), "the key is kept");
    }
}

#[tokio::test]
async fn a_provider_without_a_key_is_asked_without_one() {
    let server = FakeProvider::new(vec![says(&["ok"])]).await;
    let local = ModelProvider::new("local", Api::OpenAi, &server.base_url).expect("fits");
    let local = local.with_models(vec!["llama".to_owned()]);
    let options = ModelOptions {
        providers: ModelProviders::new(vec![local.with_max_tokens_field("n".to_owned())], None),
        prices: PriceTable::default(),
        ..ModelOptions::default()
    };
    let stage = Stage::with(options).await;
    let run = stage.chat(json!({"prompt": "x", "model": "local/big/one"})).await;
    assert_eq!(outputs_of(&run)["price_known"], false);
    let asked = &server.asked()[0];
    assert!(!asked.head.to_ascii_lowercase().contains("authorization"), "{}", asked.head);
    assert_eq!((&asked.body["model"], &asked.body["n"]), (&json!("big/one"), &json!(4096)));
}

#[tokio::test]
async fn to_pretend_needs_no_key_and_no_network() {
    let stage = Stage::with(ModelOptions::default()).await;
    let run = stage.pretend(json!({"prompt": "Hello there", "model": "gpt-4o"})).await;
    let outputs = outputs_of(&run);
    assert_eq!(outputs["text"], "You said: Hello there");
    assert_eq!((&outputs["model"], &outputs["provider"]), (&json!("gpt-4o"), &json!("openai")));
    assert_eq!(stage.streamed(&run.key).await.0, "You said: Hello there");
    assert!(run.would_cost_micro > 0, "what it would have cost is told");
    assert_eq!(run.spec.hold_micro, 0, "and nothing is held for it");
}

#[tokio::test]
async fn mistakes_are_told_before_anybody_is_asked() {
    let stage = Stage::with(ModelOptions::default()).await;
    for (inputs, words) in [
        (json!({}), "neither a prompt nor a message"),
        (json!({"prompt": "x", "model": "mistral"}), "openai, anthropic"),
        (json!({"messages": [{"role": "system", "content": "x"}]}), "neither a prompt"),
    ] {
        let run = stage.chat(inputs).await;
        let (code, message, executed) = error_of(&run);
        assert_eq!((code.as_str(), executed.as_str()), ("tool.invalid_input", "no"), "{message}");
        assert!(message.contains(words), "{message}");
    }
    let unknown = stage.start(new(json!({"promt": "x"}))).await.expect_err("refused");
    assert_eq!(unknown.code.as_str(), "tool.invalid_input");
}

#[tokio::test]
async fn what_is_known_can_be_looked_at() {
    let stage = Stage::with(options(Api::Anthropic, "https://models.example/v1")).await;
    stage.keep("OPENAI_API_KEY", KEY).await;
    let tool = ToolId::new(wharf_models::MODELS).expect("valid");
    for mode in [Mode::Real, Mode::Mock] {
        let wanted = NewRun { tool: tool.clone(), mode, ..new(json!({})) };
        let run = stage.start(wanted).await.expect("accepted");
        let known = outputs_of(&*stage.end_of(&run.key).await);
        let ready: Vec<_> = known["providers"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| (it["name"].as_str().expect("a name"), it["ready"] == true))
            .collect();
        assert_eq!(ready, [("test", false), ("openai", true), ("anthropic", false)]);
        assert_eq!(known["providers"][0]["key"], "TEST_KEY");
        let price = known["prices"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|it| it["model"] == "test")
            .expect("there");
        assert_eq!((&price["input"], &price["as_of"]), (&json!(1.0), &json!("wharf.toml")));
        assert!(!known.to_string().contains(KEY));
    }
}
