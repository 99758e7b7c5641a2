//! A whole document: what a flow takes, does and gives.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use wharf_vocab::limits::{FLOW_CLOSING_DEFAULT_MS, FLOW_DEADLINE_MAX_MS};
use wharf_vocab::{Digest, Micro, Object, ToolId};

use super::used::UsedCache;
use super::{FlowFinding, Step, StepId, StepKind, Template};

/// What a flow takes, does and gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its name, the second half of its tool's id.
    pub name: String,
    /// What it does, for people and models.
    pub description: String,
    /// JSON Schema of the inputs; any object unless it says otherwise.
    pub input_schema: Option<Value>,
    /// JSON Schema of the output.
    pub output_schema: Option<Value>,
    /// Variables and what they are in the beginning; expressions see `inputs`, `run` and `now`.
    pub vars: BTreeMap<String, Template>,
    /// What it does, one after another.
    pub steps: Vec<Step>,
    /// What it gives: an object.
    pub output: Template,
    /// What it does at last when it is canceled.
    pub on_cancel: Option<Box<Step>>,
    /// What one run of it may take.
    pub limits: FlowLimits,
    pub(super) used: UsedCache,
}

/// What one run of a flow may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowLimits {
    /// How long it may live, whatever it waits for.
    pub deadline_ms: Option<u64>,
    /// The most it and all below it may cost.
    pub budget_micro: Option<Micro>,
    /// How long it may work on when it is canceled.
    pub on_cancel_ms: Option<u64>,
}

impl FlowLimits {
    /// How long it may work on when it is canceled.
    pub fn closing_ms(&self) -> u64 {
        self.on_cancel_ms.unwrap_or(FLOW_CLOSING_DEFAULT_MS)
    }

    /// How long it may live.
    pub fn life_ms(&self) -> u64 {
        self.deadline_ms.unwrap_or(FLOW_DEADLINE_MAX_MS)
    }
}

impl Document {
    /// The namespace of all flows among the tools.
    pub const NAMESPACE: &'static str = "flow";

    /// Reads a document, or says all that is wrong with its form.
    pub fn read(value: &Value) -> Result<Self, Vec<FlowFinding>> {
        super::read::document(value)
    }

    /// The JSON that it is read from, without what goes without saying.
    pub fn to_value(&self) -> Value {
        Value::Object(super::write::document(self))
    }

    /// The hash that stands for all of it: two documents that say the same have the same hash,
    /// however they are written.
    pub fn hash(&self) -> Digest {
        Digest::of_object(&super::write::document(self))
    }

    /// The id of one version of it among the tools.
    pub fn tool(&self, version: u32) -> Option<ToolId> {
        ToolId::new(format!("{}/{}@{version}", Self::NAMESPACE, self.name)).ok()
    }

    /// What it takes.
    pub fn input_schema(&self) -> Value {
        let any = || Value::Object(Object::from_iter([("type".to_owned(), "object".into())]));
        self.input_schema.clone().unwrap_or_else(any)
    }

    /// Calls `visit` with every step and its place, those within others after them.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(&str, &'a Step)) {
        for (at, step) in self.steps.iter().enumerate() {
            step.visit(&format!("steps[{at}]"), visit);
        }
        if let Some(step) = &self.on_cancel {
            step.visit("on_cancel", visit);
        }
    }

    /// The step with a name, wherever it stands.
    pub fn step(&self, id: &StepId) -> Option<&Step> {
        let mut found = None;
        self.visit(&mut |_, step| {
            if step.id == *id {
                found = Some(step);
            }
        });
        found
    }
}

impl Step {
    /// Calls `visit` with this step and all within it, and their places.
    pub fn visit<'a>(&'a self, place: &str, visit: &mut dyn FnMut(&str, &'a Step)) {
        visit(place, self);
        for (below, step) in self.inner() {
            step.visit(&format!("{place}.{below}"), visit);
        }
    }

