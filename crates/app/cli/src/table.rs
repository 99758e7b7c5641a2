//! Tables for people. Whatever a peer wrote is made safe before it gets a cell.

use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Table as Grid, presets};
use wharf_vocab::RunStatus;

use crate::output::Output;
use crate::plain;

/// The longest text in one cell.
const CELL_CHARS_MAX: usize = 160;
/// The longest text in a cell that is shown whole, such as an error.
const UNCUT_CHARS_MAX: usize = 10_000;

/// A table that is being filled.
#[derive(Debug)]
pub(crate) struct Table {
    output: Output,
    headings: Vec<&'static str>,
    rows: Vec<TableRow>,
    whole: Vec<usize>,
    usual: Vec<(usize, &'static str)>,
    spare: Vec<usize>,
    uncut: Vec<usize>,
}

#[derive(Debug)]
struct TableRow {
    cells: Vec<String>,
    /// The cell that shows a state, and is painted by what the state means.
    state: Option<usize>,
}

/// Ids one after the other.
pub(crate) fn joined<T: std::ops::Deref<Target = str>>(ids: &[T], between: &str) -> String {
    ids.iter().map(|id| &**id).collect::<Vec<&str>>().join(between)
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(output: Output, headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), ..Self::bare(output) }
    }

    /// A table of names and values, without headings.
    pub(crate) fn bare(output: Output) -> Self {
        Self {
            output,
            headings: vec![],
            rows: vec![],
            whole: vec![],
            usual: vec![],
            spare: vec![],
            uncut: vec![],
        }
    }

    /// Keeps these columns on one line, so that what they hold can be read and copied.
    pub(crate) fn keep_whole(mut self, columns: &[usize]) -> Self {
        self.whole.extend(columns);
        self
    }

    /// Leaves a column out if it says the same, usual thing in every row.
    pub(crate) fn leave_out(mut self, column: usize, usual: &'static str) -> Self {
        self.usual.push((column, usual));
        self
    }

    /// Leaves these columns out, the first of them first, while the table is wider than its reader.
    pub(crate) fn spare(mut self, columns: &[usize]) -> Self {
        self.spare.extend(columns);
        self
    }

    /// Cuts nothing off in these columns; on a terminal what is long takes several lines.
    pub(crate) fn uncut(mut self, columns: &[usize]) -> Self {
        self.uncut.extend(columns);
        self
    }

    /// Adds a row of text.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        let cells = self.safe(cells);
        self.rows.push(TableRow { cells, state: None });
    }

    /// Adds a row for each of these facts that is known.
    pub(crate) fn facts<const N: usize>(&mut self, facts: [(&str, Option<String>); N]) {
        for (name, value) in facts {
            if let Some(value) = value {
                self.row([name, &value]);
            }
        }
    }

    /// Adds a row whose cell number `at` shows a state.
    pub(crate) fn row_with_state<const N: usize>(&mut self, cells: [&str; N], at: usize) {
        let cells = self.safe(cells);
        self.rows.push(TableRow { cells, state: Some(at) });
    }

    /// The cells without anything that a terminal obeys, and of a bearable length.
    fn safe<const N: usize>(&self, cells: [&str; N]) -> Vec<String> {
        let most = |column| match self.uncut.contains(&column) {
            true => UNCUT_CHARS_MAX,
            false => CELL_CHARS_MAX,
        };
        cells.iter().enumerate().map(|(at, text)| plain::cut(text, most(at))).collect()
    }

    /// The table as text, each line ended.
    pub(crate) fn text(&self) -> String {
        let mut grid = self.grid();
        let shown = self.columns(grid.width());
        if !self.headings.is_empty() {
            grid.set_header(shown.iter().map(|column| self.headings[*column]));
        }
        for row in &self.rows {
            grid.add_row(shown.iter().map(|column| self.cell(row, *column)));
        }
        for (at, column) in shown.iter().enumerate() {
            if let (true, Some(column)) = (self.whole.contains(column), grid.column_mut(at)) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let mut text = String::new();
        for line in grid.lines() {
            text.push_str(line.strip_prefix(' ').unwrap_or(&line).trim_end());
            text.push('\n');
        }
        text
    }

    /// The columns that are shown to a reader of this width.
    fn columns(&self, width: Option<u16>) -> Vec<usize> {
        let most = self.rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
        let all = 0..most.max(self.headings.len());
        let mut shown: Vec<usize> = all.filter(|column| self.shows(*column)).collect();
        let Some(width) = width.map(usize::from) else { return shown };
        let mut spare = self.spare.iter();
        while shown.iter().map(|column| self.width_of(*column)).sum::<usize>() > width {
            let Some(column) = spare.next() else { break };
            shown.retain(|shown| shown != column);
        }
        shown
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.cells.get(column).map(String::as_str));
        let texts = cells.chain(self.headings.get(column).copied());
        texts.map(|text| text.chars().count() + 2).max().unwrap_or(0)
    }

    fn shows(&self, column: usize) -> bool {
        let usual = self.usual.iter().find(|(at, _)| *at == column);
        usual.is_none_or(|(_, usual)| self.rows.iter().any(|row| row.cells[column] != *usual))
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        // Off a terminal nothing is known about a width, so no line is broken.
        grid.set_content_arrangement(if self.output.out_is_terminal() {
            ContentArrangement::Dynamic
        } else {
            ContentArrangement::Disabled
        });
        if let Some(width) = grid.width() {
            // The padding at both ends of a line is taken away again.
            grid.set_width(width.saturating_add(2));
        }
        grid
    }

    fn cell(&self, row: &TableRow, column: usize) -> Cell {
        let text = row.cells.get(column).map(String::as_str).unwrap_or_default();
        let cell = Cell::new(text);
        let paints = self.output.out_paint().is_on() && row.state == Some(column);
        match color_of(text) {
            Some(color) if paints => cell.fg(color),
            _ => cell,
        }
    }
}

