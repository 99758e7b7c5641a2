//! The files of an attempt: what its provider is given and gives.
//!
//! A provider that can reach the artifact store gets addresses; one that cannot gets the bytes
//! and hands bytes back. Either way the outputs are confirmed only when they are durable, and
//! records never hold an address.

use std::collections::BTreeMap;

use wharf_domain::scope::WorldPath;
use wharf_ports::{ByteStream, ObjectBody};
use wharf_vocab::{Code, Fault, Object};

use super::Attempt;

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
    attempt: Attempt,
}

impl Attempt {
    /// The files of the attempt.
    #[must_use]
    pub fn data(&self) -> AttemptData {
        AttemptData { attempt: self.clone() }
    }
}

impl AttemptData {
    /// Whether there is anything to fetch or to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.attempt.dispatch().spec.bindings.is_empty()
    }

    /// Names of inputs that are references, in order.
    #[must_use]
    pub fn refs(&self) -> Vec<String> {
        self.attempt.dispatch().spec.bindings.reads.keys().cloned().collect()
    }

    /// The inputs with an address in the place of each reference. They are made anew for each
    /// attempt and must not be kept.
    pub fn inputs_with_addresses(&self) -> Result<Object, Fault> {
        Err(unbuilt())
    }

    /// Addresses to which outputs can be written, by their names.
    pub fn output_addresses(&self) -> Result<BTreeMap<String, String>, Fault> {
        Err(unbuilt())
    }

    /// The inputs that are files of the world: their names and sizes. Others stand as they are.
    #[must_use]
    pub fn input_files(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// The names of outputs that go to files or addresses.
    #[must_use]
    pub fn output_names(&self) -> Vec<String> {
        self.attempt.dispatch().spec.bindings.writes.keys().cloned().collect()
    }

    /// The bytes of an input that is a file.
    pub async fn read(&self, name: &str) -> Result<ObjectBody, Fault> {
        let _ = name;
        Err(unbuilt())
    }

    /// Writes an output, to where the run says or else to a local file of the run by this name.
    /// It counts once the attempt has succeeded.
    pub async fn write(&self, name: &str, bytes: u64, body: ByteStream) -> Result<(), Fault> {
        let _ = (name, bytes, body);
        Err(unbuilt())
    }

    /// Where an output goes.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<WorldPath> {
        let _ = name;
        None
    }
}

fn unbuilt() -> Fault {
    Fault::new(Code::StorageUnavailable, "This core has no artifact store.")
}
