//! The end of a call that has to do with files: what it wrote goes to the artifact store, and
//! only then the attempt has succeeded. All of it beside the connection: it may take long.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::try_unfold;
use serde_json::Value;
use wharf_domain::is_written;
use wharf_domain::run::{AttemptError, AttemptReport};
use wharf_engine::{Attempt, AttemptData, ByteStream, Handle, ObjectError, ObjectErrorKind, Reach};
use wharf_vocab::{Code, Executed, Fault, Object, RunKey};

use crate::control::blocking;
use crate::places::Places;
use crate::throttle::Place;
use crate::workdir::{self, Room, invalid};

/// What is read of a file in one go.
const READ_BYTES: usize = 512 * 1024;
/// How long the end of a run is waited for before it is asked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

/// How long the store is left alone before a file is offered again.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(5)];

/// A call that has ended well, as far as its agent is concerned.
pub(super) struct Delivering {
    pub(super) attempt: Attempt,
    pub(super) room: Option<Room>,
    pub(super) outputs: Object,
    pub(super) cost_micro: u64,
    pub(super) reach: Reach,
    /// What the files of a call may have together.
    pub(super) bytes_max: u64,
    /// Held to the end, so that an agent cannot give faster than the store takes.
    pub(super) place: Place,
    /// Held to the end: the launch may be over before, and takes its folders with it.
    pub(super) places: Arc<Places>,
}

/// Whether ending a call takes more than telling the engine.
pub(super) fn takes_time(attempt: &Attempt, outputs: &Object) -> bool {
    !attempt.data().is_empty() || outputs.values().any(is_written)
}

/// Takes the files of a call to the artifact store and ends the attempt.
pub(super) async fn deliver(handle: Handle, delivering: Delivering) {
    let Delivering { attempt, room, outputs, cost_micro, reach, bytes_max, place, places } =
        delivering;
    let data = attempt.data();
    let room = room.map(Arc::new);
    let written = names_of_files(&data, &outputs, reach, room.as_deref());
    let delivered = if written.is_empty() {
        Ok(())
    } else {
        tokio::select! {
            delivered = write_all(&data, written, room.clone(), bytes_max) => delivered,
            // Canceled, or out of time: nobody wants the files any more.
            () = over(&handle, &attempt.dispatch().run) => Err(unwanted()),
        }
    };
    // When the engine is gone there is nobody left to tell, here and below.
    let _ = match delivered {
        Ok(()) => attempt.succeeded(outputs, cost_micro).await,
        Err(fault) => {
            let result = Err(AttemptError::Failed(fault, Executed::Yes));
            attempt.ended(AttemptReport::new(result, cost_micro)).await
        }
    };
    if let Some(room) = room {
        workdir::discard(&places, &room);
    }
    drop((place, places));
}

/// The outputs that are files in the call's room: those that are said to be written, or to be
/// where they were to be written. What went to an address is looked for by the engine.
fn names_of_files(
    data: &AttemptData,
    outputs: &Object,
    reach: Reach,
    room: Option<&Room>,
) -> Vec<String> {
    let bound = data.output_names();
    let is_file = |(name, value): &(&String, &Value)| {
        if !bound.contains(name) {
            return is_written(value);
        }
        let echoed = || room.is_some_and(|room| value.as_str() == Some(&room.output_path(name)));
        reach == Reach::Folder && data.place(name).is_some() && (is_written(value) || echoed())
    };
    outputs.iter().filter(is_file).map(|(name, _)| name.clone()).collect()
}

async fn write_all(
    data: &AttemptData,
    names: Vec<String>,
    room: Option<Arc<Room>>,
    bytes_max: u64,
) -> Result<(), Fault> {
    let room = room.ok_or_else(workdir::no_room)?;
    let bound = data.output_names();
    if names.iter().any(|name| !bound.contains(name) && !workdir::is_plain(name)) {
        return Err(workdir::unnameable());
    }
    let (looked_in, looked_for) = (Arc::clone(&room), names.clone());
    let mut left = blocking(move || looked_in.bytes_of(&looked_for, bytes_max)).await?;
    for name in names {
        left = write(data, &name, &room, left).await?;
    }
    Ok(())
}

