//! `[agents.all]` and `[agents.only."ID"]`: what holds for agents on the wire, and when they are
//! started again. What a single agent's table does not say is as for all.

use std::collections::BTreeMap;

use serde::Deserialize;
use wharf_agent::AgentRule;
use wharf_engine::{InputCheck, InputChecks};
use wharf_ports::launcher::RestartPolicy;
use wharf_vocab::{Code, Fault, ProviderId};

/// Smaller frames would not hold what the protocol itself needs.
const FRAME_BYTES_MIN: u32 = 64 * 1024;
/// Larger frames would need more memory than an agent should be able to ask for.
const FRAME_BYTES_MAX: u32 = 64 * 1024 * 1024;
/// More calls at once would only wait.
const INFLIGHT_MAX: usize = 65_536;

/// The rules of all agents and of single ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) all: AgentRule,
    pub(crate) only: BTreeMap<ProviderId, AgentRule>,
}

impl Rules {
    /// How the engine checks inputs.
    pub(crate) fn input_checks(&self) -> InputChecks {
        let by_id = self.only.iter().map(|(id, rule)| (id.clone(), rule.input_check)).collect();
        InputChecks { agents: self.all.input_check, by_id }
    }
}

/// One such table.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RuleTable {
    input_check: Option<Check>,
    oversize: Option<Oversize>,
    strict: Option<bool>,
    max_frame_bytes: Option<u32>,
    max_inflight: Option<usize>,
    restart: Restart,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Check {
    Enforce,
    Warn,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Oversize {
    Close,
    Reject,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Restart {
    pause_ms: Option<u64>,
    pause_max_ms: Option<u64>,
    stable_ms: Option<u64>,
    crashes_max: Option<usize>,
    window_ms: Option<u64>,
}

/// Reads the rules of all agents and of single ones.
pub(super) fn read(all: &RuleTable, only: &BTreeMap<String, RuleTable>) -> Result<Rules, Fault> {
    let all = all.over(AgentRule::default(), "agents.all")?;
    let mut rules = Rules { all, only: BTreeMap::new() };
    for (id, file) in only {
        let place = format!("agents.only.{id:?}");
        let id = ProviderId::new(id)
            .map_err(|_| invalid(format!("{place} in wharf.toml names no agent's id.")))?;
        rules.only.insert(id, file.over(all, &place)?);
    }
    Ok(rules)
}

impl RuleTable {
    /// These rules where they say something, else the others.
    fn over(&self, rule: AgentRule, place: &str) -> Result<AgentRule, Fault> {
        let frame_bytes = self.max_frame_bytes;
        if frame_bytes.is_some_and(|bytes| !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&bytes)) {
            let message = format!(
                "{place}.max_frame_bytes in wharf.toml must be {FRAME_BYTES_MIN} to \
                 {FRAME_BYTES_MAX}."
            );
            return Err(invalid(message));
        }
        if self.max_inflight.is_some_and(|calls| !(1..=INFLIGHT_MAX).contains(&calls)) {
            let message =
                format!("{place}.max_inflight in wharf.toml must be 1 to {INFLIGHT_MAX}.");
            return Err(invalid(message));
        }
        let check = self.input_check.map(|check| match check {
            Check::Enforce => InputCheck::Enforce,
            Check::Warn => InputCheck::Warn,
            Check::Off => InputCheck::Off,
        });
        Ok(AgentRule {
            input_check: check.unwrap_or(rule.input_check),
            reject_oversize: self
                .oversize
                .map_or(rule.reject_oversize, |oversize| oversize == Oversize::Reject),
            strict: self.strict.unwrap_or(rule.strict),
            frame_bytes_max: frame_bytes.or(rule.frame_bytes_max),
            calls_open_max: self.max_inflight.or(rule.calls_open_max),
            restart: Some(self.restart.over(rule.restart.unwrap_or_default(), place)?),
        })
    }
}

impl Restart {
    fn over(&self, policy: RestartPolicy, place: &str) -> Result<RestartPolicy, Fault> {
        let policy = RestartPolicy {
            pause_ms: self.pause_ms.unwrap_or(policy.pause_ms),
            pause_max_ms: self.pause_max_ms.unwrap_or(policy.pause_max_ms),
            stable_ms: self.stable_ms.unwrap_or(policy.stable_ms),
            crashes_max: self.crashes_max.unwrap_or(policy.crashes_max),
            window_ms: self.window_ms.unwrap_or(policy.window_ms),
            ..policy
        };
        let longest = policy.pause_max_ms <= u64::from(u32::MAX);
        if policy.pause_ms == 0 || policy.pause_ms > policy.pause_max_ms || !longest {
            let message = format!(
                "{place}.restart in wharf.toml needs a pause_ms of 1 or more, and a pause_max_ms \
                 that is not less."
            );
            return Err(invalid(message));
        }
        Ok(policy)
    }
}

fn invalid(message: String) -> Fault {
    Fault::new(Code::ConfigInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Both {
        all: RuleTable,
        only: BTreeMap<String, RuleTable>,
    }

    fn rules(text: &str) -> Result<Rules, String> {
        let both: Both = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        read(&both.all, &both.only).map_err(|fault| fault.message)
    }

    #[test]
    fn r089_a_single_agent_has_the_rules_of_all_but_for_its_own() {
        let rules = rules(
            "[all]\ninput_check = \"warn\"\nmax_inflight = 3\nrestart.pause_ms = 5\n\
             [only.\"dev.example.hello\"]\noversize = \"reject\"\nstrict = true\n\
             max_frame_bytes = 8388608\nrestart.crashes_max = 1\n",
        )
        .expect("fits");
        assert_eq!((rules.all.input_check, rules.all.reject_oversize), (InputCheck::Warn, false));
        let id = ProviderId::new("dev.example.hello").expect("valid");
        let own = rules.only[&id];
        assert_eq!((own.input_check, own.calls_open_max), (InputCheck::Warn, Some(3)));
        assert!(own.reject_oversize && own.strict);
        assert_eq!(own.frame_bytes_max, Some(8 * 1024 * 1024));
        let restart = own.restart.expect("known");
        assert_eq!((restart.pause_ms, restart.crashes_max), (5, 1));
        assert_eq!(rules.input_checks().of_agent(&id), InputCheck::Warn);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("[all]\ninput_check = \"maybe\"", "unknown variant `maybe`"),
            ("[all]\nmax_frame_bytes = 100", "agents.all.max_frame_bytes"),
            ("[all]\nmax_inflight = 0", "agents.all.max_inflight"),
            ("[only.\"a b\"]\nstrict = true", "agents.only.\"a b\""),
            ("[only.\"a.b\".restart]\npause_ms = 0", "agents.only.\"a.b\".restart"),
            ("[all]\nstirct = true", "unknown field `stirct`"),
        ] {
            let error = rules(text).expect_err(text);
            assert!(error.contains(said), "{error}");
        }
    }
}
