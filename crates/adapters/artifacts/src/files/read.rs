//! Bytes on their way from the disk.
//!
//! While one piece is on its way to the reader, the next one is read on a thread for blocking
//! work. No thread waits for a slow reader.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::ops::Range;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use rustix::fs::{Advice, fadvise};
use tokio::task::JoinHandle;
use wharf_ports::{ByteStream, ObjectBody, ObjectError, ObjectInfo};

use super::{broken_off, disk};
use crate::error::mismatch;

/// How much is read at once.
const PIECE_BYTES: u64 = 512 * 1024;

/// A file of which some bytes are still to be read.
struct FileReader {
    file: File,
    left: u64,
}

impl FileReader {
    /// The bytes of a range of a file.
    fn of(mut file: File, range: &Range<u64>) -> io::Result<Self> {
        let left = range.end.saturating_sub(range.start);
        if left > PIECE_BYTES {
            // It is only a hint, and a file system need not know it.
            let _ = fadvise(&file, range.start, None, Advice::Sequential);
        }
        if range.start > 0 {
            file.seek(SeekFrom::Start(range.start))?;
        }
        Ok(Self { file, left })
    }

    /// The next piece, and whether there is more.
    fn next(mut self) -> io::Result<(Bytes, Option<Self>)> {
        let wanted = self.left.min(PIECE_BYTES);
        let mut piece = Vec::with_capacity(usize::try_from(wanted).unwrap_or(0));
        (&mut self.file).take(wanted).read_to_end(&mut piece)?;
        if piece.len() as u64 != wanted {
            let why = "a version is shorter than its head says";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, why));
        }
        self.left -= wanted;
        let more = self.left > 0;
        Ok((piece.into(), more.then_some(self)))
    }
}

/// What is known of a version with its bytes, or those of a range that lies within it.
pub(crate) fn body(
    info: ObjectInfo,
    file: File,
    range: Option<Range<u64>>,
) -> Result<ObjectBody, ObjectError> {
    let range = range.unwrap_or(0..info.bytes);
    if range.start > range.end || range.end > info.bytes {
        return Err(mismatch("the range lies outside the object"));
    }
    let read = FileReader::of(file, &range).and_then(FileReader::next);
    let (first, rest) = read.map_err(|error| disk::trouble("read an object", &error))?;
    Ok(ObjectBody { info, stream: stream(first, rest) })
}

type ReadAhead = JoinHandle<io::Result<(Bytes, Option<FileReader>)>>;

/// A first piece that was read already, and all that comes behind it.
fn stream(first: Bytes, rest: Option<FileReader>) -> ByteStream {
    let head = stream::once(std::future::ready(Ok(first)));
    let Some(rest) = rest else { return head.boxed() };
    let rest = stream::try_unfold(Some(ahead(rest)), |reading: Option<ReadAhead>| async move {
        let Some(reading) = reading else { return Ok(None) };
        let read = reading.await.map_err(|_| broken_off())?;
        let (piece, rest) = read.map_err(|error| disk::trouble("read an object", &error))?;
        Ok(Some((piece, rest.map(ahead))))
    });
    head.chain(rest).boxed()
}

fn ahead(reading: FileReader) -> ReadAhead {
    tokio::task::spawn_blocking(move || reading.next())
}
