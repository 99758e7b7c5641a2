//! Reads what only REST takes: ids in paths, files, approvals of providers, tokens.

mod agents;
mod files;
mod trust;
mod worlds;

use wharf_views::id;
use wharf_vocab::{AskId, Fault, IdError, ProviderId, RunKey, ToolId, WorldId};

pub(crate) use agents::{approval, folder, new_tool};
pub(crate) use files::{
    B3_HEADER, begin_upload, complete_upload, new_file, part_number, path_in, path_param,
    unconditional, upload_id,
};
pub(crate) use trust::{grant_id, narrowing, new_grant, secret_name};
pub(crate) use worlds::{budget, changed, new_world};

use crate::params::Params;

/// The run that a path and its `?world=` name.
pub(crate) fn run_key(run: &str, params: &Params) -> Result<RunKey, Fault> {
    let world = match params.world()? {
        Some(world) => world,
        None => id("world", wharf_views::DEFAULT_WORLD)?,
    };
    Ok(RunKey { world, run: id("run_id", run)? })
}

/// The ask that a path names.
pub(crate) fn ask_id(text: &str) -> Result<AskId, Fault> {
    wharf_views::ask_id("ask_id", text)
}

/// The tool that a path names.
pub(crate) fn tool_id(provider: &str, name: &str) -> Result<ToolId, Fault> {
    id("tool", &format!("{provider}/{name}"))
}

/// The agent that a path names.
pub(crate) fn agent_id(text: &str) -> Result<ProviderId, Fault> {
    ProviderId::new(text).map_err(|_| {
        let error = IdError { what: "an agent id" };
        Fault::invalid("agent_id", format!("The field `agent_id` does not fit; {error}."))
    })
}

/// The world that a path or a body names.
pub(crate) fn world_id(text: &str) -> Result<WorldId, Fault> {
    id("world", text)
}
