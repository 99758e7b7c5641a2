//! The folder that a fenced server shares with the core, which it finds as `/artifacts`.
//!
//! Each run has a folder of its own in it: `/artifacts/{run}/{path}` is a local file of the run,
//! `/artifacts/{run}/@world/{path}` one of the world, and `/artifacts/{run}/@{other}/{path}` a
//! local file of another run that this one may read. Ids of runs are unique in their world only:
//! while a run of another world has the name, the folder is `/artifacts/~{world}/{run}`. Inputs
//! are copied there before the server is asked; what it says it has written is copied to the
//! artifact store afterwards.
//!
//! The server may do what it likes there, also while the core works in it. So the core goes step
//! by step from handles it holds, follows no link, opens nothing but ordinary files, and copies
//! what it has opened.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde_json::Value;
use wharf_domain::scope::WorldPath;
use wharf_engine::{AttemptData, AttemptOutputs};
use wharf_hosting::{
    FILES_MAX, FOLDER, Places, WrittenFiles, copy_in, copy_out, folder_in, invalid_output,
    ordinary, put_away,
};
use wharf_vocab::{Code, Fault, RunId, RunKey};

use crate::link::FileAccess;

/// Where a server finds the folder.
const MOUNTED: &str = "/artifacts";
const WORLD: &str = "@world";

/// The folder of one launch.
#[derive(Debug)]
pub(crate) struct LaunchFolder {
    root: OwnedFd,
    gone: PathBuf,
    /// Runs that have a folder in it, and whether it lies among those of their world.
    runs: Mutex<HashMap<RunKey, bool>>,
}

/// Where the folder of a launch lies.
pub(crate) fn path(places: &Places) -> PathBuf {
    places.own("artifacts")
}

impl LaunchFolder {
    /// Opens the folder, which is made if it is not there.
    pub(crate) fn open(places: &Places) -> io::Result<Self> {
        let path = path(places);
        for folder in [&path, &places.gone] {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let root = rustix::fs::open(&path, FOLDER, Mode::empty())?;
        Ok(Self { root, gone: places.gone.clone(), runs: Mutex::default() })
    }

    /// An empty folder for a run, with the places of its files.
    pub(crate) fn take(
        self: &Arc<Self>,
        key: &RunKey,
        data: &AttemptData,
    ) -> Result<RunFolder, Fault> {
        let run = &key.run;
        let Some(apart) = name(&mut self.runs.lock(), key) else {
            // An earlier attempt may still end.
            let message = "The tool server still has files of the run's last attempt.";
            return Err(Fault::new(Code::ToolBusy, message));
        };
        let mut taken =
            FolderName { shelf: Arc::clone(self), key: key.clone(), apart, within: None };
        let unusable = |error: io::Error| unusable(&error);
        let root = self.make(&mut taken).map_err(unusable)?;
        let mut folder =
            RunFolder { root, inputs: BTreeMap::new(), outputs: BTreeMap::new(), taken };
        for (name, _) in data.input_files() {
            if let Some(read) = data.input(&name) {
                folder.inputs.insert(name, FilePlace::of(&read.path, run));
            }
        }
        for name in data.output_names() {
            if let Some(path) = data.place(&name) {
                let place = FilePlace::of(&path, run);
                folder_of(&folder.root, &place.segments).map_err(unusable)?;
                folder.outputs.insert(name, place);
            }
        }
        if folder.inputs.len() > FILES_MAX || folder.outputs.len() > FILES_MAX {
            let message =
                format!("A run of such a tool server can have {FILES_MAX} files at most.");
            return Err(Fault::new(Code::ToolInputTooLarge, message));
        }
        Ok(folder)
    }

    /// Makes the folder of a run. Whatever bears its name already is put away.
    fn make(&self, taken: &mut FolderName) -> io::Result<OwnedFd> {
        if taken.apart {
            taken.within = Some(folder_in(&self.root, &of_world(&taken.key))?);
        }
        let (within, run) = (taken.within.as_ref().unwrap_or(&self.root), taken.key.run.as_str());
        if let Err(Errno::EXIST) = rustix::fs::mkdirat(within, run, Mode::RWXU) {
            put_away(within, run, &self.gone)?;
            rustix::fs::mkdirat(within, run, Mode::RWXU)?;
        }
        Ok(rustix::fs::openat(within, run, FOLDER, Mode::empty())?)
    }
}

/// Takes a name for a run: whether it lies among those of its world. `None` if the run has one.
fn name(runs: &mut HashMap<RunKey, bool>, key: &RunKey) -> Option<bool> {
    if runs.contains_key(key) {
        return None;
    }
    let apart = runs.iter().any(|(other, apart)| !apart && other.run == key.run);
    runs.insert(key.clone(), apart);
    Some(apart)
}

/// The folder for runs of a world whose names others have. No run can have such a name.
fn of_world(key: &RunKey) -> String {
    format!("~{}", key.world)
}

/// A run's name in the folder. What bears it is removed when this is dropped.
#[derive(Debug)]
struct FolderName {
    shelf: Arc<LaunchFolder>,
    key: RunKey,
    /// Whether it lies among those of its world.
    apart: bool,
    /// The folder of its world.
    within: Option<OwnedFd>,
}

impl Drop for FolderName {
    fn drop(&mut self) {
        // What the server has moved or removed itself needs no removing.
        let (shelf, run) = (&self.shelf, self.key.run.as_str());
        match &self.within {
            None if self.apart => {}
            None => drop(put_away(&shelf.root, run, &shelf.gone)),
            Some(within) => {
                let _ = put_away(within, run, &shelf.gone);
                // It stays while other runs of the world have folders in it.
                let _ = rustix::fs::unlinkat(&shelf.root, of_world(&self.key), AtFlags::REMOVEDIR);
            }
        }
        shelf.runs.lock().remove(&self.key);
    }
}

/// The folder of one run.
#[derive(Debug)]
pub(crate) struct RunFolder {
    root: OwnedFd,
    inputs: BTreeMap<String, FilePlace>,
    outputs: BTreeMap<String, FilePlace>,
    /// Last, so that the folder is held until its name is gone.
    taken: FolderName,
}

/// Where a file lies in a run's folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FilePlace {
    segments: Vec<String>,
}

