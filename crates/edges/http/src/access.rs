//! What a request needs to be allowed, and the checks that only a route can make.
//!
//! The verb is checked before a route sees the request; the table of routes says which. Where a
//! world matters, the route checks it as soon as it knows which one, and before it looks anything
//! up: a token learns nothing of worlds it is not for, not even whether a run exists there. A token
//! for some tools sees the runs and asks of those; the catalog it sees whole.

use std::sync::Arc;

use axum::http::Method;
use wharf_domain::{Ask, Caller, Grant, Run};
use wharf_engine::Handle;
pub(crate) use wharf_views::seen_by;
use wharf_vocab::{AskId, Code, Fault, RunKey, ToolId, Verb, WorldId};

use crate::answer::FaultResponse;
use crate::params::Segments;
use crate::sse::ReadPermission;

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Not even a token.
    Nothing,
    /// Any good token, or what the route itself takes for one.
    Itself,
    /// This verb; the route sees to the world, or shows only what lies within reach.
    Verb(Verb),
    /// This verb, and a token that is not limited to some worlds: what is behind it concerns all.
    Everywhere(Verb),
}

/// A method of a path, and what a request for it needs.
#[derive(Clone)]
pub(crate) struct RouteAccess {
    pub(crate) path: &'static str,
    pub(crate) method: Method,
    pub(crate) need: Need,
    /// Whether it opens a stream of events, so that it takes tickets.
    pub(crate) streams: bool,
}

impl Need {
    pub(crate) const READ: Self = Self::Verb(Verb::Read);
    pub(crate) const RUN: Self = Self::Verb(Verb::Run);
    pub(crate) const ANSWER: Self = Self::Verb(Verb::Answer);
    pub(crate) const APPROVE: Self = Self::Verb(Verb::Approve);
    pub(crate) const OPERATE: Self = Self::Verb(Verb::Operate);
    pub(crate) const ADMIN: Self = Self::Verb(Verb::Admin);
    pub(crate) const OPERATE_EVERYWHERE: Self = Self::Everywhere(Verb::Operate);
    pub(crate) const ADMIN_EVERYWHERE: Self = Self::Everywhere(Verb::Admin);

    /// Whether a caller has what is needed.
    pub(crate) fn check(self, caller: &Caller) -> Result<(), Fault> {
        match self {
            Self::Nothing | Self::Itself => Ok(()),
            Self::Verb(verb) => caller.rights.check_verb(verb),
            Self::Everywhere(verb) => {
                caller.rights.check_verb(verb)?;
                everywhere(caller)
            }
        }
    }
}

fn everywhere(caller: &Caller) -> Result<(), Fault> {
    if caller.rights.worlds.is_none() {
        return Ok(());
    }
    let message = "This concerns all worlds, and this token is only for some.";
    Err(Fault::new(Code::PermissionDenied, message).with("world", "*"))
}

/// Whether a caller may do this in a world.
pub(crate) fn world(caller: &Caller, verb: Verb, world: &WorldId) -> Result<(), FaultResponse> {
    caller.rights.check(verb, world).map_err(FaultResponse::denied)
}

/// The world that a path names, if a caller may do this in it.
pub(crate) fn world_in(
    caller: &Caller,
    verb: Verb,
    segments: &Segments,
) -> Result<WorldId, FaultResponse> {
    let id = wharf_views::id("world", segments.get("world"))?;
    world(caller, verb, &id)?;
    Ok(id)
}

/// Whether a caller may still do this in a world, to be asked again and again: the token may have
/// expired or been revoked in the meantime.
pub(crate) fn still(handle: &Handle, caller: Caller, verb: Verb, world: WorldId) -> ReadPermission {
    let handle = handle.clone();
    Box::new(move || handle.trust().authorise(&caller, verb, &world).is_ok())
}

/// Whether a caller may have to do with a tool.
pub(crate) fn tool(caller: &Caller, tool: &ToolId) -> Result<(), FaultResponse> {
    caller.rights.check_tool(tool).map_err(FaultResponse::denied)
}

/// The run, if a caller may do this with it. What a tool was given and what came of it concerns
/// only those who may use it.
pub(crate) async fn run(
    handle: &Handle,
    caller: &Caller,
    verb: Verb,
    key: &RunKey,
) -> Result<Arc<Run>, FaultResponse> {
    world(caller, verb, &key.world)?;
    let run = handle.runs().get(key).await?;
    tool(caller, &run.spec.tool)?;
    Ok(run)
}

/// The ask that may be decided with this verb. A token for some worlds is not told whether there
/// is an ask in another one.
pub(crate) async fn ask(
    handle: &Handle,
    caller: &Caller,
    verb: Verb,
    id: &AskId,
) -> Result<Ask, FaultResponse> {
    let out_of_reach = || {
        let message = "This token is not for the world of this ask, or there is no such ask.";
        let fault = Fault::new(Code::PermissionDenied, message);
        FaultResponse::denied(fault.with("ask_id", id.as_str()))
    };
    let ask = match handle.asks().get(id).await {
        Err(fault) if fault.is(Code::AskNotFound) && caller.rights.worlds.is_some() => {
            return Err(out_of_reach());
        }
        found => found?,
    };
    if !caller.rights.in_world(&ask.spec.run.world) {
        return Err(out_of_reach());
    }
    world(caller, verb, &ask.spec.run.world)?;
    tool(caller, &ask.spec.tool)?;
    Ok(ask)
}

/// Whether a caller may know of a grant: one that reaches no further than the caller's worlds.
pub(crate) fn knows(caller: &Caller, grant: &Grant) -> bool {
    match (&caller.rights.worlds, &grant.rights.worlds) {
        (None, _) => true,
        (Some(own), Some(worlds)) => worlds.is_subset(own),
        (Some(_), None) => false,
    }
}

/// The worlds to look in when a request names one or none. `None` stands for all.
pub(crate) fn worlds(
    caller: &Caller,
    named: Option<&WorldId>,
) -> Result<Option<Vec<WorldId>>, FaultResponse> {
    worlds_for(caller, Verb::Read, named)
}

/// The worlds to do this in when a request names one or none. `None` stands for all.
pub(crate) fn worlds_for(
    caller: &Caller,
    verb: Verb,
    named: Option<&WorldId>,
) -> Result<Option<Vec<WorldId>>, FaultResponse> {
    if let Some(named) = named {
        world(caller, verb, named)?;
        return Ok(Some(vec![named.clone()]));
    }
    Ok(caller.rights.worlds.as_ref().map(|worlds| worlds.iter().cloned().collect()))
}
