//! Running a flow again from a step: what the steps before it gave is cited, not done once more.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{Code, Fault, Object, RunId, Timestamp, ToolId};

use super::frame::SeqFrame;
use super::stage::Stage;
use super::{FlowRunEntry, FlowSpec, FlowState, StepResult, StepValue};
use crate::flow::{Document, Step, StepKind};
use crate::run::{Run, RunEntry};

/// What a run takes over from another one of the same flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Citation {
    /// The run that did the work.
    pub of: RunId,
    /// The step of the document that this one begins with.
    pub from: String,
    /// The variables as they were when that step began.
    #[serde(default, skip_serializing_if = "no_vars")]
    pub vars: Arc<Object>,
    /// What the steps before it gave, by their places.
    pub results: BTreeMap<String, CitedResult>,
}

/// What a step gave that is not done again. It costs nothing here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CitedResult {
    /// What it gave.
    #[serde(default)]
    pub outputs: Arc<Value>,
    /// Why it failed, if it did and that was caught.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// The run that did it, if it is a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// A call whose result is cited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitedCall {
    /// Its place.
    pub path: String,
    /// The tool, as the document named it.
    pub tool: ToolId,
    /// The run that did it.
    pub run: RunId,
}

fn no_vars(vars: &Arc<Object>) -> bool {
    vars.is_empty()
}

impl Citation {
    /// What a run of `document` that begins with the step `from` takes over from another run, whose
    /// entries these are, and the calls behind that.
    pub fn of<'a>(
        entries: impl IntoIterator<Item = (Timestamp, &'a RunEntry)>,
        document: &Document,
        from: &str,
    ) -> Result<(Self, Vec<CitedCall>), Fault> {
        let mut entries = entries.into_iter();
        let no_flow = || Fault::new(Code::RequestInvalid, "The run is no run of a flow.");
        let Some((at, RunEntry::Created(created))) = entries.next() else { return Err(no_flow()) };
        let mut run = Run::created(created, at);
        // What a later version of the document looks at is not known to this one.
        run.flow = Some(Box::new(FlowState::keeping_everything()));
        let spec = run.spec.flow.clone().ok_or_else(no_flow)?;
        let index = place_of(&spec.document, from)?;
        place_of(document, from)?;
        let mut calls = Vec::new();
        while !run.flow.as_ref().is_some_and(|flow| flow.is_at(index)) {
            let Some((at, entry)) = entries.next() else {
                let message = format!("The run {} never came as far as {from}.", run.key);
                return Err(Fault::invalid("from", message));
            };
            if let RunEntry::Flow(entry) = entry {
                note(&mut calls, entry);
            }
            run.apply(at, entry);
        }
        let flow = run.flow.as_ref().ok_or_else(no_flow)?;
        let before = names_before(document, from);
        let results = flow.top_results(&before);
        let whole = document.steps.iter().take_while(|step| step.id.as_str() != from);
        if let Some(missing) =
            whole.map(|step| step.id.as_str()).find(|id| !results.contains_key(*id))
        {
            let message = format!("The run {} has no result of the step {missing}.", run.key);
            return Err(Fault::invalid("from", message));
        }
        let (of, vars) = (run.key.run.clone(), Arc::clone(flow.vars_shared()));
        Ok((Self { of, from: from.to_owned(), vars, results }, calls))
    }

    /// The same without values.
    fn withheld(&self) -> Self {
        let result =
            |it: &CitedResult| CitedResult { run: it.run.clone(), ..CitedResult::default() };
        let results = self.results.iter().map(|(path, it)| (path.clone(), result(it))).collect();
        Self { vars: Arc::default(), results, ..self.clone() }
    }

    /// About how many bytes it takes in memory.
    pub fn weight(&self) -> u64 {
        let result = |it: &CitedResult| crate::weight::value_weight(&it.outputs);
        crate::weight::memory_weight(&self.vars) + self.results.values().map(result).sum::<u64>()
    }
}

/// The calls that have begun: the last try of each place.
fn note(calls: &mut Vec<CitedCall>, entry: &FlowRunEntry) {
    if let FlowRunEntry::StepStarted(started) = entry {
        calls.retain(|call| call.path != started.path);
        let (path, tool) = (started.path.clone(), started.tool.clone());
        calls.push(CitedCall { path, tool, run: started.child.clone() });
    }
}

fn place_of(document: &Document, from: &str) -> Result<usize, Fault> {
    let found = document.steps.iter().position(|step| step.id.as_str() == from);
    found.ok_or_else(|| {
        let message = format!("{from} is no step at the top of the flow {}.", document.name);
        Fault::invalid("from", message)
    })
}

/// The names of all steps that stand before one at the top.
fn names_before(document: &Document, from: &str) -> Vec<String> {
    let mut names = Vec::new();
    for step in document.steps.iter().take_while(|step| step.id.as_str() != from) {
        gather(step, &mut names);
    }
    names
}

fn gather(step: &Step, names: &mut Vec<String>) {
    names.push(step.id.to_string());
    match &step.kind {
        StepKind::Seq(steps) => steps.iter().for_each(|step| gather(step, names)),
        StepKind::Parallel(parallel) => {
            parallel.branches.iter().for_each(|step| gather(step, names));
        }
        StepKind::Branch(branch) => {
            branch.cases.iter().for_each(|case| gather(&case.step, names));
            branch.otherwise.iter().for_each(|step| gather(step, names));
        }
        StepKind::Loop(def) => gather(&def.step, names),
        StepKind::Try(def) => {
            gather(&def.step, names);
            def.catches.iter().for_each(|catch| gather(&catch.step, names));
            def.finally.iter().for_each(|step| gather(step, names));
        }
        _ => {}
    }
}

impl FlowSpec {
    /// The same without the values that it takes over.
    pub(in crate::run) fn withheld(self: Arc<Self>) -> Arc<Self> {
        let Some(cited) = &self.cites else { return self };
        let cites = Some(Arc::new(cited.withheld()));
        Arc::new(Self { cites, ..Self::clone(&self) })
    }
}

impl FlowState {
    /// Whether a step at the top, or one behind it, is under way.
    fn is_at(&self, index: usize) -> bool {
        matches!(&self.stage, Stage::Steps(seq) if seq.at >= index)
    }

    fn vars_shared(&self) -> &Arc<Object> {
        &self.shared.vars
    }

    /// What steps at the top and in it gave.
    fn top_results(&self, names: &[String]) -> BTreeMap<String, CitedResult> {
        let cited = |it: &Arc<StepResult>| CitedResult {
            outputs: Arc::new(it.outputs.whole(&|_| Value::Null)),
            error: it.error.clone(),
            run: it.run.clone(),
        };
        let given = names.iter().filter_map(|name| Some((name, self.shared.results.get(name)?)));
        given.map(|(name, result)| (name.clone(), cited(result))).collect()
    }

    /// Begins with the step that a citation says.
    pub(super) fn begin_from(&mut self, document: &Document, cited: &Citation, at: Timestamp) {
        let index = document.steps.iter().position(|step| step.id.as_str() == cited.from);
        self.shared.vars = Arc::clone(&cited.vars);
        for (path, result) in &cited.results {
            let (outputs, error) = (Arc::clone(&result.outputs), result.error.clone());
            let (outputs, failed) = (StepValue::Here(outputs), error.is_some());
            let run = result.run.clone();
            let result = StepResult { failed, outputs, error, cost_micro: 0, run };
            self.shared.results.insert(path, result);
        }
        self.stage = Stage::Steps(SeqFrame::begin_at(&document.steps, index.unwrap_or(0), at));
    }
}
