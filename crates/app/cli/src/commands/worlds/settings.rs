//! `wharf worlds create`, `set`, `budget` and `correct`: what can be said about a world.

use serde_json::Value;
use wharf_vocab::{Publish, Retain, UnknownCost};
use wharf_wire::rest_v1::{CorrectWorld, CreateWorld, PolicyRule, SetWorld};

use super::show;
use crate::commands::{CliError, Context, Exit, Result, run, word};
use crate::{amount, inputs};

/// What `wharf worlds create` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds create lab
  wharf worlds create lab --limit-micro 5000000 --default-hold-micro 1000
  wharf worlds create films --publish staged --retention 30d")]
pub(crate) struct WorldsCreateArgs {
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
    #[arg(long, value_name = "WHEN", value_parser = word::<Publish>())]
    publish: Option<Publish>,
    /// How long an unused file is kept, such as 30d [default: forever]
    #[arg(long, value_name = "DAYS", value_parser = days)]
    retention: Option<Days>,
    /// How long a run that has ended is kept, such as 90d [default: forever]
    #[arg(long, value_name = "DAYS", value_parser = days)]
    run_retention: Option<Days>,
    /// Approval rules that come before those for all worlds
    #[arg(long, value_name = "JSON|@FILE|-")]
    policy: Option<String>,
    /// What is booked if a tool never reports its final cost: what it had reported, or all that was
    /// held [default: reported]
    #[arg(long, value_name = "WHAT", value_parser = word::<UnknownCost>())]
    unknown_cost: Option<UnknownCost>,
    /// What is kept of the values of its runs once they have ended: all, or hashes [default: full]
    #[arg(long, value_name = "WHAT", value_parser = word::<Retain>())]
    retain: Option<Retain>,
}

/// Makes a world and shows it.
pub(super) async fn create(args: WorldsCreateArgs, context: &Context) -> Result<Exit> {
    let policy = args.policy.as_deref().map(policy).transpose()?;
    let body = CreateWorld {
        world: run::id("world", &args.world)?,
        limit_micro: args.limit_micro,
        default_hold_micro: args.default_hold_micro,
        publish: args.publish,
        retention_days: args.retention.and_then(|days| days.0),
        run_retention_days: args.run_retention.and_then(|days| days.0),
        policy: policy.unwrap_or_default(),
        unknown_cost: args.unknown_cost,
        retain: args.retain,
    };
    let raw = context.client()?.worlds().create(&body).raw().await?;
    show::print(raw, None, context.output)
}

/// What `wharf worlds set` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds set lab --limit-micro 5000000 --default-hold-micro 1000
  wharf worlds set lab --publish staged --retention 30d
  wharf worlds set lab --run-retention 90d
  wharf worlds set lab --limit-micro none --retention none
  wharf worlds set lab --policy '[{\"tool\":\"acme/*\",\"when\":\"first-use\",\"approve\":true}]'

Other settings stay as they are. Open runs keep the settings they started with.")]
#[command(
    group = clap::ArgGroup::new("change").required(true).multiple(true),
    override_usage = "wharf worlds set <WORLD> [OPTIONS]"
)]
pub(crate) struct WorldsSetArgs {
    /// The world's id
    world: String,
    /// The most its runs may cost, in millionths of a dollar, or none
    #[arg(long, value_name = "N|none", group = "change", value_parser = micro)]
    limit_micro: Option<Limit>,
    /// The least that is held for an attempt, unless its tool is free
    #[arg(long, value_name = "N", group = "change")]
    default_hold_micro: Option<u64>,
    /// When outputs become visible: each as it is written, or all together when the run has succeeded
    #[arg(long, value_name = "WHEN", group = "change", value_parser = word::<Publish>())]
    publish: Option<Publish>,
    /// How long an unused file is kept, such as 30d; none keeps it forever
    #[arg(long, value_name = "DAYS|none", group = "change", value_parser = days)]
    retention: Option<Days>,
    /// How long a run that has ended is kept, such as 90d; none keeps it forever
    #[arg(long, value_name = "DAYS|none", group = "change", value_parser = days)]
    run_retention: Option<Days>,
    /// Approval rules, replacing the current ones
    #[arg(long, value_name = "JSON|@FILE|-", group = "change")]
    policy: Option<String>,
    /// What is booked if a tool never reports its final cost: what it had reported, or all that was
    /// held
    #[arg(long, value_name = "WHAT", group = "change", value_parser = word::<UnknownCost>())]
    unknown_cost: Option<UnknownCost>,
    /// What is kept of the values of its runs once they have ended: all, or hashes
    #[arg(long, value_name = "WHAT", group = "change", value_parser = word::<Retain>())]
    retain: Option<Retain>,
}

