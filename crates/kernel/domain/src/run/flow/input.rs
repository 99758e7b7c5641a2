//! What can happen to a flow besides what happens to every run, and what it wants done outside.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault, Micro, Object, RunId, RunKey, Timestamp};

use super::{StepEnd, StepResult};
use crate::flow::{Call, EvaluationBudget, Expression, NameScope, Template};
use crate::run::Run;
use crate::{Actor, Outcome};
use wharf_expression::References;

/// What can happen to a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowInput {
    /// What it wanted to be evaluated is.
    Evaluated {
        /// The place of the step.
        path: String,
        /// Which of its expressions.
        turn: u32,
        /// What came out.
        result: Result<Value, Fault>,
    },
    /// A call was not let in: no run was made.
    Refused {
        /// The place of the step.
        path: String,
        /// Which try.
        number: u32,
        /// Why.
        fault: Fault,
    },
    /// The run of a call was made.
    Made {
        /// The run.
        child: RunId,
    },
    /// The run of a call is over.
    Ended(Box<ChildEnd>),
    /// The run that it begins anew as is there.
    Restarted {
        /// That run.
        run: RunId,
    },
    /// Some time has passed without a word: whatever is under way is looked for.
    Recheck,
    /// It is to end at once, whatever its steps do.
    Force {
        /// Who wants it.
        by: Actor,
        /// Why.
        reason: String,
    },
}

/// A message for a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSignal {
    /// Its name.
    pub name: String,
    /// What it says.
    pub value: Value,
    /// The sender's own key for it: a second one under it changes nothing.
    pub key: Option<String>,
    /// Who sends it.
    pub by: Actor,
}

/// How the run of a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildEnd {
    /// The run.
    pub child: RunId,
    /// The place of its step.
    pub path: String,
    /// Which try it was.
    pub number: u32,
    /// How it ended.
    pub end: StepEnd,
    /// What it cost.
    pub cost_micro: Micro,
    /// Whether doing it again can do no harm whatever it did: its tool does not act, or its
    /// provider knows the key of the step.
    pub repeatable: bool,
    /// How long the provider knows the key from the first try on, if that is why and has an end.
    pub known_for_ms: Option<u64>,
    /// Whether it acted on the world.
    pub executed: Executed,
}

impl ChildEnd {
    /// Of a run that is the call of a flow and is over.
    pub fn of(run: &Run) -> Option<Self> {
        let (step, outcome) = (run.spec.step.as_ref()?, run.outcome.as_ref()?);
        let end = match outcome.clone() {
            Outcome::Succeeded { outputs } => StepEnd::Succeeded { outputs },
            Outcome::Failed { error } => StepEnd::Failed { error },
            Outcome::Refused { error } => StepEnd::Refused { error },
            Outcome::Canceled { error } => StepEnd::Canceled { error },
        };
        let acted = outcome.error().map(executed);
        Some(Self {
            child: run.key.run.clone(),
            path: step.path.clone(),
            number: step.number,
            end,
            cost_micro: run.flow.as_ref().map_or(run.cost_micro, |flow| flow.cost_micro()),
            repeatable: run.spec.side_effect_free || knows_key(run),
            known_for_ms: known_for_ms(run),
            executed: acted.unwrap_or(Executed::Yes),
        })
    }
}

/// Whether the provider of a run that is over still knows its key. What the key was kept in may be
/// gone with the provider.
fn knows_key(run: &Run) -> bool {
    let lost = run.outcome.as_ref().and_then(Outcome::error);
    let lost = lost.is_some_and(|error| error.is(Code::ToolAgentLost));
    let beyond = run.spec.keys_kept.as_ref().is_none_or(|kept| kept.beyond_process);
    run.spec.idempotent && (beyond || !lost)
}

fn known_for_ms(run: &Run) -> Option<u64> {
    let kept = run.spec.keys_kept.as_ref().filter(|_| !run.spec.side_effect_free);
    kept.and_then(|kept| kept.for_ms)
}

/// Whether what failed with this error acted on the world, as far as it says.
pub(crate) fn executed(error: &Fault) -> Executed {
    let said = error.details.get("executed").and_then(Value::as_str);
    said.and_then(Executed::parse).unwrap_or(Executed::No)
}

