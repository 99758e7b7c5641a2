//! The files of one run: what its inputs refer to and where its outputs go.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use wharf_vocab::Object;
use wharf_wire::run_v1::{RunRequest, Written, code};

use super::content::Content;
use super::place::{FileAddress, LocalPath};
use super::progress::TransferProgress;
use super::trouble::Subject;
use super::{Fetched, Source, TransferState, TransferTrouble};
use crate::{Failure, Reporter};

/// How many outputs are written at once.
const WRITES_AT_ONCE: usize = 4;

/// The files of one run.
///
/// What it holds are capabilities, so nothing of them is shown.
pub struct RunFiles {
    pub(super) shared: Arc<TransferState>,
    pub(super) fetched: Mutex<BTreeMap<String, Arc<OnceCell<Fetched>>>>,
    run_id: String,
    world: Option<String>,
    /// The keys that are references, when they were listed.
    refs: Option<BTreeSet<String>>,
    references: BTreeMap<String, Result<FileAddress, TransferTrouble>>,
    targets: BTreeMap<String, OutputAddress>,
    report: Reporter,
    folder: Mutex<Option<Arc<TempDir>>>,
    files: AtomicU64,
    writing: Mutex<BTreeSet<String>>,
    written: Mutex<BTreeMap<String, Written>>,
}

/// Where an output goes.
struct OutputAddress {
    /// As the request says it.
    text: String,
    place: Result<FileAddress, TransferTrouble>,
}

impl RunFiles {
    pub(super) fn new(shared: Arc<TransferState>, request: &RunRequest, report: Reporter) -> Self {
        let RunRequest { control, inputs, outputs } = request;
        let mut files = Self {
            shared,
            fetched: Mutex::default(),
            run_id: control.run_id.clone(),
            world: control.world.clone(),
            refs: control.refs.as_ref().map(|refs| refs.iter().cloned().collect()),
            references: BTreeMap::new(),
            targets: BTreeMap::new(),
            report,
            folder: Mutex::default(),
            files: AtomicU64::new(0),
            writing: Mutex::default(),
            written: Mutex::default(),
        };
        let references = inputs.iter().filter(|(key, value)| files.is_reference(key, value));
        files.references =
            references.map(|(key, value)| (key.clone(), files.input_place(key, value))).collect();
        files.targets =
            outputs.iter().map(|(key, value)| (key.clone(), files.target(value))).collect();
        files
    }

    /// Whether an input is a reference: one of the listed keys, or by its prefix without a list.
    #[must_use]
    pub fn is_reference(&self, key: &str, value: &Value) -> bool {
        if let Some(refs) = &self.refs {
            return refs.contains(key);
        }
        let Value::String(text) = value else { return false };
        text.starts_with("https://")
            || text.starts_with("/artifacts/")
            || (text.starts_with("http://")
                && Url::parse(text).is_ok_and(|url| self.shared.wire.origins.contains(&url)))
    }

