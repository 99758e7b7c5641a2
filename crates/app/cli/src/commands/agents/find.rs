//! Finds the agent that a typed id, or the beginning or the end of one, means.

use serde_json::Value;
use wharf_vocab::Code;
use wharf_wire::rest_v1::Agent;

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::{plain, table};

/// The agent that `typed` means, as it is understood and as the core sent it.
pub(super) async fn find(client: &Client, typed: &str) -> Result<(Agent, Value)> {
    let (mut items, _) = client.list(&["v1", "agents"], &[], None).await?;
    let agents: Vec<Agent> = table::rows(items.clone())?;
    let ids: Vec<&str> = agents.iter().map(|agent| agent.agent_id.as_str()).collect();
    let at = pick(&ids, typed)?;
    let raw = items.swap_remove(at);
    Ok((table::typed(raw.clone())?, raw))
}

/// The id of the agent that `typed` means.
pub(super) async fn find_id(client: &Client, typed: &str) -> Result<String> {
    Ok(find(client, typed).await?.0.agent_id)
}

fn pick(ids: &[&str], typed: &str) -> Result<usize> {
    if let Some(at) = ids.iter().position(|id| *id == typed) {
        return Ok(at);
    }
    let fits = |id: &str| !typed.is_empty() && (id.starts_with(typed) || id.ends_with(typed));
    let fitting: Vec<usize> = (0..ids.len()).filter(|at| fits(ids[*at])).collect();
    match fitting.as_slice() {
        [one] => Ok(*one),
        [] => {
            let message = format!("there is no agent {typed:?}; see them with: wharf agents");
            Err(Failure::new(Code::AgentNotFound, message))
        }
        several => {
            let ids: Vec<_> = several.iter().map(|at| plain::line(ids[*at])).collect();
            let message = format!("{typed} may mean any of {}; type more of it", ids.join(", "));
            Err(Failure::usage(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 4] = ["dev.wharf.hello", "dev.wharf.hello-python", "org.example.sum", "sum"];

    #[test]
    fn a_unique_beginning_or_end_is_enough() {
        for (typed, expect) in [("hello", 0), ("python", 1), ("org", 2), ("example.sum", 2)] {
            assert_eq!(pick(&IDS, typed), Ok(expect), "{typed}");
        }
    }

    #[test]
    fn a_whole_id_wins_over_those_it_begins_or_ends() {
        assert_eq!(pick(&IDS, "dev.wharf.hello"), Ok(0));
        assert_eq!(pick(&IDS, "sum"), Ok(3));
    }

    #[test]
    fn what_may_mean_several_or_none_is_refused() {
        let failure = pick(&IDS, "dev.").expect_err("refused");
        assert!(failure.message().contains("dev.wharf.hello, dev.wharf.hello-python"));
        assert_eq!(failure.exit().number(), 2);
        for nobody in ["", "wharf", "telepathy"] {
            let failure = pick(&IDS, nobody).expect_err("refused");
            assert!(failure.is(Code::AgentNotFound), "{nobody}");
            assert_eq!(failure.exit().number(), 2);
        }
    }
}
