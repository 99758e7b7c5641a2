//! How much the files take up that runs of an agent gave as outputs.
//!
//! They are kept until their owner removes them, so what is full stays full until then. The sum
//! is counted once and kept up from there; before anything is refused it is counted again, since
//! files may have been removed meanwhile.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use wharf_vocab::{AgentId, Code, Executed, Fault};

/// What files of an agent may take up if nobody says anything about its disk.
pub(crate) const BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// What a file takes up besides its bytes.
const BESIDES: u64 = 4096;

/// The ledgers of all agents.
#[derive(Debug, Default)]
pub(crate) struct Ledgers(Mutex<HashMap<AgentId, Arc<Ledger>>>);

impl Ledgers {
    pub(crate) fn of(&self, id: &AgentId) -> Arc<Ledger> {
        let mut ledgers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(ledgers.entry(id.clone()).or_default())
    }
}

/// What is known of one agent's files.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    /// Once it was counted.
    kept: Option<u64>,
    /// What is being written.
    coming: u64,
}

/// Where an agent's files are kept, and how much they may take up.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) folder: PathBuf,
    pub(crate) bytes_max: u64,
    pub(crate) ledger: Arc<Ledger>,
}

/// Room for files that are being written; it is free again if they are not kept.
#[derive(Debug)]
pub(crate) struct Reserved<'a> {
    ledger: &'a Ledger,
    bytes: u64,
}

impl Shelf {
    /// Makes sure that there is room for so many files of so many bytes together. It blocks.
    pub(crate) fn reserve(&self, files: usize, bytes: u64) -> Result<Reserved<'_>, Fault> {
        let bytes = bytes.saturating_add(BESIDES.saturating_mul(files as u64));
        let mut sums = self.ledger.lock();
        let fits = |sums: &Sums, kept: u64| {
            kept.saturating_add(sums.coming).saturating_add(bytes) <= self.bytes_max
        };
        let mut kept = sums.kept;
        if !kept.is_some_and(|kept| fits(&sums, kept)) {
            kept = Some(count(&self.folder));
            sums.kept = kept;
        }
        if !kept.is_some_and(|kept| fits(&sums, kept)) {
            let message = format!(
                "The files that the agent's runs gave would take up more than {} bytes; remove \
                 some that nobody needs.",
                self.bytes_max
            );
            return Err(Fault::new(Code::ToolOutputTooLarge, message).executed(Executed::Yes));
        }
        sums.coming = sums.coming.saturating_add(bytes);
        Ok(Reserved { ledger: &self.ledger, bytes })
    }
}

impl Ledger {
    fn lock(&self) -> std::sync::MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reserved<'_> {
    /// The files are there.
    pub(crate) fn keep(self) {
        let mut sums = self.ledger.lock();
        sums.kept = sums.kept.map(|kept| kept.saturating_add(self.bytes));
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut sums = self.ledger.lock();
        sums.coming = sums.coming.saturating_sub(self.bytes);
    }
}

/// What files in the folders of runs take up. Only the core writes there, so it is as deep as
/// the core makes it: world, run, file.
fn count(folder: &Path) -> u64 {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let runs = entries(folder).flat_map(|world| entries(&world.path()).collect::<Vec<_>>());
    let files = runs.flat_map(|run| entries(&run.path()).collect::<Vec<_>>());
    let sizes = files.filter_map(|file| fs::symlink_metadata(file.path()).ok());
    sizes.fold(0, |sum, found| sum.saturating_add(found.len()).saturating_add(BESIDES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r163_files_of_all_runs_count_and_what_was_removed_does_not() {
        let dir = tempfile::tempdir().expect("a folder");
        let run = dir.path().join("default/r-1");
        fs::create_dir_all(&run).expect("made");
        fs::write(run.join("old"), vec![0; 1_000]).expect("writes");
        let shelf = Shelf {
            folder: dir.path().to_owned(),
            bytes_max: 3 * BESIDES + 4_000,
            ledger: Arc::default(),
        };
        let full = |bytes| shelf.reserve(1, bytes).is_err_and(|f| f.is(Code::ToolOutputTooLarge));
        assert!(full(BESIDES + 3_001), "what an earlier core kept counts");
        let first = shelf.reserve(1, 2_000).expect("room");
        assert!(full(BESIDES + 1_001), "what is being written counts");
        drop(first);
        let again = shelf.reserve(1, 2_000).expect("what was not kept is free again");
        fs::write(run.join("new"), vec![0; 2_000]).expect("writes");
        again.keep();
        assert!(full(BESIDES + 1_001), "what was kept counts");
        fs::remove_file(run.join("old")).expect("removed");
        shelf.reserve(1, BESIDES + 1_001).expect("room, once it is counted again");
    }
}
