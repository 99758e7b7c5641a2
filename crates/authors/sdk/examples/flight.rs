//! An agent: tools that belong together, with a configuration that they share, and layers.

use serde::{Deserialize, Serialize};
use wharf_sdk::layers::{Cache, Retry, Timeout};
use wharf_sdk::{Agent, Cx, Fault, JsonSchema, Lane, Scope, Tool};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct FlightConfig {
    /// Who pays.
    #[schemars(length(min = 1))]
    api_key: String,
    #[serde(default = "euro")]
    currency: String,
}

fn euro() -> String {
    "EUR".to_owned()
}

const SEARCH: Tool<String, Vec<String>, String> = Tool::new("search", "Search for flights");
const BOOK: Tool<String, String> = Tool::new("book", "Book the first flight to a place");
const FLIGHT: Agent<FlightConfig> = Agent::new("flight", "Flight booking agent");

async fn search(to: String, cx: Cx<String>) -> Result<Vec<String>, Fault> {
    cx.progress("searching".to_owned()).await;
    Ok(vec![format!("WH 7 to {to}"), format!("WH 9 to {to}")])
}

async fn book(to: String, cx: Cx) -> Result<String, Fault> {
    let config = cx.config::<FlightConfig>()?;
    // A sibling is called like any other tool, through all layers.
    let flights = SEARCH.call(&cx, to).await?;
    Ok(format!("{}, paid in {} by {}", flights[0], config.currency, config.api_key))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Scope::root();
    let activate = |config| {
        FLIGHT.activate_json(&root, config)?.tool(&SEARCH, search).tool(&BOOK, book).build()
    };
    let ours = activate(serde_json::json!({"api_key": "ours"}))?;
    let theirs = activate(serde_json::json!({"api_key": "theirs", "currency": "JPY"}))?;

    // A configuration that does not fit is refused before anything is called.
    let error = activate(serde_json::json!({"api_key": ""})).expect_err("it is empty");
    assert!(error.to_string().contains("/api_key"));

    // Two instances do not mix.
    let oslo = || "Oslo".to_owned();
    assert_eq!(BOOK.call(&ours, oslo()).await?, "WH 7 to Oslo, paid in EUR by ours");
    assert_eq!(BOOK.call(&theirs, oslo()).await?, "WH 7 to Oslo, paid in JPY by theirs");

    // Layers for the agent, wherever it is active below this scope.
    FLIGHT
        .around_all(&root, Timeout::after_secs(30))
        .layer(&root, Lane::Outer, &SEARCH, Cache::new())
        .layer(&root, Lane::Outer, &SEARCH, Retry::new())
        .around(&root, &SEARCH, |to, next| async move { next.run(to.to_uppercase()).await });
    // And one for a single instance.
    theirs
        .scope()
        .around(&BOOK, |to, next| async move { Ok(next.run(to).await? + ", with a window seat") });
    assert_eq!(BOOK.call(&ours, oslo()).await?, "WH 7 to OSLO, paid in EUR by ours");
    assert!(BOOK.call(&theirs, oslo()).await?.ends_with("by theirs, with a window seat"));

    root.close().await;
    Ok(())
}