fn color_of(state: &str) -> Option<Color> {
    if let Some(status) = RunStatus::parse(state) {
        return match status {
            RunStatus::Succeeded => Some(Color::Green),
            RunStatus::Failed | RunStatus::Refused => Some(Color::Red),
            RunStatus::Waiting | RunStatus::Canceled => Some(Color::Yellow),
            RunStatus::Queued | RunStatus::Running => Some(Color::Cyan),
        };
    }
    match state {
        "available" | "ok" | "info" => Some(Color::Green),
        "added" | "stopped" | "unhealthy" | "backing_off" | "draining" => Some(Color::Yellow),
        "approved" => Some(Color::Cyan),
        "crashed" | "drifted" => Some(Color::Red),
        "starting" | "quarantined" | "warn" | "approval" => Some(Color::Yellow),
        "unavailable" | "disabled" | "fail" | "error" | "security" => Some(Color::Red),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_says_nothing_is_left_out() {
        let mut table = Table::new(Output::new(false), &["A", "WORLD"]).leave_out(1, "default");
        table.row(["1", "default"]);
        assert!(!table.text().contains("WORLD"));
        table.row(["2", "lab"]);
        assert!(table.text().contains("WORLD"));
    }

    #[test]
    fn a_narrow_reader_misses_what_matters_least() {
        let mut table = Table::new(Output::new(false), &["A", "B", "C"]).spare(&[2, 1]);
        table.row(["aaaa", "bbbb", "cccc"]);
        assert_eq!(table.columns(None), [0, 1, 2]);
        assert_eq!(table.columns(Some(18)), [0, 1, 2]);
        assert_eq!(table.columns(Some(17)), [0, 1]);
        assert_eq!(table.columns(Some(3)), [0]);
    }

    #[test]
    fn an_error_is_never_cut() {
        let mut table = Table::bare(Output::new(false)).uncut(&[1]);
        let long = "x".repeat(500);
        table.row([&long, &long]);
        let text = table.text();
        assert!(text.contains('…') && text.ends_with(&format!("{long}\n")), "{text}");
    }

    #[test]
    fn a_peers_text_cannot_break_out_of_its_cell() {
        let mut table = Table::bare(Output::new(false));
        table.row(["title", "a\u{1b}[2J\nfake  row"]);
        assert_eq!(table.text(), "title  a fake row\n");
    }
}
