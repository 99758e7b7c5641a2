//! Tools that stay connected, and names for tools of others.

use std::time::Duration;

use wharf_sdk::operative::{self, Connect};
use wharf_sdk::transport::{Link, Named, ws};
use wharf_sdk::{Code, Error, Scope, Tool};

use crate::carrier::{options, soon};
use crate::tools::*;

fn connect() -> Connect {
    let backoff = Duration::from_millis(5);
    Connect { backoff, transport: options(), ..Connect::new("flight") }
}

async fn listener() -> (ws::Listener, String) {
    let listener = ws::Listener::bind("127.0.0.1:0", options()).await.expect("bound");
    let address = format!("http://{}", listener.address());
    (listener, address)
}

/// Calls over a link, as a core would.
async fn works(link: &Link) {
    let scope = Scope::root().with_transport(link.clone());
    let text = Text { text: "x".to_owned() };
    assert_eq!(soon(ECHO.call(&scope, text.clone())).await, Ok(text));
}

#[tokio::test]
async fn k031_tools_are_offered_with_their_schemas_and_served() {
    let (scope, ..) = served();
    let (mut listener, address) = listener().await;
    let operative = soon(operative::connect(&scope, &address, connect())).await;
    let operative = operative.expect("connected");
    let link = soon(listener.accept()).await.expect("accepted");
    let offered = link.offered();
    let count = offered.iter().find(|tool| tool.name == "count").expect("offered");
    assert_eq!(count.description, "Counts up to a number.");
    assert_eq!(count.input["type"], "integer");
    assert!(count.output.is_some() && count.progress.is_some());
    let echo = offered.iter().find(|tool| tool.name == "echo").expect("offered");
    assert!(echo.progress.is_none(), "it says nothing on the way");
    assert_eq!(operative.tools().len(), offered.len());
    works(&link).await;
    soon(operative.stop()).await;
    soon(link.closed()).await;
}

#[tokio::test]
async fn k031_a_lost_connection_is_made_again() {
    let (scope, ..) = served();
    let (mut listener, address) = listener().await;
    let operative = soon(operative::connect(&scope, &address, connect())).await;
    let mut operative = operative.expect("connected");
    for _ in 0..3 {
        let link = soon(listener.accept()).await.expect("accepted");
        assert!(soon(operative.connected(true)).await);
        works(&link).await;
        soon(link.close()).await;
        assert!(soon(operative.connected(false)).await);
    }
    let link = soon(listener.accept()).await.expect("accepted");
    works(&link).await;
    soon(scope.close()).await;
    soon(operative.ended()).await;
    soon(link.closed()).await;
}

#[tokio::test]
async fn k027_calls_that_are_under_way_end_before_an_operative_goes() {
    let (scope, seen, gate) = served();
    let (mut listener, address) = listener().await;
    let operative = soon(operative::connect(&scope, &address, connect())).await;
    let operative = operative.expect("connected");
    let link = soon(listener.accept()).await.expect("accepted");
    let caller = Scope::root().with_transport(link);
    let call = tokio::spawn(GATE.call(&caller, 1));
    crate::carrier::until("it is under way", || seen.begun() == 1).await;
    let stopping = tokio::spawn(operative.stop());
    gate.add_permits(1);
    assert_eq!(soon(call).await.expect("ended"), Ok(1));
    soon(stopping).await.expect("stopped");
}

#[tokio::test]
async fn k031_a_core_that_is_not_there_is_waited_for_only_if_wanted() {
    let (scope, ..) = served();
    let (gone, address) = listener().await;
    let at = gone.address();
    drop(gone);
    let hasty = soon(operative::connect(&scope, &address, connect())).await;
    assert!(matches!(hasty, Err(Error::Connect { .. })));
    let patient = Connect { patient: true, ..connect() };
    let mut operative = soon(operative::connect(&scope, &address, patient)).await.expect("waits");
    assert!(!operative.is_connected() && operative.tools().is_empty());
    let back = ws::Listener::bind(at.to_string(), options()).await;
    // Somebody else may have taken the port in between.
    if let Ok(mut listener) = back {
        works(&soon(listener.accept()).await.expect("accepted")).await;
        assert!(soon(operative.connected(true)).await);
    }
    soon(operative.stop()).await;
}

#[tokio::test]
async fn k031_a_refusal_is_told_at_once() {
    let (scope, ..) = served();
    let options = wharf_sdk::transport::Options { token: Some("right".to_owned()), ..options() };
    let listener = ws::Listener::bind("127.0.0.1:0", options).await.expect("bound");
    let address = format!("http://{}", listener.address());
    let patient = Connect { patient: true, ..connect() };
    let refused = soon(operative::connect(&scope, &address, patient)).await;
    assert!(matches!(refused, Err(Error::Refused { status: 401, .. })));
}

#[tokio::test]
async fn k016_a_tool_can_go_by_another_name_elsewhere() {
    const THEIRS: Tool<Text, Text> = Tool::new("shout", "Says it louder.");
    let there = Scope::root();
    let shout = |text: Text, _cx| async move { Ok(Text { text: text.text.to_uppercase() }) };
    there.provide(&THEIRS, shout).expect("provided");
    let (near, far) = wharf_sdk::transport::memory::pair();
    let _serving = operative::serve(&there, &far);
    let text = Text { text: "loud".to_owned() };
    let scope = Scope::root().with_transport(near.named(&ECHO, "shout"));
    assert_eq!(soon(ECHO.call(&scope, text.clone())).await.expect("said").text, "LOUD");
    let scope = Scope::root().with_transport(Named::new(near));
    let fault = soon(ECHO.call(&scope, text)).await.expect_err("nobody is called so");
    assert!(fault.is(Code::ToolNotFound));
}
