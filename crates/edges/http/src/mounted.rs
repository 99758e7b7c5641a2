//! Routers of other edges: what is done for them besides the checks.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use crate::answer::Refused;
use crate::app::App;
use crate::body;
use crate::options::Mount;

/// A router whose requests arrive with their whole body, and know when the core stops.
pub(crate) fn prepared(mount: &Mount, app: &Arc<App>) -> Router {
    mount.router.clone().layer(from_fn_with_state(Arc::clone(app), prepare))
}

async fn prepare(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match body::gathered(request, &app).await {
        // The memory counts until there is an answer.
        Ok((mut request, _reserved)) => {
            request.extensions_mut().insert(app.stops.closing.clone());
            next.run(request).await
        }
        Err(fault) => Refused::from(fault).into_response(),
    }
}
