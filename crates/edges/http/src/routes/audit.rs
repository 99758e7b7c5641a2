//! The audit: looking for records, and whether all of them are as they were written.

use std::sync::Arc;

use axum::extract::State;
use wharf_engine::AuditQuery;
use wharf_vocab::{Code, Fault};
use wharf_wire::rest_v1 as wire;

use super::table::{get, post, routes};
use crate::access::Need;
use crate::answer::{self, Answer, internal};
use crate::app::App;
use crate::cursor::Position;
use crate::params::Params;
use crate::{from_wire, page};

routes! {
    "audit";
    /// Lists audit records in the order they were written, or newest first. Where a page is short,
    /// `next_cursor` says whether there is more.
    list_audit => get("/v1/audit", Need::ADMIN_EVERYWHERE, list)
        .query::<u64>("after", "Only records after the one with this id.")
        .query::<String>("actor", "Only records of this actor; `g-1*` stands for all that begin so.")
        .query::<String>("event", "Only records of this event, such as `run.*`.")
        .query::<String>("subject", "Only records about this, such as `run:default/r-1`.")
        .query::<String>("since",
            "Only records at or after this time: an RFC 3339 time, or an age such as `7d` or `24h`.")
        .query::<String>("until", "Only records before this time, written like `since`.")
        .query::<String>("order", "`asc` or `desc`; `asc` when absent.")
        .page::<wire::AuditRecord>("A page of records.");
    /// Checks every seal and every signed head of the audit.
    verify_audit => post("/v1/audit/verify", Need::ADMIN_EVERYWHERE, verify)
        .gives::<wire::AuditVerdict>(200, "Whether the audit is whole.");
}

/// Held by whoever checks the audit.
static VERIFYING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn list(State(app): State<Arc<App>>, params: Params) -> Answer {
    let (since, until) = from_wire::span(&params, app.handle.now())?;
    let after = match params.cursor(page::AUDIT)? {
        Some(Position::Number(after)) => Some(after),
        Some(Position::Name(_)) | None => params.number("after")?,
    };
    let newest_first = params.parsed("order", "`asc` or `desc`", |text| match text {
        "asc" => Ok(false),
        "desc" => Ok(true),
        _ => Err(()),
    })?;
    let text = |name: &str| params.text(name).map(str::to_owned);
    let query = AuditQuery {
        actor: text("actor"),
        event: text("event"),
        subject: text("subject"),
        since,
        until,
        newest_first: newest_first.unwrap_or(false),
        // Ids are signed numbers in the store; behind the largest there is nothing.
        after: after.map(|after| after.min(i64::MAX as u64)),
        limit: params.limit()?,
    };
    let found = app.handle.audit().find(query).await?;
    let items = found.records.iter().map(wharf_views::audit).collect();
    Ok(page::answer(page::AUDIT, items, found.next.map(Position::Number)))
}

async fn verify(State(app): State<Arc<App>>) -> Answer {
    let Some(auditor) = app.options.auditor.clone() else {
        let message = "This core cannot check its audit; use `wharf audit verify` on its machine.";
        return Err(Fault::new(Code::RequestInvalid, message).into());
    };
    // All records are read, which may take a while; one check at a time is enough.
    let _turn = VERIFYING.lock().await;
    let checked = tokio::task::spawn_blocking(move || (auditor.0)()).await;
    answer::ok(&checked.map_err(|_| internal())??)
}
