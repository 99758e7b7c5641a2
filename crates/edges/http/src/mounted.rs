//! Routers of other edges: what is done for them besides the checks.

use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use wharf_domain::Caller;

use crate::answer::FaultResponse;
use crate::app::App;
use crate::body;
use crate::conn::ConnectionAddrs;
use crate::options::Mount;

/// A router whose requests know who sent them and when the core stops, and arrive with their
/// whole body unless it takes bodies as they come.
pub(crate) fn prepared(mount: &Mount, app: &Arc<App>) -> Router {
    let router = mount.router.clone();
    match mount.streams {
        true => router.layer(from_fn_with_state(Arc::clone(app), inform)),
        false => router.layer(from_fn_with_state(Arc::clone(app), prepare)),
    }
}

async fn inform(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    tell(&app, &mut request);
    next.run(request).await
}

/// Tells a request's handler who is at the other end and when the core stops.
fn tell(app: &App, request: &mut Request) {
    let peer = request.extensions().get::<ConnectionAddrs>().map(|ends| ends.peer);
    if let Some(peer) = peer {
        request.extensions_mut().insert(ConnectInfo(peer));
    }
    request.extensions_mut().insert(app.stops.closing.clone());
}

async fn prepare(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if request.extensions().get::<Caller>().is_none() {
        // Nothing is read for a stranger before the router knows what to make of it.
        tell(&app, &mut request);
        return next.run(request).await;
    }
    match body::gathered(request, &app).await {
        // The memory counts until there is an answer.
        Ok((mut request, _reserved)) => {
            tell(&app, &mut request);
            next.run(request).await
        }
        Err(fault) => FaultResponse::from(fault).into_response(),
    }
}
