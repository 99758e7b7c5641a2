//! A tool server of an author's own, from its handler to its end.

use std::fs::File;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::runtime::{Builder, Handle};
use tokio::signal::unix::{SignalKind, signal};
use wharf_toolserver::server::Server;
use wharf_vocab::ToolId;

use super::arguments::{self, Asked};
use super::handler::{Draft, Typed};
use super::{Error, Listen, Options, ToolCx};
use crate::Fault;

/// Threads for connections and files; handlers have others.
const SERVER_THREADS: usize = 2;

/// A tool server. See the [module](super) for all of it in ten lines.
#[derive(Debug)]
pub struct ToolServer {
    reference: String,
    pub(super) draft: Result<Draft, Error>,
    options: Options,
    is_free: bool,
}

impl ToolServer {
    /// A server of the tool with this reference, such as `demo/resize@1`.
    pub fn new(reference: impl Into<String>) -> Self {
        let options = Options::default();
        Self { reference: reference.into(), draft: Err(Error::NoHandler), options, is_free: false }
    }

    /// What executes a run.
    #[must_use]
    pub fn handler<I, O, F, Fut>(mut self, handler: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + Send + 'static,
        F: Fn(I, ToolCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Fault>> + Send + 'static,
    {
        self.draft = Ok(Draft::new(handler));
        self
    }

    /// Runs cost nothing unless the handler says otherwise. Without this a run that says nothing
    /// of its cost is remarked upon.
    #[must_use]
    pub fn free(mut self) -> Self {
        self.is_free = true;
        self
    }

    /// Changes how the server is set up: limits, times, files. Arguments and environment of the
    /// process count more.
    #[must_use]
    pub fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Serves until the process is told to stop (SIGTERM or SIGINT): then running runs get time
    /// to end, and all who watch hear the end.
    ///
    /// It listens where the arguments say (`--port N`, `--listen HOST:PORT` or `unix:PATH`), or
    /// on the port of the variable `PORT`. `--schema` shows the schemas instead.
    pub fn run(self) -> ExitCode {
        self.run_with(std::env::args().skip(1))
    }

    /// The same with these arguments, for programs that have others of their own.
    pub fn run_with(self, arguments: impl IntoIterator<Item = String>) -> ExitCode {
        let reference = self.reference.clone();
        match self.run_process(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // If nobody reads it, there is nobody to tell.
                let _ = writeln!(io::stderr(), "{reference}: {error}");
                ExitCode::FAILURE
            }
        }
    }

    /// Serves on an address within the runtime of the caller until `stop` is done. `ready` is
    /// told where it listens.
    pub async fn serve(
        mut self,
        listen: Listen,
        ready: impl FnOnce(&Listen),
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        self.options.listen = listen;
        let options = self.options.clone();
        let handler = self.build(Handle::current(), String::new())?;
        let server = Server::bind(options).await?;
        ready(&server.address());
        server.serve(Arc::new(handler), stop).await?;
        Ok(())
    }

    fn run_process(self, arguments: impl IntoIterator<Item = String>) -> Result<(), Error> {
        let asked =
            arguments::read(self.options.clone(), arguments, |name| std::env::var(name).ok())?;
        let options = match asked {
            Asked::Serve(options) => *options,
            Asked::Schema => return self.show_schemas(),
        };
        let digest = digest_of_program()?;
        let workers = Builder::new_multi_thread().enable_all().thread_name("tool").build()?;
        let handler = Arc::new(self.build(workers.handle().clone(), digest)?);
        let server = Builder::new_multi_thread()
            .worker_threads(SERVER_THREADS)
            .enable_all()
            .thread_name("server")
            .build()?;
        let served = server.block_on(async {
            let stop = told_to_stop()?;
            Server::bind(options).await?.serve(handler, stop).await?;
            Ok(())
        });
        // A handler that blocks in spite of being told to stop does not keep the process.
        workers.shutdown_background();
        served
    }

    fn build(self, workers: Handle, digest: String) -> Result<Typed, Error> {
        let is_reference = ToolId::new(&self.reference).is_ok_and(|id| id.is_reference());
        if !is_reference {
            return Err(Error::Reference(self.reference));
        }
        self.draft?.build(workers, digest, self.is_free)
    }

    fn show_schemas(self) -> Result<(), Error> {
        let draft = self.draft?;
        let both = json!({"input": draft.input_schema, "output": draft.output_schema});
        writeln!(io::stdout(), "{both:#}")?;
        Ok(())
    }
}

/// Done when the process is told to stop.
fn told_to_stop() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// The hash of the program itself: what is served changes only with it.
fn digest_of_program() -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open("/proc/self/exe")?)?;
    Ok(hasher.finalize().to_hex().to_string())
}