/// What a flow wants done outside. Each is answered with a [`FlowInput`].
#[derive(Debug, Clone, PartialEq)]
pub enum FlowWork {
    /// Evaluate something.
    Evaluate(Box<Evaluation>),
    /// Make the run of a call, or find it.
    Begin(Box<StepCall>),
    /// Call the run of a call off.
    Cancel(RunId),
    /// Make the run that the flow begins anew as, or find it.
    Restart(Box<Restart>),
}

/// The run that a flow begins anew as, to be made or found.
#[derive(Debug, Clone, PartialEq)]
pub struct Restart {
    /// The run.
    pub run: RunId,
    /// What it is given.
    pub inputs: Arc<Object>,
    /// Whether it may be there already.
    pub look_up: bool,
    /// Whether it is not to be made any more.
    pub canceling: bool,
}

/// Something to evaluate.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The place of the step.
    pub path: String,
    /// Which of its expressions.
    pub turn: u32,
    /// What to evaluate.
    pub what: Evaluable,
    /// What expressions can see.
    pub scope: FlowScope,
}

/// What there is to evaluate.
#[derive(Debug, Clone, PartialEq)]
pub enum Evaluable {
    /// A template.
    Template(Template),
    /// An expression.
    Expression(Expression),
    /// Conditions: the number of the first that holds, or null.
    First(Vec<Expression>),
    /// An expression for each of these names.
    Fields(BTreeMap<String, Expression>),
    /// The output of the flow, which must fit its schema.
    Output(Template),
}

impl StepCall {
    /// What the expressions of its inputs and outputs refer to.
    pub fn references(&self) -> References {
        let mut found = self.call.inputs.references();
        found.paths.extend(self.call.outputs.iter().flat_map(|it| it.references().paths));
        found
    }
}

impl Evaluable {
    /// What its expressions refer to.
    pub fn references(&self) -> References {
        let of = |expression: &Expression| expression.references().paths;
        let paths = match self {
            Self::Template(template) | Self::Output(template) => return template.references(),
            Self::Expression(expression) => return expression.references(),
            Self::First(conditions) => conditions.iter().flat_map(of).collect(),
            Self::Fields(fields) => fields.values().flat_map(of).collect(),
        };
        References { paths }
    }

    /// What it gives, within the work that one step may take.
    pub fn evaluate(&self, scope: &NameScope<'_>) -> Result<Value, Fault> {
        let mut budget = EvaluationBudget::default();
        match self {
            Self::Template(template) | Self::Output(template) => budget.fill(template, scope),
            Self::Expression(expression) => budget.evaluate(expression, scope),
            Self::First(conditions) => {
                for (at, condition) in conditions.iter().enumerate() {
                    if budget.holds(condition, scope)? {
                        return Ok(Value::from(at));
                    }
                }
                Ok(Value::Null)
            }
            Self::Fields(fields) => {
                let mut values = Object::new();
                for (name, expression) in fields {
                    values.insert(name.clone(), budget.evaluate(expression, scope)?);
                }
                Ok(Value::Object(values))
            }
        }
    }
}

/// The run of a call, to be made or found.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCall {
    /// The place of the step.
    pub path: String,
    /// Which try.
    pub number: u32,
    /// The run.
    pub child: RunId,
    /// The key that all tries have in common.
    pub key: String,
    /// What the document says of it.
    pub call: Arc<Call>,
    /// The run whose local files it may read.
    pub continues: Option<RunId>,
    /// What expressions can see.
    pub scope: FlowScope,
    /// Whether it may be there already.
    pub look_up: bool,
    /// Whether it is to be called off, and not to be made.
    pub canceling: bool,
}

/// What expressions can see.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowScope {
    /// The run of the flow.
    pub run: RunKey,
    /// The flow's variables.
    pub vars: Arc<Object>,
    /// What finished steps gave, by their names.
    pub steps: BTreeMap<String, Arc<StepResult>>,
    /// The items that are worked on, by the names they are given, outer ones first.
    pub names: Vec<(Arc<str>, Arc<Value>)>,
    /// The number of the innermost item or round.
    pub index: Option<u64>,
    /// The moment it is.
    pub now: Timestamp,
}
