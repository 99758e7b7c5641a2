//! About how many bytes things take in memory, for budgets. A number that is a little wrong does
//! no harm; one that a peer can make small while it makes the thing large does.

use serde_json::Value;
use wharf_vocab::Object;

use crate::provider::McpOrigin;
use crate::run::flow::{FlowRunEntry, StepEnd};
use crate::run::steps::{StepEntry, StepLog};
use crate::run::{Addresses, NewAsk, RunEntry};
use crate::scope::Bindings;
use crate::{
    Ask, AskEntry, AskSpec, Entry, Outcome, ProviderEntry, Resolution, Run, RunSpec, SeatEntry,
    ToolDef,
};

/// What a value takes besides its text.
const VALUE_BYTES: u64 = 32;
/// What an entry of a map takes besides its key and value.
const SLOT_BYTES: u64 = 32;
/// What a name that stands for a file takes besides its path.
const BOUND_BYTES: u64 = 256;
/// What a run takes with no inputs, no files and no asks, wherever it is remembered.
const RUN_BYTES: u64 = 2_048;
/// What an entry takes with nothing of a peer's in it.
const ENTRY_BYTES: u64 = 256;

/// About how many bytes an object takes in memory.
pub fn memory_weight(object: &Object) -> u64 {
    object.iter().map(|(key, value)| SLOT_BYTES + key.len() as u64 + value_weight(value)).sum()
}

/// About how many bytes a value takes in memory.
pub fn value_weight(value: &Value) -> u64 {
    VALUE_BYTES
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len() as u64,
            Value::Array(items) => items.iter().map(value_weight).sum(),
            Value::Object(object) => memory_weight(object),
        }
}

impl RunSpec {
    /// About how many bytes it takes in memory; inputs that are not here take none.
    pub fn weight(&self) -> u64 {
        let here = if self.inputs.away().is_some() { 0 } else { self.inputs.bytes() };
        let context = self.context.ui.as_ref().map_or(0, memory_weight);
        let paths: usize = self.context.paths().map(str::len).sum();
        let cited = self.flow.as_ref().and_then(|flow| flow.cites.as_ref());
        here + memory_weight(&self.outputs)
            + cited.map_or(0, |cited| cited.weight())
            + context
            + paths as u64
            + self.bindings.weight()
            + self.addresses.weight()
    }
}

impl Bindings {
    fn weight(&self) -> u64 {
        let names = self.reads.keys().chain(self.writes.keys());
        // A path is about as long as the text that stands for it, which is counted, too.
        names.map(|name| BOUND_BYTES + name.len() as u64).sum()
    }
}

impl Addresses {
    fn weight(&self) -> u64 {
        let all = self.inputs.0.iter().chain(&self.outputs.0);
        all.map(|(name, address)| SLOT_BYTES + (name.len() + address.len()) as u64).sum()
    }
}

impl Run {
    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        let asks: u64 = self.asks.iter().map(|raised| raised.ask.weight()).sum();
        let publishing = self.publishing.as_ref().map_or(0, |begun| memory_weight(&begun.outputs));
        let outcome = self.outcome.as_ref().map_or(0, Outcome::weight);
        let notes = self.active.iter().flat_map(|active| active.notes.values());
        let notes: u64 = notes.map(value_weight).sum();
        let steps = self.steps.as_ref().map_or(0, |steps| steps.weight());
        let flow = self.flow.as_ref().map_or(0, |flow| flow.weight());
        RUN_BYTES + self.spec.weight() + asks + publishing + outcome + notes + steps + flow
    }
}

impl StepLog {
    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        self.len() as u64 * ENTRY_BYTES + self.values_bytes()
    }
}

impl Outcome {
    fn weight(&self) -> u64 {
        match self {
            Self::Succeeded { outputs } => memory_weight(outputs),
            other => other
                .error()
                .map_or(0, |error| error.message.len() as u64 + memory_weight(&error.details)),
        }
    }
}

impl Ask {
    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        let resolved = self.resolved.as_ref().map_or(0, |(resolution, _)| resolution.weight());
        self.spec.weight() + resolved
    }
}

