//! What a receiver is told besides what is owed: the values that it asked for, scrubbed, and whether
//! its condition holds. Both are looked at when it is sent, outside the tasks of shards.

use wharf_domain::notify::IncludedValues;
use wharf_domain::{Caller, Notification, Outcome, Receiver, Run};
use wharf_vocab::{Code, Fault, NotifyInclude, Object, RunKey, Verb, json};

use super::firing::evaluated;
use super::scrub::IssuedAddresses;
use super::{Handle, ReceiverCalls};
use crate::clean::Clean as _;

/// Largest inputs or outputs that leave the core with a notification.
const INCLUDED_BYTES_MAX: usize = 64 * 1024;

impl ReceiverCalls<'_> {
    /// The values that go with a notification; none of it is sent if the receiver's condition does
    /// not hold.
    pub async fn letter(
        self,
        receiver: &Receiver,
        it: &Notification,
    ) -> Result<Option<IncludedValues>, Fault> {
        let spec = &receiver.spec;
        let values = match spec.include.is_empty() || it.event == "test" {
            true => IncludedValues::default(),
            false => self.values(receiver, it).await?,
        };
        let Some(when) = spec.when.clone().filter(|_| it.event != "test") else {
            return Ok(Some(values));
        };
        let told = it.clone();
        evaluated(move || Ok(told.fits(&when, &values)?.then_some(values))).await
    }

    async fn values(self, receiver: &Receiver, it: &Notification) -> Result<IncludedValues, Fault> {
        let (Some(world), Some(run)) = (&it.world, &it.run) else {
            return Ok(IncludedValues::default());
        };
        let caller = Caller::receiver(receiver);
        let key = RunKey { world: world.clone(), run: run.clone() };
        let run = match self.0.runs().get(&key).await {
            Ok(run) => run,
            // It was removed meanwhile.
            Err(fault) if fault.is(Code::RunNotFound) => return Ok(IncludedValues::default()),
            Err(fault) => return Err(fault),
        };
        let may = self.0.trust().authorise(&caller, Verb::Read, world);
        if may.and_then(|()| caller.rights.check_tool(&run.spec.tool)).is_err() {
            return Ok(IncludedValues::default());
        }
        if run.spec.is_withheld() {
            return Ok(IncludedValues::default());
        }
        let run = self.0.runs().with_inputs(run).await?;
        let wants = |what| receiver.spec.include.contains(&what);
        let inputs = wants(NotifyInclude::Inputs).then(|| Object::clone(&run.spec.inputs));
        let outputs = outputs_of(&run).filter(|_| wants(NotifyInclude::Outputs)).cloned();
        Ok(IncludedValues {
            inputs: inputs.and_then(|it| scrubbed(self.0, it)),
            outputs: outputs.and_then(|it| scrubbed(self.0, it)),
        })
    }
}

/// What a run gave, if it gave anything.
pub(super) fn outputs_of(run: &Run) -> Option<&Object> {
    match &run.outcome {
        Some(Outcome::Succeeded { outputs }) => Some(outputs),
        _ => None,
    }
}

/// Values without addresses that are capabilities and without secrets; nothing if they are too
/// large to be sent.
fn scrubbed(handle: &Handle, mut values: Object) -> Option<Object> {
    if json::json_bytes(&values) > INCLUDED_BYTES_MAX {
        return None;
    }
    IssuedAddresses::default().object(&mut values);
    handle.inner.redactor.object(&mut values);
    Some(values)
}
