//! What expressions of a flow see of its steps: small outputs are kept with the flow, large ones
//! are found by the runs that gave them, when an expression looks at them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wharf_domain::run::flow::FlowScope;
use wharf_domain::{Outcome, Run, value_weight};
use wharf_vocab::limits::FLOW_RESULTS_BYTES_MAX;
use wharf_vocab::{Backoff, Code, Fault, Object, RunId, RunKey};

use super::FlowCalls;
use super::flow_steps::{AGAIN_MAX, AGAIN_MIN};

/// What steps gave, by their names.
pub(super) type StepOutputs = BTreeMap<String, Value>;

impl FlowCalls<'_> {
    /// What the steps gave that expressions look at; nothing if the engine ends meanwhile.
    /// `names` are those of the steps; `None` if it may be any.
    pub(super) async fn results(
        self,
        flow: &Run,
        scope: &FlowScope,
        names: Option<BTreeSet<&str>>,
    ) -> Option<Result<StepOutputs, Fault>> {
        let looked_at = |name: &str| names.as_ref().is_none_or(|names| names.contains(name));
        let steps: Vec<_> = scope.steps.iter().filter(|(name, _)| looked_at(name)).collect();
        let mut wanted = BTreeSet::new();
        for (_, step) in &steps {
            step.outputs.visit_runs(&mut |run| {
                wanted.insert(run);
            });
        }
        let (mut found, mut bytes) = (BTreeMap::new(), 0);
        for run in wanted {
            let outputs = match self.outputs_of(flow, run).await? {
                Ok(outputs) => Value::Object(outputs),
                Err(fault) => return Some(Err(fault)),
            };
            bytes += value_weight(&outputs);
            if bytes > FLOW_RESULTS_BYTES_MAX {
                return Some(Err(too_large()));
            }
            found.insert(run, outputs);
        }
        let find = |run: &RunId| found.get(run).cloned().unwrap_or_default();
        let whole = steps.into_iter().map(|(name, step)| (name.clone(), step.outputs.whole(&find)));
        Some(Ok(whole.collect()))
    }

    /// What the run of a step gave, which is kept as long as its flow is open.
    async fn outputs_of(self, flow: &Run, run: &RunId) -> Option<Result<Object, Fault>> {
        let key = RunKey { world: flow.key.world.clone(), run: run.clone() };
        let mut pauses = Backoff::new(AGAIN_MIN, AGAIN_MAX);
        loop {
            match self.0.runs().get(&key).await {
                Ok(found) => {
                    return Some(match &found.outcome {
                        Some(Outcome::Succeeded { outputs }) => Ok(outputs.clone()),
                        _ => Err(gone(&key)),
                    });
                }
                Err(fault) if fault.is(Code::RunNotFound) => return Some(Err(gone(&key))),
                Err(_) if self.0.is_stopping() => return None,
                Err(_) => tokio::time::sleep(pauses.pause()).await,
            }
        }
    }
}

fn too_large() -> Fault {
    let message =
        format!("The results that one step looks at may take {FLOW_RESULTS_BYTES_MAX} bytes.");
    Fault::new(Code::FlowLimit, message).with("limit", "results")
}

fn gone(key: &RunKey) -> Fault {
    Fault::new(Code::RunNotFound, format!("What the run {key} gave is not there any more."))
}
