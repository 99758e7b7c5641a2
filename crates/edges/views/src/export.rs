//! An export of runs: all that fit, newest first, as lines of JSON or as CSV.

use wharf_domain::Caller;
use wharf_engine::{Handle, RunQuery};
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_vocab::{Fault, WorldId};
use wharf_wire::rest_v1 as wire;

use crate::{go_on, runs_within, summary};

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExportFormat {
    /// A line of JSON for each run.
    #[default]
    Lines,
    /// CSV, with a line of names before.
    Csv,
}

/// An export under way: no more than one page of it is in memory.
pub struct RunExport {
    handle: Handle,
    caller: Caller,
    worlds: Option<Vec<WorldId>>,
    query: RunQuery,
    format: ExportFormat,
    begun: bool,
    over: bool,
}

impl RunExport {
    /// An export of what a query finds in these worlds, or in all, as far as the caller may see it.
    #[must_use]
    pub fn new(
        handle: Handle,
        caller: Caller,
        worlds: Option<Vec<WorldId>>,
        query: RunQuery,
        format: ExportFormat,
    ) -> Self {
        let query = RunQuery { limit: PAGE_ITEMS_MAX, ..query };
        Self { handle, caller, worlds, query, format, begun: false, over: false }
    }

    /// The next page as text. What cannot be read breaks the answer off, so that it is not taken
    /// for all there is; so does a token that is not good any more.
    pub async fn next(&mut self) -> Option<Result<String, Fault>> {
        if self.over {
            return None;
        }
        let page = self.page().await;
        self.over |= page.is_err();
        Some(page)
    }

    async fn page(&mut self) -> Result<String, Fault> {
        self.handle.trust().check_current(&self.caller)?;
        let within = (self.worlds.as_deref(), &*self.caller.rights);
        let (runs, next) = runs_within(&self.handle, self.query.clone(), within).await?;
        let mut text = String::new();
        if !self.begun && self.format == ExportFormat::Csv {
            text.push_str(CSV_HEAD);
        }
        self.begun = true;
        for run in &runs {
            let run = summary(run);
            match self.format {
                ExportFormat::Lines => {
                    text.push_str(&serde_json::to_string(&run).unwrap_or_default());
                    text.push('\n');
                }
                ExportFormat::Csv => csv_line(&mut text, &run),
            }
        }
        match next {
            Some(place) => go_on(&mut self.query, place),
            None => self.over = true,
        }
        Ok(text)
    }
}

const CSV_HEAD: &str = "run_id,world,tool,status,caller,parent,correlation_id,mode,attempt,\
                        cost_micro,created_at,started_at,ended_at,error_code,error_message\r\n";

fn csv_line(text: &mut String, run: &wire::Run) {
    let moment =
        |at: Option<wharf_vocab::DateTime>| at.map_or_else(String::new, |at| at.to_string());
    let error = run.error.as_ref();
    let fields = [
        run.run_id.to_string(),
        run.world.to_string(),
        run.tool.to_string(),
        run.status.to_string(),
        run.caller.as_ref().map_or_else(String::new, ToString::to_string),
        run.parent.clone().unwrap_or_default(),
        run.correlation_id.clone().unwrap_or_default(),
        run.mode.to_string(),
        run.attempt.to_string(),
        run.cost_micro.to_string(),
        run.created_at.to_string(),
        moment(run.started_at),
        moment(run.ended_at),
        error.map_or_else(String::new, |error| error.code.clone()),
        error.map_or_else(String::new, |error| error.message.clone()),
    ];
    let fields: Vec<String> = fields.iter().map(|field| csv_field(field)).collect();
    text.push_str(&fields.join(","));
    text.push_str("\r\n");
}

/// A field of CSV. What a spreadsheet would take for a formula is marked as text.
fn csv_field(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let field = if formula { format!("'{field}") } else { field.to_owned() };
    if field.contains([',', '"', '\r', '\n']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c011_a_field_of_csv_cannot_leave_its_place() {
        for (field, written) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "'=1+1"),
            ("@cmd,x", "\"'@cmd,x\""),
            ("", ""),
        ] {
            assert_eq!(csv_field(field), written);
        }
    }
}
