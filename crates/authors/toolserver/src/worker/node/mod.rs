//! A handler that is a TypeScript or JavaScript file.
//!
//! Every run gets a Node of its own, since Node cannot be forked; what is started and how it speaks
//! is that of any program. The sources of the TypeScript package are unpacked for it without their
//! types, and so are those of the handler, for a Node that does not take types out by itself.

mod describe;
mod known;
mod sources;
mod strip;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use tempfile::TempDir;
use wharf_wire::run_v1::code;

pub use self::describe::describe as describe_node;
pub use self::sources::SOURCES as TYPESCRIPT_SOURCES;

use self::describe::{UnpackedHandler, ask};
use super::exec::ExecHandler;
use super::log_traceback;
use super::settings::{WorkerSettings, private_folder};
use crate::{Call, Done, Failure, Handler, Reporter};

/// How the files of handlers for Node end.
const ENDINGS: [&str; 6] = ["ts", "mts", "cts", "js", "mjs", "cjs"];
/// What Node is told before anything else: that it takes types out, or asks for imports, is no news.
const FLAGS: [&str; 1] = ["--disable-warning=ExperimentalWarning"];
/// The program that runs a handler, below the runtime.
const MAIN: &str = "runtime/node/worker/main.js";
/// What is known of a handler's files, beside the runtime.
const KNOWN: &str = "known.json";

/// Whether a file is one for Node, by its name.
#[must_use]
pub fn is_for_node(file: &Path) -> bool {
    file.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known))
}

/// Runs a tool that a file exports, each time in a Node of its own.
#[derive(Debug)]
pub struct NodeHandler {
    exec: ExecHandler,
    handler: UnpackedHandler,
    digest: String,
}

impl NodeHandler {
    /// A handler for a file, run by a Node that is given by its path or name.
    pub fn new(
        file: impl Into<PathBuf>,
        node: impl Into<PathBuf>,
        mut settings: WorkerSettings,
    ) -> Result<Self, Failure> {
        let place = settings.apart.as_ref().map(|apart| apart.scratch.clone());
        let handler =
            UnpackedHandler::new(file.into(), node.into(), place.as_deref(), settings.clone())?;
        if let Some(apart) = &mut settings.apart {
            apart.readable.push(handler.unpacked.path().to_owned());
        }
        let content = std::fs::read(&handler.file).unwrap_or_default();
        let digest = format!("b3:{}", blake3::hash(&content).to_hex());
        let folder = handler.file.parent().unwrap_or(Path::new("/")).to_owned();
        let exec = ExecHandler::new(handler.words("run", None), folder, settings);
        Ok(Self { exec, handler, digest })
    }

    /// The same handler with another binary as its keeper.
    #[must_use]
    pub fn with_keeper(mut self, program: impl Into<PathBuf>) -> Self {
        self.exec = self.exec.with_keeper(program);
        self
    }

    async fn check(&self) -> Result<(), Failure> {
        let said = ask(&self.handler, "check").await?;
        let Some(error) = said.get("error") else { return Ok(()) };
        let lines = error.get("traceback").and_then(|lines| lines.as_array());
        let lines = lines.into_iter().flatten().filter_map(|line| line.as_str());
        log_traceback(&lines.collect::<Vec<_>>().join("\n"));
        let sentence = error.get("sentence").and_then(|text| text.as_str()).unwrap_or_default();
        Err(Failure::new(code::HANDLER, sentence))
    }
}

impl Handler for NodeHandler {
    fn run(&self, call: Call, report: Reporter) -> BoxFuture<'static, Done> {
        self.exec.run(call, report)
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(self.check())
    }

    fn digest(&self) -> String {
        self.digest.clone()
    }
}

impl UnpackedHandler {
    /// A handler with all that Node needs for it, in a folder that only this user can read.
    fn new(
        file: PathBuf,
        node: PathBuf,
        place: Option<&Path>,
        settings: WorkerSettings,
    ) -> Result<Self, Failure> {
        // Node knows files by what they really are.
        let file = std::fs::canonicalize(&file).unwrap_or(file);
        let unpacked = unpack(place, &file).map_err(|error| {
            let why = format!("There is no room for the runtime of handlers for Node: {error}.");
            Failure::new(code::WORKER, why)
        })?;
        Ok(Self { unpacked, file, node, settings })
    }

    /// The command line that does something with the handler.
    fn words(&self, what: &str, answer: Option<&Path>) -> Vec<OsString> {
        let unpacked = self.unpacked.path();
        let mut words = vec![self.node.clone().into_os_string()];
        words.extend(FLAGS.map(OsString::from));
        words.extend([unpacked.join(MAIN).into_os_string(), what.into()]);
        words.extend([self.file.clone().into_os_string(), unpacked.join(KNOWN).into_os_string()]);
        words.extend(answer.map(|path| path.as_os_str().to_owned()));
        words
    }
}

/// Puts the runtime, and what is left of the handler's files without their types, into a folder that
/// goes with the handler.
fn unpack(place: Option<&Path>, file: &Path) -> std::io::Result<TempDir> {
    let folder = private_folder(place, "wharf-node-")?;
    let runtime = folder.path().join("runtime");
    for (path, text) in sources::SOURCES {
        let path = Path::new(path);
        let stripped =
            strip::strip(path, text).map_err(|error| std::io::Error::other(error.why))?;
        let to = runtime.join(path).with_extension("js");
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(to, stripped.text)?;
    }
    std::fs::write(runtime.join("package.json"), r#"{"type":"module"}"#)?;
    known::write(file, folder.path())?;
    Ok(folder)
}
