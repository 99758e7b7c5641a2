//! Providers of every kind in one shape, and looking for anything.

use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;
use wharf_ports::providers::ProviderState;
use wharf_views::{ProviderFilter, Steering};
use wharf_vocab::limits::LOG_LINES_SHOWN_MAX;
use wharf_vocab::{Fault, ProviderId};
use wharf_wire::rest_v1::{self as wire, AgentLogLine, Page};

use super::table::{ApiCall, get, post, routes};
use super::{status, to_its_end};
use crate::access::Need;
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

fn provider_id(segments: &Segments) -> Result<ProviderId, Fault> {
    wharf_views::id("provider_id", segments.get("provider_id"))
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let state = |text: &str| ProviderState::parse(text).ok_or(());
    let kind =
        |text: &str| ProviderFilter::KINDS.contains(&text).then(|| text.to_owned()).ok_or(());
    let filter = ProviderFilter {
        state: params.parsed("state", "the state of a provider", state)?,
        kind: params.parsed("kind", "the kind of a provider", kind)?,
        q: params.text("q").map(str::to_owned),
    };
    let mut all = app.steering.list(&app.handle, &caller);
    all.retain(|it| filter.wants(it));
    page::by_name(&params, page::PROVIDERS, all, |it| it.provider_id.as_str(), Clone::clone)
}

async fn show(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = provider_id(&segments)?;
    answer::ok(&app.steering.show(&app.handle, &caller, &id).await?)
}

async fn launches(State(app): State<Arc<App>>, segments: Segments) -> Answer {
    let items = Steering::launches(&app.handle, &provider_id(&segments)?).await?;
    answer::ok(&Page { items, next_cursor: None })
}

async fn usage(State(app): State<Arc<App>>, segments: Segments, params: Params) -> Answer {
    let (id, range) = (provider_id(&segments)?, status::range(&params)?);
    answer::ok(&app.steering.usage(&app.handle, &id, range)?)
}

async fn drain(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = provider_id(&segments)?;
    let (steering, handle) = (app.steering.clone(), app.handle.clone());
    let shown = to_its_end(async move { steering.drain(&handle, &caller, id).await }).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &shown))
}

async fn logs(State(app): State<Arc<App>>, segments: Segments, params: Params) -> Answer {
    let id = provider_id(&segments)?;
    let lines = params.lines()?;
    let before = from_wire::moment(&params, "before", app.handle.now())?;
    let q = params.text("q").map(str::to_lowercase);
    let narrowed = before.is_some() || q.is_some();
    let control = app.steering.of(&id)?;
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
    let all = app.steering.list(&app.handle, &caller);
    let all = all.into_iter().filter_map(|it| Some((it.provider_id.parse().ok()?, it.kind)));
    answer::ok(&wharf_views::search(&app.handle, &caller, q, all).await?)
}
