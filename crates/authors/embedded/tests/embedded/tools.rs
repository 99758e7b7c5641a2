//! An agent for tests, and what is done with it over and over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_embedded::{Ask, Embedded, Event, RunKey, What};
use wharf_sdk::builtin::{Answer, NOTIFY, Notice};
use wharf_sdk::{Active, Agent, Cx, Fault, JsonSchema, Scope, Tool};

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Settings {
    pub(crate) airline: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Trip {
    pub(crate) to: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Status {
    pub(crate) step: u32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Confirm {
    pub(crate) ok: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Small {
    #[schemars(range(max = 3))]
    pub(crate) n: u32,
}

pub(crate) const FLIGHT: Agent<Settings> = Agent::new("flight", "Finds flights.");
pub(crate) const SEARCH: Tool<Trip, Vec<String>, Status> = Tool::new("search", "Searches.");
pub(crate) const CONFIRM: Tool<(), String> = Tool::new("confirm", "Asks.").side_effects(false);
pub(crate) const HASTY: Tool<(), String> = Tool::new("hasty", "Asks and does not wait.");
pub(crate) const TELL: Tool<(), ()> = Tool::new("tell", "Tells.");
pub(crate) const COMPLETE: Tool<String, String> = Tool::new("complete", "Completes.");
pub(crate) const RELAY: Tool<Trip, Vec<String>, Status> = Tool::new("relay", "Has others search.");
pub(crate) const REMOTE: Tool<Trip, Vec<String>, Status> =
    Tool::new("remote", "Searched for.").at("gull/search");
pub(crate) const LOST: Tool<(), ()> = Tool::new("lost", "Calls what nobody does.");
pub(crate) const NOBODY: Tool<(), ()> = Tool::new("nobody", "Nobody does this.");
pub(crate) const PANIC: Tool<(), ()> = Tool::new("panic", "Panics.");
pub(crate) const LARGE: Tool<(), Small> = Tool::new("large", "Gives too much.");
pub(crate) const HANG: Tool<(), ()> = Tool::new("hang", "Never ends.");

pub(crate) async fn search(trip: Trip, cx: Cx<Status>) -> Result<Vec<String>, Fault> {
    let settings = cx.config::<Settings>()?;
    for step in 1..=3 {
        cx.progress(Status { step }).await;
    }
    cx.cost(42);
    Ok(vec![format!("{} to {}", settings.airline, trip.to)])
}

async fn confirm((): (), cx: Cx) -> Result<String, Fault> {
    Ok(match cx.ask::<Confirm>("Really?").await? {
        Answer::Accepted(Confirm { ok }) => format!("accepted {ok}"),
        Answer::Declined => "declined".to_owned(),
        Answer::Cancelled => "cancelled".to_owned(),
        Answer::Denied => "denied".to_owned(),
        Answer::OffScript(text) => format!("off script: {text}"),
        Answer::Expired => "expired".to_owned(),
    })
}

async fn hasty((): (), cx: Cx) -> Result<String, Fault> {
    let asked = cx.ask::<Confirm>("Quick?");
    Ok(match tokio::time::timeout(Duration::from_millis(50), asked).await {
        Ok(_) => "answered".to_owned(),
        Err(_) => "went on".to_owned(),
    })
}

async fn tell((): (), cx: Cx) -> Result<(), Fault> {
    let notice = Notice { message: "half".to_owned(), progress: Some(0.5), ..Notice::default() };
    NOTIFY.call(&cx, notice).await
}

async fn complete(prompt: String, cx: Cx) -> Result<String, Fault> {
    Ok(cx.sample(prompt).await?.text)
}

async fn relay(trip: Trip, cx: Cx<Status>) -> Result<Vec<String>, Fault> {
    let mut call = REMOTE.call(&cx, trip);
    while let Some(status) = call.progress().await {
        cx.progress(status).await;
    }
    call.await
}

/// An agent with all tools of this file, and how often `hang` has cleaned up.
pub(crate) fn flight(root: &Scope, airline: &str) -> (Active<Settings>, Arc<AtomicUsize>) {
    let cleaned = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&cleaned);
    let active = FLIGHT
        .activate(root, Settings { airline: airline.to_owned() })
        .tool(&SEARCH, search)
        .tool(&CONFIRM, confirm)
        .tool(&HASTY, hasty)
        .tool(&TELL, tell)
        .tool(&COMPLETE, complete)
        .tool(&RELAY, relay)
        .remote(&REMOTE)
        .tool(&LOST, |(), cx: Cx| async move { NOBODY.call(&cx, ()).await })
        .tool(&PANIC, |(), _cx: Cx| async move { panic!("a panic with a canary in it") })
        .tool(&LARGE, |(), _cx: Cx| async move { Ok(Small { n: 4 }) })
        .tool(&HANG, move |(), cx: Cx| {
            let counted = Arc::clone(&counted);
            async move {
                cx.at_end(async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                });
                cx.notify("hanging").await?;
                std::future::pending().await
            }
        })
        .build();
    (active.expect("a usable agent"), cleaned)
}

/// A core with the agent as the provider `flight`.
pub(crate) struct Up {
    pub(crate) core: Embedded,
    pub(crate) cleaned: Arc<AtomicUsize>,
    /// It lives as long as its scope.
    pub(crate) root: Scope,
}

pub(crate) async fn up() -> Up {
    let root = Scope::root();
    let (flight, cleaned) = flight(&root, "Crab Air");
    let core = Embedded::in_memory().await.expect("a core");
    core.offer("flight", &flight).await.expect("offered");
    Up { core, cleaned, root }
}

/// Everything that happens in a run until its end.
pub(crate) async fn history(core: &Embedded, run: &RunKey) -> Vec<What> {
    let mut watch = core.watch(run).await.expect("a run");
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        seen.push(event.expect("readable").what);
    }
    seen
}

/// Waits until something happens in a run.
pub(crate) async fn until<T>(
    core: &Embedded,
    run: &RunKey,
    mut pick: impl FnMut(&What) -> Option<T>,
) -> T {
    let mut watch = core.watch(run).await.expect("a run");
    while let Some(event) = watch.next().await {
        let Event { what, .. } = event.expect("readable");
        if let Some(found) = pick(&what) {
            return found;
        }
        assert!(!matches!(what, What::Finished(_)), "it never happened: {what:?}");
    }
    panic!("it never happened");
}

/// Waits for what a run asks.
pub(crate) async fn asked(core: &Embedded, run: &RunKey) -> Ask {
    until(core, run, |what| match what {
        What::Asked(ask) => Some((**ask).clone()),
        _ => None,
    })
    .await
}

/// Waits for a condition.
pub(crate) async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(tokio::time::Instant::now() < deadline, "it did not happen in time");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
