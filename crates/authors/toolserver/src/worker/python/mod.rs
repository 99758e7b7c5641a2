//! A handler that is a Python file.

mod describe;
mod parent;
mod sources;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use tempfile::TempDir;
use wharf_wire::run_v1::code;

pub use self::describe::describe as describe_python;
pub use self::sources::SOURCES as PYTHON_SOURCES;

use self::parent::{Mode, Parent, ParentError, Recipe};
use super::drive::drive;
use super::settings::{WorkerSettings, private_folder};
use crate::{Call, Done, Failure, Handler, Reporter};

/// Runs the `entry` of a Python file, each time in a process of its own.
///
/// Warm, one interpreter imports the file and forks for every run, which takes milliseconds. Cold,
/// every run gets a new interpreter; that is for files that start threads when they are imported.
#[derive(Debug)]
pub struct PythonHandler {
    parent: Arc<Parent>,
    digest: String,
}

impl PythonHandler {
    /// A handler for a file, run by an interpreter that is given by its path or name.
    pub fn new(
        file: impl Into<PathBuf>,
        python: impl Into<PathBuf>,
        cold: bool,
        mut settings: WorkerSettings,
    ) -> Result<Self, Failure> {
        let file = file.into();
        let place = settings.apart.as_ref().map(|apart| apart.scratch.as_path());
        let folder = unpack(place).map_err(|error| {
            tracing::error!(%error, "the runtime of Python handlers could not be unpacked");
            Failure::new(code::WORKER, "There is no room for the runtime of Python handlers.")
        })?;
        let content = std::fs::read(&file).unwrap_or_default();
        let digest = format!("b3:{}", blake3::hash(&content).to_hex());
        let mode = if cold { Mode::Cold } else { Mode::Warm };
        if let Some(apart) = &mut settings.apart {
            apart.readable.push(folder.path().to_owned());
        }
        let recipe = Recipe { folder, file, python: python.into(), mode, settings };
        Ok(Self { parent: Arc::new(Parent::new(recipe)), digest })
    }
}

impl Handler for PythonHandler {
    fn run(&self, call: Call, report: Reporter) -> BoxFuture<'static, Done> {
        let parent = Arc::clone(&self.parent);
        Box::pin(
            async move { drive(parent.fork().await, call, report, &parent.recipe.settings).await },
        )
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async { self.parent.prepare().await.map_err(ParentError::failure) })
    }

    fn digest(&self) -> String {
        self.digest.clone()
    }
}

/// Puts the runtime into a folder that only this user can read, and which goes with the handler.
fn unpack(place: Option<&Path>) -> std::io::Result<TempDir> {
    let folder = private_folder(place, "wharf-python-")?;
    for (path, text) in sources::SOURCES {
        let path = folder.path().join("runtime").join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(folder)
}
