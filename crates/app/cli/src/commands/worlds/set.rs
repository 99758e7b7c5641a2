//! `wharf worlds set` and `wharf worlds budget`.

use wharf_vocab::{Publish, UnknownCost};
use wharf_wire::rest_v1::SetWorld;

use super::settings::{self, Days, Limit};
use super::show;
use crate::cli::Context;
use crate::commands::choices;
use crate::exit::Exit;
use crate::failure::Result;

/// What `wharf worlds set` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds set lab --limit-micro 5000000 --default-hold-micro 1000
  wharf worlds set lab --publish staged --retention 30d
  wharf worlds set lab --limit-micro none --retention none
  wharf worlds set lab --policy '[{\"tool\":\"acme/*\",\"when\":\"first-use\",\"approve\":true}]'

Other settings stay as they are. Open runs keep the settings they started with.")]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct Args {
    /// The world's id
    world: String,
    /// The most its runs may cost, in millionths of a dollar, or none
    #[arg(long, value_name = "N|none", group = "change", value_parser = settings::micro)]
    limit_micro: Option<Limit>,
    /// The least that is held for an attempt, unless its tool is free
    #[arg(long, value_name = "N", group = "change")]
    default_hold_micro: Option<u64>,
    /// When outputs become visible: each as it is written, or all together when the run has succeeded
    #[arg(long, value_name = "WHEN", group = "change", value_parser = choices::publish())]
    publish: Option<Publish>,
    /// How long an unused file is kept, such as 30d; none keeps it forever
    #[arg(long, value_name = "DAYS|none", group = "change", value_parser = settings::days)]
    retention: Option<Days>,
    /// Approval rules, replacing the current ones
    #[arg(long, value_name = "JSON|@FILE|-", group = "change")]
    policy: Option<String>,
    /// What is booked if a tool never reports its final cost: what it had reported, or all that was
    /// held
    #[arg(long, value_name = "WHAT", group = "change", value_parser = choices::unknown_cost())]
    unknown_cost: Option<UnknownCost>,
}

/// Changes what is named and shows the world.
pub(super) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let body = SetWorld {
        limit_micro: args.limit_micro.map(|limit| limit.0),
        default_hold_micro: args.default_hold_micro,
        publish: args.publish,
        retention_days: args.retention.map(|days| days.0),
        policy: args.policy.as_deref().map(settings::policy).transpose()?,
        unknown_cost: args.unknown_cost,
    };
    change(&args.world, &body, context).await
}

/// What `wharf worlds budget` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds budget lab --limit-micro 5000000     five dollars
  wharf worlds budget lab --default-hold-micro 1000
  wharf worlds budget lab --no-limit

The other value stays as it is. wharf worlds set does the same and more.")]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct Budget {
    /// The world's id
    world: String,
    /// The most its runs may cost, in millionths of a dollar
    #[arg(long, value_name = "N", group = "change")]
    limit_micro: Option<u64>,
    /// The least that is held for an attempt, unless its tool is free
    #[arg(long, value_name = "N", group = "change")]
    default_hold_micro: Option<u64>,
    /// Remove the limit
    #[arg(long, group = "change", conflicts_with = "limit_micro")]
    no_limit: bool,
}

/// Changes the world's money and shows the world.
pub(super) async fn run_budget(args: Budget, context: &Context) -> Result<Exit> {
    let limit_micro = if args.no_limit { Some(None) } else { args.limit_micro.map(Some) };
    let default_hold_micro = args.default_hold_micro;
    let body = SetWorld { limit_micro, default_hold_micro, ..SetWorld::default() };
    change(&args.world, &body, context).await
}

async fn change(world: &str, body: &SetWorld, context: &Context) -> Result<Exit> {
    let raw = context.client()?.worlds().set(world, body).raw().await?;
    show::print(raw, None, context.output)?;
    Ok(Exit::Done)
}
