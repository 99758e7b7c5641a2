//! Where a run's data comes from and goes to.
//!
//! A request names files by keys with a suffix (`image.world`, `state.local`) or by whole URIs;
//! [`resolve`] turns that into names without suffix and the places they stand for. It is pure: what
//! exists, and which earlier run wrote a local file, is looked up by the engine.

mod path;
mod resolve;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::B3;

pub use path::{PathError, WorldPath};
pub use resolve::{InputSource, Intent, Plan, is_uri, resolve, without_secrets};

/// What the names in a run's inputs and outputs stand for, if not for themselves. In the run's
/// inputs and outputs each of these names has the text of its reference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bindings {
    /// Inputs that are references.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reads: BTreeMap<String, InputBinding>,
    /// Where outputs go.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub writes: BTreeMap<String, Target>,
}

impl Bindings {
    /// Whether everything stands for itself.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// The files that are read, by the names of the inputs.
    pub fn files(&self) -> impl Iterator<Item = (&String, &ReadObject)> {
        self.reads.iter().filter_map(|(name, bound)| match bound {
            InputBinding::Object(read) => Some((name, read)),
            InputBinding::Uri => None,
        })
    }

    /// Whether a provider is given files or addresses of the artifact store.
    pub fn has_objects(&self) -> bool {
        self.reads.values().any(|bound| matches!(bound, InputBinding::Object(_)))
            || self.writes.values().any(|target| matches!(target, Target::Object { .. }))
    }
}

/// What an input stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputBinding {
    /// A file of the world, as it was when the run was accepted.
    Object(ReadObject),
    /// An address elsewhere, which the provider uses as it is.
    Uri,
}

/// A file that a run reads.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadObject {
    /// The file.
    pub path: WorldPath,
    /// How many bytes it had.
    pub bytes: u64,
    /// Their hash, if it was known.
    pub b3: Option<B3>,
    /// What kind of data it is.
    pub media_type: String,
    /// What the artifact store calls the version that it had, where it keeps versions.
    pub version: Option<String>,
    /// The tag of what was there, where the artifact store keeps no versions.
    pub tag: Option<String>,
}

/// Where an output goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A file of the world.
    Object {
        /// The file.
        path: WorldPath,
    },
    /// An address elsewhere, which the provider uses as it is.
    Uri,
}

/// Addresses with the parts that are secrets: they are kept while the core runs and are written
/// nowhere, so two runs that differ in nothing else are the same.
#[derive(Clone, Default)]
pub struct SecretAddresses(pub BTreeMap<String, String>);

impl PartialEq for SecretAddresses {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for SecretAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unwritten({} addresses)", self.0.len())
    }
}
