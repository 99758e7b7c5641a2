//! The one inbox, answers and decisions.

use std::sync::Arc;

use wharf_views::{InboxQuery, ask_position};
use wharf_vocab::{AskKind, Verb};
use wharf_wire::rest_v1::{self as wire, AnswerQuestion, DecideApproval};

use super::table::{ApiCall, get, post, routes};
use crate::access::{self, Need};
use crate::answer::{self, Answer};
use crate::body::JsonBody;
use crate::page;
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
    let query = InboxQuery {
        kind: params
            .parsed("kind", "`question` or `approval`", |text| AskKind::parse(text).ok_or(()))?,
        worlds: access::worlds(&caller, params.world()?.as_ref())?,
        rights: Arc::clone(&caller.rights),
        limit: params.limit()?,
        after: params.cursor(page::INBOX)?,
    };
    let (found, more) = query.page(&app.handle).await?;
    let last = found.last().filter(|_| more).map(ask_position);
    let items = found.iter().map(|view| wharf_views::ask(&view.ask)).collect();
    Ok(page::answer(page::INBOX, items, last))
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
    answer::done()
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
    answer::done()
}
