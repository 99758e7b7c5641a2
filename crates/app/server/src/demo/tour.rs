//! What the demo shows besides its providers: a flow with a run that waits for somebody, a
//! schedule, a trigger and a receiver. All of it is made as anybody would make it, over the API.
//!
//! It is made once: where the flow is there already, nothing is. Nothing of it acts by itself: the
//! schedule and the receiver are paused, and the trigger's secret is kept by nobody.

use serde::Deserialize;
use serde_json::Value;
use wharf_client::rest_v1::{AddFlow, CreateReceiver, CreateRun, CreateSchedule, CreateTrigger};
use wharf_client::{Client, Error, Locator};

use crate::Home;

const TOUR: &str = include_str!("tour.json");

#[derive(Deserialize)]
struct Tour {
    flow: Value,
    run: CreateRun,
    schedule: CreateSchedule,
    trigger: CreateTrigger,
    receiver: CreateReceiver,
}

/// Makes it, unless it is there. The log says what could not be made.
pub(crate) async fn set_up(home: &Home) {
    let made = match serde_json::from_str::<Tour>(TOUR) {
        Ok(tour) => make(home, tour).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = made {
        tracing::warn!("the tour of the demo is left out: {error}");
    }
}

async fn make(home: &Home, tour: Tour) -> Result<(), Error> {
    let locator = Locator { home: Some(home.path().to_owned()), ..Locator::default() };
    let client = Client::new(locator)?;
    let name = tour.flow["name"].as_str().unwrap_or_default();
    if client.flows().get(name, None).await.is_ok() {
        return Ok(());
    }
    // First what is paused, so that it is before anything runs.
    let receiver = client.receivers().create(&tour.receiver).await?.name;
    client.receivers().pause(receiver.as_str()).await?;
    client.triggers().create(&tour.trigger).await?;
    client.flows().add(&AddFlow { document: tour.flow, pin: false }).await?;
    let schedule = client.schedules().create(&tour.schedule).await?.name;
    client.schedules().pause(schedule.as_str()).await?;
    client.runs().create(&tour.run).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c010_the_tour_can_be_read() {
        let tour: Tour = serde_json::from_str(TOUR).expect("readable");
        assert_eq!(
            tour.run.tool.as_str(),
            format!("flow/{}", tour.flow["name"].as_str().expect("a name"))
        );
    }
}
