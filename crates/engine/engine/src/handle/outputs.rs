//! What an attempt gives when it succeeds: which outputs are files, and that they are there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use wharf_domain::json_weight;
use wharf_domain::run::AttemptError;
use wharf_domain::scope::{Target, WorldPath, without_secrets};
use wharf_domain::{
    Actor, Artifact, ArtifactOp, AuditEvent, AuditRecord, Delivery, Level, Move, Progress,
};
use wharf_ports::{ObjectError, ObjectInfo, ObjectStore};
use wharf_vocab::limits::VALUE_BYTES_MAX;
use wharf_vocab::{B3, Code, Direction, Fault, Micro, Object, Publish, Timestamp};

use super::AttemptRef;
use super::agree::{SKEW_MS, agrees};
use super::data::{StoredOutput, shown};
use super::files::written;
use crate::storage::{self, Tries};

/// Outputs that are confirmed or written side by side.
const OUTPUTS_AT_ONCE: usize = 8;
/// How long a file may be read to learn its hash, at most.
const HASHING_MAX: Duration = Duration::from_secs(600);

/// How an attempt ended, as its provider tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptEnd {
    pub result: Result<AttemptOutputs, AttemptError>,
    pub cost_micro: Micro,
}

impl AttemptEnd {
    pub fn new(result: Result<AttemptOutputs, AttemptError>, cost_micro: Micro) -> Self {
        Self { result, cost_micro }
    }
}

/// What an attempt gives when it succeeds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptOutputs {
    /// Outputs by their names.
    pub values: Object,
    /// Outputs that the provider has written to their places itself, by their names.
    pub written: BTreeMap<String, WrittenFile>,
}

impl From<Object> for AttemptOutputs {
    fn from(values: Object) -> Self {
        Self { values, written: BTreeMap::new() }
    }
}

/// What a provider says of a file that it has written itself, as far as it says anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenFile {
    pub bytes: Option<u64>,
    pub b3: Option<B3>,
}

/// What a provider says of an output that goes to a file.
#[derive(Debug)]
enum OutputReport {
    /// It handed the bytes over.
    HandedOver(Box<StoredOutput>),
    /// It wrote the file itself.
    Wrote(WrittenFile),
    /// It gave the value, to be written for it.
    Value(Value),
    /// Nothing. It may have written the file all the same, if it was given an address.
    Nothing,
}

/// An output as it turned out to be.
#[derive(Debug)]
enum OutputState {
    /// The file is there, as its provider said.
    There(StoredOutput),
    /// The file is there, and its provider did not say so.
    Found(StoredOutput),
    /// Nothing is there.
    Missing,
    /// Nothing was said of it, and the artifact store cannot be asked.
    Unknown,
}

impl AttemptRef {
    /// Makes sure that every output is where it belongs or will be, and says what records hold of
    /// it all.
    pub(super) async fn deliver(
        &self,
        outputs: AttemptOutputs,
    ) -> Result<(Object, Delivery), Fault> {
        let AttemptOutputs { values: mut outputs, written } = outputs;
        check_size(&outputs)?;
        let (said, elsewhere) = self.sort(&mut outputs, written)?;
        self.check(&outputs, &said, &elsewhere).await?;
        let missing = elsewhere.iter().filter(|(_, value)| value.is_null());
        let mut lines: Vec<_> = missing.map(|(name, _)| note(Level::Warn, name, MISSING)).collect();
        outputs.extend(elsewhere);
        let settled = if said.is_empty() { Vec::new() } else { self.settle(said).await? };
        let mut delivery = Delivery { metered: self.work().metered(), ..Delivery::default() };
        for (name, settled) in settled {
            let line = match &settled {
                OutputState::There(_) => None,
                OutputState::Found(_) => Some(note(Level::Info, &name, FOUND)),
                OutputState::Missing => Some(note(Level::Warn, &name, MISSING)),
                OutputState::Unknown => Some(note(Level::Warn, &name, UNKNOWN)),
            };
            lines.extend(line);
            let mut place = Value::Null;
            if let OutputState::There(written) | OutputState::Found(written) = settled {
                place = written.place.uri(&self.dispatch().run.world).into();
                self.record(&mut delivery, &name, written);
            }
            outputs.insert(name, place);
        }
        delivery.metered.bytes_out =
            delivery.artifacts.iter().fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
        if !lines.is_empty() {
            self.progress(lines).await?;
        }
        Ok((outputs, delivery))
    }

