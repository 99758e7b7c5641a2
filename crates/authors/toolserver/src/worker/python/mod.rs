//! A handler that is a Python file.

mod parent;
mod sources;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio::sync::mpsc;
use wharf_wire::run_v1::code;

pub use self::sources::SOURCES as PYTHON_SOURCES;

use self::parent::{Mode, Order, Recipe, Trouble};
use super::drive::drive;
use super::settings::WorkerSettings;
use super::ways::{Ours, ways};
use crate::{Call, Done, Failure, Handler, Reporter};

/// Orders that may wait for the parent of workers.
const ORDERS_MAX: usize = 64;

/// Runs the `entry` of a Python file, each time in a process of its own.
///
/// Warm, one interpreter imports the file and forks for every run, which takes milliseconds. Cold,
/// every run gets a new interpreter; that is for files that start threads when they are imported.
#[derive(Debug)]
pub struct PythonHandler {
    recipe: Arc<Recipe>,
    orders: OnceLock<mpsc::Sender<Order>>,
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
        Ok(Self { recipe: Arc::new(recipe), orders: OnceLock::new(), digest })
    }

    /// The way to the task that looks after the parent of workers.
    fn orders(&self) -> &mpsc::Sender<Order> {
        self.orders.get_or_init(|| {
            let (orders, waiting) = mpsc::channel(ORDERS_MAX);
            tokio::spawn(parent::serve(Arc::clone(&self.recipe), waiting));
            orders
        })
    }
}

impl Handler for PythonHandler {
    fn run(&self, call: Call, report: Reporter) -> BoxFuture<'static, Done> {
        let orders = self.orders().clone();
        let recipe = Arc::clone(&self.recipe);
        Box::pin(async move { drive(fork(&orders).await, call, report, &recipe.settings).await })
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let orders = self.orders();
            parent::check(&self.recipe).await.map_err(Trouble::failure)?;
            let (reply, ready) = tokio::sync::oneshot::channel();
            let _ = orders.send(Order::Warm { reply }).await;
            ready.await.map_err(|_| Trouble::Stopped).flatten().map_err(Trouble::failure)
        })
    }

    fn digest(&self) -> String {
        self.digest.clone()
    }
}

/// Asks the parent for a run's processes.
async fn fork(orders: &mpsc::Sender<Order>) -> Result<Ours, Trouble> {
    let (ours, theirs) = ways().map_err(Trouble::Start)?;
    let (reply, forked) = tokio::sync::oneshot::channel();
    orders.send(Order::Fork { theirs, reply }).await.map_err(|_| Trouble::Stopped)?;
    forked.await.map_err(|_| Trouble::Stopped)??;
    Ok(ours)
}

/// Puts the runtime into a folder that only this user can read, and which goes with the handler.
fn unpack(place: Option<&Path>) -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("wharf-python-");
    let folder = match place {
        Some(place) => {
            std::fs::create_dir_all(place)?;
            builder.tempdir_in(place)?
        }
        None => builder.tempdir()?,
    };
    for (path, text) in sources::SOURCES {
        let path = folder.path().join("runtime").join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(folder)
}
