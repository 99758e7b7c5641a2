//! What clients of the operator protocol ask before anything else.

use serde_json::{Value, json};
use wharf_http::{Doctor, Finding};
use wharf_ports::providers::ProviderState;

use crate::agents::edge_with;
use crate::support::agents::ScriptedAgents;
use crate::support::client::Call;
use crate::support::{Edge, TOKEN};

#[tokio::test]
async fn health_is_told_to_everybody_as_text() {
    let edge = Edge::start().await;
    let answer = Call::new(edge.server.addr(), "GET", "/v1/healthz").send().await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
    assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")));
}

#[tokio::test]
async fn a_token_may_stand_in_the_header_of_the_operator_client() {
    let edge = Edge::start().await;
    let with = |name: &str, value: &str| {
        Call::new(edge.server.addr(), "GET", "/v1/runs").header(name, value).send()
    };
    assert_eq!(with("x-mse-access-token", TOKEN).await.status, 200);
    assert_eq!(with("X-MSE-Access-Token", TOKEN).await.status, 200);
    with("x-mse-access-token", "wrong").await.refused(401, "auth.invalid");
    let made = edge.token(json!({"verbs": ["answer"]})).await;
    let token = made["token"].as_str().expect("a token");
    // A good token that is not enough is told what it lacks.
    with("x-mse-access-token", token).await.refused(403, "permission.denied");
    // The usual place wins.
    let both = edge.call_as("wrong", "GET", "/v1/runs").header("x-mse-access-token", TOKEN);
    both.send().await.refused(401, "auth.invalid");
}

/// The verdict of a check, by name.
fn verdict<'d>(diagnosis: &'d Value, name: &str) -> &'d str {
    let checks = diagnosis["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == name);
    check.and_then(|check| check["verdict"].as_str()).unwrap_or("absent")
}

#[tokio::test]
async fn the_doctor_says_what_is_true() {
    let edge = Edge::start_with(|options| {
        let finding = || Finding {
            name: "disk".to_owned(),
            verdict: wharf_vocab::Verdict::Warn,
            text: "little room".to_owned(),
            fixes: Vec::new(),
        };
        options.doctor = Some(Doctor(std::sync::Arc::new(move || vec![finding()])));
    })
    .await;
    let told = edge.get("/v1/doctor").await.json();
    assert_eq!(told["status"], "warn", "the worst of all: {told}");
    for (name, expect) in [("core", "ok"), ("database", "ok"), ("agents", "ok"), ("disk", "warn")] {
        assert_eq!(verdict(&told, name), expect, "{name}: {told}");
    }
    edge.call("GET", "/v1/doctor")
        .header("authorization", "")
        .send()
        .await
        .refused(401, "auth.required");
}

#[tokio::test]
async fn the_doctor_names_providers_that_are_not_well() {
    let agents = ScriptedAgents::new();
    let edge = edge_with(&agents).await;
    edge.add_agent("dev.example.hello").await;
    let told = edge.get("/v1/doctor").await.json();
    assert_eq!((verdict(&told, "agents"), &told["status"]), ("ok", &json!("ok")), "{told}");
    agents.set("dev.example.hello", |view| view.state = ProviderState::Crashed);
    let told = edge.get("/v1/doctor").await.json();
    assert_eq!((verdict(&told, "agents"), &told["status"]), ("warn", &json!("warn")), "{told}");
    assert!(told.to_string().contains("dev.example.hello is crashed"), "{told}");
}
