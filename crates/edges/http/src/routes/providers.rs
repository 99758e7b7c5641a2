//! Providers of every kind in one shape, and looking for anything.

use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;
use wharf_ports::providers::{ProviderControl, ProviderState, ProviderView};
use wharf_vocab::limits::LOG_LINES_SHOWN_MAX;
use wharf_vocab::{Code, Fault, ProviderId};
use wharf_wire::rest_v1::{self as wire, AgentLogLine, Page};

use super::table::{ApiCall, get, post, routes};
use super::{status, to_its_end};
use crate::access::{self, Need};
use crate::answer::{self, Answer};
use crate::app::App;
use crate::params::{Params, Segments};
use crate::{from_wire, page};

routes! {
    "providers";
    /// Lists providers of every kind by id, all in one shape.
    list_providers => get("/v1/providers", Need::READ, list)
        .query::<String>("kind",
            "Only `agent`, `tool_server`, `mcp_server`, `operative`, `operator` or `builtin`.")
        .query::<String>("state", "Only providers in this state.")
        .query::<String>("q", "Only providers whose id or name contains this text.")
        .page::<wire::Provider>("A page of providers.");
    /// Shows a provider. The id of a tool server contains a slash, which is written as `%2F`.
    show_provider => get("/v1/providers/{provider_id}", Need::READ, show)
        .gives::<wire::Provider>(200, "The provider.")
        .missing("provider");
    /// Lists the latest starts of a provider's process, newest first.
    provider_launches => get("/v1/providers/{provider_id}/launches", Need::READ, launches)
        .lists::<wire::ProviderLaunch>("The starts.")
        .missing("provider");
    /// Shows what a provider's processes used lately, step by step: an hour by ten seconds, or a day by
    /// minutes. It is kept in memory, so there is nothing from before the core's start.
    provider_usage => get("/v1/providers/{provider_id}/usage", Need::READ, usage)
        .query::<String>("range", "`1h` or `24h`; `1h` when absent.")
        .gives::<wire::ProviderUsage>(200, "The steps, oldest first; none of a provider that the core \
            does not launch.")
        .missing("provider");
    /// Drains a provider: it finishes what is under way, takes nothing new and then stops. The answer
    /// does not wait for that; meanwhile its state is `draining`. Starting it takes that back, stopping
    /// it ends it at once.
    drain_provider => post("/v1/providers/{provider_id}/drain", Need::OPERATE_EVERYWHERE, drain)
        .gives::<wire::Provider>(202, "The provider.")
        .missing("provider");
    /// Shows lines of a provider's log: the last ones, or those before a time, or those that contain a
    /// text.
    provider_logs => get("/v1/providers/{provider_id}/logs", Need::OPERATE_EVERYWHERE, logs)
        .query::<u32>("lines", "How many lines, 0 to 10000; 200 when absent.")
        .query::<String>("before", "Only lines written before this RFC 3339 time.")
        .query::<String>("q", "Only lines that contain this text.")
        .lists::<AgentLogLine>("The lines, oldest first.")
        .missing("provider");

    "search";
    /// Looks for runs by the beginning of their id, and for tools, providers, worlds, flows,
    /// schedules and triggers by a part of theirs.
    search => get("/v1/search", Need::READ, search)
        .query::<String>("q", "What to look for.").required()
        .gives::<wire::Search>(200, "What was found, up to ten of each.");
}

/// Whoever steers providers of one kind each.
fn controls(app: &App) -> impl Iterator<Item = &Arc<dyn ProviderControl>> {
    let options = &app.options;
    [&options.agents, &options.tools, &options.mcp].into_iter().flatten()
}

fn views(app: &App, caller: &wharf_domain::Caller) -> Vec<ProviderView> {
    let all = controls(app).flat_map(|control| control.list());
    all.map(|view| access::seen_by(caller, view)).collect()
}

fn provider_id(segments: &Segments) -> Result<ProviderId, Fault> {
    wharf_views::id("provider_id", segments.get("provider_id"))
}

