//! The files of an attempt: what its provider is given and gives.
//!
//! A provider that can reach the artifact store gets addresses; one that cannot gets the bytes
//! and hands bytes back. Either way the outputs are confirmed only when they are durable, and
//! records never hold an address.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use wharf_domain::scope::{InputBinding, ReadObject, Target, WorldPath};
use wharf_domain::{Metered, Progress, RunSpec, TRANSFERS_MAX, Transfer};
use wharf_ports::{
    ByteStream, Dispatch, Method, ObjectBody, ObjectError, ObjectInfo, ObjectStore, ObjectVersion,
    PutObject, verified,
};
use wharf_vocab::limits::{PRESIGN_S_MIN, PRESIGN_SLACK_S, RUN_REFERENCES_MAX};
use wharf_vocab::{Code, Direction, Fault, Object, Publish, Timestamp};

use super::AttemptRef;
use super::gate::{holder, version_of};
use super::reads::InputReads;
use super::scrub::IssuedAddresses;
use super::signatures::Endings;
use crate::clean::Clean;
use crate::redact::{Redactor, Tails};
use crate::storage::{self, Tries};

/// How a provider reaches the files of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It can use addresses of the artifact store.
    Storage,
    /// It sees only files in a folder of its own, which are copied for it.
    Folder,
}

/// The files of an attempt.
#[derive(Debug, Clone)]
pub struct AttemptData {
    attempt: AttemptRef,
}

/// What an attempt has been given and has written so far, shared by all who work on it.
#[derive(Clone, Default)]
pub(super) struct AttemptRecord(Arc<Mutex<AttemptRecordState>>);

#[derive(Default)]
struct AttemptRecordState {
    given: IssuedAddresses,
    endings: Endings,
    tails: Tails,
    inputs: Option<Object>,
    outputs: Option<BTreeMap<String, String>>,
    written: BTreeMap<String, StoredOutput>,
    /// Outputs that were found where they could be written, and that the provider did not name.
    found: BTreeSet<String>,
    /// Names of outputs that nobody asked for, in the order in which they came.
    unasked: Vec<String>,
    metered: Metered,
    /// How many bytes of each input were given, by its name.
    bytes_in: BTreeMap<String, u64>,
    reads: InputReads,
}

/// An output that is in the artifact store.
#[derive(Debug, Clone)]
pub(super) struct StoredOutput {
    /// Where it is.
    pub(super) at: WorldPath,
    /// Where it belongs.
    pub(super) place: WorldPath,
    pub(super) info: ObjectInfo,
}

impl fmt::Debug for AttemptRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}

