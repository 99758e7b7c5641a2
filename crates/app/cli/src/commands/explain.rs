//! `wharf explain`: what an error code means and what to do, from the pages that the program
//! carries.

use serde_json::{Value, json};
use wharf_vocab::Code;

use crate::commands::{CliError, Context, Exit, Output, Result, Table};
use crate::complete::nearest_word;
use crate::{document, plain};

/// Where the pages are among the documents.
const PAGES: &str = "docs/errors/";

/// What `wharf explain` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf explain tool.timeout
  wharf explain budget           all codes that begin so
  wharf explain                  all codes
  wharf explain run.not_found --json

It needs no core.")]
pub(crate) struct ExplainArgs {
    /// The code, as an error shows it in brackets, or the beginning of several [default: list all]
    code: Option<String>,
}

/// The page of one code.
struct ErrorPage {
    code: Code,
    text: &'static str,
}

/// Shows the page of the code, or the list of all.
pub(crate) fn run(args: &ExplainArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let pages = pages();
    let Some(typed) = &args.code else { return list(&pages, output) };
    let typed = typed.trim_matches(['[', ']', '.']).to_lowercase();
    if let Some(page) = pages.iter().find(|page| page.code.as_str() == typed) {
        return show(page, output);
    }
    let begins = |page: &&ErrorPage| page.code.as_str().starts_with(&typed) && !typed.is_empty();
    let begun: Vec<&ErrorPage> = pages.iter().filter(begins).collect();
    match begun.as_slice() {
        [] => Err(unknown(&typed, &pages)),
        [page] => show(page, output),
        several => list(several.iter().copied(), output),
    }
}

fn pages() -> Vec<ErrorPage> {
    let page = |(name, text): &(&'static str, &'static str)| {
        let code = Code::parse(name.strip_prefix(PAGES)?.strip_suffix(".md")?)?;
        Some(ErrorPage { code, text })
    };
    wharf_server::documents().iter().filter_map(page).collect()
}

impl ErrorPage {
    /// What stands below this heading.
    fn section(&self, heading: &str) -> String {
        let wanted = format!("## {heading}");
        let lines = self.text.lines().skip_while(|line| *line != wanted).skip(1);
        let lines = lines.take_while(|line| !line.starts_with("## "));
        lines.collect::<Vec<_>>().join("\n").trim().to_owned()
    }

    /// What it means, on one line.
    fn meaning(&self) -> String {
        let section = self.section("What it means");
        document::inline(section.split("\n\n").next().unwrap_or_default().trim())
    }
}

fn show(page: &ErrorPage, output: Output) -> Result<Exit> {
    if output.is_json() {
        let mut value = line_of(page);
        value["page"] = page.text.into();
        output.json(&value)?;
    } else {
        output.text(&document::text(page.text, output.width(), output.out_paint()))?;
    }
    Ok(Exit::Done)
}

fn line_of(page: &ErrorPage) -> Value {
    json!({"code": page.code.as_str(), "http_status": page.code.http_status(),
        "retryable": page.code.is_retryable(), "meaning": page.meaning()})
}

fn list<'a>(pages: impl IntoIterator<Item = &'a ErrorPage>, output: Output) -> Result<Exit> {
    if output.is_json() {
        output.json(&Value::Array(pages.into_iter().map(line_of).collect()))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(output, &["CODE", "MEANS"]).keep_whole(&[0]).uncut(&[1]);
    for page in pages {
        table.row([page.code.as_str(), &page.meaning()]);
    }
    output.text(&table.text())?;
    Ok(Exit::Done)
}

fn unknown(typed: &str, pages: &[ErrorPage]) -> CliError {
    let typed_shown = plain::cut(typed, 60);
    let near = nearest_word(typed, pages.iter().map(|page| page.code.as_str()));
    CliError::usage(match near {
        Some(near) => format!("there is no error code {typed_shown}; did you mean {near}?"),
        None => format!("there is no error code {typed_shown}; list them with: wharf explain"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_with_a_meaning_and_a_way_out() {
        let pages = pages();
        for code in Code::ALL {
            let page = pages.iter().find(|page| page.code == *code);
            let page = page.unwrap_or_else(|| panic!("{code} has no page"));
            assert!(!page.meaning().is_empty(), "{code}");
            assert!(!page.section("What to do").is_empty(), "{code}");
        }
    }

    #[test]
    fn a_code_that_is_not_known_leads_to_the_nearest() {
        let failure = unknown("tool.quarantned", &pages());
        assert!(failure.message().ends_with("did you mean tool.quarantined?"), "{failure:?}");
        assert!(unknown("zebra", &pages()).message().ends_with("wharf explain"));
    }
}
