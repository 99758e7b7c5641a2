//! What is promised of every call: its records, and its output.

use serde_json::{Value, json};
use wharf_domain::Outcome;
use wharf_ports::providers::ProviderState;
use wharf_vocab::Code;

use crate::agent::Agent;
use crate::stage::{Stage, new, object, owner};

#[tokio::test]
async fn r128_every_call_leaves_who_what_how_long_and_why_and_nothing_of_its_payload() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    for (n, code) in [None, Some("acme.sold_out")].into_iter().enumerate() {
        let mut wanted = new("echo", object(json!({"in": "canary-in"})));
        wanted.correlation_id = Some(format!("trace-{n}"));
        let run = stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
        let call = agent.call().await;
        match code {
            None => agent.succeed(&call, json!({"out": "canary-out"})).await,
            Some(code) => agent.fail(&call, code, false).await,
        }
        stage.end_of(&run.key).await;
        let (routed, completed) =
            (stage.audited("tool.call_routed").await, stage.audited("tool.call_completed").await);
        assert_eq!((routed.len(), completed.len()), (n + 1, n + 1), "one of each for each call");
        let call_id = &call["payload"]["call_id"];
        for record in [&routed[n], &completed[n]] {
            assert_eq!(record.subject, format!("run:{}", run.key));
            assert_eq!(record.facts["tool"], "dev.example.hello/echo");
            assert_eq!(record.facts["attempt_id"], *call_id);
            assert_eq!(record.facts["correlation_id"], format!("trace-{n}"));
        }
        assert!(routed[n].actor.as_str().starts_with("grant:"), "{:?}", routed[n]);
        assert_eq!(completed[n].actor, "provider:dev.example.hello");
        let status = if code.is_none() { "succeeded" } else { "failed" };
        assert_eq!(completed[n].facts["status"], status);
        assert!(completed[n].facts["duration_ms"].is_u64(), "{:?}", completed[n]);
        let told = completed[n].facts.get("error_code").and_then(Value::as_str);
        assert_eq!(told, code);
    }
    let all = format!("{:?}", stage.handle.audit().list(0, 10_000).await.expect("readable"));
    assert!(!all.contains("canary"), "{all}");
}

#[tokio::test]
async fn r124_an_output_that_is_no_object_or_does_not_fit_the_schema_fails_the_call() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let mut agent = Agent::join(&launch, &["tools"]).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}},
                        "required": ["n"], "additionalProperties": false});
    let tool = json!({"tool_id": "dev.example.hello/count", "name": "count", "description": "Counts.",
                      "input_schema": {"type": "object"}, "output_schema": schema});
    agent.offer(&[tool]).await;
    stage.until(|view| view.state == ProviderState::Running).await;
    for wrong in [json!([1]), json!("one"), json!({}), json!({"n": "one"}), json!({"n": 1, "m": 2})]
    {
        let run = stage.run("count", json!({})).await.expect("accepted");
        let call = agent.call().await;
        agent.succeed(&call, wrong.clone()).await;
        let fault = stage.failure_of(&run).await;
        assert!(fault.is(Code::ToolInvalidOutput), "{wrong}: {fault}");
        assert!(!fault.message.contains("one"), "the value is not repeated: {fault}");
    }
    let run = stage.run("count", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({"n": 1})).await;
    let run = stage.end_of(&run.key).await;
    assert!(matches!(&run.outcome, Some(Outcome::Succeeded { outputs }) if outputs["n"] == 1));
}
