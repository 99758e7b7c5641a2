//! A tool server of an author's own, from its handler to its end.

use std::fs::File;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::AbortOnDropHandle;
use wharf_toolserver::server::Server;
use wharf_toolserver::{Call, Done, Failure, Handler, Reporter};
use wharf_vocab::{Object, ToolId};
use wharf_wire::run_v1::code;

use super::arguments::{self, ProcessCommand};
use super::host::RunHost;
use super::hydrate::hydrate;
use super::{Listen, Options};
use crate::calls::tool::{TakesImplementation, ToolFn};
use crate::host::{Host, ServedTool, served_by_name};
use crate::schema::CheckedSchema;
use crate::{Data, Error, Implemented, Scope, Tool};

/// Threads for connections and files; handlers have others.
const SERVER_THREADS: usize = 2;

/// A tool server. See the [module](super) for all of it in ten lines.
#[derive(Debug)]
pub struct ToolServer {
    reference: String,
    tool: Result<ServedTool, Error>,
    options: Options,
    is_free: bool,
}

impl ToolServer {
    /// A server of one tool of a scope or an [`Agent`](crate::Agent), under a reference such as
    /// `demo/search@1`.
    ///
    /// Typed progress is shown as the partial output `progress`, what the tool says it cost is the
    /// run's cost, and text and messages are lines of the run's log. A [durable](Tool::durable)
    /// tool has its steps. The run protocol has no other way back to the core: a tool that asks a
    /// question, wants a completion or calls a tool without an implementation fails with
    /// `tool.unavailable`.
    ///
    /// ```
    /// use wharf_sdk::toolserver::ToolServer;
    /// use wharf_sdk::{Cx, Fault, Scope, Tool};
    ///
    /// const COUNT: Tool<String, usize> = Tool::new("count", "Counts words.");
    ///
    /// let root = Scope::root();
    /// root.provide(&COUNT, |text: String, cx: Cx| async move {
    ///     cx.cost(25);
    ///     Ok::<_, Fault>(text.split_whitespace().count())
    /// }).unwrap();
    /// let server = ToolServer::of("demo/count@1", &root, &COUNT);
    /// # let _ = server;
    /// ```
    pub fn of<I, O, P, S>(
        reference: impl Into<String>,
        agent: impl Into<Scope>,
        tool: &Tool<I, O, P, S>,
    ) -> Self {
        let is_free = tool.terms().free;
        let (reference, tool) = (reference.into(), served_by_name(agent, tool.name()));
        Self { reference, tool, options: Options::default(), is_free }
    }

    /// A server of a tool that is given an implementation.
    pub fn new<I: Data, O: Data, P: Data, S: TakesImplementation>(
        reference: impl Into<String>,
        tool: &Tool<I, O, P, S>,
        implementation: impl ToolFn<I, O, P>,
    ) -> Self {
        let root = Scope::root();
        let provided = root.provide(tool, implementation);
        Self::of(reference, &root, tool).noted(provided)
    }

    /// A server of a tool that has an implementation of its own.
    pub fn own<I: Data, O: Data, P: Data>(
        reference: impl Into<String>,
        tool: &Tool<I, O, P, Implemented>,
    ) -> Self {
        let root = Scope::root();
        let offered = root.offer(tool);
        Self::of(reference, &root, tool).noted(offered)
    }

    fn noted(mut self, added: Result<(), Error>) -> Self {
        if let Err(error) = added {
            self.tool = Err(error);
        }
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
            ProcessCommand::Serve(options) => *options,
            ProcessCommand::Schema => return self.show_schemas(),
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

    /// Makes the tool callable; runs are executed on these threads.
    fn build(self, workers: Handle, digest: String) -> Result<ToolHandler, Error> {
        if !ToolId::new(&self.reference).is_ok_and(|id| id.is_reference()) {
            return Err(Error::Reference(self.reference));
        }
        let tool = self.tool?;
        let fits = CheckedSchema::of(tool.input_schema().clone());
        if let Err(why) = &fits.validator {
            let (name, why) = (tool.name().to_owned(), why.clone());
            return Err(Error::Schema { name, what: "input", why });
        }
        Ok(ToolHandler { tool, fits: Arc::new(fits), workers, digest, is_free: self.is_free })
    }

    fn show_schemas(self) -> Result<(), Error> {
        let tool = self.tool?;
        let both = json!({"input": tool.input_schema(), "output": tool.output_schema()});
        writeln!(io::stdout(), "{both:#}")?;
        Ok(())
    }
}

/// The tool as the server calls it.
struct ToolHandler {
    tool: ServedTool,
    /// What inputs are checked against.
    fits: Arc<CheckedSchema>,
    workers: Handle,
    digest: String,
    is_free: bool,
}

async fn execute(
    tool: ServedTool,
    fits: Arc<CheckedSchema>,
    host: Arc<RunHost>,
) -> Result<Object, Failure> {
    let inputs = Value::Object(hydrate(tool.input_schema(), host.call()).await?);
    // What does not fit is said before the tool has seen anything of it.
    let fits = fits.check_input(&inputs);
    fits.map_err(|fault| Failure::new(code::INPUTS, fault.message))?;
    let Value::Object(inputs) = inputs else { return Ok(Object::new()) };
    let done = tool.call(inputs, host as Arc<dyn Host>).await;
    done.map_err(|fault| Failure::new(fault.code.as_str(), fault.message))
}

impl Handler for ToolHandler {
    fn run(&self, call: Call, report: Reporter) -> BoxFuture<'static, Done> {
        let host = Arc::new(RunHost::new(call, report));
        let work = execute(self.tool.clone(), Arc::clone(&self.fits), Arc::clone(&host));
        let work = self.workers.spawn(work);
        // Whoever stops waiting stops the work.
        let work = AbortOnDropHandle::new(work);
        let free = self.is_free.then_some(0);
        Box::pin(async move {
            let result = work.await.unwrap_or_else(|_| {
                let message = "The tool failed in a way its author did not foresee.";
                Err(Failure::new(code::HANDLER, message))
            });
            Done { result, cost: host.cost().or(free).map(|micro| json!(micro)) }
        })
    }

    fn digest(&self) -> String {
        self.digest.clone()
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
