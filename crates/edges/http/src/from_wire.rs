//! Reads what only REST takes: ids in paths, moments, files, approvals of providers, tokens.

mod agents;
mod files;
mod mcp;
mod trust;
mod worlds;

use wharf_views::{RunFilter, id};
use wharf_vocab::{
    Fault, GrantId, IdError, ProviderId, RunKey, RunStatus, Timestamp, ToolId, quantity,
};

pub(crate) use agents::{approval, folder, new_tool};
pub(crate) use files::{
    B3_HEADER, begin_upload, complete_upload, new_file, part_number, path_in, path_param,
    path_text, unconditional, upload_id,
};
pub(crate) use mcp::{NewMcp, new_mcp};
pub(crate) use trust::{narrowing, new_grant};
pub(crate) use worlds::{budget, changed, new_world};

use crate::answer::invalid;
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
    provider_id(segments, "agent_id", "an agent id")
}

/// The MCP server that a path names.
pub(crate) fn server_id(segments: &Segments) -> Result<ProviderId, Fault> {
    provider_id(segments, "server_id", "the id of a server")
}

fn provider_id(segments: &Segments, field: &str, what: &'static str) -> Result<ProviderId, Fault> {
    ProviderId::new(segments.get(field)).map_err(|_| {
        let error = IdError { what };
        Fault::invalid(field, format!("The field `{field}` does not fit; {error}."))
    })
}

/// Which runs are wanted, by the parameters of a list of them.
pub(crate) fn run_filter(params: &Params, now: Timestamp) -> Result<RunFilter, Fault> {
    let (since, until) = span(params, now)?;
    let statuses = |text: &str| {
        text.split(',').map(|word| RunStatus::parse(word).ok_or(())).collect::<Result<Vec<_>, _>>()
    };
    Ok(RunFilter {
        world: params.world()?,
        tool: params.parsed("tool", "a tool id of the form provider/name", |t| ToolId::new(t))?,
        statuses: params
            .parsed("status", "the status of a run, or several with commas between", statuses)?
            .unwrap_or_default(),
        caller: params.parsed("caller", "the id of a token", |text| GrantId::new(text))?,
        parent: params.text("parent").map(str::to_owned),
        correlation_id: params.text("correlation_id").map(str::to_owned),
        id_prefix: params.text("id_prefix").map(str::to_owned),
        over_hold: params.is_on("over_hold")?,
        error: params.text("error").map(str::to_owned),
        error_text: params.text("error_text").map(str::to_owned),
        text: params.text("text").map(str::to_owned),
        since,
        until,
    })
}

/// From when and until when things are wanted, by the parameters `since` and `until`.
pub(crate) fn span(
    params: &Params,
    now: Timestamp,
) -> Result<(Option<Timestamp>, Option<Timestamp>), Fault> {
    let (since, until) = (moment(params, "since", now)?, moment(params, "until", now)?);
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        let message = "The parameter `until` must not lie before `since`.";
        return Err(invalid("until", message));
    }
    Ok((since, until))
}

/// A moment that is named, or that lies so long back.
pub(crate) fn moment(
    params: &Params,
    name: &str,
    now: Timestamp,
) -> Result<Option<Timestamp>, Fault> {
    let wanted = "an RFC 3339 time, or how long ago such as 7d, 24h or 90m";
    params.parsed(name, wanted, |text| read_moment(text, now).ok_or(()))
}

fn read_moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Some(ms) = quantity::duration_ms(text) {
        return Some(Timestamp(now.0.saturating_sub(ms)));
    }
    let moment: jiff::Timestamp = text.parse().ok()?;
    // Before 1970 nothing ran.
    Some(Timestamp(u64::try_from(moment.as_millisecond()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_763_164_800_000);

    #[test]
    fn moments_are_named_or_lie_so_long_back() {
        let back = |ms: u64| Some(Timestamp(NOW.0 - ms));
        for (text, expect) in [
            ("90s", back(90_000)),
            ("24h", back(86_400_000)),
            ("7d", back(7 * 86_400_000)),
            ("2w", back(14 * 86_400_000)),
            ("1h30m", back(5_400_000)),
            ("0s", back(0)),
            ("99999w", Some(Timestamp(0))),
            ("2025-11-15T00:00:00Z", back(0)),
            ("2025-11-15T01:00:00+01:00", back(0)),
            ("1950-01-01T00:00:00Z", Some(Timestamp(0))),
            ("2025-11-15", None),
            ("yesterday", None),
            ("7", None),
            ("d", None),
            ("-7d", None),
            ("1.5d", back(129_600_000)),
            ("7 d", None),
            ("99999999999999999999d", None),
            ("18446744073709551615w", None),
        ] {
            assert_eq!(read_moment(text, NOW), expect, "{text}");
        }
    }
}
