//! Looking for agents below a folder.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use wharf_wire::rest_v1::{ErrorBody, FoundAgents, ScanAgents};

use super::agents::control;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::from_wire;

/// Looks for manifests below a folder. Nothing is started or added.
#[utoipa::path(
    post, path = "/v1/agents/scan", tag = "agents",
    operation_id = "scan_agents",
    request_body = ScanAgents,
    responses(
        (status = 200, description = "The manifests found.", body = FoundAgents),
        (status = "default", description = "Any error.", body = ErrorBody),
    )
)]
pub(super) async fn scan(
    State(app): State<Arc<App>>,
    JsonBody(request): JsonBody<ScanAgents>,
) -> Answer {
    let folder = from_wire::folder(&request.folder)?;
    let control = control(&app)?;
    let scan = control.scan(folder).await?;
    let known = control.list();
    Ok(answer::json(StatusCode::OK, &wharf_views::found_agents(&scan, &known)))
}
