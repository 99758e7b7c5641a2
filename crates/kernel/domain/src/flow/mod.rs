//! Flows: several steps written down as a document, which the engine itself interprets.
//!
//! A document is read by hand and not by derived code, because everything that is wrong with one
//! names the place where it is wrong, such as `steps[3].inputs.text`. Expressions are kept as
//! texts until they are evaluated, within a bound, by whoever has the time.

mod check;
mod document;
mod evaluate;
mod finding;
mod given;
mod graph;
mod read;
mod record;
mod step;
mod template;
mod used;
mod write;

pub use check::check;
pub use document::{Document, FlowLimits};
pub use evaluate::EvaluationBudget;
pub use finding::{FindingLevel, FlowFinding};
pub use given::{check_condition, check_given, fill_given, has_expressions, holds};
pub use record::{
    Flow, FlowAdded, FlowEntry, FlowRecordInput, FlowRemoved, FlowVersion, is_inline, no_flow,
    not_taken,
};
pub use step::{
    ApproveStep, AskStep, Branch, Call, Case, Catch, CodePattern, Each, FailStep, Loop, OnError,
    OnTimeout, Parallel, ParallelMode, RetryRule, SignalStep, Sleep, Step, StepId, StepKind, Try,
};
pub use template::{Expression, Template, TemplateError, TemplatePart};
pub(crate) use used::UsedResults;
pub use wharf_expression::NameScope;
