//! From the keys of a request to names and the places they stand for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value;
use wharf_vocab::limits::RUN_REFERENCES_MAX;
use wharf_vocab::{Code, Fault, Object, RunId, WorldId};

use super::{PathError, SecretAddresses, Target, WorldPath};

/// So much of a key stands in an error.
const KEY_CHARS_SHOWN_MAX: usize = 200;

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

/// What a request means.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The inputs under their names; references as records may have them.
    pub inputs: Object,
    /// The outputs under their names; references as records may have them.
    pub outputs: Object,
    /// Inputs that are references.
    pub reads: BTreeMap<String, InputSource>,
    /// Where outputs go.
    pub writes: BTreeMap<String, Target>,
    /// Addresses among the inputs with all their parts.
    pub input_uris: SecretAddresses,
    /// Addresses among the outputs with all their parts.
    pub output_uris: SecretAddresses,
}

/// Where an input comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSource {
    /// A file of the world, or a local file of one run.
    Object(WorldPath),
    /// A local file of the newest run along the chain of predecessors that wrote it.
    Chain(WorldPath),
    /// An address elsewhere.
    Uri,
}

/// A key, and the name that it stands for.
struct KeyName<'a> {
    key: &'a str,
    name: String,
    suffix: Suffix,
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
        let named = named(key)?;
        claim(&mut origins, &named)?;
        plan.read(intent, named, value)?;
        bounded(plan.reads.len())?;
    }
    let mut origins = BTreeMap::new();
    for (key, value) in intent.outputs {
        let named = named(key)?;
        claim(&mut origins, &named)?;
        plan.write(intent, named, value)?;
        bounded(plan.writes.len())?;
    }
    Ok(plan)
}

fn bounded(references: usize) -> Result<(), Fault> {
    if references <= RUN_REFERENCES_MAX {
        return Ok(());
    }
    let message = format!("A run may have {RUN_REFERENCES_MAX} references at most.");
    Err(Fault::new(Code::ScopeValueInvalid, message))
}

impl Plan {
    fn read(
        &mut self,
        intent: &Intent<'_>,
        KeyName { key, name, suffix }: KeyName<'_>,
        value: &Value,
    ) -> Result<(), Fault> {
        let source = match (suffix, value.as_str()) {
            (Suffix::World, _) => InputSource::Object(world_path(key, text(key, value)?)?),
            (Suffix::Local, _) => local_source(intent, key, text(key, value)?)?,
            (Suffix::None, Some(text)) if is_uri(text) && !(intent.is_literal)(&name) => {
                match world_uri(intent, key, text)? {
                    Some(path) => InputSource::Object(path),
                    None => InputSource::Uri,
                }
            }
            (Suffix::None, _) => {
                self.inputs.insert(name, value.clone());
                return Ok(());
            }
        };
        let shown = match &source {
            // In a chain the engine puts the run in once it knows which one wrote the file.
            InputSource::Object(path) | InputSource::Chain(path) => path.uri(intent.world),
            InputSource::Uri => {
                let uri = value.as_str().unwrap_or_default();
                self.input_uris.0.insert(name.clone(), uri.to_owned());
                without_secrets(uri)
            }
        };
        self.inputs.insert(name.clone(), shown.into());
        self.reads.insert(name, source);
        Ok(())
    }

    fn write(
        &mut self,
        intent: &Intent<'_>,
        KeyName { key, name, suffix }: KeyName<'_>,
        value: &Value,
    ) -> Result<(), Fault> {
        let text = text(key, value)?;
        let path = match suffix {
            Suffix::World => Some(world_path(key, text)?),
            Suffix::Local => Some(own_path(intent, key, text)?),
            Suffix::None if is_uri(text) => world_uri(intent, key, text)?,
            Suffix::None => {
                let key = shown(key);
                let message = format!(
                    "The output `{key}` must say where it goes: `{key}.world` or `{key}.local` \
                     with a path, or a whole URI."
                );
                return Err(wrong(Code::ScopeValueInvalid, &key, message));
            }
        };
        let (shown, target) = match path {
            Some(path) => {
                self.check_target(intent, key, &path)?;
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

    /// A run writes its own local files only, and each file once.
    fn check_target(&self, intent: &Intent<'_>, key: &str, path: &WorldPath) -> Result<(), Fault> {
        if path.run().is_some_and(|run| run != intent.run.as_str()) {
            let message =
                format!("The output `{}` leads to a local file of another run.", shown(key));
            return Err(wrong(Code::ScopeForbidden, key, message));
        }
        let is_same =
            |target: &Target| matches!(target, Target::Object { path: other } if other == path);
        if self.writes.values().any(is_same) {
            let message = format!("The output `{}` leads to the file of another one.", shown(key));
            return Err(wrong(Code::ScopeKeyConflict, key, message));
        }
        Ok(())
    }
}

/// The name that a key stands for. Two dots before the suffix make it a plain name.
fn named(key: &str) -> Result<KeyName<'_>, Fault> {
    for (end, suffix) in [(".world", Suffix::World), (".local", Suffix::Local)] {
        let Some(base) = key.strip_suffix(end) else { continue };
        if let Some(plain) = base.strip_suffix('.') {
            return Ok(KeyName { key, name: format!("{plain}{end}"), suffix: Suffix::None });
        }
        if base.is_empty() {
            let message = format!("The key `{key}` has no name before its suffix.");
            return Err(wrong(Code::ScopeValueInvalid, key, message));
        }
        return Ok(KeyName { key, name: base.to_owned(), suffix });
    }
    Ok(KeyName { key, name: key.to_owned(), suffix: Suffix::None })
}

fn claim<'a>(origins: &mut BTreeMap<String, &'a str>, named: &KeyName<'a>) -> Result<(), Fault> {
    match origins.entry(named.name.clone()) {
        Entry::Vacant(place) => {
            place.insert(named.key);
            Ok(())
        }
        Entry::Occupied(other) => {
            let (other, key) = (shown(other.get()), shown(named.key));
            let message = format!("The keys `{other}` and `{key}` stand for the same name.");
            Err(wrong(Code::ScopeKeyConflict, &key, message))
        }
    }
}

fn text<'a>(key: &str, value: &'a Value) -> Result<&'a str, Fault> {
    value.as_str().ok_or_else(|| {
        let message =
            format!("The value of `{}` must be text that says where the data is.", shown(key));
        wrong(Code::ScopeValueInvalid, key, message)
    })
}