    /// Checks outputs against the tool's schema; of those that are files only the provider knows
    /// whether they fit.
    async fn check(
        &self,
        outputs: &Object,
        said: &BTreeMap<String, OutputReport>,
        elsewhere: &Object,
    ) -> Result<(), Fault> {
        let (tool, catalog) = (&self.dispatch().spec.tool, &self.handle().inner.catalog);
        if said.is_empty() && elsewhere.is_empty() {
            return catalog.check_outputs(tool, outputs, BTreeSet::new()).await;
        }
        let (mut checked, mut except) = (outputs.clone(), BTreeSet::new());
        for name in elsewhere.keys() {
            checked.insert(name.clone(), Value::Null);
            except.insert(name.clone());
        }
        for (name, said) in said {
            let seen = match said {
                OutputReport::Value(value) if bytes_of(value).is_none() => value.clone(),
                _ => {
                    except.insert(name.clone());
                    Value::Null
                }
            };
            checked.insert(name.clone(), seen);
        }
        catalog.check_outputs(tool, &checked, except).await
    }

    /// Takes what goes to files out of the outputs, and what goes elsewhere, each as it will be
    /// shown.
    fn sort(
        &self,
        outputs: &mut Object,
        mut written: BTreeMap<String, WrittenFile>,
    ) -> Result<(BTreeMap<String, OutputReport>, Object), Fault> {
        let spec = &self.dispatch().spec;
        let mut handed_over = self.work().written();
        let (mut said, mut elsewhere) = (BTreeMap::new(), Object::new());
        for (name, target) in &spec.bindings.writes {
            let value = outputs.remove(name).unwrap_or(Value::Null);
            let echo = || self.is_echo(name, &value).then(WrittenFile::default);
            let wrote = written.remove(name).or_else(echo);
            let one = match (handed_over.remove(name), target, wrote) {
                (Some(file), ..) => OutputReport::HandedOver(Box::new(file)),
                (None, Target::Uri, wrote) => {
                    let text = |_| shown(&spec.outputs, name).into();
                    elsewhere.insert(name.clone(), wrote.map_or(value, text));
                    continue;
                }
                (None, Target::Object { .. }, Some(file)) => OutputReport::Wrote(file),
                (None, Target::Object { .. }, None) if value.is_null() => OutputReport::Nothing,
                (None, Target::Object { .. }, None) => OutputReport::Value(value),
            };
            said.insert(name.clone(), one);
        }
        for (name, file) in handed_over {
            outputs.remove(&name);
            written.remove(&name);
            said.insert(name, OutputReport::HandedOver(Box::new(file)));
        }
        if let Some(name) = written.keys().next() {
            let message =
                format!("The output `{name}` is said to be written, but was given no place.");
            return Err(Fault::new(Code::ToolInvalidOutput, message).with("key", name.as_str()));
        }
        Ok((said, elsewhere))
    }

    /// Whether a value is the place that the output was to be written to: its address, or the
    /// text that records have for it.
    fn is_echo(&self, name: &str, value: &Value) -> bool {
        let Some(text) = value.as_str() else { return false };
        let address = self.work().output_address(name);
        text == shown(&self.dispatch().spec.outputs, name)
            || address.is_some_and(|it| text == it || text == without_secrets(&it))
    }

    /// Confirms what was written, writes what was given, and looks for what nothing was said of.
    async fn settle(
        &self,
        said: BTreeMap<String, OutputReport>,
    ) -> Result<Vec<(String, OutputState)>, Fault> {
        let began = self.began().await?;
        let each = said.into_iter().map(|(name, said)| async move {
            let settled = self.settle_one(&name, said, began).await?;
            Ok::<_, Fault>((name, settled))
        });
        let each = futures::stream::iter(each.collect::<Vec<_>>());
        each.buffered(OUTPUTS_AT_ONCE).try_collect().await
    }

    /// When the attempt began. One that is over must not write anything any more.
    async fn began(&self) -> Result<Timestamp, Fault> {
        let run = self.handle().runs().get(&self.dispatch().run).await?;
        let active = run.active.as_ref().filter(|it| it.id == self.dispatch().attempt_id);
        let over = || Fault::new(Code::ToolCanceled, "The attempt is over.");
        active.map(|attempt| attempt.started_at).ok_or_else(over)
    }

