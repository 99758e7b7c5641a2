//! The files of one run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tokio::io::AsyncRead;
use wharf_vocab::Object;
use wharf_wire::run_v1::{Written, code};

use super::{Fetched, Reading, Source, Transfer};
use crate::{Failure, Reporter};

/// The files of one run.
#[derive(Debug)]
pub struct RunFiles {
    written: Mutex<BTreeMap<String, Written>>,
}

impl RunFiles {
    pub(super) fn new(
        _transfer: &Transfer,
        _run_id: &str,
        _attempt: u32,
        _inputs: &Object,
        _outputs: &Object,
        _refs: Option<&[String]>,
        _report: Reporter,
    ) -> Result<Self, Failure> {
        Ok(Self { written: Mutex::default() })
    }

    /// Whether an input is a reference: one of the listed keys, or by its prefix without a list.
    #[must_use]
    pub fn is_reference(&self, _key: &str, _value: &Value) -> bool {
        false
    }

    /// The run's own scratch folder, made when first asked for and removed with the run.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        Err(unready())
    }

    /// Fetches what an input refers to, once; asking again gives the same file.
    pub async fn fetch(&self, _key: &str) -> Result<Fetched, Failure> {
        Err(unready())
    }

    /// Opens what an input refers to, as a stream that goes on by itself after trouble.
    pub async fn open(&self, _key: &str) -> Result<Reading, Failure> {
        Err(unready())
    }

    /// Reads what an input refers to into memory, if it has at most so many bytes.
    pub async fn read(&self, _key: &str, _bytes_max: u64) -> Result<Bytes, Failure> {
        Err(unready())
    }

    /// Checks that every output has a place that can be written, before the handler starts.
    pub async fn check_targets(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes one output to where the request says.
    pub async fn put(&self, _key: &str, _source: Source) -> Result<Written, Failure> {
        Err(unready())
    }

    /// Writes one output from a stream.
    pub async fn put_stream(
        &self,
        _key: &str,
        _reader: impl AsyncRead + Send + Unpin,
    ) -> Result<Written, Failure> {
        Err(unready())
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
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn unready() -> Failure {
    Failure::new(code::STORAGE, "Files cannot be transferred yet.")
}
