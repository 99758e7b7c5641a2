//! What a client answers, and how the ask ends by it.

use serde_json::json;
use wharf_domain::{Ask, AskSpec, Resolution};
use wharf_vocab::{Code, Fault, Object};
use wharf_wire::mcp_v1::{
    McpElicitAction, McpElicitResult, McpRootsResult, McpSampleResult, read_result,
};

use super::again::AskTry;
use super::{asks_form, may_answer};
use crate::asked::AskedRequest;
use crate::server::door::McpContext;
use crate::server::form::AnswerForm;

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Taken {
    /// It counts.
    Counts,
    /// Nobody waits for it: it was not asked, or is answered already.
    Ignored,
    /// It does not fit, and the client is asked again.
    Wrong,
    /// It does not fit, for this reason, and the client is not asked again.
    WrongForGood(String),
}

/// Takes an answer.
pub(super) async fn take(cx: &McpContext, asked: &AskTry, answer: &Object) -> Result<Taken, Fault> {
    let Some(ask) = waiting(cx, asked).await? else { return Ok(Taken::Ignored) };
    let reason = match resolution(cx, &ask.spec, answer) {
        Ok(resolution) => match resolve(cx, asked, resolution).await? {
            Ok(taken) => return Ok(taken),
            Err(reason) => reason,
        },
        Err(reason) => reason,
    };
    let wrong = cx.shared.wrong_answers.add(&asked.ask, &reason);
    if !wrong.is_last() {
        return Ok(Taken::Wrong);
    }
    if asks_nobody_else(cx, &ask.spec).await? {
        // Nobody else will ever answer.
        let _ = resolve(cx, asked, Resolution::Cancelled).await?;
        return Ok(Taken::Counts);
    }
    Ok(Taken::WrongForGood(reason))
}

/// The client cannot answer. What is for people is left to others; a model or folders nobody else
/// has.
pub(super) async fn cannot(cx: &McpContext, asked: &AskTry) -> Result<Taken, Fault> {
    let Some(ask) = waiting(cx, asked).await? else { return Ok(Taken::Ignored) };
    cx.shared.wrong_answers.give_up(&asked.ask);
    let resolution = if !asks_form(&ask.spec) {
        Resolution::Declined
    } else if asks_nobody_else(cx, &ask.spec).await? {
        Resolution::Cancelled
    } else {
        return Ok(Taken::Ignored);
    };
    let ended = resolve(cx, asked, resolution).await?;
    Ok(ended.unwrap_or(Taken::Ignored))
}

/// The ask that an answer is for, if it waits for an answer of this client. One to an earlier time
/// that it was asked is over.
async fn waiting(cx: &McpContext, asked: &AskTry) -> Result<Option<Ask>, Fault> {
    let ask = match cx.shared.handle.asks().get(&asked.ask).await {
        Ok(ask) => ask,
        Err(fault) if fault.is(Code::AskNotFound) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    let current = AskTry::next(&cx.shared.wrong_answers, &asked.ask);
    let waits = ask.is_open() && asked.number >= current.number && may_answer(cx, &ask.spec);
    Ok(waits.then_some(ask))
}

/// How an ask ends by an answer, or what is wrong with it.
fn resolution(cx: &McpContext, ask: &AskSpec, answer: &Object) -> Result<Resolution, String> {
    let asked = AskedRequest::of(ask);
    let method = asked.as_ref().map(|asked| asked.method.as_str());
    let whole = |fits: bool, what: &str| match fits {
        true => Ok(Resolution::Answered { value: answer.clone().into() }),
        false => Err(format!("The answer is no result of `{what}`.")),
    };
    match method {
        Some(what @ "sampling/createMessage") => {
            whole(read_result::<McpSampleResult>(answer.clone()).is_ok(), what)
        }
        Some(what @ "roots/list") => {
            whole(read_result::<McpRootsResult>(answer.clone()).is_ok(), what)
        }
        _ => {
            let is_address = asked.is_some_and(|asked| asked.is_address());
            elicited(cx, ask, answer, is_address)
        }
    }
}

fn elicited(
    cx: &McpContext,
    ask: &AskSpec,
    answer: &Object,
    is_address: bool,
) -> Result<Resolution, String> {
    let result = read_result::<McpElicitResult>(answer.clone());
    let result = result.map_err(|error| error.message)?.known;
    match result.action {
        // That the address was opened is all there is to say.
        McpElicitAction::Accept if is_address => Ok(Resolution::Answered { value: json!({}) }),
        McpElicitAction::Accept => {
            let value = AnswerForm::of(ask.schema.as_ref(), cx.revision).value(result.content)?;
            Ok(Resolution::Answered { value })
        }
        McpElicitAction::Decline => Ok(Resolution::Declined),
        McpElicitAction::Cancel => Ok(Resolution::Cancelled),
    }
}

/// Ends an ask; inside is why the answer does not fit.
async fn resolve(
    cx: &McpContext,
    asked: &AskTry,
    resolution: Resolution,
) -> Result<Result<Taken, String>, Fault> {
    let resolved = cx.shared.handle.asks().resolve(&cx.caller, &asked.ask, resolution);
    match Box::pin(resolved).await {
        Ok(_) => {
            cx.shared.wrong_answers.forget(&asked.ask);
            Ok(Ok(Taken::Counts))
        }
        Err(fault) if fault.is(Code::AskAnswerInvalid) => Ok(Err(fault.message)),
        Err(fault) if is_over(&fault) => Ok(Ok(Taken::Ignored)),
        Err(fault) => Err(fault),
    }
}

/// Whether somebody was faster, or it is too late.
fn is_over(fault: &Fault) -> bool {
    let codes = [
        Code::AskDecided,
        Code::AskExpired,
        Code::AskNotFound,
        Code::RunNotFound,
        Code::PermissionDenied,
    ];
    codes.iter().any(|code| fault.is(*code))
}

/// Whether nobody but the client is asked.
async fn asks_nobody_else(cx: &McpContext, ask: &AskSpec) -> Result<bool, Fault> {
    let run = Box::pin(cx.shared.handle.runs().get(&ask.run)).await?;
    Ok(run.spec.mcp.is_some_and(|terms| terms.inbox_off))
}
