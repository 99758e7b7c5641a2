//! Reads what only REST takes: ids in paths, files, approvals of providers, tokens.

mod agents;
mod files;
mod trust;
mod worlds;

use wharf_views::id;
use wharf_vocab::{Fault, IdError, ProviderId, RunKey, ToolId};

pub(crate) use agents::{approval, folder, new_tool};
pub(crate) use files::{
    B3_HEADER, begin_upload, complete_upload, new_file, part_number, path_in, path_param,
    unconditional, upload_id,
};
pub(crate) use trust::{narrowing, new_grant};
pub(crate) use worlds::{budget, changed, new_world};

use crate::params::{Params, Segments};

/// The run that a path and its `?world=` name.
pub(crate) fn run_key(segments: &Segments, params: &Params) -> Result<RunKey, Fault> {
    let world = match params.world()? {
        Some(world) => world,
        None => id("world", wharf_views::DEFAULT_WORLD)?,
    };
    Ok(RunKey { world, run: id("run_id", segments.get("run_id"))? })
}

/// The tool that a path names.
pub(crate) fn tool_id(segments: &Segments) -> Result<ToolId, Fault> {
    id("tool", &format!("{}/{}", segments.get("provider"), segments.get("name")))
}

/// The agent that a path names.
pub(crate) fn agent_id(segments: &Segments) -> Result<ProviderId, Fault> {
    ProviderId::new(segments.get("agent_id")).map_err(|_| {
        let error = IdError { what: "an agent id" };
        Fault::invalid("agent_id", format!("The field `agent_id` does not fit; {error}."))
    })
}
