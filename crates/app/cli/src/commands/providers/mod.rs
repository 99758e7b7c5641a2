//! What `wharf agents`, `wharf mcp` and `wharf tools` share: all look after programs that the core
//! starts.

pub(super) mod approval;
pub(super) mod drain;
pub(super) mod limits;
pub(super) mod logs;
pub(super) mod start;
pub(super) mod words;

use serde::de::DeserializeOwned;
use wharf_client::Call;
use wharf_vocab::Code;

use super::{CliError, Exit, Output, Result};
use crate::plain;
use crate::progress::Spinner;

/// What is picked from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProviderNoun {
    /// What one of them is called.
    pub(crate) word: &'static str,
    /// What shows them all.
    pub(crate) command: &'static str,
    /// What it means that there is none.
    pub(crate) unknown: Code,
}

/// Which of the ids `typed` means.
pub(crate) fn pick(ids: &[&str], typed: &str, kind: ProviderNoun) -> Result<usize> {
    if let Some(at) = ids.iter().position(|id| *id == typed) {
        return Ok(at);
    }
    let fits = |id: &str| !typed.is_empty() && (id.starts_with(typed) || id.ends_with(typed));
    let fitting: Vec<usize> = (0..ids.len()).filter(|at| fits(ids[*at])).collect();
    match fitting.as_slice() {
        [one] => Ok(*one),
        [] => {
            let ProviderNoun { word, command, unknown } = kind;
            let message = format!("there is no {word} {typed:?}; list them with: {command}");
            Err(CliError::new(unknown, message))
        }
        several => {
            let ids: Vec<_> = several.iter().map(|at| plain::line(ids[*at])).collect();
            let message = format!("{typed} is ambiguous: {}; type more of it", ids.join(", "));
            Err(CliError::usage(message))
        }
    }
}

/// Asks something of a provider, shows that it is under way, and then says what came of it.
pub(crate) async fn steer<T: DeserializeOwned>(
    output: Output,
    doing: &str,
    call: Call<T>,
    result: impl FnOnce(T) -> String,
) -> Result<Exit> {
    let spinner = Spinner::new(output, doing);
    let raw = call.raw().await?;
    drop(spinner);
    output.answer(raw, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENTS: ProviderNoun =
        ProviderNoun { word: "agent", command: "wharf agents", unknown: Code::AgentNotFound };

    const IDS: [&str; 4] = ["dev.wharf.hello", "dev.wharf.hello-python", "org.example.sum", "sum"];

    #[test]
    fn a_unique_beginning_or_end_is_enough() {
        for (typed, expect) in [("hello", 0), ("python", 1), ("org", 2), ("example.sum", 2)] {
            assert_eq!(pick(&IDS, typed, AGENTS), Ok(expect), "{typed}");
        }
    }

    #[test]
    fn a_whole_id_wins_over_those_it_begins_or_ends() {
        assert_eq!(pick(&IDS, "dev.wharf.hello", AGENTS), Ok(0));
        assert_eq!(pick(&IDS, "sum", AGENTS), Ok(3));
    }

    #[test]
    fn what_may_mean_several_or_none_is_refused() {
        let failure = pick(&IDS, "dev.", AGENTS).expect_err("refused");
        assert!(failure.message().contains("dev.wharf.hello, dev.wharf.hello-python"));
        assert_eq!(failure.exit().number(), 2);
        for nobody in ["", "wharf", "telepathy"] {
            let failure = pick(&IDS, nobody, AGENTS).expect_err("refused");
            assert!(failure.is(Code::AgentNotFound), "{nobody}");
            assert_eq!(failure.exit().number(), 2);
        }
    }
}
