//! Tools from functions.

use serde::{Deserialize, Serialize};
use wharf_sdk::{Agent, Code, Cx, Fault, Implemented, JsonSchema, Scope, Tool, tool};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Trip {
    to: String,
}

/// Searches for flights
/// by destination.
///
/// It asks nobody else.
#[tool(name = "search")]
async fn search(trip: Trip, cx: Cx<String>) -> Result<Vec<String>, Fault> {
    cx.progress("searching".to_owned()).await;
    Ok(vec![format!("to {}", trip.to)])
}

/// How many there are.
#[tool(sdk = "::wharf_sdk")]
async fn how_many(trips: Vec<Trip>) -> Result<usize, Fault> {
    Ok(trips.len())
}

#[tool(name = "who.am-i", description = "Who is called.")]
pub(crate) async fn who(cx: Cx) -> Result<String, Fault> {
    Ok(cx.tool().to_owned())
}

/// Always fails.
#[tool]
async fn fail() -> std::result::Result<(), Fault> {
    Err(Fault::new(Code::ToolFailed, "As always."))
}

mod elsewhere {
    /// Is seen from outside.
    #[wharf_sdk::tool]
    pub(super) async fn visible(text: String) -> Result<String, wharf_sdk::Fault> {
        Ok(text)
    }
}

#[tokio::test]
async fn k002_an_attribute_makes_a_definition_with_an_implementation() {
    let definition: Tool<Trip, Vec<String>, String, Implemented> = SEARCH;
    assert_eq!(definition.name(), "search");
    assert_eq!(
        definition.description(),
        "Searches for flights by destination.\n\nIt asks nobody else."
    );
    let scope = Scope::root();
    let mut call = SEARCH.call(&scope, Trip { to: "Tokyo".to_owned() });
    assert_eq!(call.progress().await.as_deref(), Some("searching"));
    assert_eq!(call.await, Ok(vec!["to Tokyo".to_owned()]));
}

#[tokio::test]
async fn k002_the_attribute_takes_what_a_function_leaves_out() {
    let scope = Scope::root();
    assert_eq!((HOW_MANY.name(), HOW_MANY.description()), ("how-many", "How many there are."));
    assert_eq!(HOW_MANY.call(&scope, vec![]).await, Ok(0));
    assert_eq!((WHO.name(), WHO.description()), ("who.am-i", "Who is called."));
    assert_eq!(elsewhere::VISIBLE.call(&scope, "x".to_owned()).await, Ok("x".to_owned()));
    assert_eq!(FAIL.call(&scope, ()).await, fail().await);
}

#[tokio::test]
async fn k002_a_function_with_the_attribute_is_still_a_function() {
    assert_eq!(how_many(vec![Trip { to: "Oslo".to_owned() }]).await, Ok(1));
    let scope = Scope::root();
    let agent = Agent::<()>::new("travel", "Travels.");
    let agent = agent.activate(&scope, ()).own(&SEARCH).own(&HOW_MANY).build();
    assert_eq!(agent.expect("a good agent").tools().len(), 2);
}