/// Changes what is named and shows the world.
pub(super) async fn set(args: WorldsSetArgs, context: &Context) -> Result<Exit> {
    let body = SetWorld {
        limit_micro: args.limit_micro.map(|limit| limit.0),
        default_hold_micro: args.default_hold_micro,
        publish: args.publish,
        retention_days: args.retention.map(|days| days.0),
        run_retention_days: args.run_retention.map(|days| days.0),
        policy: args.policy.as_deref().map(policy).transpose()?,
        unknown_cost: args.unknown_cost,
        retain: args.retain,
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
pub(crate) struct WorldsBudgetArgs {
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
pub(super) async fn budget(args: WorldsBudgetArgs, context: &Context) -> Result<Exit> {
    let limit_micro = if args.no_limit { Some(None) } else { args.limit_micro.map(Some) };
    let default_hold_micro = args.default_hold_micro;
    let body = SetWorld { limit_micro, default_hold_micro, ..SetWorld::default() };
    change(&args.world, &body, context).await
}

async fn change(world: &str, body: &SetWorld, context: &Context) -> Result<Exit> {
    let raw = context.client()?.worlds().set(world, body).raw().await?;
    show::print(raw, None, context.output)
}

/// What `wharf worlds correct` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds correct lab --by -0.0012 --reason 'the provider gave it back'
  wharf worlds correct lab --by-micro 2500 --reason 'billed by hand'

The cost shown for runs does not change. The correction and its reason are audited: wharf audit")]
#[command(group = clap::ArgGroup::new("amount").required(true))]
pub(crate) struct WorldsCorrectArgs {
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
pub(super) async fn correct(args: WorldsCorrectArgs, context: &Context) -> Result<Exit> {
    let by_micro = args.by.or(args.by_micro).unwrap_or_default();
    let body = CorrectWorld { by_micro, reason: args.reason };
    let raw = context.client()?.worlds().correct(&args.world, &body).raw().await?;
    show::print(raw, None, context.output)
}

/// A number, or nothing at all for `none`.
fn micro(text: &str) -> std::result::Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    let hint = || "say how many millionths of a dollar, or none".to_owned();
    text.parse().map(|micro| Limit(Some(micro))).map_err(|_| hint())
}

/// Whole days such as `30d`, or for ever for `none`.
fn days(text: &str) -> std::result::Result<Days, String> {
    if text == "none" {
        return Ok(Days(None));
    }
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let hint = || "give a number of whole days, such as 30d, or none".to_owned();
    let ms = amount::duration(text).map(amount::ms).map_err(|_| hint())?;
    let days = ms.is_multiple_of(DAY_MS).then_some(ms / DAY_MS);
    let days = days.and_then(|days| u32::try_from(days).ok()).ok_or_else(hint)?;
    Ok(Days(Some(days)))
}

/// A limit that may be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit(Option<u64>);

/// How long something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Days(Option<u32>);

/// Rules about approvals: a JSON list as text, from a file, or from standard input.
fn policy(source: &str) -> Result<Vec<PolicyRule>> {
    let wrong = |why: String| {
        let example = r#"[{"tool":"acme/*","when":"first-use","approve":true}]"#;
        CliError::usage(format!("a policy is a list of rules such as {example}: {why}"))
    };
    match inputs::json(source)? {
        Value::Null => Ok(Vec::new()),
        value => serde_json::from_value(value).map_err(|error| wrong(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_not_nothing() {
        assert_eq!(micro("none"), Ok(Limit(None)));
        assert_eq!(micro("0"), Ok(Limit(Some(0))));
        assert_eq!(days("none"), Ok(Days(None)));
        assert_eq!(days("30d"), Ok(Days(Some(30))));
        assert_eq!(days("48h"), Ok(Days(Some(2))));
        for bad in ["", "-1", "1.5", "None"] {
            assert!(micro(bad).is_err(), "{bad}");
        }
        for bad in ["", "30", "12h", "0d", "1d1ms"] {
            assert!(days(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_policy_that_cannot_be_read_is_explained() {
        assert_eq!(policy("[]"), Ok(Vec::new()));
        let rules = policy(r#"[{"tool":"a/*","approve":true}]"#).expect("rules");
        assert_eq!((rules[0].when.as_str(), rules[0].audience.as_str()), ("always", "person"));
        let bare = policy(r#"[{"tool":"a/*"}]"#).expect("a rule asks for an approval");
        assert!(bare[0].approve);
        for bad in ["{}", r#"[{"approve":true}]"#, r#"[{"tool":"a/*","approve":true,"x":1}]"#] {
            let failure = policy(bad).expect_err(bad);
            assert!(failure.message().contains("first-use"), "{failure:?}");
        }
    }
}
