//! Checks documents before they run: what cannot be meant, and what may be wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wharf_vocab::{Object, ToolId};

use super::{Call, Document, Expression, FlowFinding, OnTimeout, Sleep, Step, StepKind, Template};

/// Checks a document that was read. `is_tool` says whether there is a tool of an id; `schema_flaw`
/// says what is wrong with a JSON Schema. Without findings nothing was found.
pub fn check(
    document: &Document,
    is_tool: &dyn Fn(&ToolId) -> bool,
    schema_flaw: &dyn Fn(&Value) -> Option<String>,
) -> Vec<FlowFinding> {
    let mut check = DocumentCheck {
        document,
        is_tool,
        schema_flaw,
        findings: Vec::new(),
        vars: variables(document),
        ids: BTreeSet::new(),
        signals: BTreeMap::new(),
        names: Vec::new(),
        indexed: 0,
    };
    document.visit(&mut |_, step| {
        check.ids.insert(step.id.as_str().to_owned());
    });
    check.document();
    check.findings
}

/// What has finished at a place: steps that certainly or possibly have.
#[derive(Debug, Clone, Default)]
struct Done(BTreeSet<String>);

struct DocumentCheck<'a> {
    document: &'a Document,
    is_tool: &'a dyn Fn(&ToolId) -> bool,
    schema_flaw: &'a dyn Fn(&Value) -> Option<String>,
    findings: Vec<FlowFinding>,
    /// Variables that the document gives a value anywhere.
    vars: BTreeSet<String>,
    /// All steps.
    ids: BTreeSet<String>,
    /// Schemas of messages by their names.
    signals: BTreeMap<String, Option<Value>>,
    /// What items are called at this place.
    names: Vec<String>,
    /// Within how many steps that count this place stands.
    indexed: usize,
}

/// Names that every expression can see.
const ALWAYS: [&str; 5] = ["inputs", "vars", "steps", "run", "now"];

