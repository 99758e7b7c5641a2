//! `wharf audit`: who did what.

mod export;
mod tail;

use clap::Subcommand;
use wharf_client::AuditFilter;

use crate::commands::{Context, Exit, Result};
use crate::plain;

/// What `wharf audit` takes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    #[command(flatten)]
    tail: tail::AuditTailArgs,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Show the newest records
    Tail(tail::AuditTailArgs),
    /// Write all records, one JSON object per line
    Export(export::AuditExportArgs),
    /// Verify that no record was changed, removed or added
    #[command(after_help = "\
Examples:
  wharf audit verify
  wharf audit verify --home /srv/wharf --json

Needs the home, not a running core. Exit code 1 if anything is wrong.")]
    Verify,
}

/// Which records are wanted.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Which records")]
struct FilterArgs {
    /// Only records of this actor, such as grant:owner or 'provider:*'
    #[arg(long, value_name = "ACTOR")]
    actor: Option<String>,
    /// Only records of this event, such as tool.call_completed or 'grant.*'
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// Only records about this, such as run:default/nightly or 'world:*'
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Only records since then: a time, or an age such as 7d or 24h
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only records before then
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl FilterArgs {
    fn to_filter(&self) -> AuditFilter<'_> {
        AuditFilter {
            actor: self.actor.as_deref(),
            event: self.event.as_deref(),
            subject: self.subject.as_deref(),
            since: self.since.as_deref(),
            until: self.until.as_deref(),
        }
    }
}

/// Does what the subcommand says; shows the newest records when there is none.
pub(crate) async fn run(args: AuditArgs, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(AuditCommand::Tail(args.tail)) {
        AuditCommand::Tail(args) => tail::run(args, context).await,
        AuditCommand::Export(args) => export::run(args, context).await,
        AuditCommand::Verify => verify(context),
    }
}

/// Checks the audit in the home.
fn verify(context: &Context) -> Result<Exit> {
    let output = context.output;
    let check = wharf_server::audit::verify(&context.home()?)?;
    let exit = if check.findings.is_empty() { Exit::Done } else { Exit::Failed };
    if output.is_json() {
        output.json(&check)?;
        return Ok(exit);
    }
    let paint = output.out_paint();
    let (records, chains) = (check.records, check.chains);
    if check.findings.is_empty() {
        let verdict = paint.good("the audit is whole");
        output.line(&format!("{verdict}: {records} records in {chains} chains"))?;
        return Ok(exit);
    }
    for finding in &check.findings {
        output.line(&format!("{} {}", paint.bad("finding:"), plain::line(finding)))?;
    }
    let verdict = paint.bad("the audit is not whole");
    let findings = check.findings.len();
    output
        .line(&format!("{verdict}: {findings} findings in {records} records, {chains} chains"))?;
    Ok(exit)
}
