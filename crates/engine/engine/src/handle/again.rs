//! Running again what was run before, and how each attempt of a run went.

use serde_json::Value;
use wharf_domain::run::AttemptStarted;
use wharf_domain::scope::{InputBinding, Target, WorldPath};
use wharf_domain::{Entry, Run, RunEntry};
use wharf_ports::HistoryItem;
use wharf_vocab::{
    Code, Fault, Micro, Mode, Object, RunId, RunKey, Seq, StreamId, Timestamp, WorldId,
};

use super::request::NewRun;
use super::{RunCalls, RunEventCalls};

/// What is to be different when something is run again; what is absent stays as it was.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgainChanges {
    /// Inputs that replace those of the same name; null takes one away.
    pub inputs: Object,
    /// The world.
    pub world: Option<WorldId>,
    /// Whether to act or to pretend.
    pub mode: Option<Mode>,
    /// The caller's own id for the new run.
    pub run_id: Option<RunId>,
    /// The caller's own key for the request.
    pub idempotency_key: Option<String>,
    /// How long one attempt may run.
    pub timeout_ms: Option<u64>,
    /// The most the run and its children may cost.
    pub budget_micro: Option<Micro>,
}

/// One attempt of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptSpan {
    /// Its number, from 1.
    pub attempt: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it ended, if it did not succeed.
    pub error: Option<Fault>,
}

impl RunCalls<'_> {
    /// The request that runs again what a run did. Parts of addresses that let whoever knows them
    /// in are written nowhere, so inputs that are addresses have to be given anew.
    pub async fn again(self, run: &Run, changes: AgainChanges) -> Result<NewRun, Fault> {
        if run.is_withheld() {
            let message = "The inputs of this run were not kept; start it with inputs of your own.";
            return Err(Fault::new(Code::RunValuesNotKept, message));
        }
        let run = self.with_inputs(std::sync::Arc::new(run.clone())).await?;
        let spec = &run.spec;
        // Names and values of another protocol mean nothing here, not even a suffix.
        let literal = self.0.providers().tool(&spec.tool)?.def.mcp.is_some();
        let given = |name: &str| {
            let keys = [name.to_owned(), format!("{name}.world"), format!("{name}.local")];
            keys.iter().any(|key| changes.inputs.contains_key(key))
        };
        let (mut inputs, mut missing) = (Object::new(), Vec::new());
        for (name, value) in spec.inputs.iter().filter(|(name, _)| literal || !given(name)) {
            match spec.bindings.reads.get(name) {
                Some(InputBinding::Object(read)) => drop(inputs.insert(
                    if read.path.run().is_some() {
                        format!("{name}.local")
                    } else {
                        format!("{name}.world")
                    },
                    read.path.as_str().into(),
                )),
                Some(InputBinding::Uri) => missing.push(name.clone()),
                None if literal => drop(inputs.insert(name.clone(), value.clone())),
                None => drop(inputs.insert(plain_key(name), value.clone())),
            }
        }
        let outputs = outputs_of(&run, &mut missing);
        if !missing.is_empty() {
            let message = "Some values of this run were not kept whole, since they may contain \
                           credentials; give them anew.";
            return Err(Fault::new(Code::RunInputsStripped, message).with("fields", missing));
        }
        for (name, value) in changes.inputs {
            if value.is_null() {
                drop(inputs.remove(&name))
            } else {
                drop(inputs.insert(name, value))
            }
        }
        let own = |id: &String| *id != run.key.run.as_str();
        Ok(NewRun {
            outputs,
            mode: changes.mode.unwrap_or(spec.mode),
            run_id: changes.run_id,
            continues: spec.continues.clone(),
            idempotency_key: changes.idempotency_key,
            timeout_ms: changes.timeout_ms.or(Some(spec.timeout_ms)),
            correlation_id: spec.correlation_id.clone().filter(own),
            budget_micro: changes.budget_micro.or(spec.budget_micro),
            durability: Some(spec.durability),
            context: spec.context.clone(),
            ..NewRun::new(
                spec.tool.clone(),
                inputs,
                changes.world.unwrap_or_else(|| run.key.world.clone()),
            )
        })
    }
}

impl RunEventCalls<'_> {
    /// The attempts of a run, oldest first. One that its provider had no room for counts as never
    /// begun.
    pub async fn attempts(self, run: &Run) -> Result<Vec<AttemptSpan>, Fault> {
        let mut spans: Vec<AttemptSpan> = Vec::new();
        for (at, entry) in self.entries(&run.key).await? {
            follow(&mut spans, at, &entry);
        }
        Ok(spans)
    }

    /// What was written about a run, oldest first, each with the moment when it was.
    pub async fn entries(self, key: &RunKey) -> Result<Vec<(Timestamp, RunEntry)>, Fault> {
        let kept = self.0.inner.hub.memory_history(key, Seq(0));
        let entries: Vec<(Timestamp, Entry)> = match kept {
            Some(records) => records
                .into_iter()
                .filter_map(|record| match record.item {
                    HistoryItem::Entry(entry) => Some((record.at, entry)),
                    HistoryItem::Progress(_) => None,
                })
                .collect(),
            None => {
                let stored = self.0.inner.store.load(StreamId::Run(key.clone())).await?;
                stored.map_or_else(Vec::new, |stored| stored.entries)
            }
        };
        let of_run = |(at, entry)| match entry {
            Entry::Run(entry) => Some((at, entry)),
            _ => None,
        };
        Ok(entries.into_iter().filter_map(of_run).collect())
    }
}

fn follow(spans: &mut Vec<AttemptSpan>, at: Timestamp, entry: &RunEntry) {
    let open = |spans: &mut Vec<AttemptSpan>, error: Option<&Fault>| {
        if let Some(last) = spans.last_mut().filter(|last| last.ended_at.is_none()) {
            last.ended_at = Some(at);
            last.error = error.cloned();
        }
    };
    match entry {
        RunEntry::AttemptStarted(AttemptStarted { attempt, .. }) => {
            let attempt = *attempt;
            spans.push(AttemptSpan { attempt, started_at: at, ended_at: None, error: None });
        }
        RunEntry::RoomAwaited(awaited) if awaited.attempt_id.is_some() => drop(spans.pop()),
        RunEntry::AttemptFailed(failed) => open(spans, Some(&failed.error)),
        RunEntry::Ended(ended) => open(spans, ended.outcome.error()),
        _ => {}
    }
}

/// Where outputs went, as a request says it.
fn outputs_of(run: &Run, missing: &mut Vec<String>) -> Object {
    let mut outputs = Object::new();
    for (name, target) in &run.spec.bindings.writes {
        let Target::Object { path } = target else {
            missing.push(format!("outputs.{name}"));
            continue;
        };
        let own = path.run() == Some(run.key.run.as_str());
        let (end, path): (&str, &str) = match own {
            true => (".local", WorldPath::within(path)),
            false => (".world", path.as_str()),
        };
        outputs.insert(format!("{name}{end}"), Value::from(path));
    }
    outputs
}

/// The key that stands for a name, also for one that looks as if it had a suffix.
fn plain_key(name: &str) -> String {
    for end in [".world", ".local"] {
        if let Some(base) = name.strip_suffix(end) {
            return format!("{base}.{end}");
        }
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c012_a_name_that_looks_like_a_reference_stays_a_name() {
        assert_eq!(plain_key("text"), "text");
        assert_eq!(plain_key("a.world"), "a..world");
        assert_eq!(plain_key("a.local"), "a..local");
    }
}
