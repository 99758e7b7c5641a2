//! Tokens and secrets.

use wharf_domain::Grant;
use wharf_ports::vault::KeptSecret;
use wharf_vocab::{DateTime, Timestamp, TokenKind, TokenState};
use wharf_wire::rest_v1 as wire;

/// A token without its text, as it stands at this moment.
#[must_use]
pub fn token(grant: &Grant, now: Timestamp) -> wire::Token {
    let rights = &grant.rights;
    let state = match (grant.revoked_at, grant.good_until()) {
        (Some(_), _) => TokenState::Revoked,
        (None, Some(until)) if until <= now => TokenState::Expired,
        (None, _) => TokenState::Active,
    };
    let worlds = rights.worlds.as_ref();
    // Whoever makes a token names one list of patterns, or none.
    let tools = rights.tools.first();
    wire::Token {
        token_id: grant.id.clone(),
        kind: if grant.console.is_some() { TokenKind::Console } else { TokenKind::Token },
        token: None,
        label: grant.label.clone(),
        state,
        verbs: rights.verbs.iter().copied().collect(),
        worlds: worlds.map(|worlds| worlds.iter().cloned().collect()),
        tools: tools.map(|tools| tools.iter().map(ToString::to_string).collect()),
        person: grant.person,
        budget_micro: grant.budget_micro,
        created_at: DateTime(grant.made_at),
        created_by: grant.by.grant.clone(),
        expires_at: grant.good_until().map(DateTime),
        revoked_at: grant.revoked_at.map(DateTime),
    }
}

/// A secret's name.
#[must_use]
pub fn secret(kept: &KeptSecret) -> wire::Secret {
    wire::Secret { name: kept.name.clone(), set_at: DateTime(kept.set_at) }
}