    /// The steps that stand directly in this one, and their places in it.
    pub fn inner(&self) -> Vec<(String, &Step)> {
        let one = |name: &str, step| vec![(name.to_owned(), step)];
        match &self.kind {
            StepKind::Seq(steps) => numbered("seq", "", steps.iter()),
            StepKind::Parallel(parallel) => numbered("branches", "", parallel.branches.iter()),
            StepKind::Each(each) => one("step", &each.step),
            StepKind::Loop(again) => one("step", &again.step),
            StepKind::Branch(branch) => {
                let cases = branch.cases.iter().map(|case| &case.step);
                let mut steps = numbered("cases", ".step", cases);
                steps.extend(branch.otherwise.iter().map(|step| ("else".to_owned(), &**step)));
                steps
            }
            StepKind::Try(attempt) => {
                let mut steps = one("step", &attempt.step);
                let catches = attempt.catches.iter().map(|catch| &catch.step);
                steps.extend(numbered("catch", ".step", catches));
                steps.extend(attempt.finally.iter().map(|step| ("finally".to_owned(), step)));
                steps
            }
            StepKind::Call(_)
            | StepKind::Sleep(_)
            | StepKind::Ask(_)
            | StepKind::Approve(_)
            | StepKind::Signal(_)
            | StepKind::Set(_)
            | StepKind::Return(_)
            | StepKind::Fail(_)
            | StepKind::Restart(_) => Vec::new(),
        }
    }
}

