//! An agent that knows nothing of how it is served.

use serde::{Deserialize, Serialize};
use wharf_sdk::{Active, Agent, Answer, Cx, Error, Fault, JsonSchema, Scope, Tool};

/// Where to, and when.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Trip {
    to: String,
    #[serde(default)]
    date: String,
}

/// A flight that was found.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Flight {
    airline: String,
    to: String,
    price: u32,
}

/// How far a search is.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Status {
    step: u32,
    doing: String,
}

/// What the agent is set up with.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Settings {
    airlines: Vec<String>,
}

/// The answer to whether a flight is to be booked.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

pub(crate) const FLIGHT: Agent<Settings> = Agent::new("flight", "Finds and books flights.");
pub(crate) const SEARCH: Tool<Trip, Vec<Flight>, Status> =
    Tool::new("search", "Finds flights.").side_effects(false);
pub(crate) const BOOK: Tool<Flight, String> = Tool::new("book", "Books a flight once it may.");

/// The agent. It lives as long as the scope it is made in.
pub(crate) fn flight(root: &Scope) -> Result<Active<Settings>, Error> {
    let airlines = ["Crab Air", "Gull Lines"].map(str::to_owned).to_vec();
    FLIGHT.activate(root, Settings { airlines }).tool(&SEARCH, search).tool(&BOOK, book).build()
}

async fn search(trip: Trip, cx: Cx<Status>) -> Result<Vec<Flight>, Fault> {
    let settings = cx.config::<Settings>()?;
    let mut found = Vec::new();
    for (step, airline) in (1..).zip(&settings.airlines) {
        cx.progress(Status { step, doing: format!("asking {airline}") }).await;
        cx.cost(5);
        found.push(Flight { airline: airline.clone(), to: trip.to.clone(), price: 100 * step });
    }
    Ok(found)
}

async fn book(flight: Flight, cx: Cx) -> Result<String, Fault> {
    let question = format!("Fly to {} with {} for {}?", flight.to, flight.airline, flight.price);
    match cx.ask::<Confirm>(question).await? {
        Answer::Accepted(Confirm { ok: true }) => Ok(format!("booked with {}", flight.airline)),
        Answer::OffScript(words) => Ok(format!("not booked: {words}")),
        _ => Ok("not booked".to_owned()),
    }
}
