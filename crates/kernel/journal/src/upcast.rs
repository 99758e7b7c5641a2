//! Brings data of older versions up to the newest, one version at a time.

use serde_json::{Value, json};

use crate::{Error, Kind};

/// One step: data of `kind` in version `from` becomes data in version `from + 1`.
pub(crate) struct Upcast {
    pub(crate) kind: Kind,
    pub(crate) from: u32,
    pub(crate) up: fn(Value) -> Value,
}

/// Which versions there are and how to climb from one to the next.
///
/// A change of a stored shape raises the kind's number in `kind.rs`, adds a step here and keeps
/// the golden file of the old version.
pub(crate) struct Versions {
    pub(crate) newest: fn(Kind) -> u32,
    pub(crate) steps: &'static [Upcast],
}

/// What this version of Wharf reads.
pub(crate) const VERSIONS: Versions = Versions {
    newest: Kind::newest,
    steps: &[
        Upcast { kind: Kind::RunCreated, from: 1, up: gate_of_run },
        // Limits, isolation, pinned files and terms joined; what is absent has a default.
        Upcast { kind: Kind::AgentAdded, from: 1, up: |data| data },
        Upcast { kind: Kind::AgentApproved, from: 1, up: |data| data },
        Upcast { kind: Kind::TriggerAdded, from: 1, up: hook_of_trigger },
    ],
};

/// Whether a run needed an approval was a plain yes or no, and only a person could give it.
fn gate_of_run(mut created: Value) -> Value {
    if let Some(spec) = created.get_mut("spec").and_then(Value::as_object_mut)
        && spec.remove("needs_approval") == Some(Value::Bool(true))
    {
        let reason = "The tool asks for an approval of every run.";
        spec.insert("gate".to_owned(), json!({ "audience": "person", "reason": reason }));
    }
    created
}

/// Triggers had a hook each, before they started runs on anything else.
fn hook_of_trigger(mut added: Value) -> Value {
    if let Some(spec) = added.get_mut("spec").and_then(Value::as_object_mut) {
        let mut hook = serde_json::Map::new();
        for (old, new) in [("hook", "id"), ("proof", "proof"), ("secret", "secret")] {
            hook.extend(spec.remove(old).map(|value| (new.to_owned(), value)));
        }
        spec.insert("on".to_owned(), json!({ "hook": hook }));
    }
    added
}

impl Versions {
    /// Brings `data` from `version` to the newest.
    pub(crate) fn up(&self, kind: Kind, version: u32, mut data: Value) -> Result<Value, Error> {
        for from in version..(self.newest)(kind) {
            let step = self
                .steps
                .iter()
                .find(|step| step.kind == kind && step.from == from)
                .ok_or(Error::NeverWritten { kind, version: from })?;
            data = (step.up)(data);
        }
        Ok(data)
    }
}