fn unknown(id: &ProviderId) -> Fault {
    Fault::new(Code::AgentNotFound, format!("There is no provider {id}."))
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let state = |text: &str| ProviderState::parse(text).ok_or(());
    let state = params.parsed("state", "the state of a provider", state)?;
    let mut all = wharf_views::all_providers(&app.handle, &views(&app, &caller));
    let kinds = ["agent", "tool_server", "mcp_server", "operative", "operator", "builtin"];
    let kind = |text: &str| kinds.into_iter().find(|kind| *kind == text).ok_or(());
    if let Some(kind) = params.parsed("kind", "the kind of a provider", kind)? {
        all.retain(|it| it.kind == kind);
    }
    if let Some(q) = params.text("q").map(str::to_lowercase) {
        let fits = |text: &str| text.to_lowercase().contains(&q);
        all.retain(|it| fits(&it.provider_id) || fits(&it.name));
    }
    all.retain(|it| state.is_none_or(|state| it.state == state));
    page::by_name(&params, page::PROVIDERS, all, |it| it.provider_id.as_str(), Clone::clone)
}

async fn show(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = provider_id(&segments)?;
    for control in controls(&app) {
        let Ok(mut view) = control.show(&id) else { continue };
        if view.provider.approval.is_some() {
            // What has drifted is looked at now, not when it was last started.
            view.provider.drift = control.drift(id.clone()).await?;
        }
        return answer::ok(&wharf_views::provider(&access::seen_by(&caller, view)));
    }
    let all = wharf_views::all_providers(&app.handle, &[]);
    let found = all.iter().find(|it| it.provider_id == id.as_str());
    answer::ok(found.ok_or_else(|| unknown(&id))?)
}

async fn launches(State(app): State<Arc<App>>, segments: Segments) -> Answer {
    let id = provider_id(&segments)?;
    let provider = app.handle.providers().get(&id).map_err(|_| unknown(&id))?;
    let items = wharf_views::launches(&app.handle, &provider).await?;
    answer::ok(&Page { items, next_cursor: None })
}

async fn usage(State(app): State<Arc<App>>, segments: Segments, params: Params) -> Answer {
    let (id, range) = (provider_id(&segments)?, status::range(&params)?);
    let points = match controls(&app).find_map(|control| control.usage(&id, range).ok()) {
        Some(points) => points,
        None => known_otherwise(&app, &id).map(|()| Vec::new())?,
    };
    answer::ok(&wharf_views::provider_usage(range, &points))
}

async fn drain(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = provider_id(&segments)?;
    let Some(control) = controls(&app).find(|control| control.show(&id).is_ok()).cloned() else {
        known_otherwise(&app, &id)?;
        let message = format!("The core does not launch {id}; stop it where it was started.");
        return Err(Fault::new(Code::RequestInvalid, message).into());
    };
    let by = caller.clone();
    let view = to_its_end(async move { control.drain(by, id).await }).await?;
    let shown = wharf_views::provider(&access::seen_by(&caller, view));
    Ok(answer::json(StatusCode::ACCEPTED, &shown))
}

/// Whether there is such a provider among those that the core does not launch.
fn known_otherwise(app: &App, id: &ProviderId) -> Result<(), Fault> {
    let all = wharf_views::all_providers(&app.handle, &[]);
    all.iter().any(|it| it.provider_id == id.as_str()).then_some(()).ok_or_else(|| unknown(id))
}

async fn logs(State(app): State<Arc<App>>, segments: Segments, params: Params) -> Answer {
    let id = provider_id(&segments)?;
    let lines = params.lines()?;
    let before = from_wire::moment(&params, "before", app.handle.now())?;
    let q = params.text("q").map(str::to_lowercase);
    let narrowed = before.is_some() || q.is_some();
    let control = controls(&app).find(|control| control.show(&id).is_ok());
    let control = control.ok_or_else(|| unknown(&id))?;
    // All lines that are kept are looked at when only some are wanted.
    let read = if narrowed { LOG_LINES_SHOWN_MAX } else { lines };
    let mut found = control.logs(id, read).await?;
    found.retain(|line| {
        before.is_none_or(|before| line.at < before)
            && q.as_ref().is_none_or(|q| line.text.to_lowercase().contains(q))
    });
    let first = found.len().saturating_sub(lines);
    let items = found[first..].iter().map(wharf_views::log_line).collect();
    answer::ok(&Page { items, next_cursor: None })
}

async fn search(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let q = params.text("q").unwrap_or_default();
    let all = wharf_views::all_providers(&app.handle, &views(&app, &caller));
    let all = all.into_iter().filter_map(|it| Some((it.provider_id.parse().ok()?, it.kind)));
    answer::ok(&wharf_views::search(&app.handle, &caller, q, all).await?)
}
