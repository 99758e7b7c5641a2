//! Who calls: a token that acts as a client of MCP and is no person.
//!
//! Whatever the token is, the owner's included, its bearer here is a program that a model steers.
//! So it is no person, never decides approvals, and what it starts stands in a chain that begins
//! with the token's own grant.

use std::sync::Arc;

use wharf_domain::grant::Narrowing;
use wharf_domain::{Caller, CallerKind};
use wharf_vocab::Verb;
use wharf_wire::mcp_v1::McpRequest;

use super::query::DoorQuery;

/// The bearer of a token as a client of MCP, with what its address leaves of its rights.
pub(crate) fn client(bearer: Caller, door: &DoorQuery) -> Caller {
    let verbs = [Verb::Run, Verb::Read, Verb::Answer].into();
    let tools = (!door.tools.is_empty()).then(|| door.tools.clone());
    let narrowing = Narrowing { verbs: Some(verbs), tools, ..Narrowing::default() };
    let rights = Arc::new(bearer.rights.narrowed(&narrowing));
    let mut links = bearer.links;
    if !links.contains(&bearer.grant) {
        links.push(bearer.grant.clone());
    }
    Caller { links, person: false, kind: CallerKind::Mcp, rights, stands_in: None, ..bearer }
}

/// What a request needs.
pub(crate) fn needs(request: &McpRequest) -> Option<Verb> {
    match request {
        McpRequest::ToolsCall(_) | McpRequest::TasksCancel(_) => Some(Verb::Run),
        McpRequest::TasksUpdate(_) => Some(Verb::Answer),
        McpRequest::Initialize(_)
        | McpRequest::Ping(_)
        | McpRequest::Discover(_)
        | McpRequest::SetLevel(_) => None,
        _ => Some(Verb::Read),
    }
}
