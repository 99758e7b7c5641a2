//! From the engine's words to the run protocol.

use std::collections::BTreeMap;

use serde_json::Value;
use wharf_engine::Attempt;
use wharf_vocab::{Fault, Mode, Object, Timestamp};
use wharf_wire::run_v1::{self as wire, RequestControl, RunRequest};

use super::{FileAccess, Settings, ShownAddresses};

/// What a server is asked, and what it was given for it. It holds addresses and is not kept.
pub(super) struct ServerOrder {
    pub(super) request: RunRequest,
    /// Where each output goes.
    pub(super) places: BTreeMap<String, String>,
    /// What records have for each address.
    pub(super) shown: ShownAddresses,
}

/// An attempt as a request.
pub(super) async fn order(
    attempt: &Attempt,
    files: &FileAccess,
    settings: &Settings,
    now: Timestamp,
) -> Result<ServerOrder, Fault> {
    let (dispatch, data) = (attempt.dispatch(), attempt.data());
    let spec = &dispatch.spec;
    let (inputs, places) = match files {
        FileAccess::Addresses => (data.inputs_with_addresses().await?, data.output_addresses()?),
        FileAccess::Paths { inputs, outputs } => {
            // Addresses elsewhere are passed on as they are.
            let elsewhere = data.refs().iter().any(|name| !inputs.contains_key(name));
            let mut all = if elsewhere {
                data.inputs_with_addresses().await?
            } else {
                Object::clone(&spec.inputs)
            };
            all.extend(inputs.iter().map(|(name, path)| (name.clone(), path.clone().into())));
            let mut places = outputs.clone();
            if data.output_names().iter().any(|name| !outputs.contains_key(name)) {
                for (name, address) in data.output_addresses()? {
                    places.entry(name).or_insert(address);
                }
            }
            (all, places)
        }
    };
    let shown = shown(&data.refs(), (&inputs, &spec.inputs), (&places, &spec.outputs));
    let mode = match spec.mode {
        Mode::Real => wire::Mode::Real,
        Mode::Mock => wire::Mode::Mock,
    };
    let control = RequestControl {
        attempt: dispatch.attempt,
        // The list stands even when it is empty: then no text is taken for an address.
        refs: Some(data.refs()),
        world: Some(dispatch.run.world.as_str().to_owned()),
        // The time of durable code stands still while it waits for a step; the core looks after it.
        deadline_ms: dispatch
            .deadline
            .filter(|_| !spec.durable)
            .map(|deadline| deadline.ms_since(now).max(1)),
        required: settings.required.clone(),
        tool: settings.tool.clone(),
        steps: spec.durable,
        traceparent: dispatch.trace.traceparent.clone(),
        tracestate: dispatch.trace.tracestate.clone(),
        ..RequestControl::new(dispatch.run.run.as_str(), mode)
    };
    let outputs = places.iter().map(|(name, at)| (name.clone(), at.clone().into())).collect();
    Ok(ServerOrder { request: RunRequest { control, inputs, outputs }, places, shown })
}

fn shown(
    refs: &[String],
    (inputs, kept_inputs): (&Object, &Object),
    (places, kept_outputs): (&BTreeMap<String, String>, &Object),
) -> ShownAddresses {
    let text =
        |values: &Object, name: &str| values.get(name).and_then(Value::as_str).map(str::to_owned);
    let read = refs.iter().filter_map(|name| Some((text(inputs, name)?, text(kept_inputs, name)?)));
    let write = places
        .iter()
        .filter_map(|(name, address)| Some((address.clone(), text(kept_outputs, name)?)));
    ShownAddresses::new(read.chain(write))
}
