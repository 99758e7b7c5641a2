//! New lines of the logs of what is worked on.

use std::collections::BTreeMap;

use wharf_client::Client;
use wharf_vocab::{DateTime, LogSource};
use wharf_wire::rest_v1::AgentLogLine;

use super::provider::{DevKind, DevProvider, Offered, short};
use crate::commands::Output;
use crate::plain;

/// Lines of one log that are read at once.
const LINES: u64 = 200;

/// What was shown of each log so far.
#[derive(Debug, Default)]
pub(super) struct DevLog {
    /// The time of the last line, and how many lines of that time were shown.
    shown: BTreeMap<String, (DateTime, usize)>,
}

impl DevLog {
    /// Shows lines that are new; whether there were any.
    pub(super) async fn show(
        &mut self,
        client: &Client,
        provider: &DevProvider,
        offered: &Offered,
        output: Output,
    ) -> bool {
        let mut said = false;
        if provider.kind() != DevKind::Tools {
            for id in offered.ids() {
                let page = match provider.kind() {
                    DevKind::Mcp => client.mcp_servers().logs(&id, LINES).await,
                    _ => client.agents().logs(&id, LINES).await,
                };
                if let Ok(page) = page {
                    said |= self.print(&id, "", page.items, output);
                }
            }
            return said;
        }
        for tool in &offered.tools {
            if let Ok(page) = client.tools().logs(&tool.tool_id, LINES).await {
                let mark = if offered.tools.len() > 1 { short(tool) } else { "" };
                said |= self.print(&tool.tool_id, mark, page.items, output);
            }
        }
        said
    }

    fn print(&mut self, id: &str, mark: &str, lines: Vec<AgentLogLine>, output: Output) -> bool {
        let paint = output.err_paint();
        let mut said = false;
        for line in self.only_new(id, lines) {
            let Some(text) = worth_telling(&line) else { continue };
            if !said {
                output.fresh_line();
            }
            let mark = if mark.is_empty() { String::new() } else { format!("{mark} ") };
            output.note(&format!("{} {}", paint.faint(&format!("{mark}|")), plain::line(text)));
            said = true;
        }
        said
    }

    fn only_new(&mut self, id: &str, lines: Vec<AgentLogLine>) -> Vec<AgentLogLine> {
        let (last, count) = self.shown.get(id).copied().unwrap_or_default();
        let mut same = 0;
        let is_new = |line: &AgentLogLine| {
            if line.at == last {
                same += 1;
                return same > count;
            }
            line.at > last
        };
        let new: Vec<_> = lines.into_iter().filter(is_new).collect();
        if let Some(end) = new.last() {
            let at = end.at;
            let before = if at == last { count } else { 0 };
            let count = before + new.iter().filter(|line| line.at == at).count();
            self.shown.insert(id.to_owned(), (at, count));
        }
        new
    }
}

/// What an author wants to see of a line: not what the server around the handler says of itself.
fn worth_telling(line: &AgentLogLine) -> Option<&str> {
    if line.source == LogSource::Launcher {
        return None;
    }
    let text = line.text.as_str();
    let text = match text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((_, said)) => said,
        None => text,
    };
    let is_own = ["info: ", "debug: ", "warn: the run failed", "serving at "];
    (!is_own.iter().any(|begin| text.starts_with(begin))).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_vocab::Timestamp;

    fn line(at: u64, text: &str) -> AgentLogLine {
        AgentLogLine { at: DateTime(Timestamp(at)), source: LogSource::Stderr, text: text.into() }
    }

    #[test]
    fn each_line_is_shown_once_also_those_of_one_moment() {
        let mut log = DevLog::default();
        let texts = |lines: Vec<AgentLogLine>| -> Vec<String> {
            lines.into_iter().map(|line| line.text).collect()
        };
        let first = vec![line(1, "a"), line(2, "b")];
        assert_eq!(texts(log.only_new("x", first.clone())), ["a", "b"]);
        assert_eq!(texts(log.only_new("x", first)), Vec::<String>::new());
        let more = vec![line(1, "a"), line(2, "b"), line(2, "c"), line(3, "d")];
        assert_eq!(texts(log.only_new("x", more)), ["c", "d"]);
        assert_eq!(texts(log.only_new("y", vec![line(2, "b")])), ["b"], "another log");
    }

    #[test]
    fn an_author_sees_tracebacks_and_not_the_servers_own_words() {
        assert_eq!(worth_telling(&line(1, "[r1] KeyError: 'text'")), Some("KeyError: 'text'"));
        assert_eq!(worth_telling(&line(1, "[r1] info: the run succeeded")), None);
        assert_eq!(worth_telling(&line(1, "ready to work")), Some("ready to work"));
    }
}