    /// Looks whether an output that the provider did not name lies where it could be written.
    async fn look_for(&self, name: &str, began: Timestamp) -> OutputState {
        match self.unlisted(name, began).await {
            Ok(Some(written)) => OutputState::Found(written),
            Ok(None) => OutputState::Missing,
            Err(fault) => {
                tracing::debug!(run = %self.dispatch().run, %fault, "an output was not looked for");
                OutputState::Unknown
            }
        }
    }

    /// An output that was written to the address that was given out for it, by this attempt.
    async fn unlisted(&self, name: &str, began: Timestamp) -> Result<Option<StoredOutput>, Fault> {
        if self.work().output_address(name).is_none() {
            return Ok(None);
        }
        let objects = self.handle().objects()?;
        let (at, place) = self.paths(name)?;
        let world = &self.dispatch().run.world;
        let key = at.key(world);
        let told = |error: ObjectError| Fault::from(error).with("key", name);
        let found = storage::head(&*objects, &key, Tries::Long).await.map_err(told)?;
        let Some(mut info) = found else { return Ok(None) };
        // A place of the attempt's own cannot hold anything of others.
        if at == place && !self.is_new(&place, &info, began).await? {
            return Ok(None);
        }
        if info.b3.is_none() {
            info.b3 = self.hash(&*objects, &key, &info).await.map_err(told)?;
        }
        Ok(Some(StoredOutput { at, place, info }))
    }

    /// Whether a file that nobody speaks of was written since the attempt began. The clock of the
    /// artifact store may be off, so that what is on record already counts as somebody else's
    /// unless it is clearly newer.
    async fn is_new(
        &self,
        place: &WorldPath,
        info: &ObjectInfo,
        began: Timestamp,
    ) -> Result<bool, Fault> {
        if info.written_at.plus_ms(SKEW_MS) < began {
            return Ok(false);
        }
        let row = self.handle().files().row(&self.dispatch().run.world, place).await?;
        let known = row.is_some_and(|row| agrees(&row, info) && info.written_at <= row.at);
        Ok(!known)
    }

    async fn settle_one(
        &self,
        name: &str,
        said: OutputReport,
        began: Timestamp,
    ) -> Result<OutputState, Fault> {
        let told = |error: ObjectError| Fault::from(error).with("key", name);
        let objects = self.handle().objects()?;
        let (at, place) = self.paths(name)?;
        let key = at.key(&self.dispatch().run.world);
        let mut written = match said {
            OutputReport::Nothing => return Ok(self.look_for(name, began).await),
            OutputReport::HandedOver(written) if self.work().was_found(name) => {
                return Ok(OutputState::Found(*written));
            }
            OutputReport::HandedOver(written) => *written,
            OutputReport::Value(value) => {
                let (kind, bytes) = (place.media_type(), content(value));
                storage::count_written(storage::length(&bytes));
                let (work, handle) = (self.work(), self.handle());
                let number = work.begin_transfer(name, Direction::Out, handle.now());
                let info = storage::put_bytes(&*objects, &key, kind, bytes).await.map_err(told)?;
                work.go_on_transfer(number, info.bytes, handle.now());
                StoredOutput { at, place, info }
            }
            OutputReport::Wrote(WrittenFile { bytes, b3 }) => {
                let found = storage::head(&*objects, &key, Tries::Long).await.map_err(told)?;
                // A place of the attempt's own cannot hold anything older.
                let fresh =
                    |info: &ObjectInfo| at != place || info.written_at.plus_ms(SKEW_MS) >= began;
                let Some(mut info) = found.filter(fresh) else { return Ok(OutputState::Missing) };
                let differs = bytes.is_some_and(|bytes| bytes != info.bytes)
                    || matches!((&b3, &info.b3), (Some(said), Some(found)) if said != found);
                if differs {
                    let message =
                        format!("The file of the output `{name}` is not what the tool wrote.");
                    return Err(Fault::new(Code::ArtifactChecksum, message).with("key", name));
                }
                info.b3 = info.b3.or(b3);
                StoredOutput { at, place, info }
            }
        };
        if written.info.b3.is_none() {
            written.info.b3 = self.hash(&*objects, &key, &written.info).await.map_err(told)?;
        }
        Ok(OutputState::There(written))
    }

    /// Reads a file to learn its hash, unless that takes too much of the attempt's time.
    async fn hash(
        &self,
        objects: &dyn ObjectStore,
        key: &str,
        info: &ObjectInfo,
    ) -> Result<Option<B3>, ObjectError> {
        let now = self.handle().now();
        let left = self.dispatch().deadline.map_or(HASHING_MAX, |deadline| deadline.until(now) / 2);
        let hash = storage::hash_object(objects, key, info);
        tokio::time::timeout(left.min(HASHING_MAX), hash).await.unwrap_or(Ok(None))
    }

