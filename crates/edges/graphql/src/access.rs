//! Who may do what: the same checks as REST makes, in the same order.
//!
//! Every field of the roots asks here first: that the token is still good, the verb, the world as
//! soon as it is known and before anything is looked up, then the tool. A refusal for want of
//! rights is written down with what was missing and never with what was asked.

use std::sync::Arc;

use async_graphql::Context;
use axum::Extension;
use wharf_domain::{Ask, AuditRecord, Caller, Run, Subject};
use wharf_engine::{Handle, NewRun};
use wharf_ports::providers::ProviderView;
use wharf_vocab::{AskId, Code, Fault, RunKey, ToolId, Verb, WorldId};
use wharf_web::params::SentTrace;
use wharf_wire::rest_v1::McpServer;

use crate::error::internal;

/// Who asks, as the edge in front says: a caller, or why there is none.
pub(crate) type CallerExtensions = (Option<Extension<Caller>>, Option<Extension<Fault>>);

/// The caller, if one was let in.
pub(crate) fn caller((caller, refused): CallerExtensions) -> Result<Caller, Fault> {
    match (caller, refused) {
        (Some(Extension(caller)), _) => Ok(caller),
        (None, Some(Extension(fault))) => Err(fault),
        (None, None) => Err(internal()),
    }
}

/// Who asks, and the engine that is asked.
#[derive(Debug, Clone)]
pub(crate) struct CallerSession {
    pub(crate) handle: Handle,
    pub(crate) caller: Caller,
    /// The trace that what is asked belongs to; a socket is open for longer than one.
    pub(crate) trace: SentTrace,
}

impl CallerSession {
    /// A request of somebody, without a trace.
    pub(crate) fn new(handle: Handle, caller: Caller) -> Self {
        Self { handle, caller, trace: SentTrace::default() }
    }

    /// The run that is asked for, as a part of the request's trace.
    pub(crate) fn traced(&self, new: NewRun) -> NewRun {
        let SentTrace { traceparent, tracestate } = self.trace.clone();
        NewRun { traceparent, tracestate, ..new }
    }

    /// The session an operation belongs to.
    pub(crate) fn of<'c>(ctx: &Context<'c>) -> Result<&'c Self, Fault> {
        ctx.data::<Self>().map_err(|_| internal())
    }

    /// The session of an operation that needs this verb.
    pub(crate) fn with<'c>(ctx: &Context<'c>, verb: Verb) -> Result<&'c Self, Fault> {
        let session = Self::of(ctx)?;
        session.verb(verb)?;
        Ok(session)
    }

    /// Whether the token is still good; it may have expired or been revoked since the request or
    /// the connection began.
    pub(crate) fn current(&self) -> Result<(), Fault> {
        self.handle.trust().check_current(&self.caller).map_err(|_| {
            let message = "This token is not valid here; it may be expired or revoked.";
            Fault::new(Code::AuthInvalid, message)
        })
    }

    /// Whether this may be done at all.
    pub(crate) fn verb(&self, verb: Verb) -> Result<(), Fault> {
        self.current()?;
        self.told(self.caller.rights.check_verb(verb))
    }

    /// Whether this may be done in a world.
    pub(crate) fn world(&self, verb: Verb, world: &WorldId) -> Result<(), Fault> {
        self.current()?;
        self.told(self.caller.rights.check(verb, world))
    }

    /// Whether the token is not limited to some worlds.
    pub(crate) fn everywhere(&self) -> Result<(), Fault> {
        if self.caller.rights.worlds.is_none() {
            return Ok(());
        }
        let message = "This concerns all worlds, and this token is only for some.";
        self.told(Err(Fault::new(Code::PermissionDenied, message).with("world", "*")))
    }

    /// The world of this name, if this may be done in it.
    pub(crate) fn world_named(&self, verb: Verb, name: &str) -> Result<WorldId, Fault> {
        let id = wharf_views::id("world", name)?;
        self.world(verb, &id)?;
        Ok(id)
    }

    /// Whether there may be anything to do with a tool.
    pub(crate) fn tool(&self, tool: &ToolId) -> Result<(), Fault> {
        self.told(self.caller.rights.check_tool(tool))
    }

    /// The run, if this may be done with it.
    pub(crate) async fn run(&self, verb: Verb, key: &RunKey) -> Result<Arc<Run>, Fault> {
        self.world(verb, &key.world)?;
        let run = self.handle.runs().get(key).await?;
        self.tool(&run.spec.tool)?;
        Ok(run)
    }

    /// The ask, if this may be done with it.
    pub(crate) async fn ask(&self, verb: Verb, id: &AskId) -> Result<Ask, Fault> {
        self.verb(verb)?;
        let out_of_reach = || -> Result<Ask, Fault> {
            let message = "This token is not for the world of this ask, or there is no such ask.";
            let fault = Fault::new(Code::PermissionDenied, message);
            self.told(Err(fault.with("ask_id", id.as_str())))
        };
        let ask = match self.handle.asks().get(id).await {
            Err(fault) if fault.is(Code::AskNotFound) && self.caller.rights.worlds.is_some() => {
                return out_of_reach();
            }
            found => found?,
        };
        if !self.caller.rights.in_world(&ask.spec.run.world) {
            return out_of_reach();
        }
        self.world(verb, &ask.spec.run.world)?;
        self.tool(&ask.spec.tool)?;
        Ok(ask)
    }

    /// An MCP server as the caller may see it.
    pub(crate) fn mcp_server(&self, view: ProviderView) -> Option<McpServer> {
        wharf_views::mcp_server(&wharf_views::seen_by(&self.caller, view))
    }

    /// The worlds to look in when one is named or none. `None` stands for all.
    pub(crate) fn worlds(&self, named: Option<&WorldId>) -> Result<Option<Vec<WorldId>>, Fault> {
        self.verb(Verb::Read)?;
        if let Some(named) = named {
            self.world(Verb::Read, named)?;
            return Ok(Some(vec![named.clone()]));
        }
        Ok(self.caller.rights.worlds.as_ref().map(|worlds| worlds.iter().cloned().collect()))
    }

    /// Passes a result on; a refusal for want of rights is written down.
    pub(crate) fn told<T>(&self, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(fault) = &result
            && fault.is(Code::PermissionDenied)
        {
            let mut record = AuditRecord::denied(&self.caller.grant, Subject::route("/graphql"))
                .fact("error_code", fault.code.as_str());
            for missing in ["verb", "world", "permission"] {
                if let Some(value) = fault.details.get(missing).and_then(|value| value.as_str()) {
                    record = record.fact(missing, value);
                }
            }
            self.handle.audit().denied(record);
        }
        result
    }
}
