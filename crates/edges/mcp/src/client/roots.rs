//! The folders a server may work in.
//!
//! It is told of those that were approved for it, by the paths that it sees them at, or of those
//! of the client whose call it is. Telling of a folder permits nothing.

use std::path::Path;

use serde_json::{Value, json};
use url::Url;
use wharf_domain::permission::Permission;
use wharf_domain::provider::McpRoots;
use wharf_domain::{Provider, Resolution};
use wharf_vocab::Object;
use wharf_wire::mcp_v1::{McpError, McpOpen, McpRoot, McpRootsResult, read_result};

use super::asks::{AskName, question, unasked};
use super::attempt::AskContext;
use super::details_of;
use crate::asked::AskedRequest;

/// Answers which folders a server may work in.
pub(crate) async fn asked(context: &AskContext, name: AskName) -> Result<Object, McpError> {
    let wish = details_of(&context.agent).map(|details| details.roots).unwrap_or_default();
    let terms = context.attempt.dispatch().spec.mcp.unwrap_or_default();
    // Where nobody but the caller is asked, its folders are the only ones that are meant.
    let is_callers = wish == McpRoots::Caller || terms.inbox_off;
    if is_callers && terms.roots {
        return of_caller(context, name).await;
    }
    let home = context.servers.options.hosting.user_home.as_deref();
    Ok(of_approval(&context.agent, home))
}

/// The answer to whoever asks outside of any call: what was approved.
pub(crate) fn of_approval(agent: &Provider, home: Option<&Path>) -> Object {
    let roots = approved(agent, home);
    McpOpen::from(McpRootsResult { roots, meta: None }).to_object()
}

async fn of_caller(context: &AskContext, name: AskName) -> Result<Object, McpError> {
    let title = format!("The MCP server {} asks which folders are worked in.", context.agent.id);
    let method = "roots/list".to_owned();
    let in_task = name.in_task;
    let asked = AskedRequest { key: name.named, method, params: None, in_task };
    let ask = question(context, name.key, title, Some(answer_schema()), asked.to_detail());
    match context.ask(ask).await.map_err(unasked)? {
        Resolution::Answered { value: Value::Object(answer) } => {
            read_result::<McpRootsResult>(answer.clone())?;
            Ok(answer)
        }
        // Nobody has named any.
        _ => Ok(McpOpen::from(McpRootsResult::default()).to_object()),
    }
}

/// What an answer looks like, for whoever gives it.
fn answer_schema() -> Value {
    let root = json!({
        "type": "object",
        "properties": {"uri": {"type": "string"}, "name": {"type": "string"}},
        "required": ["uri"],
    });
    json!({
        "type": "object",
        "properties": {"roots": {"type": "array", "items": root}},
        "required": ["roots"],
    })
}

/// The folders and files that were approved for a server; patterns that are neither have no
/// address.
fn approved(agent: &Provider, home: Option<&Path>) -> Vec<McpOpen<McpRoot>> {
    let is_launched = details_of(agent).is_ok_and(|details| details.how.is_launched());
    let permissions = if is_launched { agent.permissions() } else { Vec::new() };
    let mut paths = Vec::new();
    for permission in permissions {
        let (Permission::Read(glob) | Permission::Write(glob)) = permission else { continue };
        let home = home.and_then(Path::to_str);
        let glob = home.map_or_else(|| glob.clone(), |home| glob.at_home(home));
        let (path, is_all) = glob.root();
        if is_all && path.starts_with('/') {
            paths.push(path.to_owned());
        }
    }
    paths.sort_unstable();
    paths.dedup();
    paths.iter().filter_map(|path| root(path)).collect()
}

fn root(path: &str) -> Option<McpOpen<McpRoot>> {
    let uri = Url::from_file_path(path).ok()?;
    let name = path.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned);
    Some(McpRoot { uri: uri.into(), name, meta: None }.into())
}
