//! `wharf worlds correct`.

use wharf_wire::rest_v1::CorrectWorld;

use super::show;
use crate::amount;
use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;

/// What `wharf worlds correct` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds correct lab --by -0.0012 --reason 'the provider gave it back'
  wharf worlds correct lab --by-micro 2500 --reason 'billed by hand'

The cost shown for runs does not change. The correction and its reason are audited: wharf audit")]
#[command(group = clap::ArgGroup::new("amount").required(true))]
pub(crate) struct Args {
    /// The world's id
    world: String,
    /// The amount to add to what was spent, in dollars; may be negative
    #[arg(long, value_name = "DOLLARS", group = "amount", value_parser = amount::signed_dollars,
          allow_hyphen_values = true)]
    by: Option<i64>,
    /// The same in millionths of a dollar
    #[arg(long, value_name = "N", group = "amount", allow_hyphen_values = true)]
    by_micro: Option<i64>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Corrects the account and shows the world.
pub(super) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let by_micro = args.by.or(args.by_micro).unwrap_or_default();
    let body = CorrectWorld { by_micro, reason: args.reason };
    let raw = context.client()?.worlds().correct(&args.world, &body).raw().await?;
    show::print(raw, None, context.output)?;
    Ok(Exit::Done)
}
