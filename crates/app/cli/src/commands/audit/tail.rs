//! `wharf audit tail`.

use std::time::Duration;

use serde_json::Value;
use wharf_client::{Audit, AuditFilter, Client};
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
  wharf audit --event 'tool.*' --actor grant:owner --since 24h
  wharf audit --subject run:default/nightly
  wharf audit tail -f --json     one record per line as it is written")]
pub(crate) struct AuditTailArgs {
    /// How many records
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Keep showing new records as they are written
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    filter: super::FilterArgs,
}

/// Shows the newest records, oldest first.
pub(crate) async fn run(args: AuditTailArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let filter = args.filter.to_filter();
    // Whoever follows is told of all that is written from here on.
    let last = if args.follow { last_number(&client).await? } else { 0 };
    let mut records = client.audit().newest(args.count, &filter).await?;
    if output.is_json() && !args.follow {
        output.json(&records)?;
        return Ok(Exit::Done);
    }
    if args.follow {
        records.retain(|record| Audit::number(record) <= last);
    }
    for record in records {
        print(output, record)?;
    }
    if args.follow {
        follow(client, output, last, &args.filter).await?;
    }
    Ok(Exit::Done)
}

/// The number of the newest record of all.
async fn last_number(client: &Client) -> wharf_client::Result<u64> {
    let newest = client.audit().newest(1, &AuditFilter::default()).await?;
    Ok(newest.last().map_or(0, Audit::number))
}

/// Prints records as they are written; it ends only with an error.
async fn follow(
    client: Client,
    output: Output,
    mut last: u64,
    filter: &super::FilterArgs,
) -> Result<()> {
    let mut poll = Poll::new(client, REFRESH);
    loop {
        let read = async |client: &Client| {
            // Records that do not fit have numbers, too, and are not looked at again.
            let newest = last_number(client).await?;
            let mut records = Vec::new();
            if newest > last {
                let take = |page: Vec<Value>| {
                    records.extend(page);
                    Ok::<_, wharf_client::Error>(())
                };
                client.audit().each_after(last, &filter.to_filter(), take).await?;
            }
            Ok((records, newest))
        };
        let Some((records, newest)) = poll.next(output, read).await? else { continue };
        last = records.last().map_or(0, Audit::number).max(newest).max(last);
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
