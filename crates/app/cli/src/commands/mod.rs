//! One file per command: what it takes, and what it does.

pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod artifacts;
mod asks;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod completions;
pub(crate) mod conformance;
pub(crate) mod console;
pub(crate) mod costs;
pub(crate) mod decide;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod explain;
pub(crate) mod flow;
pub(crate) mod inbox;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod new;
pub(crate) mod notify;
pub(crate) mod operatives;
pub(crate) mod operator;
mod providers;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod secret;
pub(crate) mod service;
pub(crate) mod status;
pub(crate) mod token;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod trigger;
pub(crate) mod up;
pub(crate) mod worlds;

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use wharf_client::{Client, List};
use wharf_vocab::Choice;

// What every command is written with.
use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::{CliError, Result};
use crate::output::{Output, Paint};
use crate::table::Table;
use crate::{output, plain};

/// Reads one word of a closed list, known to help texts and completions.
fn word<C: Choice>() -> impl TypedValueParser<Value = C> {
    let words = C::ALL.iter().map(|choice| choice.as_str());
    PossibleValuesParser::new(words).try_map(|word| C::parse(&word).ok_or("unknown word"))
}

/// Prints a list of the core: as it came for programs, as a table for people. An empty one may have
/// words of its own.
async fn list<T: DeserializeOwned>(
    list: List<T>,
    empty: &str,
    output: Output,
    table_of: impl FnOnce(&[T], Output) -> Table,
) -> Result<Exit> {
    let items = list.raw().all().await?;
    if output.is_json() {
        output.json(&items)?;
    } else if items.is_empty() && !empty.is_empty() {
        output.line(empty)?;
    } else {
        output.text(&table_of(&output::rows(items)?, output).text())?;
    }
    Ok(Exit::Done)
}

/// A core that is asked again and again, and may be away for a while.
struct Poll {
    client: Client,
    every: Duration,
    away: bool,
}

impl Poll {
    fn new(client: Client, every: Duration) -> Self {
        Self { client, every, away: false }
    }

    /// Waits and asks once more; none while the core is away, which is said once.
    async fn next<T>(
        &mut self,
        output: Output,
        ask: impl AsyncFnOnce(&Client) -> wharf_client::Result<T>,
    ) -> Result<Option<T>> {
        tokio::time::sleep(self.every).await;
        let asked = match self.client.found_again() {
            Ok(found) => {
                self.client = found;
                ask(&self.client).await
            }
            Err(error) => Err(error),
        };
        match asked {
            Ok(answer) => {
                self.away = false;
                Ok(Some(answer))
            }
            Err(error) if error.is_outage() => {
                if !std::mem::replace(&mut self.away, true) {
                    output.note(&format!("{}; trying again", plain::line(error.message())));
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
