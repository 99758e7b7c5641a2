//! The lock on a home: one core at a time.
//!
//! The system drops the lock with the process, whatever ends it, so there is nothing to clean up
//! after a crash. The file says who holds it, for messages only.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt as _;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use wharf_vocab::{Code, Fault};

use crate::Home;
use crate::files;

/// How long to try: whoever asks whether the lock is held takes it for a moment.
const PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(10);

/// A lock that is held as long as this lives.
#[derive(Debug)]
pub(crate) struct HomeLock {
    file: File,
}

impl HomeLock {
    /// Takes the lock, or says who holds it.
    pub(crate) fn take(home: &Home) -> Result<Self, Fault> {
        let mut file =
            files::open_private(&home.lock_file()).map_err(|error| home.unwritable(&error))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                    thread::sleep(PAUSE);
                }
                Err(Errno::WOULDBLOCK) => return Err(locked(&mut file)),
                Err(error) => return Err(home.unwritable(&error.into())),
            }
        }
        sign(&mut file).map_err(|error| home.unwritable(&error))?;
        Ok(Self { file })
    }

    /// Takes the lock again if somebody has removed its file, or put another one in its place.
    /// Without that others could neither see that the home is in use nor be kept out.
    pub(crate) fn keep(&mut self, home: &Home) -> io::Result<()> {
        let held = self.file.metadata()?;
        let same = |found: &Metadata| (found.dev(), found.ino()) == (held.dev(), held.ino());
        if std::fs::metadata(home.lock_file()).is_ok_and(|found| same(&found)) {
            return Ok(());
        }
        let mut file = files::open_private(&home.lock_file())?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        sign(&mut file)?;
        tracing::warn!("the lock of the home was removed; it is held again");
        self.file = file;
        Ok(())
    }
}

/// Says in the file who holds it.
fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{}", std::process::id())
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // The name in it is wrong from now on; that it stays if this fails is harmless.
        let _ = self.file.set_len(0);
    }
}

fn locked(file: &mut File) -> Fault {
    let mut text = String::new();
    // Without a name the message is still true.
    let _ = file.read_to_string(&mut text);
    match text.trim().parse::<u32>() {
        Ok(pid) => {
            let message = format!(
                "Another core (process {pid}) uses this home; stop it, or choose another home \
                 with --home."
            );
            Fault::new(Code::HomeLocked, message).with("pid", pid)
        }
        Err(_) => {
            let message =
                "Another core uses this home; stop it, or choose another home with --home.";
            Fault::new(Code::HomeLocked, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf_client::Holder;

    use super::*;

    #[test]
    fn a_home_has_one_holder_at_a_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::resolve(Some(dir.path().to_owned())).expect("a home");
        assert_eq!(home.holder(), Holder::Unknown, "nobody has ever held it");
        home.make().expect("made");
        let held = HomeLock::take(&home).expect("taken");
        assert_eq!(home.holder(), Holder::Somebody);
        let fault = HomeLock::take(&home).expect_err("held");
        assert!(fault.is(Code::HomeLocked));
        assert_eq!(fault.details["pid"], std::process::id());
        drop(held);
        assert_eq!(home.holder(), Holder::Nobody);
        HomeLock::take(&home).expect("free again");
    }

    #[test]
    fn a_lock_that_was_removed_is_taken_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::resolve(Some(dir.path().to_owned())).expect("a home");
        home.make().expect("made");
        let mut held = HomeLock::take(&home).expect("taken");
        held.keep(&home).expect("it is there");
        std::fs::remove_file(home.lock_file()).expect("removed");
        assert_eq!(home.holder(), Holder::Unknown);
        held.keep(&home).expect("taken again");
        assert_eq!(home.holder(), Holder::Somebody);
        HomeLock::take(&home).expect_err("held");

        std::fs::remove_file(home.lock_file()).expect("removed");
        let other = HomeLock::take(&home).expect("nobody keeps it out for a moment");
        held.keep(&home).expect_err("another core has it");
        drop(other);
        held.keep(&home).expect("it is gone");
        assert_eq!(home.holder(), Holder::Somebody);
    }

    #[test]
    fn whoever_only_asks_keeps_nobody_out() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::resolve(Some(dir.path().to_owned())).expect("a home");
        home.make().expect("made");
        drop(HomeLock::take(&home).expect("taken"));
        let asking = thread::spawn({
            let home = home.clone();
            move || (0..2000).filter(|_| home.holder() == Holder::Unknown).count()
        });
        for _ in 0..50 {
            drop(HomeLock::take(&home).expect("taken in spite of the questions"));
        }
        assert_eq!(asking.join().expect("done"), 0);
    }
}