fn numbered<'a>(
    name: &str,
    below: &str,
    steps: impl Iterator<Item = &'a Step>,
) -> Vec<(String, &'a Step)> {
    steps.enumerate().map(|(at, step)| (format!("{name}[{at}]{below}"), step)).collect()
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        super::write::document(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value).map_err(|findings| {
            let first = findings.first().map_or_else(String::new, FlowFinding::to_string);
            serde::de::Error::custom(first)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The example that fixes the form.
    fn example() -> Value {
        json!({ "name": "digest", "description": "Shouts words, asks, waits.",
          "input_schema": {"type": "object", "properties": {"n": {"type": "integer"},
              "words": {"type": "array"}}, "required": ["n", "words"]},
          "steps": [
            {"id": "count", "call": {"tool": "wharf/count", "inputs": {"n": "${inputs.n}"},
                "timeout": "30s"}},
            {"id": "all", "each": {"over": "${inputs.words}", "as": "word", "concurrency": 4,
                "step": {"id": "one", "call": {"tool": "wharf/echo",
                    "inputs": {"text": "${word}"}}}}},
            {"id": "ok", "approve": {"title": "Send ${size(steps.all.outputs)} words?",
                "deadline": "1h"}},
            {"id": "nap", "sleep": {"for": "2s"}},
            {"id": "which", "branch": {"cases": [{"when": "steps.count.outputs.sum > 10",
                "step": {"id": "big", "set": {"size": "'big'"}}}],
                "else": {"id": "small", "set": {"size": "'small'"}}}} ],
          "output": {"sum": "${steps.count.outputs.sum}", "size": "${vars.size}",
              "words": "${steps.all.outputs.map(o, o.text)}"} })
    }

    fn everything() -> Value {
        json!({ "name": "all", "description": "Has every kind of step.",
          "output_schema": {"type": "object"}, "vars": {"n": 0, "of": ["${inputs.a}", "$${x}"]},
          "steps": [
            {"id": "s", "seq": [
              {"id": "c", "call": {"tool": "acme/pay", "inputs": {}, "outputs": {"f": "/a/${n}"},
                "retry": {"max": 3, "backoff": "2s", "on": ["tool.*"], "unsafe": true},
                "budget_micro": 5, "gate": "person", "compensate": {"tool": "acme/refund",
                "inputs": {"id": "${steps.c.outputs.id}"}}}},
              {"id": "d", "call": {"tool": "flow/other", "continues": "c"}}]},
            {"id": "p", "parallel": {"branches": [{"id": "p1", "sleep": {"until": "${now}"}}],
              "mode": "any", "on_error": "collect"}},
            {"id": "l", "loop": {"while": "vars.n < 3", "max": 3,
              "step": {"id": "l1", "set": {"n": "vars.n + 1"}}}},
            {"id": "t", "try": {"step": {"id": "t1", "fail": {"code": "my.error",
              "message": "No ${x}."}}, "catch": [{"codes": ["my.error"],
              "step": {"id": "t2", "set": {"ok": "true"}}}],
              "finally": {"id": "t3", "set": {"over": "true"}}}},
            {"id": "q", "ask": {"question": "Which?", "schema": {"type": "string"},
              "audience": "person", "deadline": "1d", "on_timeout": {"answer": "none"}}},
            {"id": "g", "signal": {"name": "go", "schema": {"type": "object"}}},
            {"id": "b", "branch": {"cases": [{"when": "true",
              "step": {"id": "r", "return": {"x": 1}}}], "else": {"id": "again",
              "restart": {"inputs": {"a": "${inputs.a}"}}}}} ],
          "output": {}, "on_cancel": {"id": "z", "sleep": {"for": "1s"}},
          "limits": {"deadline": "7d", "budget_micro": 1000, "on_cancel": "10m"} })
    }

    #[test]
    fn f003_the_documents_form_survives_reading_and_writing() {
        for form in [example(), everything()] {
            let document = Document::read(&form).expect("reads");
            let written = document.to_value();
            assert_eq!(Document::read(&written).expect("reads again"), document);
            let text = serde_json::to_string(&document).expect("serializes");
            assert_eq!(serde_json::from_str::<Document>(&text).expect("reads"), document);
        }
    }

    #[test]
    fn f002_documents_that_say_the_same_have_one_hash() {
        let document = Document::read(&example()).expect("reads");
        let mut spelled_out = example();
        spelled_out["steps"][1]["each"]["on_error"] = json!("fail_fast");
        spelled_out["steps"][0]["call"]["timeout"] = json!("30000ms");
        assert_eq!(Document::read(&spelled_out).expect("reads").hash(), document.hash());
        let mut other = example();
        other["steps"][1]["each"]["on_error"] = json!("collect");
        assert_ne!(Document::read(&other).expect("reads").hash(), document.hash());
        assert_eq!(document.tool(3).expect("an id").as_str(), "flow/digest@3");
    }

    #[test]
    fn f003_what_is_wrong_names_its_place() {
        let mut form = example();
        form["steps"][0]["call"]["inputs"]["n"] = json!("${inputs.n");
        form["steps"][1]["each"]["step"]["call"]["tol"] = json!("x");
        form["steps"][3] = json!({"id": "nap", "sleep": {"for": "2s"}, "seq": []});
        form["steps"][4]["branch"]["else"]["id"] = json!("count");
        form["extra"] = json!(1);
        let found = Document::read(&form).expect_err("refused");
        let places: Vec<&str> = found.iter().map(|finding| finding.place.as_str()).collect();
        for place in
            ["steps[0].inputs.n", "steps[1].step.tol", "steps[3]", "steps[4].else.id", "extra"]
        {
            assert!(places.contains(&place), "{place} in {places:?}");
        }
    }

    #[test]
    fn f006_documents_have_a_size_and_a_depth() {
        let mut form = example();
        let step = |n: usize| json!({"id": format!("x{n}"), "set": {"a": "1"}});
        form["steps"] = (0..1_001).map(step).collect();
        let found = Document::read(&form).expect_err("too many");
        assert!(found[0].text.contains("1000"), "{found:?}");

        let mut deep = json!({"id": "last", "set": {"a": "1"}});
        for n in 0..32 {
            deep = json!({"id": format!("d{n}"), "seq": [deep]});
        }
        form["steps"] = json!([deep]);
        let found = Document::read(&form).expect_err("too deep");
        assert!(found[0].text.contains("32"), "{found:?}");
    }
}
