//! Looking for anything by a few letters.

use wharf_domain::Caller;
use wharf_engine::{Handle, RunQuery};
use wharf_vocab::{Fault, ToolId, Verb, WorldId};
use wharf_wire::rest_v1 as wire;

use crate::{listed, runs_within, tool};

/// Things of each kind that a search shows.
const FOUND_MAX: usize = 10;
/// Longest text that is looked for.
const TEXT_CHARS_MAX: usize = 200;

/// What a few letters fit, within a caller's rights: runs by how their id begins, all else by what
/// its id contains. `providers` are those there are, with what each is.
pub async fn search(
    handle: &Handle,
    caller: &Caller,
    text: &str,
    providers: impl IntoIterator<Item = (wharf_vocab::ProviderId, String)>,
) -> Result<wire::Search, Fault> {
    if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
        let message = format!("The field `q` must have 1 to {TEXT_CHARS_MAX} characters.");
        return Err(Fault::invalid("q", message));
    }
    caller.rights.check_verb(Verb::Read)?;
    let lower = text.to_lowercase();
    let fits = |it: &str| it.to_lowercase().contains(&lower);
    let query =
        RunQuery { id_prefix: Some(text.to_owned()), limit: FOUND_MAX, ..RunQuery::default() };
    let own: Option<Vec<WorldId>> =
        caller.rights.worlds.as_ref().map(|worlds| worlds.iter().cloned().collect());
    let (runs, _) = runs_within(handle, query, (own.as_deref(), &caller.rights)).await?;
    let mut tools = handle.providers().tools();
    tools.retain(|it| !it.def.hidden && (fits(it.def.tool.as_str()) || fits(&it.def.description)));
    // Those whose name fits come first.
    tools.sort_by_key(|it| (!fits(it.def.tool.as_str()), it.def.tool.to_string()));
    let mut worlds = handle.worlds().list().await?;
    worlds.retain(|it| caller.rights.in_world(&it.world.id) && fits(it.world.id.as_str()));
    let reaches = |world: &WorldId, tool: &ToolId| {
        caller.rights.in_world(world) && caller.rights.check_tool(tool).is_ok()
    };
    let providers = providers.into_iter().filter(|(id, _)| fits(id.as_str()));
    Ok(wire::Search {
        runs: runs.iter().map(|run| listed(handle, run)).collect(),
        tools: tools
            .iter()
            .take(FOUND_MAX)
            .map(|it| wire::FoundTool {
                tool_id: it.def.tool.clone(),
                description: it.def.description.clone(),
                state: tool(it).state,
            })
            .collect(),
        providers: providers
            .take(FOUND_MAX)
            .map(|(provider_id, kind)| wire::FoundProvider { provider_id, kind })
            .collect(),
        worlds: worlds
            .into_iter()
            .take(FOUND_MAX)
            .map(|it| wire::FoundWorld { world: it.world.id })
            .collect(),
        flows: named(handle.flows().list().into_iter().filter_map(|flow| {
            let tool = flow.newest()?.tool(&flow.id).tool;
            fits(flow.id.as_str()).then(|| (flow.id.to_string(), tool))
        })),
        schedules: named(handle.schedules().list().into_iter().filter_map(|it| {
            let shown = reaches(&it.spec.world, &it.spec.tool) && fits(it.id.as_str());
            shown.then(|| (it.id.to_string(), it.spec.tool))
        })),
        triggers: named(handle.triggers().list().into_iter().filter_map(|it| {
            let shown = reaches(&it.spec.world, &it.spec.tool) && fits(it.id.as_str());
            shown.then(|| (it.id.to_string(), it.spec.tool))
        })),
    })
}

fn named(found: impl Iterator<Item = (String, ToolId)>) -> Vec<wire::FoundName> {
    found.take(FOUND_MAX).map(|(name, tool_id)| wire::FoundName { name, tool_id }).collect()
}