impl AskSpec {
    fn weight(&self) -> u64 {
        ask_weight(&self.key, &self.title, self.detail.iter().chain(&self.schema))
    }
}

impl NewAsk {
    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        ask_weight(&self.key, &self.title, self.detail.iter().chain(&self.schema))
    }
}

fn ask_weight<'a>(key: &str, title: &str, values: impl Iterator<Item = &'a Value>) -> u64 {
    ENTRY_BYTES + (key.len() + title.len()) as u64 + values.map(value_weight).sum::<u64>()
}

impl Resolution {
    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        match self {
            Self::Answered { value } => value_weight(value),
            Self::Deny { reason: text } | Self::OffScript { text } => text.len() as u64,
            _ => 0,
        }
    }
}

impl ToolDef {
    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        let schemas = std::iter::once(&self.input_schema).chain(&self.output_schema);
        let words = self.capabilities.iter().chain(&self.tags);
        ENTRY_BYTES
            + self.description.len() as u64
            + words.map(|word| VALUE_BYTES + word.len() as u64).sum::<u64>()
            + schemas.map(value_weight).sum::<u64>()
            + self.mcp.as_ref().map_or(0, |origin| origin.weight())
    }
}

impl McpOrigin {
    fn weight(&self) -> u64 {
        let schemas = self.input_schema.iter().chain(&self.output_schema);
        let said = self.annotations.iter().chain(&self.execution).chain(&self.pinned);
        let words = self.name.len() + self.title.as_ref().map_or(0, String::len);
        ENTRY_BYTES + words as u64 + schemas.chain(said).map(value_weight).sum::<u64>()
    }
}

impl Entry {
    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        let more = match self {
            Self::Run(entry) => entry.weight(),
            Self::Ask(AskEntry::Raised(spec)) => spec.weight(),
            Self::Provider(entry) => match &**entry {
                ProviderEntry::ToolsOffered(offered) => tools_weight(&offered.tools),
                _ => 0,
            },
            Self::Seat(SeatEntry::Offered(offered)) => tools_weight(&offered.tools),
            _ => 0,
        };
        ENTRY_BYTES + more
    }
}

fn tools_weight(tools: &[ToolDef]) -> u64 {
    tools.iter().map(ToolDef::weight).sum()
}

impl RunEntry {
    fn weight(&self) -> u64 {
        match self {
            Self::Created(created) => created.spec.weight(),
            Self::AskRaised(raised) => raised.ask.weight(),
            Self::AskResolved(resolved) => resolved.resolution.weight(),
            Self::AttemptNoted(noted) => noted.value.as_ref().map_or(0, value_weight),
            Self::Publishing(begun) => memory_weight(&begun.outputs),
            Self::Ended(ended) => ended.outcome.weight(),
            Self::Flow(entry) => entry.weight(),
            Self::Step(entry) => match &**entry {
                StepEntry::Kept(kept) => value_weight(&kept.value),
                StepEntry::Asked(_) | StepEntry::Answered(_) => 0,
            },
            _ => 0,
        }
    }
}

impl FlowRunEntry {
    /// About how many bytes it takes in memory.
    pub(crate) fn weight(&self) -> u64 {
        let values = match self {
            Self::StepFinished(finished) => match &finished.end {
                StepEnd::Succeeded { outputs } => memory_weight(outputs),
                _ => ENTRY_BYTES,
            },
            Self::Evaluated(evaluated) => value_weight(&evaluated.value),
            Self::Signaled(signaled) => value_weight(&signaled.value),
            Self::Folded(folded) => folded.weight(),
            _ => 0,
        };
        ENTRY_BYTES + values
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_small_values_weigh_what_they_take_and_not_what_they_are_as_text() {
        let object = |value: Value| match value {
            Value::Object(object) => object,
            _ => panic!("an object"),
        };
        let text = object(json!({"a": "x".repeat(10_000)}));
        assert!((10_000..11_000).contains(&memory_weight(&text)));
        let ones = object(json!({"a": vec![1; 10_000]}));
        assert!(memory_weight(&ones) >= 320_000);
    }
}
