//! The GraphQL edge: the same data and the same rights as REST, with subscriptions.
//!
//! It stands behind the HTTP edge, which has checked host, origin and token and says who is
//! calling, or why nobody is. `post` takes operations over plain HTTP and `socket` over WebSockets;
//! both go through `exec`, which refuses documents that ask for too much (`document`). The fields of `query`,
//! `mutation` and `subscription` ask `access` first and the engine's handle then; `types` shows
//! what it answers, and `input` reads what it is asked.
//!
//! A slow reader never slows a run: what it has missed is read again from the store.

mod access;
mod answer_bytes;
mod document;
mod error;
mod exec;
mod input;
mod limits;
mod mutation;
mod mutation_core;
mod mutation_flows;
mod negotiate;
mod plain_changes;
mod post;
mod query;
mod query_console;
mod query_core;
mod query_files;
mod query_flows;
mod query_runs;
mod receivers;
mod runs;
mod scalars;
mod schedules;
mod socket;
mod subscription;
mod triggers;
mod types;

use std::sync::Arc;

use async_graphql::SDLExportOptions;
use axum::Router;
use axum::routing::get;
use wharf_engine::Handle;
use wharf_views::{CoreStatus, Doctor, SecretVault, Steering};

pub use exec::BearerCheck;
use exec::RequestContext;
pub use limits::GraphqlLimits;
pub use query_core::SeatDirectory;
pub use wharf_wire::operator_v1::Seat;

/// What the routes are, as a part of an OpenAPI document.
pub const DOCUMENT: &str = include_str!("../openapi.json");

/// The routes of this edge. Whoever mounts them sees to host, origin and token, and puts the
/// `Caller` among the extensions of each request, or a `Fault` that says why there is none. Who
/// bears a token that comes later, on a WebSocket, `bearer` says.
pub fn router(options: GraphqlOptions) -> Router {
    let routes = get(socket::open).post(post::post);
    Router::new().route("/graphql", routes).with_state(RequestContext::new(options))
}

/// What the edge is made of.
#[derive(Clone)]
pub struct GraphqlOptions {
    /// The engine.
    pub handle: Handle,
    /// Who bears a token.
    pub bearer: BearerCheck,
    /// What a peer may ask for.
    pub limits: GraphqlLimits,
    /// Whoever steers providers; a core without has none.
    pub providers: Steering,
    /// Who knows the seats of operators; a core without has none.
    pub operators: Option<Arc<dyn SeatDirectory>>,
    /// What the rest of the process has to say when a core is asked how it fares.
    pub doctor: Option<Doctor>,
    /// What is known of the core as a whole; a core without does not watch itself.
    pub status: Option<Arc<CoreStatus>>,
    /// Who keeps secrets; a core without makes no triggers with hooks and no receivers.
    pub vault: SecretVault,
}

impl GraphqlOptions {
    /// The usual limits, and no providers and seats.
    #[must_use]
    pub fn new(handle: Handle, bearer: BearerCheck) -> Self {
        Self {
            handle,
            bearer,
            limits: GraphqlLimits::default(),
            providers: Steering::default(),
            operators: None,
            doctor: None,
            status: None,
            vault: None,
        }
    }
}

/// The schema as text.
#[must_use]
pub fn schema_text() -> String {
    let options = SDLExportOptions::new().sorted_fields().sorted_arguments().sorted_enum_items();
    let (parts, status) = (query_core::CoreParts::default(), query::CoreStatusData::default());
    exec::schema(&GraphqlLimits::default(), parts, status, query::Secrets::default())
        .sdl_with_options(options.prefer_single_line_descriptions())
}
