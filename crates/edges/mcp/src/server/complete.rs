//! `completion/complete`: paths of files by their beginning; whatever belongs to a server it
//! completes itself.

use serde_json::json;
use wharf_engine::FileQuery;
use wharf_vocab::{Object, ProviderId, Verb, WorldId};
use wharf_wire::mcp_v1::{
    McpComplete, McpCompleteResult, McpCompletion, McpError, McpOpen, read_result,
};

use super::door::{McpContext, McpReply};
use super::files::FILE_TEMPLATE;
use super::upstream::{self, ASKED_MAX};
use crate::faults::McpRefusal;
use crate::hidden::HiddenTool;

/// Most values that one answer has.
const VALUES_MAX: usize = 100;

/// What an argument may be.
pub(crate) async fn complete(cx: McpContext, params: McpOpen<McpComplete>) -> McpReply {
    let completion = match completion(&cx, &params).await {
        Ok(completion) => completion,
        Err(refusal) => return McpReply::refused(refusal),
    };
    let result = McpCompleteResult { completion, ..McpCompleteResult::default() };
    McpReply::result(McpOpen::from(result).to_object())
}

async fn completion(
    cx: &McpContext,
    params: &McpOpen<McpComplete>,
) -> Result<McpOpen<McpCompletion>, McpRefusal> {
    let unknown = || McpError::params("There is no such prompt or template.");
    let reference = &params.reference;
    match (reference.kind.as_str(), &reference.name, &reference.uri) {
        ("ref/prompt", Some(name), _) => {
            let prompts = upstream::prompts_by_name(cx).into_iter();
            let (_, prompt) = { prompts }.find(|(known, _)| known == name).ok_or_else(unknown)?;
            let own = json!({"type": "ref/prompt", "name": prompt.offer.name});
            of_server(cx, &prompt.provider, own, params).await
        }
        ("ref/resource", _, Some(uri)) if uri == FILE_TEMPLATE => of_files(cx, params).await,
        ("ref/resource", _, Some(uri)) => {
            let templates = upstream::templates(cx).into_iter();
            let template = { templates }.find(|of| upstream::template_uri(cx, of) == *uri);
            let (provider, own) = match template {
                Some(of) => (of.provider, of.offer.known.uri_template),
                // Some clients name a resource itself.
                None => upstream::resource(cx, uri).ok_or_else(unknown)?,
            };
            of_server(cx, &provider, json!({"type": "ref/resource", "uri": own}), params).await
        }
        _ => Err(unknown().into()),
    }
}

/// What a server says; one that completes nothing has nothing to say.
async fn of_server(
    cx: &McpContext,
    provider: &ProviderId,
    own: serde_json::Value,
    params: &McpOpen<McpComplete>,
) -> Result<McpOpen<McpCompletion>, McpRefusal> {
    if !upstream::may_use(cx, provider, HiddenTool::Complete) {
        return Ok(McpOpen::default());
    }
    let mut inputs = HiddenTool::inputs(params.to_object());
    inputs.insert("ref".to_owned(), own);
    let said: Object = upstream::ask(cx, provider, HiddenTool::Complete, inputs, ASKED_MAX)
        .await
        .map_err(|fault| upstream::refusal(cx, "", fault))?;
    let said = read_result::<McpCompleteResult>(said).map_err(McpRefusal::from)?;
    let mut completion = said.known.completion;
    if completion.values.len() > VALUES_MAX {
        completion.values.truncate(VALUES_MAX);
        completion.has_more = Some(true);
    }
    Ok(completion)
}

/// Worlds that the client may read, or paths in one of them. What it may not see completes to
/// nothing.
async fn of_files(
    cx: &McpContext,
    params: &McpOpen<McpComplete>,
) -> Result<McpOpen<McpCompletion>, McpRefusal> {
    let rights = &cx.caller.rights;
    let begun = params.argument.value.as_str();
    let may_read =
        |world: &WorldId| rights.tools.is_empty() && rights.check(Verb::Read, world).is_ok();
    match params.argument.name.as_str() {
        "world" => {
            let worlds = cx.shared.handle.worlds().list().await?.into_iter();
            let worlds = worlds.map(|view| view.world.id).filter(may_read);
            let mut fit: Vec<String> =
                worlds.map(|id| id.to_string()).filter(|id| id.starts_with(begun)).collect();
            fit.sort();
            let has_more = fit.len() > VALUES_MAX;
            fit.truncate(VALUES_MAX);
            Ok(values(fit, has_more))
        }
        "path" => {
            let context = params.context.as_ref().and_then(|context| context.arguments.as_ref());
            let named = context.and_then(|arguments| arguments.get("world"));
            let named = named.and_then(|world| WorldId::new(world.as_str()).ok());
            let world = named.unwrap_or_else(|| cx.door.world.clone());
            // Local files of runs are found by links only.
            if !may_read(&world) || begun.trim_start_matches('/').starts_with('@') {
                return Ok(McpOpen::default());
            }
            let prefix = Some(format!("/{}", begun.trim_start_matches('/')));
            let query = FileQuery { prefix, ..FileQuery::new(world, VALUES_MAX) };
            let page = cx.shared.handle.files().list(&cx.caller, query).await?;
            let paths = page.files.iter().map(|file| file.artifact.path.as_str()[1..].to_owned());
            Ok(values(paths.collect(), page.next.is_some()))
        }
        _ => Ok(McpOpen::default()),
    }
}

fn values(values: Vec<String>, has_more: bool) -> McpOpen<McpCompletion> {
    McpCompletion { values, total: None, has_more: Some(has_more) }.into()
}
