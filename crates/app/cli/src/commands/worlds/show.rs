//! `wharf worlds show`, and how a world is shown after it was made or changed.

use serde_json::Value;
use wharf_vocab::{Publish, Retain, UnknownCost};
use wharf_wire::rest_v1::{PolicyRule, Usage, World};

use crate::commands::{Context, Exit, Output, Result, Table};
use crate::{amount, moment, output};

/// Shows one world.
pub(super) async fn run(world: &str, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let mut raw = client.worlds().get(world).raw().await?;
    let usage = client.worlds().usage(world).raw().await?;
    if !context.output.is_json() {
        return print(raw, Some(&output::typed(usage)?), context.output);
    }
    if let Value::Object(world) = &mut raw {
        world.insert("usage".to_owned(), usage);
    }
    print(raw, None, context.output)
}

/// Prints a world, and how much it holds if that is known.
pub(super) fn print(raw: Value, usage: Option<&Usage>, output: Output) -> Result<Exit> {
    output.answer(raw, |world: World| text_of(&world, usage, output))
}

fn text_of(world: &World, usage: Option<&Usage>, output: Output) -> String {
    let publish = match world.publish {
        Publish::Direct => "direct: each output when it is written",
        Publish::Staged => "staged: all outputs together, when the run has succeeded",
    };
    let keeps = match world.retention_days {
        None => "for ever".to_owned(),
        Some(1) => "for a day after they were last used".to_owned(),
        Some(days) => format!("for {days} days after they were last used"),
    };
    let keeps_runs = world.run_retention_days.map(|days| match days {
        1 => "for a day after they were accepted".to_owned(),
        days => format!("for {days} days after they were accepted"),
    });
    let keeps_hashes = world.retain == Retain::Digest;
    let books_held = world.unknown_cost == UnknownCost::Held;
    let mut table = Table::bare(output);
    table.facts([
        ("world", Some(world.world.to_string())),
        ("created", Some(moment::shown(world.created_at))),
        ("limit", Some(limit_of(world))),
        ("spent", Some(amount::dollars(world.spent_micro))),
        ("held", Some(amount::dollars(world.held_micro))),
        ("left", world.limit_micro.map(|_| left_of(world))),
        ("held per attempt at least", Some(amount::dollars(world.default_hold_micro))),
        ("unknown costs", books_held.then(|| "booked as what was held".to_owned())),
        ("publishes", Some(publish.to_owned())),
        ("keeps files", Some(keeps)),
        ("keeps runs", keeps_runs),
        ("keeps of values", keeps_hashes.then(|| "hashes, once a run has ended".to_owned())),
    ]);
    for (number, rule) in world.policy.iter().enumerate() {
        table.row([if number == 0 { "policy" } else { "" }, &rule_in_words(rule)]);
    }
    if let Some(usage) = usage {
        let local = || holds(usage.local_files, usage.local_bytes);
        table.facts([
            ("files", Some(holds(usage.files, usage.bytes))),
            ("of these local to runs", (usage.local_files > 0).then(local)),
        ]);
    }
    table.text()
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
        "destructive" => " when it may destroy something".to_owned(),
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
