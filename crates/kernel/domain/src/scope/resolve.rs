//! From the keys of a request to names and the places they stand for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value;
use wharf_vocab::limits::RUN_REFERENCES_MAX;
use wharf_vocab::{Code, Fault, Object, RunId, WorldId};

use super::{PathError, Target, Unwritten, WorldPath, is_uri, without_secrets};

/// A request as it came.
#[derive(Clone, Copy)]
pub struct Intent<'a> {
    /// The run's world.
    pub world: &'a WorldId,
    /// The run.
    pub run: &'a RunId,
    /// Its predecessor.
    pub continues: Option<&'a RunId>,
    /// Its inputs.
    pub inputs: &'a Object,
    /// Where its outputs are to go.
    pub outputs: &'a Object,
    /// Whether an input of this name is never an address, as the tool's schema says.
    pub is_literal: &'a dyn Fn(&str) -> bool,
}

impl std::fmt::Debug for Intent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intent").field("world", &self.world).field("run", &self.run).finish()
    }
}

/// What a request means.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The inputs under their names; references as records may have them.
    pub inputs: Object,
    /// The outputs under their names; references as records may have them.
    pub outputs: Object,
    /// Inputs that are references.
    pub reads: BTreeMap<String, Source>,
    /// Where outputs go.
    pub writes: BTreeMap<String, Target>,
    /// Addresses among the inputs with all their parts.
    pub input_uris: Unwritten,
    /// Addresses among the outputs with all their parts.
    pub output_uris: Unwritten,
}

/// Where an input comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of the world, or a local file of one run.
    Object(WorldPath),
    /// A local file of the newest run along the chain of predecessors that wrote it.
    Chain(WorldPath),
    /// An address elsewhere.
    Uri,
}

/// What the end of a key says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suffix {
    World,
    Local,
    None,
}

/// Turns the keys of a request into names and places, or says which key is wrong and why.
pub fn resolve(intent: &Intent<'_>) -> Result<Plan, Fault> {
    let mut plan = Plan::default();
    let mut origins = BTreeMap::new();
    for (key, value) in intent.inputs {
        let (name, suffix) = named(key)?;
        claim(&mut origins, &name, key)?;
        plan.read(intent, key, name, suffix, value)?;
    }
    let mut origins = BTreeMap::new();
    for (key, value) in intent.outputs {
        let (name, suffix) = named(key)?;
        claim(&mut origins, &name, key)?;
        plan.write(intent, key, name, suffix, value)?;
    }
    if plan.reads.len().max(plan.writes.len()) > RUN_REFERENCES_MAX {
        let message = format!("A run may have {RUN_REFERENCES_MAX} references at most.");
        return Err(Fault::new(Code::ScopeValueInvalid, message));
    }
    Ok(plan)
}

impl Plan {
    fn read(
        &mut self,
        intent: &Intent<'_>,
        key: &str,
        name: String,
        suffix: Suffix,
        value: &Value,
    ) -> Result<(), Fault> {
        let source = match suffix {
            Suffix::World => Source::Object(world_path(key, text(key, value)?)?),
            Suffix::Local => local_source(intent, key, text(key, value)?)?,
            Suffix::None => match value.as_str().filter(|text| is_uri(text)) {
                Some(text) if !(intent.is_literal)(&name) => match world_uri(intent, key, text)? {
                    Some(path) => Source::Object(path),
                    None => {
                        self.input_uris.0.insert(name.clone(), text.to_owned());
                        Source::Uri
                    }
                },
                _ => {
                    self.inputs.insert(name, value.clone());
                    return Ok(());
                }
            },
        };
        let shown = match &source {
            Source::Object(path) => path.uri(intent.world),
            // The engine puts the run's name in once it knows which one wrote the file.
            Source::Chain(path) => path.uri(intent.world),
            Source::Uri => without_secrets(value.as_str().unwrap_or_default()),
        };
        self.inputs.insert(name.clone(), shown.into());
        self.reads.insert(name, source);
        Ok(())
    }

