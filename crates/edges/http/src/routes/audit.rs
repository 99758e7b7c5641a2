//! The audit, oldest first.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use wharf_wire::rest_v1::{self as wire, ErrorBody, Page};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::cursor::{self, Position};
use crate::page::List;
use crate::params::Params;

/// Lists audit records in the order they were written.
#[utoipa::path(
    get, path = "/v1/audit", tag = "audit",
    operation_id = "list_audit",
    params(
        ("after" = Option<u64>, Query, description = "Only records after the one with this id."),
        ("limit" = Option<u32>, Query, description = "Items on a page, 1 to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page."),
    ),
    responses(
        (status = 200, description = "A page of records.", body = Page<wire::AuditRecord>),
        (status = "default", description = "Any error.", body = ErrorBody),
    )
)]
pub(super) async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let limit = params.limit()?;
    let after = match params.cursor(List::Audit)? {
        Some(Position::Number(after)) => after,
        Some(Position::Name(_)) | None => params.number("after")?.unwrap_or(0),
    };
    // Ids are signed numbers in the store; behind the largest there is nothing.
    let after = after.min(i64::MAX as u64);
    let mut records = app.handle.audit().list(after, limit + 1).await?;
    let more = records.len() > limit;
    records.truncate(limit);
    let next = records.last().filter(|_| more);
    let next = next.map(|last| cursor::write(List::Audit, &Position::Number(last.id)));
    let items = records.iter().map(wharf_views::audit).collect();
    Ok(answer::json(StatusCode::OK, &Page { items, next_cursor: next }))
}