impl FilePlace {
    fn of(path: &WorldPath, run: &RunId) -> Self {
        let first = match path.run() {
            Some(own) if own == run.as_str() => None,
            Some(other) => Some(format!("@{other}")),
            None => Some(WORLD.to_owned()),
        };
        let rest = path.within().split('/').filter(|segment| !segment.is_empty());
        Self { segments: first.into_iter().chain(rest.map(str::to_owned)).collect() }
    }

    /// As the server names it.
    fn told(&self, taken: &FolderName) -> String {
        let (run, path) = (&taken.key.run, self.segments.join("/"));
        if taken.apart {
            return format!("{MOUNTED}/{}/{run}/{path}", of_world(&taken.key));
        }
        format!("{MOUNTED}/{run}/{path}")
    }
}

impl RunFolder {
    /// Where inputs lie and outputs are to be written, as the server names it.
    pub(crate) fn access(&self) -> FileAccess {
        FileAccess::Paths { inputs: self.told(&self.inputs), outputs: self.told(&self.outputs) }
    }

    fn told(&self, places: &BTreeMap<String, FilePlace>) -> BTreeMap<String, String> {
        let told = |(name, place): (&String, &FilePlace)| (name.clone(), place.told(&self.taken));
        places.iter().map(told).collect()
    }

    /// Copies the inputs into the folder. Several inputs may be the same file.
    pub(crate) async fn fill(&self, data: &AttemptData) -> Result<(), Fault> {
        let mut there = BTreeSet::new();
        for (name, place) in &self.inputs {
            if there.insert(place) {
                copy_in(data, name, || create(&self.root, &place.segments)).await?;
            }
        }
        Ok(())
    }

    /// Copies what the server says it has written to the artifact store, and what lies where it
    /// could write and it says nothing of. All other outputs stand as they are.
    pub(crate) async fn empty(
        self: &Arc<Self>,
        data: &AttemptData,
        outputs: &AttemptOutputs,
        bytes_max: u64,
    ) -> Result<(), Fault> {
        let AttemptOutputs { values, written } = outputs;
        let says_so = |name: &&String| written.contains_key(*name);
        let mut names: Vec<String> = self.outputs.keys().filter(says_so).cloned().collect();
        // One that nothing was said of may have been written all the same.
        let unsaid =
            |name: &&String| !says_so(name) && values.get(*name).is_none_or(Value::is_null);
        for name in self.outputs.keys().filter(unsaid) {
            if self.open_output(name).is_ok() {
                data.found(name);
                names.push(name.clone());
            }
        }
        copy_out(data, self, names, bytes_max).await
    }
}

impl WrittenFiles for RunFolder {
    const WHOSE: &'static str = "its";

    fn open_output(&self, name: &str) -> Result<(File, u64), Fault> {
        let unusable = |why: &str| {
            invalid_output(format!("The file of the output {name} {why}.")).with("key", name)
        };
        let place = self.outputs.get(name).ok_or_else(|| unusable("has no place"))?;
        ordinary(open(&self.root, &place.segments)).map_err(unusable)
    }
}

/// The folder that a file is to lie in, made if it is not there, and the file's name.
fn folder_of<'a>(root: &OwnedFd, segments: &'a [String]) -> io::Result<(OwnedFd, &'a str)> {
    let (name, folders) = segments.split_last().ok_or(Errno::INVAL)?;
    let mut at = root.try_clone()?;
    for folder in folders {
        at = folder_in(&at, folder)?;
    }
    Ok((at, name))
}

/// Makes the empty file of an input. There must be none yet.
fn create(root: &OwnedFd, segments: &[String]) -> io::Result<File> {
    let (folder, name) = folder_of(root, segments)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(made))
}

/// Opens a file to read it. No link is followed on the way, and a pipe is not waited for.
fn open(root: &OwnedFd, segments: &[String]) -> rustix::io::Result<OwnedFd> {
    let (name, folders) = segments.split_last().ok_or(Errno::INVAL)?;
    let mut at = root.try_clone().map_err(|_| Errno::MFILE)?;
    for folder in folders {
        at = rustix::fs::openat(&at, folder.as_str(), FOLDER, Mode::empty())?;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::openat(&at, name.as_str(), flags, Mode::empty())
}

fn unusable(error: &io::Error) -> Fault {
    tracing::warn!(%error, "no folder for a run's files can be made");
    Fault::new(Code::ToolUnavailable, "No folder for the run's files can be made.")
}
