//! Which function serves which request.

use axum::response::Response;
use wharf_vocab::Object;
use wharf_wire::mcp_v1::{McpError, McpRequest, McpSetLevel};

use super::door::{McpContext, McpReply};
use super::frame::{ServedRequest, refused};
use super::routes::denied_of;
use super::{calls, changes, complete, declare, query, resources, tasks, tools, upstream};
use crate::seal::RequestRef;

/// Serves a request that may be served.
pub(super) async fn serve(served: ServedRequest, request: McpRequest) -> Response {
    let Some(at) = served.at.clone() else { return served.answer(McpReply::result(Object::new())) };
    let cx = served.cx.clone();
    if let Some(verb) = query::needs(&request)
        && let Err(fault) = cx.caller.rights.check(verb, &cx.door.world)
    {
        return denied_of(Some(at.id), fault);
    }
    let permit = match cx.shared.shares.call(&cx.caller) {
        Ok(permit) => permit,
        Err(fault) => return refused(cx.revision.era(), Some(at.id), fault.into()),
    };
    // Whoever listens waits for nothing; its stream is counted by itself.
    let listens = matches!(request, McpRequest::Listen(_));
    match Box::pin(reply(cx, at, request)).await {
        reply if listens => served.answer(reply),
        reply => served.answer(reply.holding(permit)),
    }
}

async fn reply(cx: McpContext, at: RequestRef, request: McpRequest) -> McpReply {
    match request {
        McpRequest::Initialize(_) => declare::initialize(&cx),
        McpRequest::Discover(_) => declare::discover(&cx),
        McpRequest::SetLevel(params) => set_level(&cx, &params),
        McpRequest::ToolsList(params) => tools::list(&cx, &params),
        McpRequest::ToolsCall(params) => calls::call(cx, at, *params).await,
        McpRequest::TasksGet(params) => tasks::get(cx, *params).await,
        McpRequest::TasksResult(params) => tasks::result(cx, at, *params).await,
        McpRequest::TasksList(params) => tasks::list(cx, *params).await,
        McpRequest::TasksCancel(params) => tasks::cancel(cx, *params).await,
        McpRequest::TasksUpdate(params) => tasks::update(cx, *params).await,
        McpRequest::ResourcesList(params) => resources::list(cx, *params).await,
        McpRequest::TemplatesList(params) => resources::templates(cx, *params).await,
        McpRequest::ResourcesRead(params) => resources::read(cx, at, *params).await,
        McpRequest::ResourcesSubscribe(params) => changes::subscribe(cx, *params).await,
        McpRequest::ResourcesUnsubscribe(params) => changes::unsubscribe(cx, *params).await,
        McpRequest::PromptsList(params) => upstream::prompts(cx, *params).await,
        McpRequest::PromptsGet(params) => upstream::prompt(cx, at, *params).await,
        McpRequest::Complete(params) => complete::complete(cx, *params).await,
        McpRequest::Listen(params) => changes::listen(cx, *params).await,
        // A ping is answered by the session, and clients are asked the rest.
        McpRequest::Ping(_)
        | McpRequest::Elicit(_)
        | McpRequest::Sample(_)
        | McpRequest::RootsList(_)
        | McpRequest::Other { .. } => McpReply::refused(McpError::method_not_found()),
    }
}

/// A legacy client says from which level on it wants logs.
fn set_level(cx: &McpContext, params: &McpSetLevel) -> McpReply {
    let Some(session) = &cx.session else { return McpReply::result(Object::new()) };
    match cx.shared.sessions.of(session) {
        Ok(live) => {
            live.set_log_level(params.level);
            McpReply::result(Object::new())
        }
        Err(fault) => McpReply::refused(fault),
    }
}