impl DocumentCheck<'_> {
    fn document(&mut self) {
        let document = self.document;
        self.schema("input_schema", document.input_schema.as_ref());
        self.schema("output_schema", document.output_schema.as_ref());
        for (name, value) in &document.vars {
            let place = format!("vars.{name}");
            value.visit(&place, &mut |place, found| {
                let Some(paths) = self.compiled(&place, found) else { return };
                for path in paths {
                    if !["inputs", "run", "now"].contains(&path[0].as_str()) {
                        let text = format!("Variables begin with `inputs`, and not `{}`.", path[0]);
                        self.findings.push(FlowFinding::error(place.clone(), text));
                    }
                }
            });
        }
        let mut done = Done::default();
        let goes_on = self.sequence(&document.steps, "steps", &mut done);
        if goes_on {
            self.template("output", &document.output, &done);
        }
        self.output_fits();
        if let Some(step) = &document.on_cancel {
            // Any step may have finished when somebody calls it off.
            let mut all = Done(self.ids.clone());
            self.step(step, "on_cancel", &mut all);
        }
    }

    /// Steps one after another. Whether anything can follow them.
    fn sequence(&mut self, steps: &[Step], place: &str, done: &mut Done) -> bool {
        let mut goes_on = true;
        for (at, step) in steps.iter().enumerate() {
            let place = format!("{place}[{at}]");
            if !goes_on {
                let text = format!("The step `{}` is never reached.", step.id);
                self.findings.push(FlowFinding::error(place.clone(), text));
                // Once is enough: what follows is not reached for the same reason.
                return false;
            }
            goes_on = self.step(step, &place, done);
        }
        goes_on
    }

    /// One step: whether anything can follow it.
    fn step(&mut self, step: &Step, place: &str, done: &mut Done) -> bool {
        let goes_on = self.body(step, place, done);
        done.0.insert(step.id.as_str().to_owned());
        goes_on
    }

    fn body(&mut self, step: &Step, place: &str, done: &mut Done) -> bool {
        match &step.kind {
            StepKind::Seq(steps) => self.sequence(steps, &format!("{place}.seq"), done),
            StepKind::Call(call) => {
                self.call(call, step.id.as_str(), place, done);
                true
            }
            StepKind::Parallel(parallel) => {
                let before = done.clone();
                let mut any = false;
                for (at, branch) in parallel.branches.iter().enumerate() {
                    let mut own = before.clone();
                    any |= self.step(branch, &format!("{place}.branches[{at}]"), &mut own);
                    done.0.extend(own.0);
                }
                any
            }
            StepKind::Each(each) => {
                self.expression(&format!("{place}.over"), &each.over, done);
                let before = self.names.len();
                self.names.push(each.bind.to_string());
                self.inner(&each.step, &format!("{place}.step"), done);
                self.names.truncate(before);
                true
            }
            StepKind::Loop(again) => {
                self.indexed += 1;
                // A round sees what the one before it did.
                let mut within = done.clone();
                again.step.visit("", &mut |_, step| {
                    within.0.insert(step.id.as_str().to_owned());
                });
                self.expression(&format!("{place}.while"), &again.condition, &within);
                self.indexed -= 1;
                self.inner(&again.step, &format!("{place}.step"), &mut within);
                true
            }
            StepKind::Branch(branch) => {
                let before = done.clone();
                let mut goes_on = branch.otherwise.is_none();
                for (at, case) in branch.cases.iter().enumerate() {
                    let case_place = format!("{place}.cases[{at}]");
                    self.expression(&format!("{case_place}.when"), &case.when, &before);
                    if at + 1 < branch.cases.len() && case.when.as_str() == "true" {
                        let text = "The cases behind this one are never reached.";
                        self.findings.push(FlowFinding::error(format!("{case_place}.when"), text));
                    }
                    let mut own = before.clone();
                    goes_on |= self.step(&case.step, &format!("{case_place}.step"), &mut own);
                    done.0.extend(own.0);
                }
                if let Some(step) = &branch.otherwise {
                    let mut own = before;
                    goes_on |= self.step(step, &format!("{place}.else"), &mut own);
                    done.0.extend(own.0);
                }
                goes_on
            }
            StepKind::Try(attempt) => {
                let mut own = done.clone();
                let mut goes_on = self.step(&attempt.step, &format!("{place}.step"), &mut own);
                done.0.extend(own.0);
                let before = done.clone();
                for (at, catch) in attempt.catches.iter().enumerate() {
                    let mut own = before.clone();
                    let place = format!("{place}.catch[{at}].step");
                    goes_on |= self.step(&catch.step, &place, &mut own);
                    done.0.extend(own.0);
                }
                if let Some(step) = &attempt.finally {
                    goes_on &= self.step(step, &format!("{place}.finally"), done);
                }
                goes_on
            }
            _ => self.plain(step, place, done),
        }
    }

    /// A step without others in it, and no call.
    fn plain(&mut self, step: &Step, place: &str, done: &Done) -> bool {
        match &step.kind {
            StepKind::Sleep(Sleep::For(time)) => {
                self.template(&format!("{place}.for"), time, done);
                let is_time = |text: &str| wharf_vocab::quantity::duration_ms(text).is_some();
                self.literal(&format!("{place}.for"), time, is_time, "a length of time: `1h30m`");
            }
            StepKind::Sleep(Sleep::Until(time)) => {
                self.template(&format!("{place}.until"), time, done);
                let is_time = |text: &str| wharf_vocab::rfc3339_ms(text).is_some();
                let what = "a moment: `2026-12-24T18:00:00Z`";
                self.literal(&format!("{place}.until"), time, is_time, what);
            }
            StepKind::Ask(ask) => {
                self.template(&format!("{place}.question"), &ask.question, done);
                self.schema(&format!("{place}.schema"), ask.schema.as_ref());
                if let OnTimeout::Answer(answer) = &ask.on_timeout {
                    self.template(&format!("{place}.on_timeout.answer"), answer, done);
                }
            }
            StepKind::Approve(approve) => {
                self.template(&format!("{place}.title"), &approve.title, done);
            }
            StepKind::Signal(signal) => {
                self.schema(&format!("{place}.schema"), signal.schema.as_ref());
                let name = signal.name.to_string();
                let known = self.signals.entry(name).or_insert_with(|| signal.schema.clone());
                if *known != signal.schema {
                    let text = format!("The signal `{}` has another schema before.", signal.name);
                    self.findings.push(FlowFinding::error(format!("{place}.schema"), text));
                }
            }
            StepKind::Set(values) => {
                for (name, value) in values {
                    self.expression(&format!("{place}.set.{name}"), value, done);
                }
            }
            StepKind::Return(value) => {
                self.template(&format!("{place}.return"), value, done);
                return false;
            }
            StepKind::Fail(fail) => {
                self.template(&format!("{place}.message"), &fail.message, done);
                return false;
            }
            StepKind::Restart(inputs) => {
                self.template(&format!("{place}.inputs"), inputs, done);
                return false;
            }
            _ => {}
        }
        true
    }

    /// A step that is done several times: what it is may be referred to by its number.
    fn inner(&mut self, step: &Step, place: &str, done: &mut Done) {
        self.indexed += 1;
        let mut own = done.clone();
        self.step(step, place, &mut own);
        // What happens in there is not seen from outside, but as the result of the whole.
        self.indexed -= 1;
    }

    fn call(&mut self, call: &Call, id: &str, place: &str, done: &Done) {
        self.plain_call(call, place, done);
        if let Some(step) = call.continues.as_ref().filter(|step| !done.0.contains(step.as_str())) {
            let text = format!("The step `{step}` cannot have finished here.");
            self.findings.push(FlowFinding::error(format!("{place}.continues"), text));
        }
        if let Some(undo) = &call.compensate {
            // It is undone when it has finished, and others after it may have, too.
            let mut all = Done(self.ids.clone());
            all.0.insert(id.to_owned());
            self.plain_call(undo, &format!("{place}.compensate"), &all);
        }
    }

    fn plain_call(&mut self, call: &Call, place: &str, done: &Done) {
        self.template(&format!("{place}.inputs"), &call.inputs, done);
        if let Some(outputs) = &call.outputs {
            self.template(&format!("{place}.outputs"), outputs, done);
        }
        if !(self.is_tool)(&call.tool) {
            let text = format!("There is no tool {} at the moment.", call.tool);
            self.findings.push(FlowFinding::warning(format!("{place}.tool"), text));
        }
    }

    fn template(&mut self, place: &str, template: &Template, done: &Done) {
        template.visit(place, &mut |place, found| self.expression(&place, found, done));
    }

    /// The paths that an expression refers to, if it compiles.
    fn compiled(&mut self, place: &str, of: &Expression) -> Option<BTreeSet<Vec<String>>> {
        match of.compile() {
            Ok(program) => Some(program.references().paths.clone()),
            Err(error) => {
                let text = format!("`{}` is no expression: {error}.", of.as_str());
                self.findings.push(FlowFinding::error(place, text));
                None
            }
        }
    }

    fn expression(&mut self, place: &str, of: &Expression, done: &Done) {
        let Some(paths) = self.compiled(place, of) else { return };
        for path in paths {
            let text = match (path[0].as_str(), path.get(1)) {
                ("steps", Some(id)) if !self.ids.contains(id) => {
                    format!("There is no step `{id}`.")
                }
                ("steps", Some(id)) if !done.0.contains(id) => {
                    format!("The step `{id}` cannot have finished here.")
                }
                ("steps", Some(id)) => match path.get(2).map(String::as_str) {
                    None | Some("outputs" | "status" | "error" | "cost_micro") => continue,
                    Some(other) => format!(
                        "A step has `outputs`, `status`, `error` and `cost_micro`, and `{id}` no \
                         `{other}`."
                    ),
                },
                ("vars", Some(name)) if !self.vars.contains(name) => {
                    format!("No step sets `{name}`.")
                }
                ("run", Some(field)) if !["id", "world"].contains(&field.as_str()) => {
                    format!("A run has `id` and `world` here, and no `{field}`.")
                }
                ("inputs", Some(name)) if !self.may_be_input(name) => {
                    format!("The input schema has no `{name}`.")
                }
                ("index", _) if self.indexed > 0 => continue,
                (name, _) if ALWAYS.contains(&name) => continue,
                (name, _) if self.names.iter().any(|known| known == name) => continue,
                (name, _) => format!("`{name}` stands for nothing here."),
            };
            self.findings.push(FlowFinding::error(place, text));
        }
    }

    /// Whether the inputs may have such a field, as far as their schema says.
    fn may_be_input(&self, name: &str) -> bool {
        let schema = self.document.input_schema.as_ref().and_then(Value::as_object);
        let Some(schema) = schema else { return true };
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let properties = schema.get("properties").and_then(Value::as_object);
        !closed || properties.is_some_and(|properties| properties.contains_key(name))
    }

    fn schema(&mut self, place: &str, schema: Option<&Value>) {
        if let Some(flaw) = schema.and_then(|schema| (self.schema_flaw)(schema)) {
            self.findings
                .push(FlowFinding::error(place, format!("This is no JSON Schema: {flaw}")));
        }
    }

    /// A fixed text that must be of some form.
    fn literal(&mut self, place: &str, value: &Template, fits: fn(&str) -> bool, what: &str) {
        let Template::Literal(value) = value else { return };
        let is_fine = match value {
            Value::String(text) => fits(text),
            Value::Number(number) => number.is_u64(),
            _ => false,
        };
        if !is_fine {
            self.findings.push(FlowFinding::error(place, format!("This is {what}.")));
        }
    }

    /// Whether the output has what its schema asks for, as far as its form says.
    fn output_fits(&mut self) {
        let schema = self.document.output_schema.as_ref().and_then(Value::as_object);
        let Some(schema) = schema else { return };
        let empty = Object::new();
        let fields: BTreeSet<&str> = match &self.document.output {
            Template::Object(fields) => fields.keys().map(String::as_str).collect(),
            Template::Literal(Value::Object(fields)) => fields.keys().map(String::as_str).collect(),
            _ => return,
        };
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains(name) {
                let text = format!("Its schema asks for `{name}`.");
                self.findings.push(FlowFinding::error("output", text));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            for name in fields.iter().filter(|name| !properties.contains_key(**name)) {
                let text = format!("Its schema has no `{name}`.");
                self.findings.push(FlowFinding::error(format!("output.{name}"), text));
            }
        }
    }
}

