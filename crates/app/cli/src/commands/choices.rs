//! Options that take one word of a closed list, known to help texts and completions.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use wharf_vocab::{Durability, Mode, RunStatus};

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
