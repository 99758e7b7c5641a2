//! The routes, one file per thing they are about.

mod agents;
mod asks;
mod audit;
mod events;
mod logs;
mod runs;
mod segments;
mod system;
mod tools;
mod worlds;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::Uri;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post, put};
use utoipa::OpenApi;
use wharf_vocab::{Code, Fault};

use crate::answer::{Answer, shortened};
use crate::app::App;
use crate::guard::guard;

/// What metrics and audit call a request that fits no route.
pub(crate) const UNMATCHED: &str = "unmatched";

static PATHS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| table().into_iter().map(|(path, _)| path).collect());

/// Every route there is.
pub(crate) fn table() -> Vec<(&'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("/healthz", get(system::healthz)),
        ("/readyz", get(system::readyz)),
        ("/metrics", get(system::metrics)),
        ("/openapi.json", get(system::openapi)),
        ("/v1/runs", get(runs::list).post(runs::create)),
        ("/v1/runs/{run_id}", get(runs::show).merge(delete(runs::remove))),
        ("/v1/runs/{run_id}/events", get(events::stream)),
        ("/v1/runs/{run_id}/cancel", post(runs::cancel)),
        ("/v1/tools", get(tools::list)),
        ("/v1/tools/{provider}/{name}", get(tools::show)),
        ("/v1/agents", get(agents::list).post(agents::add)),
        ("/v1/agents/{agent_id}", get(agents::show).merge(delete(agents::remove))),
        ("/v1/agents/{agent_id}/approve", post(agents::approve)),
        ("/v1/agents/{agent_id}/start", post(agents::start)),
        ("/v1/agents/{agent_id}/stop", post(agents::stop)),
        ("/v1/agents/{agent_id}/restart", post(agents::restart)),
        ("/v1/agents/{agent_id}/logs", get(logs::show)),
        ("/v1/worlds", get(worlds::list).post(worlds::create)),
        ("/v1/worlds/{world}", get(worlds::show)),
        ("/v1/worlds/{world}/budget", put(worlds::set_budget)),
        ("/v1/inbox", get(asks::inbox)),
        ("/v1/questions/{ask_id}/answer", post(asks::answer)),
        ("/v1/approvals/{ask_id}/decide", post(asks::decide)),
        ("/v1/audit", get(audit::list)),
    ]
}

/// The API document's paths; each handler brings its own.
#[derive(OpenApi)]
#[openapi(paths(
    system::healthz,
    system::readyz,
    system::metrics,
    system::openapi,
    runs::list,
    runs::create,
    runs::show,
    runs::remove,
    runs::cancel,
    events::stream,
    tools::list,
    tools::show,
    agents::list,
    agents::add,
    agents::show,
    agents::remove,
    agents::approve,
    agents::start,
    agents::stop,
    agents::restart,
    logs::show,
    worlds::list,
    worlds::create,
    worlds::show,
    worlds::set_budget,
    asks::inbox,
    asks::answer,
    asks::decide,
    audit::list,
))]
pub(crate) struct Paths;

/// The router of a server.
pub(crate) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new();
    for (path, methods) in table() {
        router = router.route(path, methods);
    }
    router.fallback(unknown).layer(from_fn_with_state(Arc::clone(&app), guard)).with_state(app)
}

/// A route's name as it stands in the table, for labels that live for ever.
pub(crate) fn label(route: &str) -> &'static str {
    PATHS.iter().find(|path| **path == route).copied().unwrap_or(UNMATCHED)
}

async fn unknown(uri: Uri) -> Answer {
    let path = shortened(uri.path());
    let message = format!("There is no route {path}; see /openapi.json.");
    Err(Fault::new(Code::RequestRouteUnknown, message).into())
}