/// Writes one file to the store; how much the others may have after it. A store that does not
/// answer is asked again some times: the work is done and would be lost.
async fn write(data: &AttemptData, name: &str, room: &Arc<Room>, left: u64) -> Result<u64, Fault> {
    let mut pauses = PAUSES.iter();
    loop {
        let (opened_in, key) = (Arc::clone(room), name.to_owned());
        let (file, bytes) = blocking(move || opened_in.open_output(&key)).await?;
        // It may be another file than the one whose size was looked at.
        let left = left.checked_sub(bytes).ok_or_else(|| changed(name))?;
        let flaw = Arc::new(AtomicBool::new(false));
        let body = stream(file, bytes, Arc::clone(&flaw));
        let Err(fault) = data.write(name, bytes, body).await else { return Ok(left) };
        if flaw.load(Ordering::Relaxed) {
            return Err(changed(name));
        }
        match pauses.next().filter(|_| fault.is(Code::StorageUnavailable)) {
            Some(pause) => tokio::time::sleep(*pause).await,
            None => return Err(fault.executed(Executed::Yes)),
        }
    }
}

/// A file's bytes: exactly so many, or an error and a flaw.
fn stream(file: File, bytes: u64, flaw: Arc<AtomicBool>) -> ByteStream {
    let next = move |(mut file, left): (File, u64)| {
        let flaw = Arc::clone(&flaw);
        async move {
            let read = blocking(move || {
                let piece = read(&mut file, left).ok_or_else(|| changed(""))?;
                Ok((file, piece))
            });
            let (file, piece) = read.await.map_err(|_| {
                flaw.store(true, Ordering::Relaxed);
                ObjectError::new(ObjectErrorKind::Interrupted, "a file changed while it was read")
            })?;
            let left = left - piece.len() as u64;
            Ok((!piece.is_empty()).then_some((piece, (file, left))))
        }
    };
    try_unfold((file, bytes), next).boxed()
}

/// The next piece of a file that has so many bytes left, an empty one at its end; none if it
/// has fewer or more.
fn read(file: &mut File, left: u64) -> Option<Bytes> {
    let most = usize::try_from(left).unwrap_or(usize::MAX).min(READ_BYTES);
    let mut piece = BytesMut::zeroed(most.max(1));
    let count = loop {
        match file.read(&mut piece) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => break read.ok()?,
        }
    };
    if (count == 0) != (left == 0) {
        return None;
    }
    piece.truncate(count);
    Some(piece.freeze())
}

/// Waits until a run is over, however that came.
async fn over(handle: &Handle, run: &RunKey) {
    loop {
        match handle.wait_run(run, LOOK_AGAIN).await {
            Ok(run) if !run.is_over() => {}
            // A run that is not known any more is over too.
            _ => return,
        }
    }
}

fn changed(name: &str) -> Fault {
    invalid(format!("The file of the output {name} grew or shrank while it was read."))
}

fn unwanted() -> Fault {
    Fault::new(Code::ToolCanceled, "The run ended before its files were stored.")
        .executed(Executed::Yes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use futures::TryStreamExt as _;

    use super::*;

    /// What a stream gives of a file that had `told` bytes when it was opened, and whether it
    /// was found flawed.
    async fn streamed(content: &[u8], told: u64) -> (Option<Vec<u8>>, bool) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("writes");
        std::io::Seek::rewind(&mut file).expect("rewinds");
        let flaw = Arc::new(AtomicBool::new(false));
        let pieces: Result<Vec<Bytes>, _> =
            stream(file, told, Arc::clone(&flaw)).try_collect().await;
        let pieces = pieces.ok();
        assert!(pieces.iter().flatten().all(|piece| piece.len() <= READ_BYTES));
        (pieces.map(|pieces| pieces.concat()), flaw.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn r163_a_file_that_grows_or_shrinks_while_it_is_read_is_a_flaw() {
        let large = vec![7; 3 * READ_BYTES + 5];
        for content in [&b""[..], b"x", &large] {
            let bytes = content.len() as u64;
            assert_eq!(streamed(content, bytes).await, (Some(content.to_vec()), false));
            assert_eq!(streamed(content, bytes + 1).await, (None, true), "it shrank");
            if bytes > 0 {
                assert_eq!(streamed(content, bytes - 1).await, (None, true), "it grew");
            }
        }
    }
}
