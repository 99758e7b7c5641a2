//! `wharf audit tail`.

use std::time::Duration;

use serde_json::Value;
use wharf_client::{Audit, Client};
use wharf_wire::rest_v1::AuditRecord;

use crate::commands::{Context, Exit, Output, Poll, Result};
use crate::{moment, output, plain};

const REFRESH: Duration = Duration::from_secs(1);

/// What `wharf audit tail` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf audit
  wharf audit tail -n 100
  wharf audit tail -f --json     one record per line as it is written")]
pub(crate) struct AuditTailArgs {
    /// How many records
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Keep showing new records as they are written
    #[arg(short, long)]
    follow: bool,
}

/// Shows the newest records, oldest first.
pub(crate) async fn run(args: AuditTailArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let records = client.audit().newest(args.count).await?;
    let last = records.last().map_or(0, Audit::number);
    if output.is_json() && !args.follow {
        output.json(&records)?;
        return Ok(Exit::Done);
    }
    for record in records {
        print(output, record)?;
    }
    if args.follow {
        follow(client, output, last).await?;
    }
    Ok(Exit::Done)
}

/// Prints records as they are written; it ends only with an error.
async fn follow(client: Client, output: Output, mut last: u64) -> Result<()> {
    let mut poll = Poll::new(client, REFRESH);
    loop {
        let read = async |client: &Client| client.audit().records(last, usize::MAX).await;
        let Some((records, _)) = poll.next(output, read).await? else { continue };
        last = records.last().map_or(last, Audit::number);
        records.into_iter().try_for_each(|record| print(output, record))?;
    }
}

fn print(output: Output, record: Value) -> Result<()> {
    if output.is_json() {
        return output.json_line(&record);
    }
    let record: AuditRecord = output::typed(record)?;
    output.line(&line_of(&record, output))
}

fn line_of(record: &AuditRecord, output: Output) -> String {
    let paint = output.out_paint();
    let event = plain::line(&record.event);
    let event = match record.severity.as_str() {
        "error" | "security" => paint.bad(&event),
        "warn" => paint.attention(&event),
        _ => paint.strong(&event),
    };
    let fact = |(key, value): (&String, &Value)| {
        plain::cut(&format!("{key}={}", crate::shape::plain_text(value)), 80)
    };
    let facts: Vec<_> = record.facts.iter().map(fact).collect();
    format!(
        "{} {event} {} by {} {}",
        paint.faint(&format!("{:>6} {}", record.id, moment::clock(record.at))),
        plain::line(&record.subject),
        plain::line(&record.actor),
        paint.faint(&facts.join(" ")),
    )
    .trim_end()
    .to_owned()
}
