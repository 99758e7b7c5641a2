//! The end of a call that has to do with files: what it wrote goes to the artifact store, and
//! only then the attempt has succeeded. All of it beside the connection: it may take long.

use std::sync::Arc;

use serde_json::Value;
use wharf_domain::run::AttemptError;
use wharf_engine::{Attempt, AttemptData, AttemptEnd, AttemptOutputs, Handle, Reach};
use wharf_hosting::{CallFolder, Permit, Places, WrittenFiles as _, copy_out, unless_over};
use wharf_vocab::{Executed, Fault};

/// A call that has ended well, as far as its agent is concerned.
pub(super) struct Delivery {
    pub(super) attempt: Attempt,
    pub(super) room: Option<CallFolder>,
    pub(super) outputs: AttemptOutputs,
    pub(super) cost_micro: u64,
    pub(super) reach: Reach,
    /// What the files of a call may have together.
    pub(super) bytes_max: u64,
    /// Held to the end, so that an agent cannot give faster than the store takes.
    pub(super) permit: Permit,
    /// Held to the end: the launch may be over before, and takes its folders with it.
    pub(super) places: Arc<Places>,
}

/// Whether ending a call takes more than telling the engine.
pub(super) fn takes_time(attempt: &Attempt, outputs: &AttemptOutputs) -> bool {
    !attempt.data().is_empty() || !outputs.written.is_empty()
}

/// Takes the files of a call to the artifact store and ends the attempt.
pub(super) async fn deliver(handle: Handle, delivering: Delivery) {
    let Delivery { attempt, room, outputs, cost_micro, reach, bytes_max, permit, places } =
        delivering;
    let data = attempt.data();
    let room = room.map(Arc::new);
    let written = names_of_files(&data, &outputs, reach, room.as_deref());
    let delivered = if written.is_empty() {
        Ok(())
    } else {
        let stored = write_all(&data, written, room.clone(), bytes_max);
        unless_over(&handle, &attempt.dispatch().run, stored).await
    };
    // When the engine is gone there is nobody left to tell, here and below.
    let _ = match delivered {
        Ok(()) => attempt.succeeded(outputs, cost_micro).await,
        Err(fault) => {
            let result = Err(AttemptError::Failed(fault, Executed::Yes));
            attempt.ended(AttemptEnd::new(result, cost_micro)).await
        }
    };
    if let Some(room) = room {
        wharf_hosting::discard(&places, &room);
    }
    drop((permit, places));
}

/// The outputs that are files in the call's room: those that are said to be written, or to be
/// where they were to be written. What went to an address is looked for by the engine.
fn names_of_files(
    data: &AttemptData,
    outputs: &AttemptOutputs,
    reach: Reach,
    room: Option<&CallFolder>,
) -> Vec<String> {
    let bound = data.output_names();
    let AttemptOutputs { values, written } = outputs;
    let in_folder = |name: &String| reach == Reach::Folder && data.place(name).is_some();
    let is_file = |name: &&String| !bound.contains(name) || in_folder(name);
    let is_echo = |(name, value): &(&String, &Value)| {
        let here = room.is_some_and(|room| value.as_str() == Some(&room.output_path(name)));
        bound.contains(name) && in_folder(name) && here
    };
    let echoed = values.iter().filter(is_echo).map(|(name, _)| name);
    let mut names: Vec<_> = written.keys().filter(is_file).chain(echoed).cloned().collect();
    // One that nothing was said of may have been written all the same.
    if let (Reach::Folder, Some(room)) = (reach, room) {
        let unsaid = |name: &String| {
            !written.contains_key(name) && values.get(name).is_none_or(Value::is_null)
        };
        let is_there = |name: &String| data.place(name).is_some() && room.open_output(name).is_ok();
        for name in bound.iter().filter(|name| unsaid(name) && is_there(name)) {
            data.found(name);
            names.push(name.clone());
        }
    }
    names
}

async fn write_all(
    data: &AttemptData,
    names: Vec<String>,
    room: Option<Arc<CallFolder>>,
    bytes_max: u64,
) -> Result<(), Fault> {
    let room = room.ok_or_else(wharf_hosting::no_room)?;
    let bound = data.output_names();
    if names.iter().any(|name| !bound.contains(name) && !wharf_hosting::is_plain_name(name)) {
        return Err(wharf_hosting::unnameable());
    }
    copy_out(data, &room, names, bytes_max).await
}