impl AttemptRecord {
    fn lock(&self) -> MutexGuard<'_, AttemptRecordState> {
        self.0.lock()
    }

    /// The addresses that were given out.
    pub(super) fn given(&self) -> IssuedAddresses {
        self.lock().given.clone()
    }

    /// Which of these inputs are addresses of files that were given out, and of which.
    pub(super) fn handed_on(
        &self,
        spec: &RunSpec,
        inputs: &Object,
    ) -> BTreeMap<String, ReadObject> {
        let inner = self.lock();
        let Some(given) = &inner.inputs else { return BTreeMap::new() };
        let file = |value: &Value| {
            let mut files = spec.bindings.files();
            files.find(|(name, _)| value.is_string() && given.get(*name) == Some(value))
        };
        let handed = inputs.iter().filter_map(|(name, value)| Some((name, file(value)?.1)));
        handed.map(|(name, read)| (name.clone(), read.clone())).collect()
    }

    /// Takes addresses that were given out, and secrets, from progress before anybody sees it.
    pub(super) fn clean(&self, redactor: &Redactor, pieces: &mut Vec<Progress>) {
        let inner = &mut *self.lock();
        inner.given.progress(&mut inner.endings, pieces);
        redactor.progress(&mut inner.tails, pieces);
    }

    /// What of the progress was held back, once nothing follows.
    pub(super) fn rest(&self, redactor: &Redactor) -> Vec<Progress> {
        redactor.rest(&mut self.lock().tails)
    }

    /// The address that was given out for an output.
    pub(super) fn output_address(&self, name: &str) -> Option<String> {
        self.lock().outputs.as_ref()?.get(name).cloned()
    }

    /// What was handed over, by the names of the outputs.
    pub(super) fn written(&self) -> BTreeMap<String, StoredOutput> {
        self.lock().written.clone()
    }

    /// Whether an output was found without having been named.
    pub(super) fn was_found(&self, name: &str) -> bool {
        self.lock().found.contains(name)
    }

    pub(super) fn metered(&self) -> Metered {
        let inner = self.lock();
        let bytes_in = inner.bytes_in.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        Metered { bytes_in, ..inner.metered.clone() }
    }

    pub(super) fn used_cpu_ms(&self, cpu_ms: u64) {
        self.lock().metered.cpu_ms = Some(cpu_ms);
    }

    /// The inputs that were handed out.
    pub(super) fn reads<T>(&self, look: impl FnOnce(&mut InputReads) -> T) -> T {
        look(&mut self.lock().reads)
    }

    /// Counts what was given of an input; giving it again, in whatever way, is no more.
    fn count_in(&self, name: &str, bytes: u64) {
        let mut inner = self.lock();
        let given = inner.bytes_in.entry(name.to_owned()).or_default();
        *given = bytes.max(*given);
    }

    /// Begins to hand a file over; which of the transfers it is, unless there are too many.
    pub(super) fn begin_transfer(
        &self,
        key: &str,
        direction: Direction,
        at: Timestamp,
    ) -> Option<usize> {
        let transfers = &mut self.lock().metered.transfers;
        let room = transfers.len() < TRANSFERS_MAX;
        room.then(|| {
            let key = key.to_owned();
            transfers.push(Transfer { key, direction, bytes: 0, at, took_ms: 0 });
            transfers.len() - 1
        })
    }

    /// So many bytes of a file have been handed over by now.
    pub(super) fn go_on_transfer(&self, number: Option<usize>, bytes: u64, now: Timestamp) {
        let mut inner = self.lock();
        let found = number.and_then(|number| inner.metered.transfers.get_mut(number));
        if let Some(transfer) = found {
            transfer.bytes = bytes;
            transfer.took_ms = now.ms_since(transfer.at);
        }
    }

    fn hand_over(&self, name: &str, written: StoredOutput) {
        let mut inner = self.lock();
        inner.metered.bytes_out = inner.metered.bytes_out.saturating_add(written.info.bytes);
        inner.written.insert(name.to_owned(), written);
    }

    /// The number of an output that nobody asked for, from 0; there may be so many at most.
    fn unasked(&self, name: &str) -> Result<usize, Fault> {
        let mut inner = self.lock();
        if let Some(known) = inner.unasked.iter().position(|known| known == name) {
            return Ok(known);
        }
        if inner.unasked.len() >= RUN_REFERENCES_MAX {
            let message =
                format!("A tool may write {RUN_REFERENCES_MAX} files that nobody asked for.");
            return Err(Fault::new(Code::ToolOutputTooLarge, message).with("key", name));
        }
        inner.unasked.push(name.to_owned());
        Ok(inner.unasked.len() - 1)
    }
}

impl AttemptRef {
    /// The files of the attempt.
    pub fn data(&self) -> AttemptData {
        AttemptData { attempt: self.clone() }
    }

    /// Where an output goes: where it is written first, and where it belongs.
    pub(super) fn paths(&self, name: &str) -> Result<(WorldPath, WorldPath), Fault> {
        let dispatch = self.dispatch();
        let place = place(&dispatch.spec, &dispatch.run.run, name)?;
        let writes = &dispatch.spec.bindings.writes;
        let number = match writes.keys().position(|known| known == name) {
            Some(number) => number,
            None => writes.len() + self.work().unasked(name)?,
        };
        if dispatch.spec.publish == Publish::Direct {
            return Ok((place.clone(), place));
        }
        let staged = WorldPath::staged(&dispatch.run.run, &dispatch.attempt_id, number);
        Ok((staged, place))
    }

    /// How long an address must be good for that the attempt reads by: as long as it may take.
    fn reading_s(&self) -> u64 {
        let now = self.handle().now();
        let left = |deadline: Timestamp| deadline.ms_since(now);
        let left_ms = self.dispatch().deadline.map_or(PRESIGN_S_MIN * 1000, left);
        let left_ms = left_ms.max(self.dispatch().spec.timeout_ms);
        left_ms.div_ceil(1000) + PRESIGN_SLACK_S
    }
}

impl AttemptData {
    /// Whether there is anything to fetch or to write.
    pub fn is_empty(&self) -> bool {
        self.spec().bindings.is_empty()
    }

    /// Names of inputs that are references, in order.
    pub fn refs(&self) -> Vec<String> {
        self.spec().bindings.reads.keys().cloned().collect()
    }