    fn write(
        &mut self,
        intent: &Intent<'_>,
        key: &str,
        name: String,
        suffix: Suffix,
        value: &Value,
    ) -> Result<(), Fault> {
        let text = text(key, value)?;
        let path = match suffix {
            Suffix::World => Some(world_path(key, text)?),
            Suffix::Local => Some(own_path(intent, key, text)?),
            Suffix::None if is_uri(text) => world_uri(intent, key, text)?,
            Suffix::None => {
                let message = format!(
                    "The output `{key}` must say where it goes: `{key}.world` or `{key}.local` \
                     with a path, or a whole URI."
                );
                return Err(Fault::new(Code::ScopeValueInvalid, message).with("key", key));
            }
        };
        if let Some(path) = &path
            && path.run().is_some_and(|run| run != intent.run.as_str())
        {
            let message = format!("The output `{key}` leads to a local file of another run.");
            return Err(Fault::new(Code::ScopeForbidden, message).with("key", key));
        }
        let (shown, target) = match path {
            Some(path) => {
                let taken = |target: &Target| matches!(target, Target::Object { path: other } if *other == path);
                if self.writes.values().any(taken) {
                    let message =
                        format!("The output `{key}` leads to the file of another output.");
                    return Err(Fault::new(Code::ScopeKeyConflict, message).with("key", key));
                }
                (path.uri(intent.world), Target::Object { path })
            }
            None => {
                self.output_uris.0.insert(name.clone(), text.to_owned());
                (without_secrets(text), Target::Uri)
            }
        };
        self.outputs.insert(name.clone(), shown.into());
        self.writes.insert(name, target);
        Ok(())
    }
}

/// The name that a key stands for. Two dots before the suffix make it a plain name.
fn named(key: &str) -> Result<(String, Suffix), Fault> {
    for (end, suffix) in [(".world", Suffix::World), (".local", Suffix::Local)] {
        let Some(base) = key.strip_suffix(end) else { continue };
        if let Some(plain) = base.strip_suffix('.') {
            return Ok((format!("{plain}{end}"), Suffix::None));
        }
        if base.is_empty() {
            let message = format!("The key `{key}` has no name before its suffix.");
            return Err(Fault::new(Code::ScopeValueInvalid, message).with("key", key));
        }
        return Ok((base.to_owned(), suffix));
    }
    Ok((key.to_owned(), Suffix::None))
}

fn claim(origins: &mut BTreeMap<String, String>, name: &str, key: &str) -> Result<(), Fault> {
    match origins.entry(name.to_owned()) {
        Entry::Vacant(place) => {
            place.insert(key.to_owned());
            Ok(())
        }
        Entry::Occupied(other) => {
            let message =
                format!("The keys `{}` and `{key}` stand for the same name.", other.get());
            Err(Fault::new(Code::ScopeKeyConflict, message).with("key", key))
        }
    }
}

fn text<'a>(key: &str, value: &'a Value) -> Result<&'a str, Fault> {
    value.as_str().ok_or_else(|| {
        let message = format!("The value of `{key}` must be text that says where the data is.");
        Fault::new(Code::ScopeValueInvalid, message).with("key", key)
    })
}

fn world_path(key: &str, text: &str) -> Result<WorldPath, Fault> {
    WorldPath::parse(text).map_err(|error| wrong_path(key, error))
}

/// A local input: a file of the run that is named, else of the chain of predecessors, else of
/// the run itself.
fn local_source(intent: &Intent<'_>, key: &str, text: &str) -> Result<Source, Fault> {
    let path = WorldPath::parse_any(text).map_err(|error| wrong_path(key, error))?;
    match (path.run(), intent.continues) {
        (Some(_), _) => Ok(Source::Object(path)),
        (None, Some(_)) => Ok(Source::Chain(path)),
        (None, None) => Ok(Source::Object(local(intent, key, &path)?)),
    }
}

/// A local output always belongs to the run itself.
fn own_path(intent: &Intent<'_>, key: &str, text: &str) -> Result<WorldPath, Fault> {
    let path = WorldPath::parse_any(text).map_err(|error| wrong_path(key, error))?;
    if path.run().is_some() { Ok(path) } else { local(intent, key, &path) }
}

fn local(intent: &Intent<'_>, key: &str, path: &WorldPath) -> Result<WorldPath, Fault> {
    path.local_to(intent.run).ok_or_else(|| wrong_path(key, PathError::TooLong))
}

/// The file that a `world://` address names; `None` for any other address.
fn world_uri(intent: &Intent<'_>, key: &str, uri: &str) -> Result<Option<WorldPath>, Fault> {
    let scheme = uri.split("://").next().unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("world") {
        return Ok(None);
    }
    let rest = &uri[scheme.len() + "://".len()..];
    let (world, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if world != intent.world.as_str() {
        let message = format!("`{key}` names another world than the run's own.");
        return Err(Fault::new(Code::ScopeForbidden, message).with("key", key));
    }
    WorldPath::parse_any(path).map(Some).map_err(|error| wrong_path(key, error))
}

fn wrong_path(key: &str, error: PathError) -> Fault {
    let message = format!("The path of `{key}` is not valid: {error}.");
    Fault::new(Code::ScopePathInvalid, message).with("key", key)
}
