//! Requests about tokens and secrets.

use std::collections::BTreeSet;

use wharf_domain::grant::{Narrowing, NewGrant, Rights};
use wharf_domain::permission::ToolPattern;
use wharf_vocab::{DateTime, Fault, Timestamp, WorldId};
use wharf_wire::rest_v1::{CreateTicket, CreateToken};

use super::worlds::amount;
use crate::answer::invalid;

/// Longest label of a token.
const LABEL_BYTES_MAX: usize = 200;
/// Most worlds, and most patterns of tools, that a token names.
const NAMES_MAX: usize = 64;

/// What a ticket takes away from the token it is made with.
pub(crate) fn narrowing(request: &CreateTicket) -> Result<Narrowing, Fault> {
    Ok(Narrowing {
        verbs: request.verbs.as_ref().map(|verbs| verbs.iter().copied().collect()),
        worlds: request.worlds.as_deref().map(worlds).transpose()?,
        tools: request.tools.as_deref().map(tools).transpose()?,
        until: None,
    })
}

/// A token that is to be made at this moment.
pub(crate) fn new_grant(request: CreateToken, now: Timestamp) -> Result<NewGrant, Fault> {
    let label = request.label.unwrap_or_default();
    if label.len() > LABEL_BYTES_MAX || label.chars().any(char::is_control) {
        let message = "A label has 200 bytes at most and no control characters.";
        return Err(invalid("label", message));
    }
    if request.verbs.is_empty() {
        return Err(invalid(
            "verbs",
            "Name at least one verb; a token without is good for nothing.",
        ));
    }
    amount("ttl_ms", request.ttl_ms)?;
    amount("budget_micro", request.budget_micro)?;
    let worlds = request.worlds.map(|names| worlds(&names)).transpose()?;
    let tools = request.tools.map(|patterns| tools(&patterns)).transpose()?;
    let rights = Rights {
        verbs: request.verbs.into_iter().collect(),
        worlds,
        tools: tools.into_iter().collect(),
        until: until(request.ttl_ms, request.expires_at, now)?,
    };
    let person = request.person.unwrap_or(false);
    Ok(NewGrant { label, rights, person, budget_micro: request.budget_micro })
}

fn worlds(names: &[WorldId]) -> Result<BTreeSet<WorldId>, Fault> {
    if names.is_empty() || names.len() > NAMES_MAX {
        let message = "Name 1 to 64 worlds, or leave `worlds` out for all.";
        return Err(invalid("worlds", message));
    }
    Ok(names.iter().cloned().collect())
}

fn tools(patterns: &[String]) -> Result<Vec<ToolPattern>, Fault> {
    if patterns.is_empty() || patterns.len() > NAMES_MAX {
        let message = "Name 1 to 64 patterns of tools, or leave `tools` out for all.";
        return Err(invalid("tools", message));
    }
    let read = |text: &String| {
        ToolPattern::parse(text).map_err(|error| {
            invalid("tools", format!("The field `tools` does not fit; a pattern {error}."))
        })
    };
    patterns.iter().map(read).collect()
}

fn until(
    ttl_ms: Option<u64>,
    expires_at: Option<DateTime>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Fault> {
    let until = match (ttl_ms, expires_at) {
        (None, None) => return Ok(None),
        (Some(ttl_ms), None) => now.plus_ms(ttl_ms),
        (None, Some(DateTime(until))) => until,
        (Some(_), Some(_)) => {
            return Err(invalid("ttl_ms", "Send either `ttl_ms` or `expires_at`, and not both."));
        }
    };
    if until <= now {
        let name = if ttl_ms.is_some() { "ttl_ms" } else { "expires_at" };
        return Err(invalid(name, "The token would have expired already."));
    }
    Ok(Some(until))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wharf_vocab::Verb;

    const NOW: Timestamp = Timestamp(1_763_164_800_000);

    fn read(body: Value) -> Result<NewGrant, Fault> {
        new_grant(wharf_vocab::json::fit(body, "The body")?, NOW)
    }

    #[test]
    fn a_token_needs_no_more_than_verbs() {
        let new = read(json!({"verbs": ["run", "read", "run"]})).expect("fits");
        assert_eq!(new.rights.verbs, BTreeSet::from([Verb::Run, Verb::Read]));
        assert_eq!((new.rights.worlds, new.rights.until), (None, None));
        assert!(new.rights.tools.is_empty() && !new.person && new.label.is_empty());
    }

    #[test]
    fn a_token_ends_after_a_time_or_at_a_moment() {
        let until = |extra: Value| {
            let mut body = json!({"verbs": ["run"]});
            body.as_object_mut().expect("an object").extend(extra.as_object().cloned().expect("x"));
            read(body).map(|new| new.rights.until)
        };
        assert_eq!(until(json!({"ttl_ms": 5})), Ok(Some(NOW.plus_ms(5))));
        let at = json!({"expires_at": "2025-11-15T00:00:07Z"});
        assert_eq!(until(at), Ok(Some(NOW.plus_ms(7_000))));
        for (field, bad) in [
            ("ttl_ms", json!({"ttl_ms": 0})),
            ("ttl_ms", json!({"ttl_ms": 1, "expires_at": "2025-11-15T00:00:07Z"})),
            ("expires_at", json!({"expires_at": "2025-11-14T00:00:07Z"})),
            ("expires_at", json!({"expires_at": "tomorrow"})),
            ("expires_at", json!({"expires_at": "1960-01-01T00:00:00Z"})),
        ] {
            assert_eq!(until(bad).expect_err(field).details["field"], field);
        }
    }

    #[test]
    fn a_field_that_does_not_fit_is_named() {
        for (field, value) in [
            ("label", json!("x".repeat(201))),
            ("label", json!("a\u{7}b")),
            ("verbs", json!([])),
            ("worlds", json!([])),
            ("worlds[0]", json!(["../x"])),
            ("tools", json!([])),
            ("tools", json!(["echo"])),
            ("tools", json!(vec!["a/b"; 65])),
        ] {
            let mut body = json!({"verbs": ["run"]});
            body[field.trim_end_matches("[0]")] = value;
            assert_eq!(read(body).expect_err(field).details["field"], field);
        }
    }
}
