//! `wharf worlds`: worlds and their budgets.

use clap::Subcommand;
use reqwest::Method;
use serde_json::Value;
use wharf_wire::rest_v1::{CreateWorld, SetBudget, World};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::Output;
use crate::table::{self, Table};
use crate::{moment, money};

/// What `wharf worlds` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds
  wharf worlds create lab
  wharf worlds budget lab --limit-micro 5000000")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List worlds
    #[command(after_help = "Examples:\n  wharf worlds\n  wharf worlds list --json")]
    List,
    /// Make a world
    #[command(
        after_help = "Examples:\n  wharf worlds create lab\n  wharf worlds create lab --limit-micro 5000000"
    )]
    Create {
        /// The world's id
        world: String,
        /// The most its runs may cost, in millionths of a dollar [default: no limit]
        #[arg(long, value_name = "N")]
        limit_micro: Option<u64>,
        /// What is set aside for a run whose tool names no price [default: 0]
        #[arg(long, value_name = "N")]
        default_hold_micro: Option<u64>,
    },
    /// Show one world
    #[command(after_help = "Examples:\n  wharf worlds show default")]
    Show {
        /// The world's id
        world: String,
    },
    /// Set a world's budget
    Budget(Budget),
}

/// What `wharf worlds budget` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds budget lab --limit-micro 5000000     five dollars
  wharf worlds budget lab --default-hold-micro 1000
  wharf worlds budget lab --no-limit

What is not named stays as it is.")]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
struct Budget {
    /// The world's id
    world: String,
    /// The most its runs may cost, in millionths of a dollar
    #[arg(long, value_name = "N", group = "change")]
    limit_micro: Option<u64>,
    /// What is set aside for a run whose tool names no price
    #[arg(long, value_name = "N", group = "change")]
    default_hold_micro: Option<u64>,
    /// Take the limit away
    #[arg(long, group = "change", conflicts_with = "limit_micro")]
    no_limit: bool,
}

/// Does what the subcommand says; lists worlds when there is none.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit> {
    match args.command.unwrap_or(Command::List) {
        Command::List => list(context).await?,
        Command::Create { world, limit_micro, default_hold_micro } => {
            let body = CreateWorld {
                world,
                limit_micro,
                default_hold_micro,
                publish: None,
                retention_days: None,
                policy: Vec::new(),
            };
            let path = ["v1", "worlds"];
            print(context.client()?.send_json(Method::POST, &path, &body).await?, context.output)?;
        }
        Command::Show { world } => {
            print(context.client()?.get(&["v1", "worlds", &world], &[]).await?, context.output)?;
        }
        Command::Budget(args) => budget(args, context).await?,
    }
    Ok(Exit::Done)
}

async fn list(context: &Context) -> Result<()> {
    let output = context.output;
    let (items, _) = context.client()?.list(&["v1", "worlds"], &[], None).await?;
    if output.is_json() {
        return output.json(&items);
    }
    let worlds: Vec<World> = table::rows(items)?;
    let headings = ["WORLD", "LIMIT", "SPENT", "HELD", "LEFT", "CREATED"];
    let mut table = Table::new(output, &headings).keep_whole(&[0]).spare(&[5, 3]);
    for world in &worlds {
        table.row([
            &world.world,
            &limit_of(world),
            &money::dollars(world.spent_micro),
            &money::dollars(world.held_micro),
            &left_of(world),
            &moment::shown(&world.created_at),
        ]);
    }
    output.text(&table.text())
}

async fn budget(args: Budget, context: &Context) -> Result<()> {
    let client = context.client()?;
    // The core replaces the whole budget, so what is not named is read first.
    let now: World = client.get(&["v1", "worlds", &args.world], &[]).await?;
    let limit = if args.no_limit { None } else { args.limit_micro.or(now.limit_micro) };
    let hold = args.default_hold_micro.unwrap_or(now.default_hold_micro);
    let body = SetBudget { limit_micro: limit, default_hold_micro: Some(hold) };
    let path = ["v1", "worlds", &args.world, "budget"];
    print(client.send_json(Method::PUT, &path, &body).await?, context.output)
}

fn print(raw: Value, output: Output) -> Result<()> {
    if output.is_json() {
        return output.json(&raw);
    }
    let world: World = table::typed(raw)?;
    let mut table = Table::bare(output);
    table.row(["world", &world.world]);
    table.row(["created", &moment::shown(&world.created_at)]);
    table.row(["limit", &limit_of(&world)]);
    table.row(["spent", &money::dollars(world.spent_micro)]);
    table.row(["held", &money::dollars(world.held_micro)]);
    table.row(["left", &left_of(&world)]);
    table.row(["held per run by default", &money::dollars(world.default_hold_micro)]);
    output.text(&table.text())
}

fn limit_of(world: &World) -> String {
    world.limit_micro.map_or_else(|| "none".to_owned(), money::dollars)
}

fn left_of(world: &World) -> String {
    let used = world.spent_micro.saturating_add(world.held_micro);
    world.limit_micro.map_or_else(String::new, |limit| money::dollars(limit.saturating_sub(used)))
}
