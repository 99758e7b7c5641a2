//! What a call needs before it can be sent: its inputs as files, its outputs' places.
//!
//! An agent that can reach the artifact store is given addresses of its input files, which are
//! looked for first. For others every file is copied into the call's room. Both happen beside the
//! connection, since they may take long. Meanwhile the call has a place, can be canceled, and has not begun.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wharf_engine::{Attempt, AttemptData, AttemptRef, Reach};
use wharf_hosting::{Assignment, CallFolder, FILES_MAX, Places, copy_in};
use wharf_vocab::{Code, Fault, Object};

use super::calls::{gone, turn_back};
use crate::to_wire::CallData;

/// Calls that may wait to be sent after they were prepared.
pub(super) const READY_WAITING_MAX: usize = 16;

/// A call on its way to the agent.
pub(super) struct PreparedCall {
    pub(super) assignment: Assignment,
    pub(super) room: Option<CallFolder>,
    pub(super) reach: Reach,
    /// The folders of the launch, which must not go while something is written there.
    pub(super) places: Arc<Places>,
}

impl PreparedCall {
    pub(super) fn attempt(&self) -> &Attempt {
        &self.assignment.attempt
    }
}

/// A call whose files are there, or are not to be had.
pub(super) struct ReadyCall {
    pub(super) coming: PreparedCall,
    /// `None` if it was canceled.
    pub(super) fetched: Option<Result<(), Fault>>,
}

/// Whether files must be looked at or copied before the call can be sent.
pub(super) fn takes_time(data: &AttemptData) -> bool {
    !data.is_empty() && !data.input_files().is_empty()
}

/// The data of a call. Files are said to be where they are or will be copied.
pub(super) async fn data_of(
    attempt: &AttemptRef,
    reach: Reach,
    room: Option<&CallFolder>,
) -> Result<CallData, Fault> {
    let (data, spec) = (attempt.data(), &attempt.dispatch().spec);
    if data.is_empty() {
        return Ok(CallData { inputs: Object::clone(&spec.inputs), ..CallData::default() });
    }
    let refs = data.refs();
    if reach == Reach::Storage {
        let (inputs, outputs) = (data.inputs_with_addresses().await?, data.output_addresses()?);
        return Ok(CallData { inputs, refs, outputs });
    }
    let room = room.ok_or_else(no_room)?;
    let files = data.input_files();
    if files.len() > FILES_MAX || data.output_names().len() > FILES_MAX {
        let message = format!("A call can have {FILES_MAX} files at most.");
        return Err(Fault::new(Code::ToolInputTooLarge, message));
    }
    // Addresses elsewhere are passed on as they are; none is made for what is a file here.
    let has_others = files.len() < refs.len();
    let mut inputs =
        if has_others { data.inputs_with_addresses().await? } else { Object::clone(&spec.inputs) };
    for (name, _) in files {
        inputs.insert(name.clone(), room.input_path(&name).into());
    }
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        data.output_names().into_iter().partition(|name| data.place(name).is_some());
    let mut outputs: BTreeMap<_, _> =
        here.into_iter().map(|name| (name.clone(), room.output_path(&name))).collect();
    if !elsewhere.is_empty() {
        let mut addresses = data.output_addresses()?;
        outputs.extend(elsewhere.iter().filter_map(|name| addresses.remove_entry(name)));
    }
    Ok(CallData { inputs, refs, outputs })
}

/// Looks at the input files of a call or copies them, and hands it back. When the connection is gone by then, the
/// attempt ends here: it never began.
pub(super) async fn fetch(
    coming: PreparedCall,
    stop: CancellationToken,
    ready: mpsc::Sender<ReadyCall>,
) {
    let data = coming.attempt().data();
    let fetched = tokio::select! {
        fetched = AssertUnwindSafe(give_all(&data, &coming)).catch_unwind() => {
            // A panic must not keep the place that the call has here.
            Some(fetched.unwrap_or_else(|_| Err(lost())))
        }
        () = stop.cancelled() => None,
        () = ready.closed() => None,
    };
    if let Err(lost) = ready.send(ReadyCall { coming, fetched }).await {
        abandon(lost.0.coming).await;
    }
}

/// Gives up a call that was never sent, when its connection is gone.
pub(super) async fn abandon(coming: PreparedCall) {
    if let Some(room) = &coming.room {
        wharf_hosting::discard(&coming.places, room);
    }
    turn_back(coming.assignment, gone()).await;
}

async fn give_all(data: &AttemptData, coming: &PreparedCall) -> Result<(), Fault> {
    if coming.reach == Reach::Storage {
        // They are kept with the attempt until the call is sent.
        return data.inputs_with_addresses().await.map(drop);
    }
    let room = coming.room.as_ref().ok_or_else(no_room)?;
    for (name, _) in data.input_files() {
        copy_in(data, &name, || room.create_input(&name)).await?;
    }
    Ok(())
}

fn lost() -> Fault {
    Fault::new(Code::CoreInternal, "The call's files could not be copied.")
}

fn no_room() -> Fault {
    Fault::new(Code::ToolUnavailable, "No folder for the call's files can be made.")
}
