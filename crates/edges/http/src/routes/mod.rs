//! The routes, one file per thing they are about.

mod agents;
mod artifacts;
mod asks;
mod audit;
mod costs;
mod doctor;
mod events;
mod files;
mod keys;
mod logs;
mod runs;
mod scan;
mod secrets;
mod system;
mod table;
mod tickets;
mod tokens;
mod tool_changes;
mod tool_servers;
mod tools;
mod uploads;
mod worlds;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use utoipa::OpenApi;
use wharf_vocab::Verb::{Admin, Answer as AnswerAsks, Approve, Operate, Read, Run};
use wharf_vocab::{Code, Fault};

use crate::access::Need::{self, Everywhere, Itself, Nothing, Verb};
use crate::answer::{Answer, internal, shortened};
use crate::app::App;
use crate::guard::guard;
use crate::mounted;
use table::{Route, at};

/// What metrics and audit call a request that fits no route.
pub(crate) const UNMATCHED: &str = "unmatched";

static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(table);

/// Every route there is, and what it needs.
pub(crate) fn table() -> Vec<Route> {
    let mut routes = system_and_runs();
    routes.extend(worlds_and_files());
    routes.extend(providers());
    routes.extend(trust());
    routes
}

fn system_and_runs() -> Vec<Route> {
    vec![
        at("/healthz").get(Nothing, system::healthz),
        at("/v1/healthz").get(Nothing, system::is_alive),
        at("/v1/doctor").get(Verb(Read), doctor::diagnose),
        at("/readyz").get(Nothing, system::readyz),
        at("/metrics").get(Verb(Read), system::metrics),
        at("/openapi.json").get(Verb(Read), system::openapi),
        at("/v1/runs").get(Verb(Read), runs::list).post(Verb(Run), runs::create),
        at("/v1/runs/{run_id}").get(Verb(Read), runs::show).delete(Verb(Admin), runs::remove),
        at("/v1/runs/{run_id}/events").get(Verb(Read), events::stream).streams(),
        at("/v1/runs/{run_id}/trace").get(Verb(Read), events::trace),
        at("/v1/runs/{run_id}/cancel").post(Verb(Run), runs::cancel),
        at("/v1/costs").get(Verb(Read), costs::list),
        at("/v1/inbox").get(Verb(Read), asks::inbox),
        at("/v1/questions/{ask_id}/answer").post(Verb(AnswerAsks), asks::answer),
        at("/v1/approvals/{ask_id}/decide").post(Verb(Approve), asks::decide),
    ]
}

fn worlds_and_files() -> Vec<Route> {
    vec![
        at("/v1/worlds").get(Verb(Read), worlds::list).post(Verb(Admin), worlds::create),
        at("/v1/worlds/{world}")
            .get(Verb(Read), worlds::show)
            .patch(Verb(Admin), worlds::set)
            .delete(Verb(Admin), worlds::remove),
        at("/v1/worlds/{world}/budget").put(Verb(Admin), worlds::set_budget),
        at("/v1/worlds/{world}/corrections").post(Verb(Admin), worlds::correct),
        at("/v1/worlds/{world}/artifacts").get(Verb(Read), artifacts::list),
        at("/v1/worlds/{world}/trace").get(Verb(Read), artifacts::trace),
        at("/v1/worlds/{world}/usage").get(Verb(Read), artifacts::usage),
        at("/v1/worlds/{world}/collect").post(Verb(Admin), artifacts::collect),
        at("/v1/worlds/{world}/files")
            .get(Verb(Read), files::read_by_path)
            .put(Verb(Run), files::put_by_path)
            .delete(Verb(Operate), files::remove_by_path),
        at("/v1/worlds/{world}/files/{*path}")
            .get(Verb(Read), files::read)
            .put(Verb(Run), files::put)
            .delete(Verb(Operate), files::remove),
        at("/v1/worlds/{world}/uploads").post(Verb(Run), uploads::begin),
        at("/v1/worlds/{world}/uploads/{upload_id}")
            .get(Verb(Run), uploads::show)
            .delete(Verb(Run), uploads::abort),
        at("/v1/worlds/{world}/uploads/{upload_id}/parts/{part}").put(Verb(Run), uploads::put_part),
        at("/v1/worlds/{world}/uploads/{upload_id}/complete").post(Verb(Run), uploads::complete),
    ]
}

