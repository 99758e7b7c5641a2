//! Options that take one word of a closed list, known to help texts and completions.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use wharf_vocab::{
    Durability, Isolation, Mode, Publish, RunStatus, SandboxLevel, UnknownCost, Verb,
};

/// `real` or `mock`.
pub(crate) fn mode() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.iter().map(|mode| mode.as_str()))
        .try_map(|word| Mode::parse(&word).ok_or("unknown mode"))
}

/// `journal` or `memory`.
pub(crate) fn durability() -> impl TypedValueParser<Value = Durability> {
    PossibleValuesParser::new(Durability::ALL.iter().map(|durability| durability.as_str()))
        .try_map(|word| Durability::parse(&word).ok_or("unknown durability"))
}

/// Where a run may stand.
pub(crate) fn status() -> impl TypedValueParser<Value = RunStatus> {
    PossibleValuesParser::new(RunStatus::ALL.iter().map(|status| status.as_str()))
        .try_map(|word| RunStatus::parse(&word).ok_or("unknown status"))
}

/// How firmly a provider is fenced in.
pub(crate) fn sandbox() -> impl TypedValueParser<Value = SandboxLevel> {
    PossibleValuesParser::new(SandboxLevel::ALL.iter().map(|level| level.as_str()))
        .try_map(|word| SandboxLevel::parse(&word).ok_or("unknown sandbox"))
}

/// Which runs share a process.
pub(crate) fn isolation() -> impl TypedValueParser<Value = Isolation> {
    PossibleValuesParser::new(Isolation::ALL.iter().map(|isolation| isolation.as_str()))
        .try_map(|word| Isolation::parse(&word).ok_or("unknown isolation"))
}

/// What a token lets its bearer do.
pub(crate) fn verb() -> impl TypedValueParser<Value = Verb> {
    PossibleValuesParser::new(Verb::ALL.iter().map(|verb| verb.as_str()))
        .try_map(|word| Verb::parse(&word).ok_or("unknown verb"))
}

/// `reported` or `held`.
pub(crate) fn unknown_cost() -> impl TypedValueParser<Value = UnknownCost> {
    PossibleValuesParser::new(UnknownCost::ALL.iter().map(|cost| cost.as_str()))
        .try_map(|word| UnknownCost::parse(&word).ok_or("unknown way to book"))
}

/// `direct` or `staged`.
pub(crate) fn publish() -> impl TypedValueParser<Value = Publish> {
    PossibleValuesParser::new(Publish::ALL.iter().map(|publish| publish.as_str()))
        .try_map(|word| Publish::parse(&word).ok_or("unknown way to publish"))
}
