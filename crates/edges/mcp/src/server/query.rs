//! What the address of a door asks for, and what its caller may do there.

use std::sync::Arc;
use std::time::Duration;

use wharf_domain::grant::Narrowing;
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Caller, CallerKind};
use wharf_vocab::{Fault, ProviderId, Verb, WorldId, quantity};
use wharf_web::answer::invalid;
use wharf_web::params::Params;
use wharf_wire::mcp_v1::McpRequest;

/// Names under which clients are known to put tokens into addresses.
const TOKENS: [&str; 6] = ["token", "access_token", "api_key", "apikey", "authorization", "bearer"];
/// Patterns that one address may have.
const PATTERNS_MAX: usize = 64;
/// Longest time after which an impatient client is answered.
const PATIENCE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What the address of a door asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DoorQuery {
    /// The one provider that is offered; all that the token may use when absent.
    pub(crate) provider: Option<ProviderId>,
    /// The world that runs and files are in.
    pub(crate) world: WorldId,
    /// Patterns of tools, of which one must fit; empty means all.
    pub(crate) tools: Vec<ToolPattern>,
    /// After what time a client without tasks is answered, if the address says so.
    pub(crate) patience: Option<Duration>,
    /// Whether runs go on without their client.
    pub(crate) detach: bool,
    /// Whether nobody but the client is asked.
    pub(crate) inbox_off: bool,
}

impl DoorQuery {
    /// Reads an address. The world is the one it names, or the only one the token is for.
    pub(crate) fn read(
        provider: Option<&str>,
        params: &Params,
        caller: &Caller,
    ) -> Result<Self, Fault> {
        refuse_tokens(params)?;
        let named = params.world()?;
        let own = || caller.rights.only_world().cloned();
        let world = named.or_else(own).map_or_else(|| WorldId::new("default"), Ok);
        let world = world.map_err(|_| invalid("world", "There is no such world."))?;
        let provider = provider.map(ProviderId::new).transpose();
        let provider = provider.map_err(|_| invalid("provider", "There is no such provider."))?;
        let patience = params.parsed("patience", "a duration such as 50s", |text| {
            quantity::duration_ms(text).map(Duration::from_millis).ok_or(())
        })?;
        let inbox_off = params.parsed("inbox", "`on` or `off`", |text| match text {
            "on" => Ok(false),
            "off" => Ok(true),
            _ => Err(()),
        })?;
        Ok(Self {
            provider,
            world,
            tools: patterns(params)?,
            patience: patience.map(|patience| patience.min(PATIENCE_MAX)),
            detach: params.is_on("detach")?,
            inbox_off: inbox_off.unwrap_or(false),
        })
    }
}

/// Addresses end up in logs and histories: nobody is let in by one.
pub(crate) fn refuse_tokens(params: &Params) -> Result<(), Fault> {
    let found = TOKENS.iter().find(|name| params.text(name).is_some());
    match found {
        Some(name) => {
            let message = "A token belongs into the header `Authorization`, not into the address.";
            Err(invalid(name, message))
        }
        None => Ok(()),
    }
}

fn patterns(params: &Params) -> Result<Vec<ToolPattern>, Fault> {
    let read = |text: &str| {
        let patterns: Vec<&str> = text.split(',').map(str::trim).collect();
        if patterns.len() > PATTERNS_MAX {
            return Err(());
        }
        patterns.into_iter().map(|text| ToolPattern::parse(text).map_err(drop)).collect()
    };
    let read = params.parsed("tools", "at most 64 patterns such as wharf/*, with commas", read)?;
    Ok(read.unwrap_or_default())
}

/// The bearer of a token as a client of MCP, with what its address leaves of its rights.
///
/// Whatever the token is, the owner's included, its bearer here is a program that a model steers.
/// So it is no person, never decides approvals, and what it starts stands in a chain that begins
/// with the token's own grant.
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