fn world_path(key: &str, text: &str) -> Result<WorldPath, Fault> {
    WorldPath::parse(text).map_err(|error| wrong_path(key, error))
}

/// A local input: a file of the run that is named, else of the chain of predecessors, else of
/// the run itself.
fn local_source(intent: &Intent<'_>, key: &str, text: &str) -> Result<InputSource, Fault> {
    let path = WorldPath::parse_any(text).map_err(|error| wrong_path(key, error))?;
    Ok(match path.local_to(intent.run) {
        None => InputSource::Object(path),
        Some(_) if intent.continues.is_some() => InputSource::Chain(path),
        Some(own) => InputSource::Object(own),
    })
}

/// A local output belongs to the run itself, unless it names another.
fn own_path(intent: &Intent<'_>, key: &str, text: &str) -> Result<WorldPath, Fault> {
    let path = WorldPath::parse_any(text).map_err(|error| wrong_path(key, error))?;
    Ok(path.local_to(intent.run).unwrap_or(path))
}

/// The file that a `world://` address names; `None` for any other address.
fn world_uri(intent: &Intent<'_>, key: &str, uri: &str) -> Result<Option<WorldPath>, Fault> {
    let Some((scheme, rest)) = uri.split_once("://") else { return Ok(None) };
    if !scheme.eq_ignore_ascii_case("world") {
        return Ok(None);
    }
    let (world, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if world != intent.world.as_str() {
        let message = format!("`{}` names another world than the run's own.", shown(key));
        return Err(wrong(Code::ScopeForbidden, key, message));
    }
    // A file has neither; one whose name has such a character is written with percent signs.
    if path.contains(['?', '#']) {
        return Err(wrong_path(key, PathError::Character));
    }
    WorldPath::parse_any(path).map(Some).map_err(|error| wrong_path(key, error))
}

fn wrong_path(key: &str, error: PathError) -> Fault {
    let message = format!("The path of `{}` is not valid: {error}.", shown(key));
    wrong(Code::ScopePathInvalid, key, message)
}

fn wrong(code: Code, key: &str, message: String) -> Fault {
    Fault::new(code, message).with("key", shown(key))
}

/// A key as errors may have it: it came from outside and can be of any length.
fn shown(key: &str) -> String {
    key.chars().take(KEY_CHARS_SHOWN_MAX).collect()
}

/// Whether a text is an address as a whole, not just text that has one in it.
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"+.-".contains(&b);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(letter)
        && !rest.is_empty()
        && !rest.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// An address as records may have it: user, query and fragment often let whoever knows them in.
pub fn without_secrets(uri: &str) -> String {
    let bare = uri.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = bare.split_once("://") else { return bare.to_owned() };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.split_once(':') {
        // What follows is no port: it may be a password with a character in it that ends the part
        // of an address where passwords are.
        Some((name, port)) if !host.starts_with('[') && !is_port(port) => {
            format!("{scheme}://{name}")
        }
        _ => format!("{scheme}://{host}{path}"),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t024_only_a_text_that_is_an_address_as_a_whole_is_one() {
        for uri in ["https://a.example/x?y=1", "s3://bucket/key", "world://w/x", "a+b://c"] {
            assert!(is_uri(uri), "{uri}");
        }
        let texts = [
            "see https://a.example",
            "https://a.example and more",
            "https://",
            "://x",
            "1a://x",
            "plain",
            "https:/a",
            "",
            "a b://c",
            "https://a\n",
        ];
        for text in texts {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn t035_what_lets_somebody_in_is_left_out_of_records() {
        let cases = [
            ("https://u:p@a.example/x?X-Amz-Signature=1#f", "https://a.example/x"),
            ("https://a.example?token=1", "https://a.example"),
            ("https://a.example/p@q", "https://a.example/p@q"),
            ("s3://bucket/key", "s3://bucket/key"),
            ("https://u:p%2F@a.example:8443/x", "https://a.example:8443/x"),
            ("https://u:p?q@a.example/x", "https://u"),
            ("https://u:p/q@a.example/x", "https://u"),
            ("http://[::1]:80/x", "http://[::1]:80/x"),
        ];
        for (uri, kept) in cases {
            assert_eq!(without_secrets(uri), kept);
            assert_eq!(without_secrets(kept), kept);
        }
    }
}