fn providers() -> Vec<Route> {
    vec![
        at("/v1/tools").get(Verb(Read), tools::list).post(Everywhere(Admin), tool_servers::add),
        at("/v1/tools/{provider}/{name}")
            .get(Verb(Read), tools::show)
            .delete(Everywhere(Admin), tool_servers::remove),
        at("/v1/tools/{provider}/{name}/diff").get(Verb(Read), tool_changes::diff),
        at("/v1/tools/{provider}/{name}/approve").post(Everywhere(Admin), tool_changes::approve),
        at("/v1/tools/{provider}/{name}/enable").post(Everywhere(Operate), tool_servers::enable),
        at("/v1/tools/{provider}/{name}/disable").post(Everywhere(Operate), tool_servers::disable),
        at("/v1/tools/{provider}/{name}/restart").post(Everywhere(Operate), tool_servers::restart),
        at("/v1/tools/{provider}/{name}/logs").get(Everywhere(Operate), logs::of_tool).streams(),
        at("/v1/agents").get(Verb(Read), agents::list).post(Everywhere(Admin), agents::add),
        at("/v1/agents/scan").post(Everywhere(Admin), scan::scan),
        at("/v1/agents/{agent_id}")
            .get(Verb(Read), agents::show)
            .delete(Everywhere(Admin), agents::remove),
        at("/v1/agents/{agent_id}/approve").post(Everywhere(Admin), agents::approve),
        at("/v1/agents/{agent_id}/revoke").post(Everywhere(Admin), agents::revoke),
        at("/v1/agents/{agent_id}/start").post(Everywhere(Operate), agents::start),
        at("/v1/agents/{agent_id}/stop").post(Everywhere(Operate), agents::stop),
        at("/v1/agents/{agent_id}/restart").post(Everywhere(Operate), agents::restart),
        at("/v1/agents/{agent_id}/logs").get(Everywhere(Operate), logs::show).streams(),
    ]
}

fn trust() -> Vec<Route> {
    vec![
        at("/v1/tickets").post(Itself, tickets::create),
        at("/v1/tokens").get(Verb(Admin), tokens::list).post(Verb(Admin), tokens::create),
        at("/v1/tokens/rotate").post(Everywhere(Admin), keys::rotate),
        at("/v1/tokens/{token_id}").delete(Verb(Admin), tokens::revoke),
        at("/v1/secrets").get(Everywhere(Admin), secrets::list),
        at("/v1/secrets/{name}")
            .put(Everywhere(Admin), secrets::set)
            .delete(Everywhere(Admin), secrets::remove),
        at("/v1/audit").get(Everywhere(Admin), audit::list),
    ]
}

/// The API document's paths; each handler brings its own.
#[derive(OpenApi)]
#[openapi(paths(
    system::healthz,
    system::is_alive,
    doctor::diagnose,
    system::readyz,
    system::metrics,
    system::openapi,
    runs::list,
    runs::create,
    runs::show,
    runs::remove,
    runs::cancel,
    events::stream,
    events::trace,
    costs::list,
    tools::list,
    tools::show,
    tool_changes::diff,
    tool_changes::approve,
    tool_servers::add,
    tool_servers::enable,
    tool_servers::disable,
    tool_servers::restart,
    tool_servers::remove,
    logs::of_tool,
    scan::scan,
    agents::list,
    agents::add,
    agents::show,
    agents::remove,
    agents::approve,
    agents::revoke,
    agents::start,
    agents::stop,
    agents::restart,
    logs::show,
    worlds::list,
    worlds::create,
    worlds::show,
    worlds::set,
    worlds::remove,
    worlds::set_budget,
    worlds::correct,
    artifacts::list,
    artifacts::trace,
    artifacts::usage,
    artifacts::collect,
    files::read,
    files::put,
    files::remove,
    files::read_by_path,
    files::put_by_path,
    files::remove_by_path,
    uploads::begin,
    uploads::show,
    uploads::put_part,
    uploads::complete,
    uploads::abort,
    asks::inbox,
    asks::answer,
    asks::decide,
    tickets::create,
    tokens::list,
    tokens::create,
    tokens::revoke,
    keys::rotate,
    secrets::list,
    secrets::set,
    secrets::remove,
    audit::list,
))]
pub(crate) struct Paths;

/// The router of a server.
pub(crate) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new();
    for route in table() {
        router = router.route(route.path, route.methods);
    }
    let mut router = router.fallback(unknown).with_state(Arc::clone(&app));
    for mount in &app.mounts {
        router = router.merge(mounted::prepared(mount, &app));
    }
    router.layer(from_fn_with_state(app, guard))
}

/// A route's name as it stands in the table, for labels that live for ever. What is mounted has
/// one name.
pub(crate) fn label(app: &App, route: &str) -> &'static str {
    let own = ROUTES.iter().map(|known| known.path).find(|path| *path == route);
    let below =
        |path: &&str| route.strip_prefix(path).is_some_and(|rest| !rest.starts_with(is_part));
    own.or_else(|| app.mounts.iter().map(|mount| mount.path).find(below)).unwrap_or(UNMATCHED)
}

/// Whether what is mounted under this name lets in others than bearers of tokens.
pub(crate) fn has_own_doors(app: &App, route: &str) -> bool {
    app.mounts.iter().any(|mount| mount.own_doors && mount.path == route)
}

/// Whether GET on this route opens a stream of events, so that it takes tickets.
pub(crate) fn is_stream(app: &App, route: &str) -> bool {
    let own = ROUTES.iter().any(|known| known.path == route && known.streams);
    own || app.mounts.iter().any(|mount| mount.events && mount.path == route)
}

fn is_part(c: char) -> bool {
    c != '/'
}

/// What a request to a route needs. One that no route takes needs a token and nothing else: it
/// is told that there is no such route or method.
pub(crate) fn need(route: &str, method: &Method) -> Option<Need> {
    ROUTES.iter().find(|known| known.path == route).and_then(|known| known.need(method))
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
