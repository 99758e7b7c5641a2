//! Tables for people. Whatever a peer wrote is made safe before it gets a cell.

use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Table as Grid, presets};
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_vocab::{Code, RunStatus};

use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::plain;

/// The longest text in one cell.
const CELL_CHARS_MAX: usize = 160;

/// A table that is being filled.
#[derive(Debug)]
pub(crate) struct Table {
    grid: Grid,
    paints: bool,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(output: Output, headings: &[&str]) -> Self {
        let mut table = Self::bare(output);
        table.grid.set_header(headings);
        table
    }

    /// A table of names and values, without headings.
    pub(crate) fn bare(output: Output) -> Self {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        let arrangement = if output.out_is_terminal() {
            ContentArrangement::Dynamic
        } else {
            ContentArrangement::Disabled
        };
        grid.set_content_arrangement(arrangement);
        Self { grid, paints: output.out_paint().is_on() }
    }

    /// Adds a row of text.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.grid.add_row(cells.map(safe));
    }

    /// Adds a row whose cell number `at` shows a state, painted by what the state means.
    pub(crate) fn row_with_state<const N: usize>(&mut self, cells: [&str; N], at: usize) {
        let state = cells[at];
        let mut cells = cells.map(|text| Cell::new(safe(text)));
        if let (true, Some(color)) = (self.paints, color_of(state)) {
            cells[at] = Cell::new(safe(state)).fg(color);
        }
        self.grid.add_row(cells);
    }

    /// Keeps a column whole, so that what it holds can be copied.
    pub(crate) fn keep_whole(mut self, column: usize) -> Self {
        if let Some(column) = self.grid.column_mut(column) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        self
    }

    /// The table as text, each line ended.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for line in self.grid.lines() {
            text.push_str(line.strip_prefix(' ').unwrap_or(&line).trim_end());
            text.push('\n');
        }
        text
    }
}

/// Items of a list as they are understood.
pub(crate) fn rows<T: DeserializeOwned>(items: Vec<Value>) -> Result<Vec<T>> {
    items.into_iter().map(typed).collect()
}

/// One thing as it is understood.
pub(crate) fn typed<T: DeserializeOwned>(item: Value) -> Result<T> {
    serde_json::from_value(item).map_err(|error| {
        let message = format!("the core sent something that cannot be read: {error}");
        Failure::new(Code::CoreInternal, message)
    })
}

fn safe(text: &str) -> String {
    plain::cut(text, CELL_CHARS_MAX)
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
        "starting" | "quarantined" | "warn" | "approval" => Some(Color::Yellow),
        "unavailable" | "disabled" | "fail" | "error" | "security" => Some(Color::Red),
        _ => None,
    }
}