    fn record(&self, delivery: &mut Delivery, name: &str, written: StoredOutput) {
        let StoredOutput { at, place, info } = written;
        delivery.artifacts.push(self.artifact(name, &place, info));
        if at != place {
            delivery.moves.push(Move { from: at, to: place });
        }
    }

    /// What is on record of an output.
    fn artifact(&self, name: &str, place: &WorldPath, info: ObjectInfo) -> Artifact {
        let run = &self.dispatch().run;
        let (run, key) = (Some(run.run.clone()), Some(name.to_owned()));
        Artifact { run, key, ..written(&self.dispatch().run.world, place, info) }
    }

    /// Records what an attempt that did not succeed wrote to its place at once: it is there,
    /// whatever became of the attempt. What cannot be looked at now is as if it were not there.
    pub(super) async fn record_direct(&self) {
        let spec = &self.dispatch().spec;
        if spec.publish != Publish::Direct || spec.bindings.writes.is_empty() {
            return;
        }
        let recorded = async {
            let began = self.began().await?;
            let mut found = Vec::new();
            for name in spec.bindings.writes.keys() {
                found.extend(self.wrote_directly(name, began).await?);
            }
            if found.is_empty() {
                return Ok(());
            }
            let run = &self.dispatch().run;
            let record = AuditRecord::new(AuditEvent::ARTIFACT_FOUND, Actor::CORE, &run.world)
                .fact("run_id", run.run.as_str())
                .fact("files", found.len() as u64);
            let ops = found.into_iter().map(ArtifactOp::Record).collect();
            self.handle().files().index(&run.world, ops, record).await
        };
        let recorded: Result<(), Fault> = recorded.await;
        if let Err(fault) = recorded {
            tracing::debug!(run = %self.dispatch().run, %fault, "outputs are not on record");
        }
    }

    /// An output that the attempt has written and that is not on record.
    async fn wrote_directly(
        &self,
        name: &str,
        began: Timestamp,
    ) -> Result<Option<Artifact>, Fault> {
        let world = &self.dispatch().run.world;
        let handed_over = self.work().written().remove(name);
        if handed_over.is_none() && self.work().output_address(name).is_none() {
            return Ok(None);
        }
        let Ok((_, place)) = self.paths(name) else { return Ok(None) };
        let objects = self.handle().objects()?;
        let head = storage::head(&*objects, &place.key(world), Tries::Short).await?;
        let Some(info) = head else { return Ok(None) };
        let new = self.is_new(&place, &info, began).await?;
        Ok(new.then(|| self.artifact(name, &place, info)))
    }

    /// Removes what was handed over and will never be published. What was written to its place at
    /// once stays there.
    pub(super) fn discard(&self) {
        let written = self.work().written().into_values();
        let staged: Vec<_> = written.filter(|it| it.at != it.place).map(|it| it.at).collect();
        let Ok(objects) = self.handle().objects() else { return };
        if staged.is_empty() {
            return;
        }
        let world = self.dispatch().run.world.clone();
        tokio::spawn(async move {
            for path in staged {
                // What stays is removed with other leftovers.
                let _ = objects.delete(path.key(&world)).await;
            }
        });
    }
}

const FOUND: &str = "was written and not named in the result; it was found and taken on";
const MISSING: &str = "was asked for and not produced";
const UNKNOWN: &str =
    "was not named in the result, and the artifact store did not say whether it was written";

/// A line in the log of a run about one of its outputs.
fn note(level: Level, name: &str, what: &str) -> Progress {
    Progress::Log { level, text: format!("The output `{name}` {what}.") }
}

fn check_size(outputs: &Object) -> Result<(), Fault> {
    if json_weight(outputs) > VALUE_BYTES_MAX {
        let message = format!("The outputs are larger than {VALUE_BYTES_MAX} bytes.");
        return Err(Fault::new(Code::ToolOutputTooLarge, message));
    }
    Ok(())
}

/// What a file holds whose value was given: text as it is, bytes that were encoded for JSON, else
/// JSON.
fn content(value: Value) -> Bytes {
    if let Some(bytes) = bytes_of(&value) {
        return bytes.into();
    }
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    let text = object.get("$bytes")?.as_str()?;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}
