//! The one inbox, answers and decisions.

use std::sync::Arc;

use wharf_views::{AskState, DecidedQuery, InboxQuery, ask_position};
use wharf_vocab::{AskKind, Fault, Verb};
use wharf_wire::rest_v1::{self as wire, AnswerQuestion, DecideApproval};

use super::table::{ApiCall, get, post, routes};
use crate::access::{self, Need};
use crate::answer::{self, Answer};
use crate::body::JsonBody;
use crate::cursor::{self, Position};
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
    /// Lists asks: open ones as the inbox does, or decided ones, newest first.
    list_asks => get("/v1/asks", Need::READ, list)
        .query::<String>("state", "`open` or `decided`; `open` when absent.")
        .query::<String>("kind", "Only `question` or only `approval`.")
        .query::<String>("world", "Only asks of this world.")
        .page::<wire::Ask>("A page of asks.");
    /// Shows an ask with all that helps to decide it: the inputs, the tool's definition, the runs that
    /// led to it, and earlier decisions.
    show_ask => get("/v1/asks/{ask_id}", Need::READ, show)
        .gives::<wire::AskDetail>(200, "The ask.")
        .missing("ask");
    /// Answers a question. The first valid answer counts. With `dry` the answer is only checked.
    answer_question => post("/v1/questions/{ask_id}/answer", Need::ANSWER, answer)
        .query::<bool>("dry", "Whether to check the answer only and give none.")
        .takes::<AnswerQuestion>()
        .says(204, "The question was answered, or could be.")
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
        .fails(409, "The ask has already been decided, or is not for what was looked at.")
        .fails(422, "It is a question, not an approval.");
}

async fn list(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let state = |text: &str| AskState::parse(text).ok_or(());
    let state = params.parsed("state", "`open` or `decided`", state)?.unwrap_or_default();
    if state == AskState::Open {
        return inbox(ApiCall { app, caller }, params).await;
    }
    let before = match params.cursor(page::ASKS)? {
        Some(Position::Number(before)) => Some(before),
        Some(Position::Name(_)) => return Err(cursor::foreign(page::ASKS).into()),
        None => None,
    };
    let query = DecidedQuery {
        kind: kind(&params)?,
        worlds: access::worlds(&caller, params.world()?.as_ref())?,
        rights: Arc::clone(&caller.rights),
        limit: params.limit()?,
        before,
    };
    let (found, next) = query.page(&app.handle).await?;
    let items = found.iter().map(|view| wharf_views::ask(&view.ask)).collect();
    Ok(page::answer(page::ASKS, items, next.map(Position::Number)))
}

fn kind(params: &Params) -> Result<Option<AskKind>, Fault> {
    params.parsed("kind", "`question` or `approval`", |text| AskKind::parse(text).ok_or(()))
}

async fn show(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = wharf_views::ask_id("ask_id", segments.get("ask_id"))?;
    let ask = access::ask(&app.handle, &caller, Verb::Read, &id).await?;
    answer::ok(&wharf_views::ask_detail(&app.handle, &caller, &ask).await?)
}

async fn inbox(ApiCall { app, caller }: ApiCall, params: Params) -> Answer {
    let query = InboxQuery {
        kind: kind(&params)?,
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
    params: Params,
    JsonBody(request): JsonBody<AnswerQuestion>,
) -> Answer {
    let id = wharf_views::ask_id("ask_id", segments.get("ask_id"))?;
    let resolution = wharf_views::answer(request)?;
    let dry = params.is_on("dry")?;
    let ask = access::ask(&app.handle, &caller, Verb::Answer, &id).await?;
    if dry {
        app.handle.asks().try_resolve(&caller, &ask, &resolution).await?;
        return answer::done();
    }
    app.handle.asks().resolve(&caller, &id, resolution).await?;
    answer::done()
}

async fn decide(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<DecideApproval>,
) -> Answer {
    let id = wharf_views::ask_id("ask_id", segments.get("ask_id"))?;
    let resolution = wharf_views::decision(request.clone())?;
    let ask = access::ask(&app.handle, &caller, Verb::Approve, &id).await?;
    wharf_views::same_as_shown(&ask, &request)?;
    app.handle.asks().resolve(&caller, &id, resolution).await?;
    answer::done()
}
