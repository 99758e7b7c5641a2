//! The catalog of tools.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use wharf_wire::rest_v1::{self as wire, ErrorBody, Page};

use super::segments::Segments;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::cursor::List;
use crate::params::Params;
use crate::{from_wire, page, to_wire};

/// Lists all tools by name.
#[utoipa::path(
    get, path = "/v1/tools", tag = "tools",
    operation_id = "list_tools",
    params(
        ("limit" = Option<u32>, Query, description = "Items on a page, 1 to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
    ),
    responses(
        (status = 200, description = "A page of tools.", body = Page<wire::Tool>),
        (status = "default", description = "Any error.", body = ErrorBody),
    )
)]
pub(super) async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let tools = app.handle.tools();
    page::by_name(&params, List::Tools, tools, |tool| tool.def.tool.as_str(), to_wire::tool)
}

/// Shows a tool with its schemas.
#[utoipa::path(
    get, path = "/v1/tools/{provider}/{name}", tag = "tools",
    operation_id = "show_tool",
    params(
        ("provider" = String, Path, description = "The part of the tool's id before the slash."),
        ("name" = String, Path, description = "The part behind it, version included."),
    ),
    responses(
        (status = 200, description = "The tool.", body = wire::Tool),
        (status = 404, description = "There is no such tool.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn show(State(app): State<Arc<App>>, segments: Segments) -> Answer {
    let id = from_wire::tool_id(segments.get("provider"), segments.get("name"))?;
    Ok(answer::json(StatusCode::OK, &to_wire::tool(&app.handle.tool(&id)?)))
}
