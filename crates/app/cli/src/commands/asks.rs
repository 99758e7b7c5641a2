//! Finds the ask that a typed id, or the beginning of one, means.

use wharf_client::Client;
use wharf_vocab::{AskId, AskKind, Code};
use wharf_wire::rest_v1::Ask;

use crate::commands::{CliError, Result};
use crate::{moment, plain};

/// Decided asks among which the beginning of an id is looked for.
const DECIDED_MAX: usize = 200;

/// The ask that `typed` means; `None` if no open one does but one may have, of which the core
/// knows what became.
pub(crate) async fn find(client: &Client, typed: &str, kind: AskKind) -> Result<Option<Ask>> {
    let asks = client.inbox().list().all().await?;
    if let Some(found) = pick(asks, typed, kind)? {
        return Ok(Some(found));
    }
    match decided(client, typed).await?.as_slice() {
        [ask] => Err(was_decided(ask)),
        // Of an ask that was decided long ago the core itself says so.
        _ if AskId::new(typed).is_ok() => Ok(None),
        _ => Err(not_open(typed)),
    }
}

/// The id of the ask that `typed` means, whether it is open or was decided.
pub(crate) async fn find_any(client: &Client, typed: &str) -> Result<String> {
    let begins = |ask: &Ask| !typed.is_empty() && ask.ask_id.starts_with(typed);
    let mut fitting = client.inbox().list().all().await?;
    fitting.retain(begins);
    if fitting.is_empty() {
        fitting = decided(client, typed).await?;
    }
    let ids: Vec<String> = fitting.iter().map(|ask| ask.ask_id.to_string()).collect();
    match ids.as_slice() {
        // One that was decided long ago is known to the core by its whole id.
        [] if AskId::new(typed).is_ok() => Ok(typed.to_owned()),
        [] => Err(not_open(typed)),
        [one] => Ok(one.clone()),
        several if several.iter().any(|id| id == typed) => Ok(typed.to_owned()),
        several => Err(ambiguous(typed, several)),
    }
}

/// Those that were decided lately and whose id begins so.
async fn decided(client: &Client, typed: &str) -> Result<Vec<Ask>> {
    let (mut asks, _) = client.inbox().decided().first(DECIDED_MAX).await?;
    asks.retain(|ask| !typed.is_empty() && ask.ask_id.starts_with(typed));
    Ok(asks)
}

fn was_decided(ask: &Ask) -> CliError {
    let how = ask.decision.as_ref().map(ToString::to_string).unwrap_or_default();
    let by = ask.decided_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    let when = ask.decided_at.map(|at| format!(", {}", moment::relative_to_now(at)));
    let when = when.unwrap_or_default();
    let message = format!("{} has been decided already: {how}{by}{when}", ask.ask_id);
    CliError::new(Code::AskDecided, plain::line(&message))
}

/// Nothing that is open is meant.
pub(crate) fn not_open(typed: &str) -> CliError {
    let message = format!("no open ask begins with {typed:?}; see them with: wharf inbox");
    CliError::new(Code::AskNotFound, message)
}

fn ambiguous(typed: &str, ids: &[String]) -> CliError {
    let ids: Vec<_> = ids.iter().map(|id| plain::line(id)).collect();
    CliError::usage(format!("{typed} is ambiguous: {}; type more of it", ids.join(", ")))
}

fn pick(asks: Vec<Ask>, typed: &str, kind: AskKind) -> Result<Option<Ask>> {
    let mut fitting: Vec<Ask> =
        asks.into_iter().filter(|ask| ask.ask_id.starts_with(typed)).collect();
    if let Some(at) = fitting.iter().position(|ask| ask.ask_id == typed) {
        fitting = vec![fitting.swap_remove(at)];
    }
    match fitting.len() {
        0 => Ok(None),
        1 => {
            let ask = fitting.remove(0);
            if ask.kind == kind { Ok(Some(ask)) } else { Err(other_kind(&ask)) }
        }
        _ => {
            let ids: Vec<_> = fitting.iter().map(|ask| ask.ask_id.to_string()).collect();
            Err(ambiguous(typed, &ids))
        }
    }
}

fn other_kind(ask: &Ask) -> CliError {
    let id = plain::line(&ask.ask_id);
    CliError::usage(match ask.kind {
        AskKind::Question => format!("{id} is a question; answer it with: wharf answer {id}"),
        AskKind::Approval => {
            format!("{id} asks for an approval; use: wharf approve {id} or wharf deny {id}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(id: &str, kind: AskKind) -> Ask {
        Ask {
            ask_id: id.parse().expect("an id"),
            kind,
            run_id: "r".parse().expect("an id"),
            tool: "wharf/ask".parse().expect("an id"),
            world: "default".parse().expect("an id"),
            title: "?".into(),
            detail: None,
            schema: None,
            args_digest: None,
            tool_hash: None,
            files: Vec::new(),
            caller: "owner".parse().ok(),
            audience: "person".into(),
            deadline: wharf_vocab::DateTime::default(),
            created_at: wharf_vocab::DateTime::default(),
            decision: None,
            decided_by: None,
            decided_at: None,
            reason: None,
        }
    }

    fn pick_from(ids: &[&str], typed: &str) -> Result<Option<String>> {
        let asks = ids.iter().map(|id| ask(id, AskKind::Question)).collect();
        pick(asks, typed, AskKind::Question).map(|found| found.map(|ask| ask.ask_id.to_string()))
    }

    #[test]
    fn a_unique_beginning_is_enough() {
        assert_eq!(pick_from(&["c3a1", "d4b2"], "c3"), Ok(Some("c3a1".into())));
        assert_eq!(pick_from(&["c3a1", "d4b2"], "e5"), Ok(None));
    }

    #[test]
    fn a_whole_id_wins_over_those_it_begins() {
        assert_eq!(pick_from(&["c3a", "c3ab"], "c3a"), Ok(Some("c3a".into())));
    }

    #[test]
    fn what_may_mean_several_is_refused() {
        let failure = pick_from(&["c3a1", "c3b2"], "c3").expect_err("refused");
        assert!(failure.message().contains("c3a1, c3b2"));
        assert_eq!(failure.exit().number(), 2);
    }

    #[test]
    fn what_was_decided_says_how_and_by_whom() {
        let mut decided = ask("c3a1", AskKind::Question);
        decided.decision = Some(wharf_vocab::AskOutcome::Answered);
        decided.decided_by = Some("owner".into());
        let failure = was_decided(&decided);
        assert!(failure.is(Code::AskDecided), "{failure:?}");
        assert_eq!(failure.message(), "c3a1 has been decided already: answered by owner");
    }

    #[test]
    fn the_other_kind_is_pointed_to_its_command() {
        let asks = vec![ask("c3a1", AskKind::Approval)];
        let failure = pick(asks, "c3", AskKind::Question).expect_err("refused");
        assert!(failure.message().contains("wharf approve c3a1"));
    }
}
