//! `wharf worlds show`, and how a world is shown after it was made or changed.

use serde_json::Value;
use wharf_wire::rest_v1::{PolicyRule, Usage, World};

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::Output;
use crate::table::{self, Table};
use crate::{amount, moment};

/// Shows one world.
pub(super) async fn run(world: &str, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let mut raw: Value = client.worlds().get(world).raw().await?;
    let usage: Value = client.worlds().usage(world).raw().await?;
    if context.output.is_json() {
        if let Value::Object(world) = &mut raw {
            world.insert("usage".to_owned(), usage);
        }
        context.output.json(&raw)?;
    } else {
        print(raw, Some(table::typed(usage)?), context.output)?;
    }
    Ok(Exit::Done)
}

/// Prints a world, and how much it holds if that is known.
pub(super) fn print(raw: Value, usage: Option<Usage>, output: Output) -> Result<()> {
    if output.is_json() {
        return output.json(&raw);
    }
    let world: World = table::typed(raw)?;
    let mut table = Table::bare(output);
    table.row(["world", &world.world]);
    table.row(["created", &moment::shown(world.created_at)]);
    table.row(["limit", &limit_of(&world)]);
    table.row(["spent", &amount::dollars(world.spent_micro)]);
    table.row(["held", &amount::dollars(world.held_micro)]);
    if world.limit_micro.is_some() {
        table.row(["left", &left_of(&world)]);
    }
    table.row(["held per attempt at least", &amount::dollars(world.default_hold_micro)]);
    if world.unknown_cost == wharf_vocab::UnknownCost::Held {
        table.row(["unknown costs", "booked as what was held"]);
    }
    let publish = match world.publish {
        wharf_vocab::Publish::Direct => "direct: each output when it is written",
        wharf_vocab::Publish::Staged => "staged: all outputs together, when the run has succeeded",
    };
    table.row(["publishes", publish]);
    let keeps = match world.retention_days {
        None => "for ever".to_owned(),
        Some(1) => "for a day after they were last used".to_owned(),
        Some(days) => format!("for {days} days after they were last used"),
    };
    table.row(["keeps files", &keeps]);
    for (number, rule) in world.policy.iter().enumerate() {
        table.row([if number == 0 { "policy" } else { "" }, &rule_in_words(rule)]);
    }
    if let Some(usage) = usage {
        table.row(["files", &holds(usage.files, usage.bytes)]);
        if usage.local_files > 0 {
            table.row(["of these local to runs", &holds(usage.local_files, usage.local_bytes)]);
        }
    }
    output.text(&table.text())
}

/// So many files with so many bytes.
fn holds(files: u64, bytes: u64) -> String {
    match files {
        0 => "none".to_owned(),
        files => format!("{files} with {}", amount::about(bytes)),
    }
}

fn rule_in_words(rule: &PolicyRule) -> String {
    let when = match rule.when.as_str() {
        "always" => String::new(),
        "first-use" => " when first used".to_owned(),
        when => match when.strip_prefix("cost>").and_then(|micro| micro.parse().ok()) {
            Some(micro) => format!(" above {}", amount::dollars(micro)),
            None => format!(" when {when}"),
        },
    };
    match (rule.approve, rule.audience.as_str()) {
        (false, _) => format!("{}{when} needs no approval", rule.tool),
        (true, "person") => format!("{}{when} needs a person's approval", rule.tool),
        (true, "any") => format!("{}{when} needs anybody's approval", rule.tool),
        (true, seat) => format!("{}{when} needs the approval of {seat}", rule.tool),
    }
}

/// The most a world's runs may cost.
pub(super) fn limit_of(world: &World) -> String {
    world.limit_micro.map_or_else(|| "none".to_owned(), amount::dollars)
}

/// What may still be set aside.
pub(super) fn left_of(world: &World) -> String {
    let used = world.spent_micro.saturating_add(world.held_micro);
    match world.limit_micro {
        None => String::new(),
        Some(limit) if used > limit => format!("over by {}", amount::dollars(used - limit)),
        Some(limit) => amount::dollars(limit - used),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t041_what_is_over_the_limit_is_shown_as_such() {
        let left = |limit: Option<u64>, spent: u64, held: u64| {
            let world = serde_json::json!({"world": "w", "created_at": "2026-11-15T09:00:00.000Z", "limit_micro": limit,
                "held_micro": held, "spent_micro": spent, "default_hold_micro": 0,
                "publish": "direct"});
            left_of(&serde_json::from_value(world).expect("a world"))
        };
        assert_eq!(left(None, 5, 5), "");
        assert_eq!(left(Some(1_500), 900, 100), "$0.0005");
        assert_eq!(left(Some(1_500), 1_500, 0), "$0.00");
        assert_eq!(left(Some(1_500), 2_000, 100), "over by $0.0006");
    }

    #[test]
    fn rules_are_told_in_words() {
        let told = |when: &str, approve, audience: &str| {
            let (when, audience) = (when.to_owned(), audience.to_owned());
            let (tool, patience_ms) = ("a/*".to_owned(), None);
            rule_in_words(&PolicyRule { tool, when, approve, audience, patience_ms })
        };
        assert_eq!(told("always", true, "person"), "a/* needs a person's approval");
        assert_eq!(told("first-use", true, "any"), "a/* when first used needs anybody's approval");
        assert_eq!(
            told("cost>1500000", true, "boss"),
            "a/* above $1.50 needs the approval of boss"
        );
        assert_eq!(told("always", false, "person"), "a/* needs no approval");
    }
}
