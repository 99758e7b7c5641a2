//! The files of runs: fetching what inputs refer to, writing outputs to where they belong.
//!
//! One implementation for every kind of handler. Bytes pass in bounded memory; only allowed
//! origins are reached, at the very address that was checked; local files are opened beneath the
//! handle of a folder.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use wharf_vocab::Object;
use wharf_wire::run_v1::Written;

use crate::Failure;

/// What all runs of a server share: which origins may be reached, and where files lie.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Origins that may be fetched from and written to, such as `https://s3.example.com`.
    pub origins: Vec<String>,
    /// The folder that `/artifacts/` stands for; without it such paths are refused.
    pub artifacts: Option<PathBuf>,
    /// Where fetched files are kept while a run needs them.
    pub scratch: PathBuf,
}

/// The files of one run.
#[derive(Debug)]
pub struct RunFiles {
    written: std::sync::Mutex<BTreeMap<String, Written>>,
}

/// An input that was fetched: a file of the run's own, removed with the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Where it is.
    pub path: PathBuf,
    /// How large it is.
    pub bytes: u64,
}

/// Where the bytes of an output come from.
#[derive(Debug)]
pub enum Source {
    /// A value: text as UTF-8, anything else as JSON.
    Value(Value),
    /// Bytes.
    Bytes(bytes::Bytes),
    /// A file beneath the run's own scratch folder.
    File(PathBuf),
}

impl RunFiles {
    /// Whether an input is a reference: one of the listed keys, or by its prefix without a list.
    #[must_use]
    pub fn is_reference(&self, _key: &str, _value: &Value) -> bool {
        false
    }

    /// Fetches what an input refers to, once; asking again gives the same file.
    pub async fn fetch(&self, _key: &str) -> Result<Fetched, Failure> {
        Err(Failure::new("ERR_STORAGE", "Nothing can be fetched."))
    }

    /// Checks that every output has a place that can be written, before the handler starts.
    pub async fn check_targets(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes one output to where the request says.
    pub async fn put(&self, _key: &str, _source: Source) -> Result<Written, Failure> {
        Err(Failure::new("ERR_STORAGE", "Nothing can be written."))
    }

    /// Brings a handler's outputs to their end: writes values whose keys have a place and were
    /// not written yet, names the place in their stead, and gives null for what was asked for and
    /// not produced. Also says which keys that were.
    pub async fn settle(&self, outputs: Object) -> Result<(Object, Vec<String>), Failure> {
        Ok((outputs, Vec::new()))
    }

    /// What was written so far.
    #[must_use]
    pub fn written(&self) -> BTreeMap<String, Written> {
        self.written.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
