//! Asks with all that helps to decide them, and those that were decided.

use std::sync::Arc;

use wharf_domain::provider::Approval;
use wharf_domain::{Ask, Caller, Rights, Run};
use wharf_engine::{AskView, Handle, RunQuery};
use wharf_vocab::limits::{PAGE_ITEMS_MAX, RUN_DEPTH_MAX};
use wharf_vocab::{AskKind, Code, DateTime, Fault, Object, RunStatus, Timestamp, Verb, WorldId};
use wharf_wire::rest_v1 as wire;

use crate::tool::definition;

/// Decided asks that are looked at to find those about one tool.
const LOOKED_AT_MAX: usize = 1_000;
/// Earlier decisions that are shown.
const PREVIOUS_MAX: usize = 10;
/// Earlier runs that are looked at to find one that succeeded.
const RUNS_LOOKED_AT_MAX: usize = 200;

/// Which asks are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskState {
    /// Those that nobody has decided.
    #[default]
    Open,
    /// Those that were decided, expired or were needed no more.
    Decided,
}

impl AskState {
    /// Reads the word for it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "open" => Some(Self::Open),
            "decided" => Some(Self::Decided),
            _ => None,
        }
    }
}

/// Which decided asks are wanted.
pub struct DecidedQuery {
    pub kind: Option<AskKind>,
    /// Only these worlds; all when absent.
    pub worlds: Option<Vec<WorldId>>,
    /// Only tools within these.
    pub rights: Arc<Rights>,
    /// Only what was raised before this place.
    pub before: Option<u64>,
    pub limit: usize,
}

impl DecidedQuery {
    /// A page of decided asks, newest first, and where the next one begins. A bounded number of
    /// asks is looked at, so a page may be short although there is more.
    pub async fn page(self, handle: &Handle) -> Result<(Vec<AskView>, Option<u64>), Fault> {
        let (mut found, mut before, mut looked_at) = (Vec::new(), self.before, 0);
        loop {
            let read = handle.asks().decided(before, PAGE_ITEMS_MAX).await?;
            let full = read.len() >= PAGE_ITEMS_MAX;
            looked_at += read.len();
            for view in read {
                if found.len() >= self.limit {
                    return Ok((found, before));
                }
                before = view.position;
                if self.fits(&view.ask) {
                    found.push(view);
                }
            }
            if !full {
                return Ok((found, None));
            }
            if looked_at >= LOOKED_AT_MAX {
                return Ok((found, before));
            }
        }
    }

    fn fits(&self, ask: &Ask) -> bool {
        self.kind.is_none_or(|kind| ask.spec.kind == kind)
            && self.worlds.as_ref().is_none_or(|worlds| worlds.contains(&ask.spec.run.world))
            && self.rights.check_tool(&ask.spec.tool).is_ok()
    }
}

/// An ask with all that helps to decide it, as far as a caller may see it. The caller may see the
/// ask itself.
pub async fn ask_detail(
    handle: &Handle,
    caller: &Caller,
    ask: &Ask,
) -> Result<wire::AskDetail, Fault> {
    let spec = &ask.spec;
    let run = match handle.runs().get(&spec.run).await {
        Ok(run) => Some(handle.runs().with_inputs(run).await?),
        // It was removed.
        Err(fault) if fault.is(Code::RunNotFound) => None,
        Err(fault) => return Err(fault),
    };
    let known = handle.providers().tool(&spec.tool).ok();
    let created_at = run.as_ref().map_or(ask.created_at, |run| run.created_at);
    Ok(wire::AskDetail {
        ask: crate::ask(ask),
        inputs: run.as_ref().map_or_else(Object::new, |run| Object::clone(&run.spec.inputs)),
        kept: run.as_deref().and_then(crate::run::kept),
        same_definition: known.as_ref().is_some_and(|known| {
            spec.tool_hash.as_ref().is_none_or(|hash| known.def.hash() == *hash)
        }),
        definition: known.as_ref().map(|known| definition(&known.def)),
        permissions: permissions(handle, ask),
        chain: chain(handle, caller, run.as_deref()).await?,
        previous: previous(handle, caller, ask).await?,
        similar_run: similar_run(handle, ask, created_at).await?,
    })
}

