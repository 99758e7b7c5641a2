//! What finished steps gave, as far as anything looks at it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::limits::FLOW_VALUE_KEPT_BYTES_MAX;
use wharf_vocab::{Fault, Micro, Object, RunId};

use crate::weight::{memory_weight, value_weight};

/// What a result or a value takes with nothing in it.
const SLOT_BYTES: u64 = 64;

/// What a step gave, or where that is found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepValue {
    /// This.
    Here(Arc<Value>),
    /// The outputs of the run that did it, which is kept as long as its flow is open.
    Run(RunId),
    /// What several steps gave, in the order of their items or branches.
    List(Arc<Vec<Self>>),
}

impl Default for StepValue {
    fn default() -> Self {
        Self::Here(Arc::new(Value::Null))
    }
}

impl StepValue {
    /// The outputs of a call. Large ones are left where they are.
    pub(super) fn of_call(outputs: Object, run: Option<&RunId>) -> Self {
        match run.filter(|_| memory_weight(&outputs) > FLOW_VALUE_KEPT_BYTES_MAX) {
            Some(run) => Self::Run(run.clone()),
            None => Self::Here(Arc::new(Value::Object(outputs))),
        }
    }

    /// The runs whose outputs are needed for it.
    pub fn visit_runs<'a>(&'a self, visit: &mut dyn FnMut(&'a RunId)) {
        match self {
            Self::Here(_) => {}
            Self::Run(run) => visit(run),
            Self::List(items) => items.iter().for_each(|item| item.visit_runs(visit)),
        }
    }

    /// The whole value, with the outputs of other runs from `find`.
    pub fn whole(&self, find: &dyn Fn(&RunId) -> Value) -> Value {
        match self {
            Self::Here(value) => Value::clone(value),
            Self::Run(run) => find(run),
            Self::List(items) => items.iter().map(|item| item.whole(find)).collect(),
        }
    }

    /// About how many bytes it takes in memory.
    pub(super) fn weight(&self) -> u64 {
        SLOT_BYTES
            + match self {
                Self::Here(value) => value_weight(value),
                Self::Run(run) => run.as_str().len() as u64,
                Self::List(items) => items.iter().map(Self::weight).sum(),
            }
    }
}

/// What a finished step gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// Whether it did not succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// What it gave.
    #[serde(default)]
    pub outputs: StepValue,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// What it cost with all in it.
    #[serde(default)]
    pub cost_micro: Micro,
    /// The run that did it, if it is a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

impl StepResult {
    /// `succeeded` or `failed`.
    pub fn status(&self) -> &'static str {
        if self.failed { "failed" } else { "succeeded" }
    }

    pub(super) fn weight(&self) -> u64 {
        let error = self.error.as_ref();
        let error = error.map_or(0, |it| it.message.len() as u64 + memory_weight(&it.details));
        2 * SLOT_BYTES + self.outputs.weight() + error
    }
}

type Names = BTreeMap<Arc<str>, Arc<StepResult>>;

/// Results by where they stand: first the items and rounds that a step is in, then its name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Results(BTreeMap<Arc<str>, Arc<Names>>);

impl Results {
    pub(super) fn get(&self, path: &str) -> Option<&Arc<StepResult>> {
        let (within, name) = split(path);
        self.0.get(within)?.get(name)
    }

    pub(super) fn insert(&mut self, path: &str, result: StepResult) {
        let (within, name) = split(path);
        let names = match self.0.get_mut(within) {
            Some(names) => names,
            None => self.0.entry(within.into()).or_default(),
        };
        Arc::make_mut(names).insert(name.into(), Arc::new(result));
    }

    /// Forgets what was kept below a place.
    pub(super) fn prune(&mut self, prefix: &str) {
        for within in self.below(prefix) {
            self.0.remove(&within);
        }
    }

    /// Moves what was kept in a round to where the loop stands.
    pub(super) fn lift(&mut self, prefix: &str, to: &str) {
        for within in self.below(prefix) {
            let Some(names) = self.0.remove(&within) else { continue };
            let target = self.0.entry(format!("{to}{}", &within[prefix.len()..]).into());
            let names = Arc::unwrap_or_clone(names);
            Arc::make_mut(target.or_default()).extend(names);
        }
    }

    fn below(&self, prefix: &str) -> Vec<Arc<str>> {
        let from = self.0.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.map(|(within, _)| within).take_while(|it| it.starts_with(prefix)).cloned().collect()
    }

    /// What can be seen from within some items and rounds; what stands nearer hides what stands
    /// further out.
    pub(super) fn seen(&self, prefix: &str) -> BTreeMap<String, Arc<StepResult>> {
        let ends = prefix.match_indices('/').map(|(at, _)| at + 1);
        let mut seen = BTreeMap::new();
        for end in std::iter::once(0).chain(ends) {
            for (name, result) in self.0.get(&prefix[..end]).into_iter().flat_map(|it| it.iter()) {
                seen.insert(name.to_string(), Arc::clone(result));
            }
        }
        seen
    }

    pub(super) fn weight(&self) -> u64 {
        let all = self.0.values().flat_map(|names| names.iter());
        all.map(|(name, result)| name.len() as u64 + result.weight()).sum()
    }
}

/// Where a step stands, and its name.
fn split(path: &str) -> (&str, &str) {
    path.split_at(path.rfind('/').map_or(0, |at| at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(run: &str) -> StepResult {
        let run = Some(RunId::new(run).expect("an id"));
        StepResult { failed: false, outputs: StepValue::default(), error: None, cost_micro: 0, run }
    }

    fn seen(results: &Results, prefix: &str) -> Vec<String> {
        let told = |(name, it): (String, Arc<StepResult>)| {
            format!("{name}={}", it.run.as_ref().expect("a run").as_str())
        };
        results.seen(prefix).into_iter().map(told).collect()
    }

    #[test]
    fn f004_what_is_nearer_hides_what_is_further_out() {
        let mut results = Results::default();
        for (path, run) in [("a", "r1"), ("l[1]/a", "r2"), ("l[1]/b", "r3"), ("l[10]/b", "r4")] {
            results.insert(path, result(run));
        }
        assert_eq!(seen(&results, ""), ["a=r1"]);
        assert_eq!(seen(&results, "l[1]/"), ["a=r2", "b=r3"]);
        assert_eq!(seen(&results, "l[1]/x[0]/"), ["a=r2", "b=r3"]);
        results.lift("l[1]/", "");
        assert_eq!(seen(&results, ""), ["a=r2", "b=r3"]);
        results.prune("l[10]/");
        assert_eq!(seen(&results, "l[10]/"), ["a=r2", "b=r3"]);
        assert!(results.get("l[10]/b").is_none() && results.get("b").is_some());
    }

    #[test]
    fn f020_large_outputs_of_a_call_are_found_by_its_run() {
        let run = RunId::new("st-1").expect("an id");
        let outputs = |size: usize| Object::from_iter([("a".to_owned(), "x".repeat(size).into())]);
        let small = StepValue::of_call(outputs(10), Some(&run));
        assert_eq!(small, StepValue::Here(Arc::new(Value::Object(outputs(10)))));
        let large = StepValue::of_call(outputs(10_000), Some(&run));
        assert_eq!(large, StepValue::Run(run.clone()));
        let list = StepValue::List(Arc::new(vec![small, large]));
        let mut runs = Vec::new();
        list.visit_runs(&mut |run| runs.push(run.clone()));
        assert_eq!(runs, [run]);
        assert_eq!(list.whole(&|_| Value::from(7))[1], Value::from(7));
        assert!(list.weight() < 1_000);
    }
}
