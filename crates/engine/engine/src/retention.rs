//! How long runs are kept that are over.

use wharf_domain::permission::ToolPattern;
use wharf_domain::{ToolDef, WorldSettings};
use wharf_vocab::{Retain, Timestamp, ToolId};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What the owner says about runs of some tools, in all worlds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRule {
    /// The tools.
    pub tool: ToolPattern,
    /// Days after which their runs go, from when they were accepted; none for never.
    pub days: Option<u32>,
    /// What is kept of their values when they are over.
    pub retain: Retain,
}

/// What holds in one world.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention<'a> {
    /// The world's own setting.
    pub(crate) days: Option<u32>,
    /// The owner's rules; the first that fits a tool counts.
    pub(crate) rules: &'a [RetentionRule],
}

impl Retention<'_> {
    /// The least that any run is kept; `None` if all are kept for ever.
    pub(crate) fn days_min(&self) -> Option<u32> {
        self.rules.iter().filter_map(|rule| rule.days).chain(self.days).min()
    }

    /// How long runs of a tool are kept: what the world says or what the rule says, whichever is
    /// less.
    pub(crate) fn days_of(&self, tool: &ToolId) -> Option<u32> {
        let rule = self.rules.iter().find(|rule| rule.tool.matches(tool));
        rule.and_then(|rule| rule.days).into_iter().chain(self.days).min()
    }
}

/// So many days before a moment.
pub(crate) fn days_before(now: Timestamp, days: u32) -> Timestamp {
    Timestamp(now.0.saturating_sub(u64::from(days) * DAY_MS))
}

/// What is kept of the values of a tool's run: hashes, if the tool, its world or the owner's rule
/// says so. What one of them wants kept, the others can still forbid.
pub(crate) fn retain_of(def: &ToolDef, world: &WorldSettings, rules: &[RetentionRule]) -> Retain {
    let rule = rules.iter().find(|rule| rule.tool.matches(&def.tool));
    let rule = rule.map_or(Retain::Full, |rule| rule.retain);
    def.retain.max(world.retain).max(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_kept_as_long_as_its_world_and_the_first_rule_for_its_tool_let_it() {
        let rule = |tool: &str, days| RetentionRule {
            tool: ToolPattern::parse(tool).expect("a pattern"),
            days: Some(days),
            retain: Retain::Full,
        };
        let rules = [rule("llm/chat@1", 90), rule("llm/*", 7)];
        let of = |days, tool: &str| {
            Retention { days, rules: &rules }.days_of(&ToolId::new(tool).expect("valid"))
        };
        assert_eq!(of(None, "llm/chat@1"), Some(90), "the first that fits counts");
        assert_eq!(of(None, "llm/image@1"), Some(7));
        assert_eq!(of(None, "mail/send"), None);
        assert_eq!(of(Some(30), "mail/send"), Some(30));
        assert_eq!(of(Some(30), "llm/chat@1"), Some(30), "the world keeps less");
        assert_eq!(of(Some(30), "llm/image@1"), Some(7), "the rule keeps less");
        assert_eq!(Retention { days: Some(30), rules: &rules }.days_min(), Some(7));
        assert_eq!(Retention { days: None, rules: &[] }.days_min(), None);
    }

    #[test]
    fn hashes_are_kept_if_anybody_wants_no_more() {
        let rule = |tool: &str, retain| RetentionRule {
            tool: ToolPattern::parse(tool).expect("a pattern"),
            days: None,
            retain,
        };
        let rules = [rule("llm/chat@1", Retain::Full), rule("llm/*", Retain::Digest)];
        let of = |tool: &str, said: Retain, world: Retain| {
            let tool = ToolId::new(tool).expect("valid");
            let def = ToolDef::new(tool, "", serde_json::json!({}));
            let def = ToolDef { retain: said, ..def };
            let world = WorldSettings { retain: world, ..WorldSettings::default() };
            retain_of(&def, &world, &rules)
        };
        assert_eq!(of("mail/send", Retain::Full, Retain::Full), Retain::Full);
        assert_eq!(of("mail/send", Retain::Digest, Retain::Full), Retain::Digest);
        assert_eq!(of("mail/send", Retain::Full, Retain::Digest), Retain::Digest);
        assert_eq!(of("llm/image@1", Retain::Full, Retain::Full), Retain::Digest);
        assert_eq!(of("llm/chat@1", Retain::Full, Retain::Full), Retain::Full, "the first counts");
        assert_eq!(of("llm/chat@1", Retain::Digest, Retain::Full), Retain::Digest);
    }
}