    /// The inputs with an address in the place of each reference: one for each file that shows the
    /// version the run was accepted with and ends with the attempt. They are made anew for each
    /// attempt and must not be kept.
    pub async fn inputs_with_addresses(&self) -> Result<Object, Fault> {
        let work = self.attempt.work();
        if let Some(made) = work.lock().inputs.clone() {
            return Ok(made);
        }
        let spec = self.spec();
        let located = self.located().await?;
        let mut inputs = Object::clone(&spec.inputs);
        let mut given = Vec::new();
        for (name, bound) in &spec.bindings.reads {
            let address = match bound {
                InputBinding::Object(read) => {
                    let Some(located) = located.get(name) else { continue };
                    work.count_in(name, read.bytes);
                    self.presign_version(located)?
                }
                InputBinding::Uri => match spec.addresses.inputs.0.get(name) {
                    Some(address) => address.clone(),
                    None => continue,
                },
            };
            given.push((address.clone(), shown(&spec.inputs, name)));
            inputs.insert(name.clone(), address.into());
        }
        let mut inner = work.lock();
        for (address, shown) in given {
            inner.given.add(address, shown);
        }
        inner.inputs = Some(inputs.clone());
        drop(inner);
        self.attempt.hand_out(self.input_files().into_iter().map(|(name, _)| name));
        Ok(inputs)
    }

    /// Addresses to which outputs can be written, by their names.
    pub fn output_addresses(&self) -> Result<BTreeMap<String, String>, Fault> {
        let work = self.attempt.work();
        if let Some(made) = work.lock().outputs.clone() {
            return Ok(made);
        }
        let spec = self.spec();
        let mut outputs = BTreeMap::new();
        for (name, target) in &spec.bindings.writes {
            let address = match target {
                Target::Object { .. } => {
                    let (at, _) = self.attempt.paths(name)?;
                    self.presign(&at)?
                }
                Target::Uri => match spec.addresses.outputs.0.get(name) {
                    Some(address) => address.clone(),
                    None => shown(&spec.outputs, name),
                },
            };
            outputs.insert(name.clone(), address);
        }
        let mut inner = work.lock();
        for (name, address) in &outputs {
            inner.given.add(address.clone(), shown(&spec.outputs, name));
        }
        inner.outputs = Some(outputs.clone());
        Ok(outputs)
    }

    /// The inputs that are files of the world: their names and sizes. Others stand as they are.
    pub fn input_files(&self) -> Vec<(String, u64)> {
        let reads = self.spec().bindings.reads.iter();
        reads
            .filter_map(|(name, bound)| match bound {
                InputBinding::Object(read) => Some((name.clone(), read.bytes)),
                InputBinding::Uri => None,
            })
            .collect()
    }

    /// The file that an input stands for, as it was when the run was accepted.
    pub fn input(&self, name: &str) -> Option<&ReadObject> {
        match self.spec().bindings.reads.get(name)? {
            InputBinding::Object(read) => Some(read),
            InputBinding::Uri => None,
        }
    }

    /// The names of outputs that go to files or addresses.
    pub fn output_names(&self) -> Vec<String> {
        self.spec().bindings.writes.keys().cloned().collect()
    }

    /// The bytes of an input that is a file.
    pub async fn read(&self, name: &str) -> Result<ObjectBody, Fault> {
        let Some(read) = self.input(name) else {
            let message = format!("The input `{name}` is not a file.");
            return Err(Fault::new(Code::RequestInvalid, message).with("key", name));
        };
        let (objects, world) = (self.objects()?, &self.attempt.dispatch().run.world);
        let wanted = version_of(world, read);
        let handle = self.attempt.handle().clone();
        let number = self.attempt.work().begin_transfer(name, Direction::In, handle.now());
        let found = || objects.get_version(wanted.clone());
        let found = storage::patiently(Tries::Long, found).await;
        let told = |error: ObjectError| Fault::from(error).with("key", name);
        let body = found.map_err(told)?.ok_or_else(|| changed(name))?;
        let note = self.attempt.handle().files().on_damage(world, &read.path);
        let stream = verified(body.stream, read.bytes, read.b3.clone(), note);
        let stream = stream.await.map_err(told)?;
        self.attempt.hand_out([name.to_owned()]);
        self.attempt.record_reads().await;
        let (work, name) = (self.attempt.work().clone(), name.to_owned());
        let mut passed = 0_u64;
        let stream = storage::counted(stream, move |bytes| {
            passed = passed.saturating_add(bytes);
            work.count_in(&name, passed);
            work.go_on_transfer(number, passed, handle.now());
            storage::count_read(bytes);
        });
        Ok(ObjectBody { stream, ..body })
    }

