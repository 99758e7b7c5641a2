//! Orders to remove runs: how far they have come, and calling one off.

use std::time::Duration;

use wharf_client::Client;
use wharf_vocab::PurgeState;
use wharf_wire::rest_v1::Purge;

use crate::commands::{CliError, Context, Exit, Output, Result, Table};
use crate::progress::Spinner;
use crate::{moment, plain};

/// How often it is asked how far an order has come.
const ASKED_EVERY: Duration = Duration::from_millis(250);

/// Waits until an order is worked off and says what became of it.
pub(super) async fn follow(client: &Client, order: Purge, context: &Context) -> Result<Exit> {
    let output = context.output;
    let spinner = Spinner::new(output, &so_far(&order));
    let mut interrupt = Box::pin(tokio::signal::ctrl_c());
    let mut order = order;
    while order.state == PurgeState::Running {
        tokio::select! {
            () = tokio::time::sleep(ASKED_EVERY) => {}
            _ = &mut interrupt => {
                drop(spinner);
                let id = plain::line(&order.purge_id);
                output.note(&format!("the core goes on; to stop it: wharf runs purge --cancel {id}"));
                return Ok(Exit::Canceled);
            }
        }
        order = client.runs().purge_order_surely(&order.purge_id).await?;
        spinner.set(&so_far(&order));
    }
    drop(spinner);
    output.done(&order, &ended(&order))
}

/// Lists orders.
pub(super) async fn list(context: &Context) -> Result<Exit> {
    let output = context.output;
    let orders = context.client()?.runs().purges().await?.items;
    if output.is_json() {
        output.json(&orders)?;
    } else if orders.is_empty() {
        output.note("no orders to remove runs");
    } else {
        output.text(&table_of(&orders, output).text())?;
    }
    Ok(Exit::Done)
}

/// Calls an order off that is named by its id or the beginning of it.
pub(super) async fn cancel(given: &str, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let orders = client.runs().purges().await?.items;
    let found: Vec<&Purge> = orders.iter().filter(|it| it.purge_id.starts_with(given)).collect();
    let id = match found.as_slice() {
        [one] => one.purge_id.clone(),
        // The core knows best what to say of one that is not there.
        [] => given.to_owned(),
        _ => {
            let message = format!("{} may mean any of {} orders.", plain::line(given), found.len());
            return Err(CliError::usage(message));
        }
    };
    let order = client.runs().cancel_purge(&id).await?;
    context.output.done(&order, &ended(&order))
}

fn so_far(order: &Purge) -> String {
    let left = order.left.map_or_else(String::new, |left| format!(", {left} left"));
    format!("removing runs: {} removed{left}", order.purged)
}

fn ended(order: &Purge) -> String {
    let s = if order.purged == 1 { "" } else { "s" };
    let kept = match order.kept {
        0 => String::new(),
        1 => "; 1 is needed by a run in progress and stays".to_owned(),
        many => format!("; {many} are needed by runs in progress and stay"),
    };
    let called_off = if order.state == PurgeState::Canceled { "; called off" } else { "" };
    format!("removed {} run{s}{kept}{called_off}", order.purged)
}

fn table_of(orders: &[Purge], output: Output) -> Table {
    let headings = ["ORDER", "STATE", "REMOVED", "LEFT", "RUNS", "ORDERED"];
    let mut table = Table::new(output, &headings).keep_whole(&[0]).spare(&[5]);
    for order in orders {
        let left = order.left.map_or_else(String::new, |left| left.to_string());
        let (state, purged) = (order.state.as_str(), order.purged.to_string());
        let at = moment::shown(order.ordered_at);
        table.row([&order.purge_id, state, &purged, &left, &which(order), &at]);
    }
    table
}

/// Which runs an order is about, in a few words.
fn which(order: &Purge) -> String {
    let mut words = Vec::new();
    if order.status.len() < 4 {
        words.extend(order.status.iter().map(|status| status.as_str().to_owned()));
    }
    words.extend(order.tool.iter().map(ToString::to_string));
    match order.worlds.as_slice() {
        [only] => words.push(format!("in {only}")),
        worlds => words.push(format!("in {} worlds", worlds.len())),
    }
    words.push(format!("before {}", moment::shown(order.until)));
    words.join(" ")
}