    /// The run's own scratch folder, made when first asked for and removed with the run.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        let mut folder = self.folder.lock();
        if let Some(folder) = folder.as_ref() {
            return Ok(folder.path().to_owned());
        }
        let made = tempfile::Builder::new().prefix("run-").tempdir_in(&self.shared.policy.scratch);
        let made = made.map_err(|_| {
            Failure::new(code::STORAGE, "No folder can be made for the files of the run.")
        })?;
        let path = made.path().to_owned();
        *folder = Some(Arc::new(made));
        Ok(path)
    }

    /// The folders that are this run's own: for scratch, and where its files lie among those of
    /// others. All of the latter where runs may read each other's.
    pub fn own_folders(&self) -> Vec<PathBuf> {
        let mut own: Vec<PathBuf> = self.folder().into_iter().collect();
        if let Some(artifacts) = &self.shared.policy.artifacts {
            let of_world = self.world.as_ref().map(|world| format!("~{world}"));
            if self.shared.policy.any_run {
                own.push(artifacts.clone());
            } else {
                own.push(artifacts.join(&self.run_id));
                own.extend(of_world.map(|world| artifacts.join(world).join(&self.run_id)));
            }
        }
        own
    }

    /// Brings a handler's outputs to their end: writes values whose keys have a place and were
    /// not written yet, names the place in their stead, and gives null for what was asked for and
    /// not produced. Also says which keys that were.
    ///
    /// A null counts as not produced. A value that is the place itself says that the handler has
    /// written it by its own means; a local file is then looked at, and storage is believed.
    pub async fn settle(&self, mut outputs: Object) -> Result<(Object, Vec<String>), Failure> {
        let mut due = Vec::new();
        for key in self.targets.keys() {
            if !self.is_written(key) {
                due.push((key.clone(), outputs.remove(key).unwrap_or(Value::Null)));
            }
        }
        let settled = stream::iter(due)
            .map(|(key, value)| async move {
                let is_there = self.settle_one(&key, value).await?;
                Ok::<_, Failure>((key, is_there))
            })
            .buffer_unordered(WRITES_AT_ONCE);
        let settled: BTreeMap<String, bool> = settled.try_collect().await?;
        let mut missing = Vec::new();
        for (key, target) in &self.targets {
            let is_there = settled.get(key).copied().unwrap_or(true);
            let value = if is_there { Value::String(target.text.clone()) } else { Value::Null };
            outputs.insert(key.clone(), value);
            if !is_there {
                missing.push(key.clone());
            }
        }
        Ok((outputs, missing))
    }

    /// Sees to it that one output is in its place; says whether it is.
    async fn settle_one(&self, key: &str, value: Value) -> Result<bool, Failure> {
        match value {
            Value::Null => Ok(false),
            Value::String(text) if self.targets.get(key).is_some_and(|it| it.text == text) => {
                self.look_at(key).await
            }
            value => self.put(key, Source::Value(value)).await.map(|_| true),
        }
    }

    /// What was written so far.
    #[must_use]
    pub fn written(&self) -> BTreeMap<String, Written> {
        self.written.lock().clone()
    }

    fn is_written(&self, key: &str) -> bool {
        self.written.lock().contains_key(key)
    }

    pub(super) fn has_written(&self, key: &str, written: Written) {
        self.written.lock().insert(key.to_owned(), written);
    }

    /// What an input refers to.
    pub(super) fn reference(&self, key: &str) -> Result<FileAddress, TransferTrouble> {
        let nothing = TransferTrouble::new(code::INPUTS, "it is no reference");
        self.references.get(key).cloned().unwrap_or(Err(nothing))
    }

    /// Where an output goes.
    pub(super) fn place(&self, key: &str) -> Result<FileAddress, TransferTrouble> {
        let nowhere = TransferTrouble::new(code::INPUTS, "the request names no place for it");
        self.targets.get(key).map_or(Err(nowhere), |target| target.place.clone())
    }

    /// The keys of outputs that have a place.
    pub(super) fn target_keys(&self) -> impl Iterator<Item = &String> {
        self.targets.keys()
    }

    /// A new name in the scratch folder, with what may be kept of another one.
    pub(super) fn new_path(&self, name: &str) -> Result<PathBuf, Failure> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let is_kept = |letter: &char| letter.is_ascii_alphanumeric() || "._-".contains(*letter);
        let kept: String = name.chars().filter(is_kept).collect();
        let kept = &kept[kept.len().saturating_sub(100)..];
        Ok(self.folder()?.join(format!("{number}-{kept}")))
    }

    /// Reports of a transfer.
    pub(super) fn progress(&self, subject: Subject) -> Arc<TransferProgress> {
        Arc::new(TransferProgress::new(subject, self.report.clone()))
    }

    /// Marks an output as being written, until what is returned is dropped.
    pub(super) fn begin_writing(&self, key: &str) -> Result<OutputWriter<'_>, TransferTrouble> {
        let mut writing = self.writing.lock();
        if !writing.insert(key.to_owned()) {
            return Err(TransferTrouble::new(code::HANDLER, "it is being written already"));
        }
        Ok(OutputWriter { files: self, key: key.to_owned() })
    }

    /// Looks at an output that the handler says it has written by its own means.
    async fn look_at(&self, key: &str) -> Result<bool, Failure> {
        let Ok(FileAddress::Local(path)) = self.place(key) else { return Ok(true) };
        let subject = Subject::output(key);
        let file = match self.open_local(path).await {
            Ok(file) => file,
            Err(trouble) if trouble.code == code::NOT_FOUND => return Ok(false),
            Err(trouble) => return Err(subject.failed(trouble)),
        };
        let broken =
            |_| subject.failed(TransferTrouble::new(code::STORAGE, "its file cannot be read"));
        let content = Content::of_file(file).map_err(broken)?;
        let mut pieces = content.pieces();
        let mut hasher = blake3::Hasher::new();
        while let Some(piece) = pieces.try_next().await.map_err(broken)? {
            hasher.update(&piece);
        }
        let b3 = hasher.finalize().to_hex().to_string();
        self.has_written(key, Written { bytes: content.len(), b3 });
        Ok(true)
    }

    /// Where an input is read from. Files of other runs are only for listed keys, those the core
    /// has resolved, unless the policy trusts whoever asks.
    fn input_place(&self, key: &str, value: &Value) -> Result<FileAddress, TransferTrouble> {
        let Value::String(text) = value else {
            return Err(TransferTrouble::new(code::INPUTS, "a reference has to be text"));
        };
        let place = FileAddress::parse(text)?;
        let is_listed = self.refs.as_ref().is_some_and(|refs| refs.contains(key));
        let is_free = is_listed || self.shared.policy.any_run;
        if matches!(&place, FileAddress::Local(path) if !is_free && !self.is_own(path)) {
            return Err(TransferTrouble::path("it belongs to another run"));
        }
        Ok(place)
    }

    fn target(&self, value: &Value) -> OutputAddress {
        let Value::String(text) = value else {
            let place = Err(TransferTrouble::new(code::INPUTS, "its place has to be text"));
            return OutputAddress { text: String::new(), place };
        };
        let place = FileAddress::parse(text).and_then(|place| match &place {
            FileAddress::Local(path) if !self.is_own(path) => {
                Err(TransferTrouble::path("its place belongs to another run"))
            }
            _ => Ok(place),
        });
        OutputAddress { text: text.clone(), place }
    }

    fn is_own(&self, path: &LocalPath) -> bool {
        path.is_of(&self.run_id, self.world.as_deref())
    }
}

impl fmt::Debug for RunFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFiles").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

impl Drop for RunFiles {
    fn drop(&mut self) {
        let folder = self.folder.get_mut().take();
        // Removing large files takes its time, which no run should wait for.
        if let (Some(folder), Ok(runtime)) = (folder, tokio::runtime::Handle::try_current()) {
            runtime.spawn_blocking(move || drop(folder));
        }
    }
}

/// An output that is being written.
#[derive(Debug)]
pub(super) struct OutputWriter<'a> {
    files: &'a RunFiles,
    key: String,
}

impl Drop for OutputWriter<'_> {
    fn drop(&mut self) {
        let mut writing = self.files.writing.lock();
        writing.remove(&self.key);
    }
}