/// Variables that a document gives a value anywhere.
fn variables(document: &Document) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = document.vars.keys().cloned().collect();
    document.visit(&mut |_, step| {
        if let StepKind::Set(values) = &step.kind {
            names.extend(values.keys().cloned());
        }
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings(form: &Value) -> Vec<String> {
        let document = match Document::read(form) {
            Ok(document) => document,
            Err(findings) => return findings.iter().map(FlowFinding::to_string).collect(),
        };
        let is_tool = |tool: &ToolId| tool.as_str() != "gone/tool";
        let flaw = |schema: &Value| schema.get("type").is_some_and(Value::is_u64).then(String::new);
        let found = check(&document, &is_tool, &flaw);
        found.iter().map(|found| format!("{} {found}", found.level.as_str())).collect()
    }

    fn of_steps(steps: &Value) -> Vec<String> {
        findings(&json!({"name": "x", "output": {}, "steps": steps}))
    }

    #[test]
    fn f005_a_document_that_is_fine_has_no_findings() {
        let form = json!({"name": "fine", "vars": {"n": "${inputs.n}"}, "steps": [
            {"id": "a", "call": {"tool": "wharf/echo", "inputs": {"text": "${inputs.text}"},
                "compensate": {"tool": "wharf/echo", "inputs": {"text": "${steps.a.outputs}"}}}},
            {"id": "b", "each": {"over": "inputs.list", "as": "one", "step": {"id": "c",
                "set": {"last": "one + index + steps.a.cost_micro"}}}},
            {"id": "l", "loop": {"while": "vars.n < 3 && index < 5", "max": 9,
                "step": {"id": "m", "set": {"n": "vars.n + 1"}}}},
            {"id": "t", "try": {"step": {"id": "f", "fail": {"code": "a.b", "message": "x"}},
                "catch": [{"step": {"id": "g", "set": {"why": "steps.f.error.code"}}}]}}],
            "output": {"b": "${steps.b.outputs}", "why": "${vars.why}"},
            "on_cancel": {"id": "z", "set": {"y": "steps.a.status"}}});
        assert_eq!(findings(&form), Vec::<String>::new());
    }

    #[test]
    fn f005_findings_name_the_place() {
        let echo = |id: &str, text: &str| json!({"id": id, "call": {"tool": "wharf/echo", "inputs": {"text": text}}});
        for (steps, expected) in [
            (
                json!([echo("a", "${steps.b.outputs}")]),
                "error steps[0].inputs.text: There is no step `b`.",
            ),
            (
                json!([echo("a", "${steps.b.outputs}"), echo("b", "x")]),
                "error steps[0].inputs.text: The step `b` cannot have finished here.",
            ),
            (json!([echo("a", "${1 +}")]), "error steps[0].inputs.text: `1 +` is no expression"),
            (json!([echo("a", "${nothing}")]), "error steps[0].inputs.text: `nothing` stands for"),
            (json!([echo("a", "${vars.x}")]), "error steps[0].inputs.text: No step sets `x`."),
            (
                json!([{"id": "r", "return": {}}, echo("a", "x")]),
                "error steps[1]: The step `a` is never reached.",
            ),
            (
                json!([{"id": "a", "call": {"tool": "gone/tool"}}]),
                "warning steps[0].tool: There is no tool gone/tool",
            ),
            (
                json!([{"id": "l", "loop": {"while": "true", "step": echo("a", "x")}}]),
                "steps[0]: `max` is missing.",
            ),
            (
                json!([{"id": "p", "parallel": {"branches": [echo("a", "x"),
                    echo("b", "${steps.a.outputs.text}")]}}]),
                "error steps[0].branches[1].inputs.text: The step `a` cannot have finished here.",
            ),
            (
                json!([{"id": "e", "each": {"over": "inputs.x", "step": echo("a", "${item}")}},
                    echo("b", "${steps.a.outputs}")]),
                "error steps[1].inputs.text: The step `a` cannot have finished here.",
            ),
            (
                json!([{"id": "s", "sleep": {"for": "soon"}}]),
                "error steps[0].for: This is a length",
            ),
            (
                json!([{"id": "s", "signal": {"name": "go", "schema": {"type": 1}}}]),
                "error steps[0].schema: This is no JSON Schema",
            ),
            (
                json!([{"id": "s", "signal": {"name": "go"}},
                    {"id": "t", "signal": {"name": "go", "schema": {"type": "string"}}}]),
                "error steps[1].schema: The signal `go` has another schema before.",
            ),
        ] {
            let found = of_steps(&steps);
            let fits = found.iter().any(|found| found.starts_with(expected));
            assert!(fits, "{expected} in {found:?}");
        }
    }

    #[test]
    fn f005_the_output_is_compared_with_its_schema() {
        let form = json!({"name": "x", "steps": [{"id": "a", "set": {"b": "1"}}],
            "output": {"b": "${vars.b}"}, "output_schema": {"type": "object", "required": ["c"],
            "properties": {"c": {}}, "additionalProperties": false}});
        let found = findings(&form);
        assert!(found.iter().any(|text| text.contains("asks for `c`")), "{found:?}");
        assert!(found.iter().any(|text| text.contains("output.b: Its schema has no `b`")));
    }
}
