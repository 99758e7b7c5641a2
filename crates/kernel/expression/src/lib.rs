//! Expressions: the Common Expression Language over JSON, with bounds.
//!
//! The crate `cel` reads the text; what an expression gives is found here, because three things
//! must hold that an interpreter for other purposes need not promise: work and results are
//! counted and end at a bound, the same values give the same result everywhere (maps go by key),
//! and no error repeats a value. Nothing here reads a clock: `now` is a value like others.
//!
//! What differs from the language elsewhere: whole numbers and numbers with a fraction may be
//! mixed, results that are not finite are errors, and there are no bytes, messages or regular
//! expressions.

mod evaluate;
mod functions;
mod program;
mod references;
mod value;

pub use evaluate::NameScope;
pub use program::Program;
pub use references::References;

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(pub String);

/// Why an expression has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// It makes no sense of these values.
    #[error("{0}")]
    Fault(String),
    /// It takes more operations than it may.
    #[error("it takes more than {0} operations")]
    Operations(u64),
    /// What it gives is larger than it may be.
    #[error("its result is larger than {0} bytes")]
    Size(usize),
}

impl EvaluateError {
    /// Whether it may be made up for by another part of the expression, as `false && …` does.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(self, Self::Fault(_))
    }
}

pub(crate) fn fault<T>(text: impl Into<String>) -> Result<T, EvaluateError> {
    Err(EvaluateError::Fault(text.into()))
}
