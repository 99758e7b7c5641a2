//! The routes, one file per thing they are about.

mod agents;
mod artifacts;
mod asks;
mod audit;
mod changes;
mod console;
mod costs;
mod doctor;
mod events;
mod file_tickets;
mod files;
mod flows;
mod logs;
mod many_runs;
mod mcp;
mod mcp_login;
mod providers;
mod receivers;
mod runs;
mod schedules;
mod secrets;
mod status;
mod system;
mod table;
mod tickets;
mod tokens;
mod tool_changes;
mod tool_servers;
mod tools;
mod triggers;
mod uploads;
mod worlds;

use std::sync::Arc;

use axum::Router;
use axum::http::Uri;
use axum::middleware::from_fn_with_state;
use wharf_vocab::{Code, Fault};

use crate::answer::{Answer, internal, shortened};
use crate::app::App;
use crate::guard::guard;
use crate::mounted;
pub(crate) use table::Route;

/// Every route there is. Those of one path are told in the order in which `Allow` names them.
pub(crate) fn all() -> Vec<Route> {
    let files = [
        system::routes,
        audit::routes,
        doctor::routes,
        status::routes,
        runs::routes,
        many_runs::routes,
        events::routes,
        schedules::routes,
        triggers::routes,
        receivers::routes,
        costs::routes,
        asks::routes,
        worlds::routes,
        artifacts::routes,
        files::routes,
        file_tickets::routes,
        flows::routes,
        uploads::routes,
        tools::routes,
        tool_changes::routes,
        tool_servers::routes,
        logs::routes,
        agents::routes,
        mcp::routes,
        mcp_login::routes,
        providers::routes,
        tickets::routes,
        tokens::routes,
        console::routes,
        changes::routes,
        secrets::routes,
    ];
    files.into_iter().flat_map(|routes| routes()).collect()
}

/// The router of a server.
pub(crate) fn router(app: Arc<App>, routes: Vec<Route>) -> Router {
    let mut router = Router::new();
    for route in routes {
        router = router.route(route.access.path, route.handler);
    }
    let mut router = router.fallback(unknown).with_state(Arc::clone(&app));
    for mount in &app.options.mounts {
        router = router.merge(mounted::prepared(mount, &app));
    }
    router.layer(from_fn_with_state(app, guard))
}

async fn unknown(uri: Uri) -> Answer {
    let path = shortened(uri.path());
    let message = format!("There is no route {path}; see /openapi.json.");
    Err(Fault::new(Code::RequestRouteUnknown, message).into())
}

/// Does something that must not stop halfway because a connection was lost.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    tokio::spawn(work).await.unwrap_or_else(|error| {
        tracing::error!(panicked = error.is_panic(), "work could not be carried to its end");
        Err(internal())
    })
}
