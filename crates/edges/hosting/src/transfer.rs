//! Files of attempts between the artifact store and folders of launches, in bounded memory.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::try_unfold;
use rustix::fs::FileType;
use rustix::io::Errno;
use tokio::io::{AsyncWriteExt as _, BufWriter};
use wharf_engine::{AttemptData, ByteStream, Handle, ObjectError, ObjectErrorKind};
use wharf_vocab::{Code, Executed, Fault, RunKey};

use crate::tasks::blocking;

/// Files that one call may be given, and may give.
pub const FILES_MAX: usize = 256;
/// What is read or written of a file in one go.
const PIECE_BYTES: usize = 512 * 1024;
/// How long the end of a run is waited for before it is asked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

/// How long the store is left alone before a file is offered again.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(5)];

/// Copies an input of an attempt into a file that `make` makes.
pub async fn copy_in(
    data: &AttemptData,
    name: &str,
    make: impl FnOnce() -> io::Result<File>,
) -> Result<(), Fault> {
    let unwritable = |error: io::Error| unwritable(name, &error);
    let mut body = data.read(name).await?;
    let file = tokio::fs::File::from_std(make().map_err(unwritable)?);
    let mut file = BufWriter::with_capacity(PIECE_BYTES, file);
    let mut bytes: u64 = 0;
    while let Some(piece) = body.stream.next().await {
        let piece = piece.map_err(|error| match error.kind {
            // Both mean that the store gave less than it said; it may do better next time.
            ObjectErrorKind::Interrupted | ObjectErrorKind::Mismatch => cut_off(name),
            _ => Fault::from(error).with("key", name),
        })?;
        bytes += piece.len() as u64;
        file.write_all(&piece).await.map_err(unwritable)?;
    }
    if bytes != body.info.bytes {
        return Err(cut_off(name));
    }
    file.flush().await.map_err(unwritable)
}

fn cut_off(name: &str) -> Fault {
    let message = format!("The artifact store gave only a part of the input {name}; try again.");
    Fault::new(Code::StorageUnavailable, message).with("key", name)
}

fn unwritable(name: &str, error: &io::Error) -> Fault {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    if full {
        let message = format!("No room is left on this machine's disk to copy the input {name}.");
        return Fault::new(Code::StorageFull, message).with("key", name);
    }
    tracing::warn!(%error, "an input file was not copied");
    let message = format!("The file of the input {name} cannot be copied.");
    Fault::new(Code::ToolUnavailable, message).with("key", name)
}

/// Files that a process wrote for outputs of an attempt. It may change them all the while.
pub trait WrittenFiles: Send + Sync + 'static {
    /// Whose disk limit holds for them, in a sentence.
    const WHOSE: &'static str;

    /// Opens the file of an output, and tells its size: an [`ordinary`] file in its place.
    fn open_output(&self, name: &str) -> Result<(File, u64), Fault>;

    /// How many bytes the files of these outputs have together, if they are not too many. A file
    /// may have many bytes that it does not take up, so it is looked at before any is read.
    fn bytes_of(&self, names: &[String], bytes_max: u64) -> Result<u64, Fault> {
        let too_large =
            |message| Fault::new(Code::ToolOutputTooLarge, message).executed(Executed::Yes);
        if names.len() > FILES_MAX {
            return Err(too_large(format!("The tool wrote more than {FILES_MAX} files.")));
        }
        let mut sum: u64 = 0;
        for name in names {
            sum = sum.saturating_add(self.open_output(name)?.1);
        }
        if sum > bytes_max {
            let whose = Self::WHOSE;
            return Err(too_large(format!(
                "The files that the tool wrote have {sum} bytes together, more than the \
                 {bytes_max} that {whose} disk limit allows."
            )));
        }
        Ok(sum)
    }
}

/// A file that was opened, and its size, if it is an ordinary one that has no other name. What is
/// wrong is the end of a sentence.
pub fn ordinary(opened: rustix::io::Result<OwnedFd>) -> Result<(File, u64), &'static str> {
    let opened = opened.map_err(|error| match error {
        Errno::NOENT => "is not there",
        _ => "cannot be opened as an ordinary file",
    })?;
    let stat = rustix::fs::fstat(&opened).map_err(|_| "cannot be looked at")?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("is not an ordinary file");
    }
    if stat.st_nlink != 1 {
        return Err("has another name besides, or none any more");
    }
    let bytes = u64::try_from(stat.st_size).map_err(|_| "has no size")?;
    Ok((File::from(opened), bytes))
}

/// Writes files to outputs of an attempt, if they have at most so many bytes together.
pub async fn copy_out(
    data: &AttemptData,
    files: &Arc<impl WrittenFiles>,
    names: Vec<String>,
    bytes_max: u64,
) -> Result<(), Fault> {
    let (looked_in, looked_for) = (Arc::clone(files), names.clone());
    let mut left = blocking(move || looked_in.bytes_of(&looked_for, bytes_max)).await?;
    for name in names {
        left = copy_one_out(data, files, &name, left).await?;
    }
    Ok(())
}

/// Writes a file to an output; how much the others may have after it. A store that does not answer
/// is asked again some times, each time with the file opened anew: the work is done and would be
/// lost.
async fn copy_one_out(
    data: &AttemptData,
    files: &Arc<impl WrittenFiles>,
    name: &str,
    left: u64,
) -> Result<u64, Fault> {
    let mut pauses = PAUSES.iter();
    loop {
        let (opened_in, key) = (Arc::clone(files), name.to_owned());
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
    let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
    let mut piece = BytesMut::zeroed(most.max(1));
    let count = loop {
        match file.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read.ok()?,
        }
    };
    if (count == 0) != (left == 0) {
        return None;
    }
    piece.truncate(count);
    Some(piece.freeze())
}

/// Stores the files of an attempt, unless its run is over before, however that came: then nobody
/// wants them any more.
pub async fn unless_over(
    handle: &Handle,
    run: &RunKey,
    stored: impl Future<Output = Result<(), Fault>>,
) -> Result<(), Fault> {
    let over = async {
        // A run that is not known any more is over too.
        while handle.runs().wait(run, LOOK_AGAIN).await.is_ok_and(|run| !run.is_over()) {}
    };
    tokio::select! {
        stored = stored => stored,
        () = over => {
            let message = "The run ended before its files were stored.";
            Err(Fault::new(Code::ToolCanceled, message).executed(Executed::Yes))
        }
    }
}

/// What a call failed of whose output is not what it should be.
#[must_use]
pub fn invalid_output(message: String) -> Fault {
    Fault::new(Code::ToolInvalidOutput, message).executed(Executed::Yes)
}

fn changed(name: &str) -> Fault {
    invalid_output(format!("The file of the output {name} grew or shrank while it was read."))
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
        assert!(pieces.iter().flatten().all(|piece| piece.len() <= PIECE_BYTES));
        (pieces.map(|pieces| pieces.concat()), flaw.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn r163_a_file_that_grows_or_shrinks_while_it_is_read_is_a_flaw() {
        let large = vec![7; 3 * PIECE_BYTES + 5];
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
