//! The one inbox, answers and decisions.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use wharf_domain::{Ask, Rights};
use wharf_engine::AskView;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_vocab::{AskKind, Fault, Verb, WorldId};
use wharf_wire::rest_v1::{self as wire, AnswerQuestion, DecideApproval, Page};

use super::table::{ApiCall, get, post, routes};
use crate::access;
use crate::access::Need;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::cursor::{self, Position};
use crate::page::List;
use crate::params::{Params, Segments};

routes! {
    "asks";
    /// Lists open asks, oldest first; those of runs in memory come before the stored ones. Asks of
    /// tools that the token does not cover are left out.
    list_inbox => get("/v1/inbox", Need::READ, inbox)
        .query::<String>("kind", "Only `question` or only `approval`.")
        .query::<String>("world", "Only asks of this world.")
        .page::<wire::Ask>("A page of open asks.");
    /// Answers a question. The first valid answer counts.
    answer_question => post("/v1/questions/{ask_id}/answer", Need::ANSWER, answer)
        .takes::<AnswerQuestion>()
        .says(204, "The question was answered.")
        .fails(403, "This token may not answer the question.")
        .missing("ask")
        .fails(409, "The ask has already been decided.")
        .fails(422, "The answer does not fit the question.");
    /// Allows or denies an approval. The first decision counts.
    decide_approval => post("/v1/approvals/{ask_id}/decide", Need::APPROVE, decide)
        .takes::<DecideApproval>()
        .says(204, "The approval was decided.")
        .fails(403, "This token may not decide the approval.")
        .missing("ask")
        .fails(409, "The ask has already been decided.")
        .fails(422, "It is a question, not an approval.");
}

async fn inbox(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let filter = Filter {
        kind: params
            .parsed("kind", "`question` or `approval`", |text| AskKind::parse(text).ok_or(()))?,
        worlds: access::worlds(&caller, params.world()?.as_ref())?,
        rights: Arc::clone(&caller.rights),
    };
    let limit = params.limit()?;
    let begin = params.cursor(List::Inbox)?;
    let mut found = find(&app, &filter, begin, limit + 1).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| cursor::write(List::Inbox, &place(last)));
    let items = found.iter().map(|view| wharf_views::ask(&view.ask)).collect();
    Ok(answer::json(StatusCode::OK, &Page { items, next_cursor: next }))
}

struct Filter {
    kind: Option<AskKind>,
    /// Only these worlds; all when absent.
    worlds: Option<Vec<WorldId>>,
    /// Only tools within these.
    rights: Arc<Rights>,
}

impl Filter {
    fn fits(&self, ask: &Ask) -> bool {
        self.kind.is_none_or(|kind| ask.spec.kind == kind)
            && self.worlds.as_ref().is_none_or(|worlds| worlds.contains(&ask.spec.run.world))
            && self.rights.check_tool(&ask.spec.tool).is_ok()
    }
}

/// Reads the inbox until enough asks were found that fit, or there are no more.
async fn find(
    app: &App,
    filter: &Filter,
    begin: Option<Position>,
    count: usize,
) -> Result<Vec<AskView>, Fault> {
    let mut found = Vec::new();
    let (mut after, behind) = match begin {
        Some(Position::Number(after)) => (Some(after), String::new()),
        Some(Position::Name(behind)) => (None, behind),
        None => (None, String::new()),
    };
    loop {
        let read = app.handle.asks().inbox(after, PAGE_ITEMS_MAX).await?;
        let (mut memory, stored): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|view| view.position.is_none());
        memory.sort_by_key(|view| memory_place(&view.ask));
        memory.retain(|view| memory_place(&view.ask) > behind);
        let full = stored.len() >= PAGE_ITEMS_MAX;
        after = stored.last().and_then(|view| view.position);
        found.extend(memory.into_iter().chain(stored).filter(|view| filter.fits(&view.ask)));
        if !full || found.len() >= count {
            return Ok(found);
        }
    }
}

fn place(view: &AskView) -> Position {
    match view.position {
        Some(position) => Position::Number(position),
        None => Position::Name(memory_place(&view.ask)),
    }
}

/// Where an ask of a run in memory stands among its like; text that sorts by age.
fn memory_place(ask: &Ask) -> String {
    format!("{:020} {}", ask.created_at.0, ask.spec.ask_id)
}

async fn answer(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<AnswerQuestion>,
) -> Answer {
    let id = wharf_views::ask_id("ask_id", segments.get("ask_id"))?;
    let resolution = wharf_views::answer(request)?;
    access::ask(&app.handle, &caller, Verb::Answer, &id).await?;
    app.handle.asks().resolve(&caller, &id, resolution).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn decide(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<DecideApproval>,
) -> Answer {
    let id = wharf_views::ask_id("ask_id", segments.get("ask_id"))?;
    let resolution = wharf_views::decision(request)?;
    access::ask(&app.handle, &caller, Verb::Approve, &id).await?;
    app.handle.asks().resolve(&caller, &id, resolution).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
