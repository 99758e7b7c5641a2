//! The page: read, changed row by row, and written again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// The peers in the order of the page, with the words for them.
pub(super) const PEERS: [(&str, &str); 4] = [
    ("Agent", "An agent"),
    ("ToolServer", "A tool server"),
    ("Operator", "An operator"),
    ("Client", "A client"),
];

/// One attempt as the page tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) peer: String,
    pub(super) title: String,
    pub(super) stopped_by: String,
    came_back: String,
    audit: Vec<String>,
}

impl Row {
    /// A row as a test wrote it down.
    pub(super) fn of(row: &Value) -> Option<Self> {
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        let lines = row["audit"].as_array().into_iter().flatten();
        Some(Self {
            peer: text("peer")?,
            title: text("title")?,
            stopped_by: text("stopped_by")?,
            came_back: text("came_back")?.replace('|', "/").replace('\n', " "),
            audit: lines.filter_map(|line| line.as_str().map(str::to_owned)).collect(),
        })
    }

    fn heading(&self) -> String {
        format!("### {}: {}", words(&self.peer), self.title)
    }
}

fn words(peer: &str) -> &str {
    PEERS.iter().find(|(name, _)| *name == peer).map_or("", |(_, words)| words)
}

/// All rows, by peer and title.
#[derive(Debug, Default)]
pub(super) struct Page(BTreeMap<(usize, String), Row>);

impl Page {
    /// Reads a page that was written by [`Self::text`].
    pub(super) fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut peer = None;
        let mut heading = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("## ") {
                peer = PEERS.iter().find(|(_, words)| *words == name).map(|(name, _)| *name);
            } else if line.starts_with("### ") {
                heading = Some(line);
            } else if let (Some(heading), true) = (heading, line.starts_with('{')) {
                let row = page.0.values_mut().find(|row| row.heading() == heading);
                row.into_iter().for_each(|row| row.audit.push(line.to_owned()));
            } else if let (Some(peer), Some(cells)) = (peer, cells(line)) {
                let [title, stopped_by, came_back] = cells.map(str::to_owned);
                let peer = peer.to_owned();
                page.put(Row { peer, title, stopped_by, came_back, audit: vec![] });
            }
        }
        page
    }

    /// Adds a row, in place of an older one of the same attempt.
    pub(super) fn put(&mut self, row: Row) {
        let place = PEERS.iter().position(|(name, _)| *name == row.peer).unwrap_or(PEERS.len());
        self.0.insert((place, row.title.clone()), row);
    }

    /// Leaves out all other rows, and says how many these were.
    pub(super) fn keep(&mut self, wanted: impl Fn(&Row) -> bool) -> usize {
        let before = self.0.len();
        self.0.retain(|_, row| wanted(row));
        before - self.0.len()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.0.values()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The page as it is kept.
    pub(super) fn text(&self) -> String {
        let mut text = String::from(HEAD);
        for (peer, words) in PEERS {
            let mut rows = self.rows().filter(|row| row.peer == peer).peekable();
            if rows.peek().is_none() {
                continue;
            }
            let _ = writeln!(text, "## {words}\n\n{COLUMNS}");
            for Row { title, stopped_by, came_back, .. } in rows {
                let _ = writeln!(text, "| {title} | {stopped_by} | {came_back} |");
            }
            text.push('\n');
        }
        text.push_str(AUDIT);
        for row in self.rows().filter(|row| !row.audit.is_empty()) {
            let _ = writeln!(text, "{}\n\n```json\n{}\n```\n", row.heading(), row.audit.join("\n"));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

/// The three cells of a row of a table; the table's head is none.
fn cells(line: &str) -> Option<[&str; 3]> {
    let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let mut cells = line.split(" | ");
    let found = [cells.next()?, cells.next()?, cells.next()?];
    (cells.next().is_none() && !COLUMNS.contains(line)).then_some(found)
}

const COLUMNS: &str = "| it … | stopped by | what came back |\n|---|---|---|";

const HEAD: &str = "\
# What stops a hostile peer

The tests try everything an agent, a tool server, an operator or a client must not do, against a \
real core and from outside: the agent is [`examples/agents/hostile`](../examples/agents/hostile), \
the others are scripts in `crates/app/cli/tests/e2e/hostile`. They are started, approved and let in \
as any other peer, under the fence that every program gets (`standard`); this page is what came of \
it, written by those tests (`make security-page`). What Wharf protects in general, and what it does \
not, is in [SECURITY.md](../SECURITY.md).

";

const AUDIT: &str = "\
What the kernel refuses never reaches the core: the process gets an error, and there is nothing to \
write down. What the core refuses, and every launch that is ended for taking too much, is audited.

## What the audit says

";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(peer: &str, title: &str) -> Row {
        let row = json!({"peer": peer, "title": title, "stopped_by": "rights",
            "came_back": "no | never", "audit": ["{\"event\":\"x\"}"]});
        Row::of(&row).expect("a row")
    }

    #[test]
    fn a_page_is_read_as_it_was_written() {
        let mut page = Page::default();
        page.put(row("Client", "b"));
        page.put(row("Client", "a"));
        page.put(row("Agent", "a"));
        let text = page.text();
        assert_eq!(Page::read(&text).text(), text);
        assert!(text.contains("| a | rights | no / never |"));
        assert!(text.find("## An agent") < text.find("## A client"), "{text}");
        assert_eq!(text.matches("{\"event\":\"x\"}").count(), 3);
    }

    #[test]
    fn a_newer_row_takes_the_place_of_the_older_one() {
        let mut page = Page::default();
        page.put(row("Client", "a"));
        page.put(Row { stopped_by: "pace".to_owned(), ..row("Client", "a") });
        assert_eq!(page.len(), 1);
        assert_eq!(page.keep(|row| row.stopped_by == "rights"), 1);
        assert_eq!(page.rows().count(), 0);
    }
}
