//! Finds the open ask that a typed id, or the beginning of one, means.

use wharf_client::Client;
use wharf_vocab::{AskId, AskKind, Code};
use wharf_wire::rest_v1::Ask;

use crate::commands::{CliError, Result};
use crate::plain;

/// The ask that `typed` means; `None` if no open one does but one may have, of which the core
/// knows what became.
pub(crate) async fn find(client: &Client, typed: &str, kind: AskKind) -> Result<Option<Ask>> {
    let asks = client.inbox().list().all().await?;
    let found = pick(asks, typed, kind)?;
    if found.is_none() && AskId::new(typed).is_err() {
        return Err(not_open(typed));
    }
    Ok(found)
}

/// Nothing that is open is meant.
pub(crate) fn not_open(typed: &str) -> CliError {
    let message = format!("no open ask begins with {typed:?}; see them with: wharf inbox");
    CliError::new(Code::AskNotFound, message)
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
            let ids: Vec<_> = fitting.iter().map(|ask| plain::line(&ask.ask_id)).collect();
            let message = format!("{typed} is ambiguous: {}; type more of it", ids.join(", "));
            Err(CliError::usage(message))
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
    fn the_other_kind_is_pointed_to_its_command() {
        let asks = vec![ask("c3a1", AskKind::Approval)];
        let failure = pick(asks, "c3", AskKind::Question).expect_err("refused");
        assert!(failure.message().contains("wharf approve c3a1"));
    }
}