    /// The files as the artifact store has them now. One that is not what the run was accepted
    /// with ends the attempt before anybody is asked anything.
    async fn located(&self) -> Result<BTreeMap<String, ObjectVersion>, Fault> {
        let mut located = BTreeMap::new();
        for (name, read) in self.spec().bindings.files() {
            let objects = self.objects()?;
            let wanted = version_of(&self.attempt.dispatch().run.world, read);
            let found = storage::patiently(Tries::Long, || objects.locate(wanted.clone())).await;
            let found = found.map_err(|error| Fault::from(error).with("key", name.as_str()))?;
            located.insert(name.clone(), found.ok_or_else(|| changed(name))?);
        }
        Ok(located)
    }

    /// Writes an output, to where the run says or else to a local file of the run by this name.
    /// It counts once the attempt has succeeded.
    pub async fn write(&self, name: &str, bytes: u64, body: ByteStream) -> Result<(), Fault> {
        let redactor = &self.attempt.handle().inner.redactor;
        if self.attempt.work().given().clean(name).is_some() || redactor.has_secret(name) {
            let message =
                "An output is named after an address or a secret, which must not be kept.";
            return Err(Fault::new(Code::ToolInvalidOutput, message));
        }
        let (at, place) = self.attempt.paths(name)?;
        let put = PutObject {
            key: at.key(&self.attempt.dispatch().run.world),
            media_type: place.media_type().to_owned(),
            bytes: Some(bytes),
            b3: None,
        };
        let (handle, work) = (self.attempt.handle(), self.attempt.work());
        let number = work.begin_transfer(name, Direction::Out, handle.now());
        let info = self.objects()?.put(put, storage::counted(body, storage::count_written)).await;
        let info = info.map_err(|error| Fault::from(error).with("key", name))?;
        work.go_on_transfer(number, info.bytes, handle.now());
        self.attempt.work().hand_over(name, StoredOutput { at, place, info });
        Ok(())
    }

    /// Says that an output which is handed over was found in the provider's folder, and not named
    /// in its result.
    pub fn found(&self, name: &str) {
        self.attempt.work().lock().found.insert(name.to_owned());
    }

    /// Where an output goes, if that is a file.
    pub fn place(&self, name: &str) -> Option<WorldPath> {
        place(self.spec(), &self.attempt.dispatch().run.run, name).ok()
    }

    fn spec(&self) -> &RunSpec {
        &self.attempt.dispatch().spec
    }

    fn objects(&self) -> Result<Arc<dyn ObjectStore>, Fault> {
        self.attempt.handle().objects()
    }

    fn presign_version(&self, located: &ObjectVersion) -> Result<String, Fault> {
        let Dispatch { run, attempt_id, .. } = self.attempt.dispatch();
        let (objects, holder) = (self.objects()?, holder(run, attempt_id));
        Ok(storage::presign_version(&*objects, located, &holder, self.attempt.reading_s()))
    }

    fn presign(&self, path: &WorldPath) -> Result<String, Fault> {
        let key = path.key(&self.attempt.dispatch().run.world);
        let lifetime_s = PRESIGN_S_MIN.max(self.attempt.reading_s());
        Ok(storage::presign(&*self.objects()?, Method::Put, &key, lifetime_s))
    }
}

/// A run whose file is not the one any more that it was accepted with does not begin.
fn changed(name: &str) -> Fault {
    let message = format!(
        "The file of the input `{name}` is not the one any more that this run was accepted with."
    );
    Fault::new(Code::ArtifactChanged, message).with("key", name)
}

/// The text that records have for a reference.
pub(super) fn shown(values: &Object, name: &str) -> String {
    values.get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
}

/// The file that an output belongs to; one that nobody asked for is a local file of the run.
fn place(spec: &RunSpec, run: &wharf_vocab::RunId, name: &str) -> Result<WorldPath, Fault> {
    let writes = &spec.bindings.writes;
    let wrong = |why: &str| {
        let message = format!("The output `{name}` cannot be written to a file: {why}.");
        Err(Fault::new(Code::ToolInvalidOutput, message).with("key", name))
    };
    match writes.get(name) {
        Some(Target::Object { path }) => return Ok(path.clone()),
        Some(Target::Uri) => return wrong("it goes to an address elsewhere"),
        None => {}
    }
    let path = match WorldPath::parse(&format!("/{name}")) {
        Ok(path) => path.local_to(run),
        Err(error) => return wrong(&error.to_string()),
    };
    let Some(path) = path else { return wrong("its name is too long") };
    let taken =
        |target: &Target| matches!(target, Target::Object { path: other } if *other == path);
    if writes.values().any(taken) {
        return wrong("another output goes there");
    }
    Ok(path)
}
