//! The events of a run, live and from any point.

use axum::http::{HeaderMap, StatusCode};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use wharf_engine::Watch;
use wharf_views::EventWindow;
use wharf_vocab::{Fault, RunId, RunKey, Seq, Verb};
use wharf_wire::rest_v1::{Event, Page};

use super::table::{ApiCall, get, routes};
use crate::access::Need;
use crate::answer::{self, Answer, invalid, json};
use crate::app::App;
use crate::params::{Params, Segments};
use crate::sse;
use crate::{access, from_wire};

routes! {
    "runs";
    /// Streams the events of a run. Each has its sequence number as `id`, and its data is one line of
    /// JSON. The stream ends after `finished`. A client that reconnects with `Last-Event-ID` misses
    /// nothing. The stream also ends, with a comment, when the token expires or is revoked.
    run_events => get("/v1/runs/{run_id}/events", Need::READ, stream)
        .streams()
        .of_run()
        .query::<u64>("after", "Only events after this number.")
        .header::<u64>("Last-Event-ID",
            "The same as `after`, as browsers send it. It takes precedence over `after`.")
        .sends(200, "text/event-stream", "The events; see the schemas whose names end in `Event`.")
        .says(204, "The run has ended, and there are no events after `Last-Event-ID`.")
        .missing("run");
    /// Lists the latest events of a run, oldest first: each as in the stream, with its name under
    /// `event`.
    run_trace => get("/v1/runs/{run_id}/trace", Need::READ, trace)
        .of_run()
        .query::<u64>("latest", "How many events; 100 when absent, at most 1000.")
        .query::<u64>("before", "Only events before this number.")
        .query::<String>("types", "Only events of these names, with commas between: `text,log`.")
        .lists::<Event>("The events.")
        .missing("run");
}

/// How soon a reader should come back, told to it at the beginning.
const RETRY_MS: u64 = 1_000;

async fn stream(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    access::world(&caller, Verb::Read, &key.world)?;
    let last = last_event_id(&headers)?;
    let after = Seq(match last {
        Some(last) => last,
        None => params.number("after")?.unwrap_or(0),
    });
    let run = access::run(&app.handle, &caller, Verb::Read, &key).await?;
    if last.is_some() && run.is_over() && !has_more(&app, &key, after).await? {
        // Browsers come back for ever, unless they are told that there is nothing to come back for.
        return answer::done();
    }
    let source = events(app.handle.run_events().watch(&key, after).await?, key.run.clone());
    let farewell = "the core is stopping; come back with Last-Event-ID";
    let allowed = access::still(&app.handle, caller, Verb::Read, key.world);
    Ok(app.stream(source, allowed, farewell))
}

/// Whether anything after `after` is shown of a run that is over.
async fn has_more(app: &App, key: &RunKey, after: Seq) -> Result<bool, Fault> {
    let mut watch = app.handle.run_events().watch(key, after).await?;
    while let Some(event) = watch.next_known().await {
        if event?.public(&key.run).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn trace(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let key = from_wire::run_key(&segments, &params)?;
    access::world(&caller, Verb::Read, &key.world)?;
    let types = |text: &str| text.split(',').map(str::to_owned).collect();
    let window = EventWindow {
        latest: params.number("latest")?,
        before: params.number("before")?,
        types: params.text("types").map(types),
    };
    access::run(&app.handle, &caller, Verb::Read, &key).await?;
    let events = wharf_views::run_trace(&app.handle, &key, &window).await?;
    let items: Vec<Value> = events.iter().filter_map(|it| listed(&it.event)).collect();
    Ok(json(StatusCode::OK, &Page { items, next_cursor: None }))
}

/// An event as one item of a list.
fn listed(event: &Event) -> Option<Value> {
    let mut item: Value = serde_json::from_str(&event.to_json().ok()?).ok()?;
    item.as_object_mut()?.insert("event".to_owned(), event.name().into());
    Some(item)
}

/// The events of a run that a watch shows.
fn events(watch: Watch, run_id: RunId) -> BoxStream<'static, String> {
    let begin = stream::iter([format!("retry: {RETRY_MS}\n\n")]);
    let shown = stream::unfold(Some((watch, run_id)), |state| async move {
        let (mut watch, run_id) = state?;
        let event = match watch.next().await? {
            Ok(event) => event.public(&run_id).map(wharf_views::event),
            // The reader is told why nothing more comes.
            Err(fault) => return Some((sse::comment(fault.code.as_str()), None)),
        };
        Some((event.as_ref().map_or_else(String::new, write), Some((watch, run_id))))
    });
    begin.chain(shown).boxed()
}

fn write(event: &Event) -> String {
    match event.to_json() {
        Ok(data) => sse::message(Some(event.seq()), event.name(), &data),
        Err(_) => sse::comment("an event cannot be shown"),
    }
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Fault> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().map(str::trim).filter(|text| !text.is_empty());
    let Some(number) = number else { return Ok(None) };
    let wrong = || invalid("Last-Event-ID", "The header Last-Event-ID must be a whole number.");
    number.parse().map(Some).map_err(|_| wrong())
}
