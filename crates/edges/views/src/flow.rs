//! Flows: their documents and what is found in them.

use wharf_domain::Run;
use wharf_domain::flow::{Flow, FlowFinding, FlowVersion};
use wharf_domain::run::flow::restart_id;
use wharf_engine::{FlowChecked, FlowStep, NewFlowSignal, NewRerun};
use wharf_vocab::{DateTime, RunStatus};
use wharf_wire::rest_v1 as wire;

/// A version of a flow without its document, as lists show it.
#[must_use]
pub fn flow_listed(flow: &Flow, version: &FlowVersion) -> wire::Flow {
    let pins = version.pins.iter().map(|(tool, hash)| (tool.to_string(), hash.to_string()));
    wire::Flow {
        name: flow.id.clone(),
        version: version.number,
        tool_id: version.tool(&flow.id).tool,
        versions: flow.versions.keys().copied().collect(),
        description: version.document.description.clone(),
        hash: version.hash.to_string(),
        added_at: DateTime(version.added_at),
        added_by: version.by.grant.clone(),
        pins: pins.collect(),
        document: None,
        graph: None,
        findings: Vec::new(),
    }
}

/// A version of a flow with its document.
#[must_use]
pub fn flow(flow: &Flow, version: &FlowVersion, findings: &[FlowFinding]) -> wire::Flow {
    wire::Flow {
        document: Some(version.document.to_value()),
        graph: Some(version.document.mermaid()),
        findings: findings.iter().map(finding).collect(),
        ..flow_listed(flow, version)
    }
}

/// What a check found.
#[must_use]
pub fn flow_check(checked: &FlowChecked) -> wire::FlowCheck {
    wire::FlowCheck {
        ok: checked.document.is_some() && !checked.findings.iter().any(FlowFinding::is_error),
        findings: checked.findings.iter().map(finding).collect(),
        graph: checked.document.as_ref().map(|document| document.mermaid()),
    }
}

/// How far a run of a flow is; nothing of other runs.
pub(crate) fn run_flow(run: &Run) -> Option<wire::RunFlow> {
    let (flow, spec) = (run.flow.as_ref()?, run.spec.flow.as_ref()?);
    let anew = run.status() == RunStatus::Succeeded && flow.restarts_with().is_some();
    Some(wire::RunFlow {
        version: spec.version,
        cost_micro: flow.cost_micro(),
        steps: flow.steps_done(),
        status: flow.vars().get("status").filter(|_| !run.is_over()).cloned(),
        cites: spec.cites.as_ref().map(|cited| cited.of.clone()),
        restarts: spec.restarts.clone(),
        restarted_as: anew.then(|| restart_id(&run.key)),
    })
}

/// A step of a run of a flow.
#[must_use]
pub fn run_step(step: &FlowStep) -> wire::RunStep {
    wire::RunStep {
        path: step.path.clone(),
        status: step.status.to_owned(),
        attempt: step.number,
        tool: step.tool.clone(),
        run_id: step.run.clone(),
        started_at: DateTime(step.started_at),
        ended_at: step.ended_at.map(DateTime),
        cost_micro: step.cost_micro,
        error: step.error.as_ref().map(wire::ErrorInfo::from),
        until: step.until.map(DateTime),
    }
}

/// A message for a run of a flow.
#[must_use]
pub fn new_signal(name: &str, request: wire::SendSignal) -> NewFlowSignal {
    let wire::SendSignal { value, idempotency_key } = request;
    NewFlowSignal { name: name.to_owned(), value, key: idempotency_key }
}

/// A request to run a flow again from a step.
#[must_use]
pub fn new_rerun(request: wire::RerunFlow) -> NewRerun {
    let wire::RerunFlow { from, inputs, version, force, run_id } = request;
    NewRerun { from, inputs, version, force, run_id }
}

fn finding(found: &FlowFinding) -> wire::FlowFinding {
    wire::FlowFinding {
        place: found.place.clone(),
        level: found.level.as_str().to_owned(),
        text: found.text.clone(),
    }
}
