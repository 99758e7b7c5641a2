//! Which results of steps a document uses. A run keeps no others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use wharf_expression::References;

use super::{Call, Document, Expression, OnTimeout, Sleep, Step, StepId, StepKind, Template};

/// The steps of a document whose results anything looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UsedResults {
    /// Whether all of them are to be kept, whatever the document says.
    all: bool,
    /// Steps that expressions name, or whose files a later call goes on with.
    named: BTreeSet<StepId>,
    /// Steps whose values are those of named ones, or parts of them.
    valued: BTreeSet<StepId>,
    /// What each call's compensation looks at.
    by_undo: BTreeMap<StepId, UsedNames>,
}

/// What a document uses, once anybody has asked; it follows from the rest of the document.
#[derive(Debug, Clone, Default)]
pub(super) struct UsedCache(OnceLock<Arc<UsedResults>>);

impl PartialEq for UsedCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Document {
    /// Which results of its steps it uses.
    pub(crate) fn used_results(&self) -> &UsedResults {
        self.used.0.get_or_init(|| Arc::new(UsedResults::of(self)))
    }
}

/// The names that a compensation looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UsedNames {
    roots: BTreeSet<String>,
    /// The steps among them; `None` if it may be any.
    steps: Option<BTreeSet<String>>,
}

impl UsedNames {
    fn of(call: &Call) -> Self {
        let mut found = call.inputs.references();
        found.paths.extend(call.outputs.iter().flat_map(|it| it.references().paths));
        let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect();
        Self { roots: owned(found.roots()), steps: found.fields("steps").map(owned) }
    }

    /// Whether it looks at a step.
    pub(crate) fn has_step(&self, id: &str) -> bool {
        self.steps.as_ref().is_none_or(|steps| steps.contains(id))
    }

    /// Whether it looks at something else that has a name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.roots.contains(name)
    }
}

impl UsedResults {
    /// Everything, for whoever does not know yet what will be looked at.
    pub(crate) fn everything() -> Self {
        Self { all: true, ..Self::default() }
    }

    /// What a document uses.
    pub(crate) fn of(document: &Document) -> Self {
        let mut used = Self::default();
        document.vars.values().for_each(|template| used.template(template));
        used.template(&document.output);
        document.visit(&mut |_, step| used.step(step));
        let Self { named, valued, .. } = &mut used;
        document.visit(&mut |_, step| {
            if named.contains(&step.id) {
                add_parts(step, valued);
            }
        });
        used
    }

    /// Whether everything is kept.
    pub(crate) fn is_everything(&self) -> bool {
        self.all
    }

    /// Whether anything looks at the result of a step.
    pub(crate) fn names(&self, id: &StepId) -> bool {
        self.all || self.named.contains(id)
    }

    /// Whether anything looks at what a step gave, by its own name or another one's.
    pub(crate) fn values(&self, id: &StepId) -> bool {
        self.all || self.valued.contains(id)
    }

    /// What a call's compensation looks at; nothing is known of it if all is kept.
    pub(crate) fn by_undo(&self, id: &StepId) -> Option<&UsedNames> {
        self.by_undo.get(id)
    }

    fn step(&mut self, step: &Step) {
        match &step.kind {
            StepKind::Call(call) => {
                self.call(call);
                if let Some(undo) = &call.compensate {
                    self.call(undo);
                    self.by_undo.insert(step.id.clone(), UsedNames::of(undo));
                }
            }
            StepKind::Each(each) => self.expression(&each.over),
            StepKind::Branch(branch) => {
                branch.cases.iter().for_each(|case| self.expression(&case.when));
            }
            StepKind::Loop(again) => self.expression(&again.condition),
            StepKind::Sleep(Sleep::For(template) | Sleep::Until(template))
            | StepKind::Return(template)
            | StepKind::Restart(template) => self.template(template),
            StepKind::Ask(ask) => {
                self.template(&ask.question);
                if let OnTimeout::Answer(answer) = &ask.on_timeout {
                    self.template(answer);
                }
            }
            StepKind::Approve(approve) => self.template(&approve.title),
            StepKind::Set(fields) => fields.values().for_each(|field| self.expression(field)),
            StepKind::Fail(fail) => self.template(&fail.message),
            StepKind::Seq(_) | StepKind::Parallel(_) | StepKind::Try(_) | StepKind::Signal(_) => {}
        }
    }

    fn call(&mut self, call: &Call) {
        self.template(&call.inputs);
        call.outputs.iter().for_each(|outputs| self.template(outputs));
        self.named.extend(call.continues.clone());
    }

    fn template(&mut self, template: &Template) {
        self.look(&template.references());
    }

    fn expression(&mut self, expression: &Expression) {
        self.look(&expression.references());
    }

    fn look(&mut self, found: &References) {
        match found.fields("steps") {
            Some(ids) => self.named.extend(ids.into_iter().filter_map(StepId::new)),
            None => self.all = true,
        }
    }
}

/// A step, and those whose values make up its own.
fn add_parts(step: &Step, valued: &mut BTreeSet<StepId>) {
    if !valued.insert(step.id.clone()) {
        return;
    }
    match &step.kind {
        StepKind::Seq(steps) => steps.last().into_iter().for_each(|last| add_parts(last, valued)),
        _ => step.inner().into_iter().for_each(|(_, part)| add_parts(part, valued)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn used(steps: &Value, output: &Value) -> UsedResults {
        let form = json!({"name": "x", "steps": steps, "output": output});
        UsedResults::of(&Document::read(&form).expect("a document"))
    }

    fn id(text: &str) -> StepId {
        StepId::new(text).expect("a name")
    }

    #[test]
    fn f046_only_results_that_something_looks_at_are_kept() {
        let call = |id: &str| json!({"id": id, "call": {"tool": "acme/work", "inputs": {}}});
        let each = json!({"id": "all", "each": {"over": "[1]", "as": "it",
            "step": {"id": "s", "seq": [call("first"), call("last")]}}});
        let of = used(&json!([call("a"), each]), &json!({"n": "${steps.all.outputs}"}));
        for (step, named, valued) in [
            ("a", false, false),
            ("all", true, true),
            ("s", false, true),
            ("first", false, false),
            ("last", false, true),
        ] {
            assert_eq!((of.names(&id(step)), of.values(&id(step))), (named, valued), "{step}");
        }
        let any = used(&json!([call("a")]), &json!({"n": "${steps[vars.which].outputs}"}));
        assert!(any.is_everything());
    }

    #[test]
    fn f046_files_and_compensations_are_looked_at_too() {
        let steps = json!([
            {"id": "a", "call": {"tool": "acme/work", "inputs": {}}},
            {"id": "b", "call": {"tool": "acme/work", "inputs": {}, "continues": "a",
                "compensate": {"tool": "acme/undo", "inputs": {"n": "${steps.b.outputs.n}"}}}},
        ]);
        let of = used(&steps, &json!({}));
        assert!(of.names(&id("a")) && of.values(&id("b")));
        let undo = of.by_undo(&id("b")).expect("it has one");
        assert!(undo.has_step("b") && !undo.has_step("a") && !undo.has("item"));
    }
}
