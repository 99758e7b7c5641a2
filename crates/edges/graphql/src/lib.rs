//! The GraphQL edge: the same data and the same rights as REST, with subscriptions.
//!
//! It stands behind the HTTP edge, which has checked host, origin and token and says who is
//! calling. `post` takes operations over plain HTTP and `socket` over WebSockets; both go through
//! `exec`, which refuses documents that ask for too much (`document`). The fields of `query`,
//! `mutation` and `subscription` ask `access` first and the engine's handle then; `types` shows
//! what it answers, and `input` reads what it is asked.
//!
//! A slow reader never slows a run: what it has missed is read again from the store.

mod access;
mod cursor;
mod document;
mod error;
mod exec;
mod inbox;
mod input;
mod limits;
mod mutation;
mod post;
mod query;
mod runs;
mod scalars;
mod socket;
mod subscription;
mod types;

use async_graphql::SDLExportOptions;
use axum::Router;
use axum::routing::get;
use wharf_engine::Handle;

use exec::Core;
pub use limits::Limits;

/// The routes of this edge. Whoever mounts them sees to host, origin and token, and puts the
/// `Caller` among the extensions of each request.
pub fn router(handle: Handle) -> Router {
    router_with(handle, Limits::default())
}

/// The routes of this edge with other limits than the usual.
pub fn router_with(handle: Handle, limits: Limits) -> Router {
    let routes = get(socket::open).post(post::post);
    Router::new().route("/graphql", routes).with_state(Core::new(handle, limits))
}

/// The schema as text.
#[must_use]
pub fn schema_text() -> String {
    let options = SDLExportOptions::new().sorted_fields().sorted_arguments().sorted_enum_items();
    exec::schema(&Limits::default()).sdl_with_options(options.prefer_single_line_descriptions())
}
