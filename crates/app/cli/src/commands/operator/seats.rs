//! `wharf operator list` and `remove`: the seats there are, and giving some up.

use serde_json::{Value, json};
use wharf_client::Client;
use wharf_vocab::{Code, DateTime};
use wharf_wire::operator_v1::Seat;

use super::kept::{self, KeptSeat};
use crate::commands::{CliError, Context, Exit, Output, Result, Table};
use crate::{moment, plain};

/// What is done with seats that are there.
#[derive(Debug, clap::Subcommand)]
pub(super) enum SeatCommand {
    /// List seats: who is there, and what waits for them
    #[command(after_help = "Examples:\n  wharf operator list\n  wharf operator list --json")]
    List,
    /// Give up seats for good
    #[command(after_help = "\
Examples:
  wharf operator remove S-0f8c2a
  wharf operator remove desk

What waits for a seat is left to the inbox. A unique beginning of the id is enough, the name that it
is kept under on this machine, or what the seat is for, if no other seat is for that.")]
    Remove {
        /// The seats: their ids, beginnings of them, their names, or what they are for
        #[arg(required = true, value_name = "SEAT")]
        seats: Vec<String>,
    },
}

/// Does what the subcommand says.
pub(super) async fn run(command: SeatCommand, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    match command {
        SeatCommand::List => {
            let empty = "no seats; take one with: wharf operator --person";
            crate::commands::list(client.seats().list(), empty, context.output, table_of).await
        }
        SeatCommand::Remove { seats } => remove(&client, &seats, context.output).await,
    }
}

fn table_of(seats: &[Seat], output: Output) -> Table {
    let headings = ["SEAT", "STATE", "FOR", "ROLES", "PERSON", "WAITING", "LAST SEEN"];
    let mut table = Table::new(output, &headings)
        .keep_whole(&[0, 1])
        .leave_out(2, "")
        .leave_out(3, "")
        .leave_out(4, "no")
        .spare(&[6, 3]);
    for seat in seats {
        let seen = seat.last_seen.as_deref().and_then(|at| at.parse::<DateTime>().ok());
        let cells = [
            seat.sid.as_str(),
            if seat.connected { "connected" } else { "away" },
            &seat.desc,
            &seat.roles.join(" "),
            if seat.person { "yes" } else { "no" },
            &seat.pending.len().to_string(),
            &seen.map(moment::relative_to_now).unwrap_or_default(),
        ];
        table.row_with_state(cells, 1);
    }
    table
}

async fn remove(client: &Client, typed: &[String], output: Output) -> Result<Exit> {
    let seats = client.seats().list().all().await?;
    let mut ids = Vec::new();
    for typed in typed {
        // A seat that is kept here under a name is for whatever it was said to be for.
        let kept = match kept::name(typed) {
            Ok(name) => KeptSeat::at(client, &name).await?.open(client).await?,
            Err(_) => None,
        };
        ids.push(kept.map_or_else(|| pick(&seats, typed), |(sid, _)| Ok(sid))?);
    }
    for id in &ids {
        client.seats().remove(id).await?;
        if !output.is_json() {
            output.note(&format!("removed {}", plain::line(id)));
        }
    }
    if output.is_json() {
        let removed = ids.iter().map(|id| json!({"sid": id, "state": "removed"}));
        output.json(&Value::Array(removed.collect()))?;
    }
    Ok(Exit::Done)
}

fn pick(seats: &[Seat], typed: &str) -> Result<String> {
    let begins = |seat: &&Seat| !typed.is_empty() && seat.sid.starts_with(typed);
    let named = |seat: &&Seat| !typed.is_empty() && seat.desc == typed;
    if let Some(whole) = seats.iter().find(|seat| seat.sid == typed) {
        return Ok(whole.sid.clone());
    }
    let mut fitting: Vec<&Seat> = seats.iter().filter(named).collect();
    if fitting.is_empty() {
        fitting = seats.iter().filter(begins).collect();
    }
    match fitting.as_slice() {
        [one] => Ok(one.sid.clone()),
        [] => {
            let message =
                format!("there is no seat {typed:?}; list them with: wharf operator list");
            Err(CliError::new(Code::SeatNotFound, message))
        }
        several => {
            let ids: Vec<_> = several.iter().map(|seat| plain::line(&seat.sid)).collect();
            let message = format!("{typed} is ambiguous: {}; type more of it", ids.join(", "));
            Err(CliError::usage(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(sid: &str, desc: &str) -> Seat {
        serde_json::from_value(json!({"sid": sid, "desc": desc, "connected": false, "pending": []}))
            .expect("a seat")
    }

    #[test]
    fn a_seat_is_named_by_its_id_its_beginning_or_its_purpose() {
        let seats = [seat("S-1a", "desk"), seat("S-1b", "night"), seat("S-2", "")];
        for (typed, expect) in [("S-1a", "S-1a"), ("S-2", "S-2"), ("night", "S-1b")] {
            assert_eq!(pick(&seats, typed), Ok(expect.to_owned()), "{typed}");
        }
        let failure = pick(&seats, "S-1").expect_err("two begin so");
        assert!(failure.message().contains("S-1a, S-1b"), "{failure:?}");
        for nobody in ["", "S-9"] {
            assert!(pick(&seats, nobody).expect_err("none").is(Code::SeatNotFound), "{nobody}");
        }
    }
}
