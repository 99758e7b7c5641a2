//! Tokens and secrets as peers read of them.

use wharf_domain::Grant;
use wharf_engine::vault::KeptSecret;
use wharf_vocab::{Timestamp, WorldId};
use wharf_wire::rest_v1 as wire;

use super::time;

/// A token without its text, as it stands at this moment.
pub(crate) fn token(grant: &Grant, now: Timestamp) -> wire::Token {
    let rights = &grant.rights;
    let state = match (grant.revoked_at, rights.until) {
        (Some(_), _) => "revoked",
        (None, Some(until)) if until <= now => "expired",
        (None, _) => "active",
    };
    let worlds = rights.worlds.as_ref();
    // Whoever makes a token names one list of patterns, or none.
    let tools = rights.tools.first();
    wire::Token {
        token_id: grant.id.to_string(),
        token: None,
        label: grant.label.clone(),
        state: state.to_owned(),
        verbs: rights.verbs.iter().copied().collect(),
        worlds: worlds.map(|worlds| worlds.iter().map(WorldId::to_string).collect()),
        tools: tools.map(|tools| tools.iter().map(ToString::to_string).collect()),
        person: grant.person,
        budget_micro: grant.budget_micro,
        created_at: time(grant.made_at),
        created_by: grant.by.grant.to_string(),
        expires_at: rights.until.map(time),
        revoked_at: grant.revoked_at.map(time),
    }
}

/// A secret's name.
pub(crate) fn secret(kept: &KeptSecret) -> wire::Secret {
    wire::Secret { name: kept.name.to_string(), set_at: time(kept.set_at) }
}
