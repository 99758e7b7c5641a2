//! A run that needs a login: a person is asked, and the run goes on once somebody did it.

use serde_json::json;
use wharf_domain::run::NewAsk;
use wharf_domain::{Audience, Resolution};
use wharf_vocab::{AskKind, Executed, Fault};

use super::super::attempt::{AttemptWork, Broken, failed};

/// Asks a person to log in and waits until somebody did, or until the question is over. Nothing
/// was sent; the call is made again as another attempt.
pub(crate) async fn ask_to_log_in(work: &AttemptWork, fault: Fault) -> Broken {
    let provider = &work.agent.id;
    let login = work.servers.logins.of(provider);
    let mut changes = login.changes();
    if !login.is_wanted() {
        // Somebody was quicker.
        return failed(Fault { retryable: true, ..fault }, Executed::No);
    }
    let dispatch = work.attempt.dispatch();
    let ask = NewAsk {
        attempt_id: dispatch.attempt_id.clone(),
        kind: AskKind::Question,
        key: format!("mcp-login-{}", dispatch.attempt),
        title: format!("Log in to the MCP server {provider}: wharf mcp login {provider}"),
        schema: Some(json!({
            "type": "boolean",
            "title": "I have logged in; go on",
        })),
        audience: Audience::Person,
        deadline: None,
        escalates: None,
        detail: None,
        by: Vec::new(),
    };
    let context = work.asking();
    let goes_on = tokio::select! {
        order = work.stop.wanted() => return Broken::Stopped(order),
        // It fails only with the desk, which goes with the core.
        changed = changes.changed() => changed.is_ok(),
        answer = context.ask(ask) => match answer {
            Ok(Resolution::Answered { value }) => value == json!(true),
            _ => false,
        },
    };
    failed(Fault { retryable: goes_on, ..fault }, Executed::No)
}
