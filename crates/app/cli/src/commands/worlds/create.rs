//! `wharf worlds create`.

use wharf_vocab::{Publish, UnknownCost};
use wharf_wire::rest_v1::CreateWorld;

use super::settings::{self, Days};
use super::show;
use crate::cli::Context;
use crate::commands::choices;
use crate::exit::Exit;
use crate::failure::Result;

/// What `wharf worlds create` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds create lab
  wharf worlds create lab --limit-micro 5000000 --default-hold-micro 1000
  wharf worlds create films --publish staged --retention 30d")]
pub(crate) struct Args {
    /// The world's id
    world: String,
    /// The most its runs may cost, in millionths of a dollar [default: no limit]
    #[arg(long, value_name = "N")]
    limit_micro: Option<u64>,
    /// The least that is held for an attempt, unless its tool is free [default: 0]
    #[arg(long, value_name = "N")]
    default_hold_micro: Option<u64>,
    /// When outputs become visible: each as it is written, or all together when the run has
    /// succeeded [default: direct]
    #[arg(long, value_name = "WHEN", value_parser = choices::publish())]
    publish: Option<Publish>,
    /// How long an unused file is kept, such as 30d [default: forever]
    #[arg(long, value_name = "DAYS", value_parser = settings::days)]
    retention: Option<Days>,
    /// Approval rules that come before those for all worlds
    #[arg(long, value_name = "JSON|@FILE|-")]
    policy: Option<String>,
    /// What is booked if a tool never reports its final cost: what it had reported, or all that was
    /// held [default: reported]
    #[arg(long, value_name = "WHAT", value_parser = choices::unknown_cost())]
    unknown_cost: Option<UnknownCost>,
}

/// Makes a world and shows it.
pub(super) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let policy = args.policy.as_deref().map(settings::policy).transpose()?;
    let body = CreateWorld {
        world: crate::commands::run::id("world", &args.world)?,
        limit_micro: args.limit_micro,
        default_hold_micro: args.default_hold_micro,
        publish: args.publish,
        retention_days: args.retention.and_then(|days| days.0),
        policy: policy.unwrap_or_default(),
        unknown_cost: args.unknown_cost,
    };
    let raw = context.client()?.worlds().create(&body).raw().await?;
    show::print(raw, None, context.output)?;
    Ok(Exit::Done)
}
