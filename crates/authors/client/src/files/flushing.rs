//! A file that is flushed while it is written, so that there is little left to wait for in the end.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// How much is written before it is flushed.
const FLUSH_BYTES: u64 = 16 * 1024 * 1024;

/// A file whose bytes are flushed by a thread of its own. Flushing it waits for that thread and
/// says what it was told; the last bytes are then still to be flushed.
#[derive(Debug)]
pub(super) struct FlushedFile {
    file: File,
    /// How much was written since a flush was asked for.
    unflushed: u64,
    flusher: Option<Flusher>,
}

/// The thread, and the way to ask it.
type Flusher = (SyncSender<()>, JoinHandle<io::Result<()>>);

impl FlushedFile {
    /// A file that is written on from where it stands.
    pub(super) fn new(file: File) -> Self {
        Self { file, unflushed: 0, flusher: None }
    }

    fn ask(&mut self) -> io::Result<()> {
        self.unflushed = 0;
        if let Some((asks, _)) = &self.flusher {
            // One that waits already flushes this as well; one that failed says so in the end.
            let _ = asks.try_send(());
            return Ok(());
        }
        let (asks, asked) = sync_channel(1);
        let _ = asks.try_send(());
        let file = self.file.try_clone()?;
        let thread = thread::Builder::new().name("wharf-flusher".to_owned());
        self.flusher = Some((asks, thread.spawn(move || serve(&file, &asked))?));
        Ok(())
    }
}

fn serve(file: &File, asked: &Receiver<()>) -> io::Result<()> {
    while let Ok(()) = asked.recv() {
        // A disk that fails says so once only, so nothing it says may be missed.
        file.sync_data()?;
    }
    Ok(())
}

impl Write for FlushedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.unflushed += count as u64;
        if self.unflushed >= FLUSH_BYTES {
            self.ask()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some((asks, thread)) = self.flusher.take() else { return Ok(()) };
        drop(asks);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("flushing was abandoned")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_flushed_on_the_way_is_written_as_it_is() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("f");
        let mut file = FlushedFile::new(File::create(&path).expect("made"));
        let piece = vec![7; 1024 * 1024];
        for _ in 0..40 {
            file.write_all(&piece).expect("written");
        }
        assert!(file.flusher.is_some(), "it is flushed on the way");
        file.flush().expect("flushed");
        assert_eq!(std::fs::read(&path).expect("read"), piece.repeat(40));
    }

    #[test]
    fn a_flush_that_fails_is_told_in_the_end() {
        // A pipe cannot be flushed to a disk.
        let (_reader, writer) = io::pipe().expect("a pipe");
        let mut file = FlushedFile::new(File::from(std::os::fd::OwnedFd::from(writer)));
        file.ask().expect("asked");
        assert!(file.flush().is_err());
        assert!(file.flush().is_ok(), "it is told once");
    }
}
