//! One definition, activated in three ways: executed here, executed elsewhere, and by nobody.

use serde::{Deserialize, Serialize};
use wharf_sdk::transport::memory;
use wharf_sdk::{Cx, Fault, JsonSchema, Scope, Tool, operative};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Accuracy {
    High,
    Low,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct LatLng {
    lat: f64,
    lng: f64,
}

/// Both sides share the definition.
const GET_LOCATION: Tool<Accuracy, LatLng, String> =
    Tool::new("get-location", "Get the user's current geographic location");

async fn get_location(accuracy: Accuracy, cx: Cx<String>) -> Result<LatLng, Fault> {
    cx.progress("requesting permission".to_owned()).await;
    Ok(match accuracy {
        Accuracy::High => LatLng { lat: 53.5461, lng: 9.9661 },
        Accuracy::Low => LatLng { lat: 53.5, lng: 10.0 },
    })
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Executed here.
    let here = Scope::root();
    here.provide(&GET_LOCATION, get_location)?;
    assert_eq!(GET_LOCATION.call(&here, Accuracy::High).await?.lat, 53.5461);

    // Executed elsewhere: the operative serves it, the principal calls it. A WebSocket or a Unix
    // socket would do as well.
    let (principal, operative) = memory::pair();
    let serving = operative::serve(&here, &operative);
    let there = Scope::root().with_transport(principal);
    let mut call = GET_LOCATION.call(&there, Accuracy::Low);
    assert_eq!(call.progress().await.as_deref(), Some("requesting permission"));
    assert_eq!(call.await?, LatLng { lat: 53.5, lng: 10.0 });
    serving.stop().await;

    // By nobody: the error names the tool.
    let nowhere = Scope::root();
    let fault = GET_LOCATION.call(&nowhere, Accuracy::Low).await.expect_err("nobody does it");
    assert!(fault.message.contains("get-location"));
    Ok(())
}
