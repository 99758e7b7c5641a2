//! `[agents]`: where they connect, how they are fenced in, what they may use up.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use wharf_domain::provider::{ProviderLimits, Rate, Usage};
use wharf_vocab::{SandboxLevel, quantity};

use super::rules;

/// `[agents]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Agents {
    pub(super) tcp: Option<SocketAddr>,
    pub(super) heartbeat_ms: Option<u64>,
    #[serde(deserialize_with = "level")]
    sandbox: Option<SandboxLevel>,
    #[serde(deserialize_with = "level")]
    sandbox_min: Option<SandboxLevel>,
    pub(super) limits: SetLimits,
    pub(super) all: rules::RuleTable,
    pub(super) only: BTreeMap<String, rules::RuleTable>,
}

impl Agents {
    /// How firmly agents are fenced in when an approval does not say; never below the minimum.
    pub(super) fn sandbox(&self) -> SandboxLevel {
        let wanted = self.sandbox.unwrap_or(SandboxLevel::Standard);
        self.sandbox_min.map_or(wanted, |least| wanted.max(least))
    }

    /// The least an agent must be fenced in.
    pub(super) fn sandbox_min(&self) -> Option<SandboxLevel> {
        self.sandbox_min
    }
}

/// `[agents.limits]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SetLimits {
    calls_max: Option<u32>,
    #[serde(deserialize_with = "rate")]
    rate: Option<Rate>,
    call_ms: Option<u64>,
    input_bytes: Option<u64>,
    output_bytes: Option<u64>,
    stream_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    cpu_ms: Option<u64>,
    cpu_millicores: Option<u64>,
    processes: Option<u64>,
    open_files: Option<u64>,
    disk_bytes: Option<u64>,
}

impl From<SetLimits> for ProviderLimits {
    fn from(limits: SetLimits) -> Self {
        Self {
            calls_max: limits.calls_max,
            rate: limits.rate,
            call_ms: limits.call_ms,
            input_bytes: limits.input_bytes,
            output_bytes: limits.output_bytes,
            stream_bytes: limits.stream_bytes,
            usage: Usage {
                memory_bytes: limits.memory_bytes,
                cpu_ms: limits.cpu_ms,
                cpu_millicores: limits.cpu_millicores,
                processes: limits.processes,
                open_files: limits.open_files,
                disk_bytes: limits.disk_bytes,
            },
        }
    }
}

fn level<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SandboxLevel>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || D::Error::custom("a sandbox is `none`, `basic`, `standard` or `strict`");
    SandboxLevel::parse(&text).map(Some).ok_or_else(wrong)
}

/// Reads `60/minute`.
fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || D::Error::custom("a rate is a number per time, such as `60/minute`");
    let (count, per_ms) = quantity::rate(&text).ok_or_else(wrong)?;
    Ok(Some(Rate { count, per_ms }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Agents, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn agents_are_fenced_in_as_usual_unless_the_owner_says_otherwise() {
        let agents = read("").expect("fits");
        assert_eq!((agents.sandbox(), agents.sandbox_min()), (SandboxLevel::Standard, None));
        let agents = read("sandbox = \"basic\"\nsandbox_min = \"basic\"").expect("fits");
        assert_eq!(agents.sandbox(), SandboxLevel::Basic);
        assert_eq!(agents.sandbox_min(), Some(SandboxLevel::Basic));
        let agents = read("sandbox_min = \"strict\"").expect("fits");
        assert_eq!(agents.sandbox(), SandboxLevel::Strict, "never below the minimum");
    }

    #[test]
    fn limits_are_read_and_mistakes_are_named() {
        let agents = read("[limits]\nrate = \"60/minute\"\nmemory_bytes = 5\n").expect("fits");
        let limits = ProviderLimits::from(agents.limits);
        assert_eq!(limits.rate, Some(Rate { count: 60, per_ms: 60_000 }));
        assert_eq!(limits.usage.memory_bytes, Some(5));
        for (text, said) in [
            ("sandbox = \"loose\"", "a sandbox is"),
            ("[limits]\nrate = \"60\"", "a rate is"),
            ("[limits]\nrate = \"0/second\"", "a rate is"),
            ("[limits]\nmemory = 5", "unknown field `memory`"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(said), "{error}");
        }
    }
}
