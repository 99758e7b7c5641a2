//! A tool that has its implementation in its definition, and a layer that changes what it does.

use serde::{Deserialize, Serialize};
use wharf_sdk::{Cx, Fault, JsonSchema, Scope, tool};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Trip {
    destination: String,
    date: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Flight {
    number: String,
    price: u32,
}

/// Search for flights by destination and date.
#[tool]
async fn search(trip: Trip, cx: Cx<String>) -> Result<Vec<Flight>, Fault> {
    cx.progress(format!("searching {} on {}", trip.destination, trip.date)).await;
    let flight = |number: &str, price| Flight { number: number.to_owned(), price };
    Ok(vec![flight("WH 7", 420), flight("WH 9", 380)])
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Fault> {
    let root = Scope::root();
    let trip = || Trip { destination: "Tokyo".to_owned(), date: "2027-01-15".to_owned() };

    // Call it, and listen to how it goes.
    let mut call = SEARCH.call(&root, trip());
    while let Some(status) = call.progress().await {
        assert_eq!(status, "searching Tokyo on 2027-01-15");
    }
    assert_eq!(call.await?.len(), 2);

    // Change what it does with a layer: the cheapest first.
    root.around(&SEARCH, |trip, next| async move {
        let mut flights = next.run(trip).await?;
        flights.sort_by_key(|flight| flight.price);
        Ok(flights)
    });
    assert_eq!(SEARCH.call(&root, trip()).await?[0].number, "WH 9");

    root.close().await;
    Ok(())
}
