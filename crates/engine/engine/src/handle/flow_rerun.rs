//! Running a flow again from a step.

use std::sync::Arc;

use wharf_domain::Caller;
use wharf_domain::run::flow::{Citation, CitedCall};
use wharf_vocab::limits::FLOW_CITED_BYTES_MAX;
use wharf_vocab::{Code, Fault, Object, RunId, RunKey, ToolId, Verb, WorldId};

use super::FlowCalls;
use super::request::{NewRun, StepTerms};
use super::runs::AcceptedRun;

/// What is asked for when a flow is run again from a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewRerun {
    /// The step at the top of the document to begin with.
    pub from: String,
    /// What the run is given; what the first one was given when absent.
    pub inputs: Option<Object>,
    /// The version; that of the first run when absent.
    pub version: Option<u32>,
    /// Whether results are taken over although their tools are defined in another way now.
    pub force: bool,
    /// The caller's own id for the run.
    pub run_id: Option<RunId>,
}

impl FlowCalls<'_> {
    /// Runs a flow again from a step. What the steps before it gave in another run is taken over,
    /// and costs nothing; whoever asks must be allowed to read that run.
    pub async fn rerun(
        self,
        caller: &Caller,
        key: &RunKey,
        new: NewRerun,
    ) -> Result<AcceptedRun, Fault> {
        let run = self.0.runs().get(key).await?;
        self.0.trust().authorise(caller, Verb::Read, &key.world)?;
        caller.rights.check_tool(&run.spec.tool)?;
        let is_flow = || Fault::new(Code::RequestInvalid, format!("The run {key} is of no flow."));
        let (spec, (id, _)) = match (&run.spec.flow, run.spec.tool.flow()) {
            (Some(spec), Some(flow)) => (Arc::clone(spec), flow),
            _ => return Err(is_flow()),
        };
        if run.spec.is_withheld() && run.is_over() {
            let message = format!("The values of the run {key} are not kept.");
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        let version = self.version(&id, Some(new.version.unwrap_or(spec.version)))?;
        let entries = self.0.run_events().entries(key).await?;
        let entries = entries.iter().map(|(at, entry)| (*at, entry));
        let (cited, calls) = Citation::of(entries, &version.document, &new.from)?;
        if cited.weight() > FLOW_CITED_BYTES_MAX {
            let message =
                format!("What is taken over may take {FLOW_CITED_BYTES_MAX} bytes at most.");
            return Err(Fault::new(Code::FlowLimit, message).with("limit", "cited"));
        }
        if !new.force {
            self.unchanged(&key.world, &calls).await?;
        }
        let inputs = match new.inputs {
            Some(inputs) => inputs,
            None => {
                let run = self.0.runs().with_inputs(Arc::clone(&run)).await?;
                Object::clone(&run.spec.inputs)
            }
        };
        let cites = Some(Arc::new(cited));
        let request = NewRun {
            mode: run.spec.mode,
            run_id: new.run_id,
            step: StepTerms { cites, ..StepTerms::default() },
            ..NewRun::new(version.tool(&id).tool, inputs, key.world.clone())
        };
        self.0.runs().create(caller, request).await
    }

    /// Whether the tools behind what is taken over are defined as they were.
    async fn unchanged(self, world: &WorldId, calls: &[CitedCall]) -> Result<(), Fault> {
        for call in calls {
            let key = RunKey { world: world.clone(), run: call.run.clone() };
            let then = match self.0.runs().get(&key).await {
                Ok(run) => Some(run.spec.tool_hash.clone()),
                // It was refused, and there never was a run; or it was removed since.
                Err(fault) if fault.is(Code::RunNotFound) => None,
                Err(fault) => return Err(fault),
            };
            let now = self.0.inner.catalog.tool(&call.tool).map(|tool| tool.hash.clone());
            if then.is_some() && then != now {
                return Err(changed(&call.path, &call.tool));
            }
        }
        Ok(())
    }
}

fn changed(path: &str, tool: &ToolId) -> Fault {
    let message = format!("The tool {tool} of the step {path} is defined in another way now.");
    Fault::new(Code::FlowToolChanged, message).with("step", path)
}
