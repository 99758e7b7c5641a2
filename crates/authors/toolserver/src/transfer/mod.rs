//! The files of runs: fetching what inputs refer to, writing outputs to where they belong.
//!
//! One implementation for every kind of handler. Invariants:
//! - Bytes pass in bounded memory, in both directions.
//! - Only allowed origins are reached, at the very address that was checked; redirects are
//!   followed only within one origin.
//! - Local files are opened beneath the handle of a folder, part by part, never through a link.
//! - What is reported as written is durable: storage said so, or the file is flushed and in its
//!   place. Only where whoever asks copies files away, they need not be flushed.
//! - Addresses are capabilities: none of them is in a log, an error or a report.

mod content;
mod download;
mod local;
mod names;
mod origin;
mod place;
mod progress;
mod pulse;
mod reads;
mod run;
mod trouble;
mod upload;
mod wire;
mod writes;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::io::AsyncRead;
use wharf_wire::run_v1::{RunRequest, code};

pub use run::RunFiles;

use self::local::ArtifactFolder;
use self::trouble::TransferTrouble;
use self::wire::StorageClient;
use crate::{Failure, Reporter};

/// What all runs of a server share: which origins may be reached, and where files lie.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Origins that may be fetched from and written to, such as `https://s3.example.com`. An
    /// origin that names an address of this machine or a private network by its number (or
    /// `localhost`) may be reached there; names that lead to such addresses are refused.
    pub origins: Vec<String>,
    /// The folder that `/artifacts/` stands for; without it such paths are refused.
    pub artifacts: Option<PathBuf>,
    /// Whether inputs may be files of any run below that folder. Without it they may be files of
    /// their own run, and of others only where the caller lists them as references.
    pub any_run: bool,
    /// Whether files are not flushed, because whoever asks copies them to where they are durable.
    /// The core that launched a server does so before it believes a run.
    pub passing: bool,
    /// Where fetched files are kept while a run needs them. Each run gets a folder of its own in
    /// it, which goes with the run.
    pub scratch: PathBuf,
    /// The way out of a fence, such as `http://127.0.0.1:3128`. With it every request goes there
    /// and it checks addresses in this server's stead. The environment is never asked.
    pub proxy: Option<String>,
    /// Whether names may lead to private addresses, for storage in a network of one's own.
    pub private_names: bool,
    /// A PEM file with certificates to trust beside the usual ones.
    pub trusted: Option<PathBuf>,
    /// How long storage may take for the next byte.
    pub byte_timeout: Duration,
    /// How often something is tried without a byte of progress before it is given up.
    pub tries: u32,
    /// The first pause between tries; later ones grow.
    pub pause: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            origins: Vec::new(),
            artifacts: None,
            any_run: false,
            passing: false,
            scratch: std::env::temp_dir(),
            proxy: None,
            private_names: false,
            trusted: None,
            byte_timeout: Duration::from_secs(30),
            tries: 6,
            pause: Duration::from_millis(200),
        }
    }
}

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync + fmt::Debug + 'static {
    /// The addresses of a name, best first.
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Transfers files for the runs of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileTransfer {
    shared: Arc<TransferState>,
}

/// What all runs share.
#[derive(Debug)]
struct TransferState {
    wire: Arc<StorageClient>,
    artifacts: Option<Arc<ArtifactFolder>>,
    policy: Policy,
}

impl FileTransfer {
    /// Gets ready. An error is a policy that cannot be used: an origin that is none, a folder
    /// that cannot be opened.
    pub fn new(policy: Policy) -> Result<Self, Failure> {
        Self::with_resolver(policy, Arc::new(names::SystemNames))
    }

    /// Gets ready with names that are resolved otherwise than the operating system does.
    pub fn with_resolver(mut policy: Policy, resolve: Arc<dyn Resolve>) -> Result<Self, Failure> {
        let unfit = |what: &str, error: &io::Error| {
            let why = format!("The folder for {what} cannot be used: {}.", error.kind());
            Failure::new(code::PATH, why)
        };
        let artifacts = match &policy.artifacts {
            Some(path) => {
                let opened =
                    std::fs::create_dir_all(path).and_then(|()| ArtifactFolder::open(path));
                Some(Arc::new(opened.map_err(|error| unfit("artifacts", &error))?))
            }
            None => None,
        };
        policy.scratch = std::fs::create_dir_all(&policy.scratch)
            .and_then(|()| policy.scratch.canonicalize())
            .map_err(|error| unfit("fetched files", &error))?;
        let wire = Arc::new(StorageClient::new(&policy, resolve)?);
        Ok(Self { shared: Arc::new(TransferState { wire, artifacts, policy }) })
    }

    /// The files of one attempt of a run. With `refs` only those inputs are references; without,
    /// prefixes decide. Outputs must be addresses or paths.
    #[must_use]
    pub fn for_run(&self, request: &RunRequest, report: Reporter) -> RunFiles {
        RunFiles::new(Arc::clone(&self.shared), request, report)
    }
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

/// The bytes of an input, one after the other.
pub type Reading = Pin<Box<dyn AsyncRead + Send>>;