/// What the provider of an ask's tool is permitted.
fn permissions(handle: &Handle, ask: &Ask) -> Vec<wire::AgentPermission> {
    let id = ask.spec.tool.provider();
    let providers = handle.providers().list();
    let own = |tool: &wharf_domain::ToolDef| tool.tool == ask.spec.tool;
    let found = providers.iter().find(|it| it.id == id || it.tools.iter().any(own));
    let Some(provider) = found else { return Vec::new() };
    let same = |approval: &&Approval| approval.manifest_hash == provider.manifest_hash;
    let approval = provider.approval.as_ref().filter(same);
    let given = approval.map_or(&[][..], |given| &given.permissions);
    crate::agent::permissions(&provider.manifest, given)
}

/// The runs that led to an ask, as far as a caller may see them.
async fn chain(
    handle: &Handle,
    caller: &Caller,
    run: Option<&Run>,
) -> Result<Vec<wire::AskLink>, Fault> {
    let link = |run: &Run| wire::AskLink {
        run_id: run.key.run.clone(),
        world: run.key.world.clone(),
        tool: run.spec.tool.clone(),
        status: run.status(),
        caller: Some(run.spec.caller.grant.clone()),
    };
    let Some(run) = run else { return Ok(Vec::new()) };
    let mut links = vec![link(run)];
    let mut above = run.spec.parent.clone();
    while let Some(key) = above.take().filter(|_| links.len() <= RUN_DEPTH_MAX as usize) {
        let run = match handle.runs().get(&key).await {
            Ok(run) => run,
            Err(fault) if fault.is(Code::RunNotFound) => break,
            Err(fault) => return Err(fault),
        };
        let rights = &caller.rights;
        let seen = rights.check(Verb::Read, &key.world).and(rights.check_tool(&run.spec.tool));
        if seen.is_err() {
            break;
        }
        links.push(link(&run));
        above.clone_from(&run.spec.parent);
    }
    links.reverse();
    Ok(links)
}

/// The latest decisions about approvals of the same tool that a caller may see.
async fn previous(handle: &Handle, caller: &Caller, ask: &Ask) -> Result<Vec<wire::Ask>, Fault> {
    let (mut found, mut before, mut looked_at) = (Vec::new(), None, 0);
    while looked_at < LOOKED_AT_MAX && found.len() < PREVIOUS_MAX {
        let read = handle.asks().decided(before, PAGE_ITEMS_MAX).await?;
        let full = read.len() >= PAGE_ITEMS_MAX;
        looked_at += read.len();
        before = read.last().and_then(|view| view.position);
        let same = |other: &Ask| {
            other.spec.kind == AskKind::Approval
                && other.spec.tool == ask.spec.tool
                && other.spec.ask_id != ask.spec.ask_id
                && caller.rights.in_world(&other.spec.run.world)
        };
        let room = PREVIOUS_MAX - found.len();
        let same = read.iter().filter(|view| same(&view.ask)).take(room);
        found.extend(same.map(|view| crate::ask(&view.ask)));
        if !full {
            break;
        }
    }
    Ok(found)
}

/// The latest earlier run of the same tool in the same world that succeeded.
async fn similar_run(
    handle: &Handle,
    ask: &Ask,
    until: Timestamp,
) -> Result<Option<wire::SimilarRun>, Fault> {
    let query = RunQuery {
        world: Some(ask.spec.run.world.clone()),
        tool: Some(ask.spec.tool.clone()),
        until: Some(until),
        limit: RUNS_LOOKED_AT_MAX,
        ..RunQuery::default()
    };
    let runs = handle.run_lists().list(query).await?.runs;
    let found = runs.iter().find(|run| run.status == RunStatus::Succeeded);
    let Some(found) = found else { return Ok(None) };
    let run = match handle.runs().get(&found.key).await {
        Ok(run) => handle.runs().with_inputs(run).await?,
        // It was removed just now.
        Err(_) => return Ok(None),
    };
    // There is nothing to compare with where its inputs are not kept.
    if run.spec.inputs_kept.is_some() {
        return Ok(None);
    }
    Ok(Some(wire::SimilarRun {
        run_id: run.key.run.clone(),
        world: run.key.world.clone(),
        status: run.status(),
        created_at: DateTime(run.created_at),
        inputs: Object::clone(&run.spec.inputs),
    }))
}
