//! `wharf tool serve`: serves one tool to any core over the run protocol, in the foreground until
//! a signal stops it.

mod log;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wharf_server::Signals;
use wharf_toolserver::Handler;
use wharf_toolserver::server::{CertFiles, Error, Listen, Options, Profile, Server};
use wharf_toolserver::transfer::Policy;
use wharf_toolserver::worker::{
    Apart, ExecHandler, NodeHandler, PythonHandler, WorkerSettings, describe_node, describe_python,
    is_for_node,
};
use wharf_vocab::{Code, ToolId};
use wharf_wire::run_v1::{ToolName, code};

use crate::commands::{CliError, Context, Exit, Output, Result};
use crate::{amount, plain};

/// Tells a handler which of its functions is served.
const FUNCTION: &str = "WHARF_FUNCTION";

/// Runs in Node that go on at once when nothing else is said: each is a process with a dozen
/// threads, and a sandbox has room for so many.
const NODE_RUNS: usize = 16;

/// What `wharf tool` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tool serve --handler handler.py
  wharf tool serve --handler handler.ts
  wharf tool serve --exec ./resize --listen 127.0.0.1:0")]
pub(crate) struct ToolArgs {
    #[command(subcommand)]
    command: ToolCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ToolCommand {
    /// Serve a tool until a signal stops it
    Serve(Box<ServeArgs>),
    /// Import a handler and print what tools it has
    #[command(after_help = "\
Examples:
  wharf tool describe --handler handler.py
  wharf tool describe --handler handler.ts

Prints one JSON object: the tools with their schemas, or why the handler cannot be imported. The
handler is imported with your own rights; a core does this in a sandbox.")]
    Describe(DescribeArgs),
}

/// What `wharf tool describe` takes.
#[derive(Debug, clap::Args)]
struct DescribeArgs {
    /// A Python file with functions under `@tool`, or with an `entry`; or a TypeScript or JavaScript
    /// file that exports tools
    #[arg(long, value_name = "FILE")]
    handler: PathBuf,
    /// The interpreter of a Python handler
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,
    /// The Node of a handler in TypeScript or JavaScript
    #[arg(long, value_name = "PATH", default_value = "node")]
    node: PathBuf,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What `wharf tool serve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tool serve --handler handler.py
  wharf tool serve --handler handler.py --function shout
  wharf tool serve --handler handler.ts --function shout
  wharf tool serve --exec './resize --fast' --listen 127.0.0.1:0
  wharf tool serve --handler handler.py --listen 0.0.0.0:8000 --token-file tokens \\
      --tls-cert cert.pem --tls-key key.pem --allow-origin https://s3.example.com
  wharf tool serve --handler handler.py --listen unix:/run/my-tool.sock --artifacts ./artifacts

The server answers GET /healthz and takes runs at /run. Callers on other machines need a token
from the token file. Ctrl-C or SIGTERM waits for runs in progress; a second one does not.")]
struct ServeArgs {
    #[command(flatten)]
    what: ServedToolArgs,
    /// Where to listen: HOST:PORT (port 0 picks a free one) or unix:PATH; a core that launches the
    /// server hands it a socket as fd:NUMBER
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    listen: Listen,
    /// Which dialect to speak; upstream adds what older peers expect, and lets runs read the
    /// artifacts of other runs
    #[arg(long, value_name = "NAME", default_value = "default")]
    profile: Dialect,
    /// A file with the tokens that callers may use, one per line
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The certificate for encrypted connections, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    bounds: Bounds,
    /// A variable that runs may see; may be repeated
    #[arg(long = "env", value_name = "NAME")]
    environment: Vec<OsString>,
    /// The tool that is served, such as text/shout@1; a request that names another one is refused
    #[arg(long, value_name = "REF", value_parser = reference)]
    tool: Option<ToolId>,
    /// The digest that /healthz reports [default: a hash of the handler]
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// The log level: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,
}

/// The tool itself.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct ServedToolArgs {
    /// A Python file, or one in TypeScript or JavaScript for Node 20.11 or later; each run gets a
    /// process of its own
    #[arg(long, value_name = "FILE")]
    handler: Option<PathBuf>,
    /// A program to start for each run
    #[arg(long, value_name = "CMD")]
    exec: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Files of runs")]
struct FileArgs {
    /// Storage that runs may read and write; may be repeated
    #[arg(long = "allow-origin", value_name = "URL")]
    origins: Vec<String>,
    /// Allow names that resolve to private addresses
    #[arg(long)]
    allow_private: bool,
    /// The folder served as /artifacts/
    #[arg(long, value_name = "DIR")]
    artifacts: Option<PathBuf>,
    /// Where each run gets a folder for its files [default: the folder for temporary
    /// files]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Keep runs out of each other's memory, and out of their folders in --scratch and --artifacts;
    /// needs Landlock
    #[arg(long, requires = "scratch")]
    keep_apart: bool,
    /// A proxy that all requests for files go through; env takes the one that HTTP_PROXY names
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// More certificates to trust, as PEM
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct Bounds {
    /// How many runs are executed at once [default: 8 for each core, at least 16; 16 in
    /// Node]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency: Option<u32>,
    /// How many runs may wait; more are refused as busy
    #[arg(long, value_name = "N", default_value_t = 256)]
    queue: u32,
    /// How long a run may take
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = amount::duration)]
    timeout: Duration,
    /// How much memory the processes of one run may use [default: 4Gi]
    #[arg(long, value_name = "SIZE", value_parser = amount::bytes)]
    memory: Option<u64>,
    /// The tool that is served, where a handler has several: a function under `@tool`, or an export
    #[arg(long, value_name = "NAME", requires = "handler")]
    function: Option<String>,
    /// Start a new interpreter for each run of a Python handler
    #[arg(long, requires = "handler")]
    cold: bool,
    /// The interpreter of a Python handler
    #[arg(long, value_name = "PATH", default_value = "python3", requires = "handler")]
    python: PathBuf,
    /// The Node of a handler in TypeScript or JavaScript
    #[arg(long, value_name = "PATH", default_value = "node", requires = "handler")]
    node: PathBuf,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Dialect {
    /// The protocol and nothing else
    Default,
    /// Also what peers of the half-migrated wire and their control plane expect
    Upstream,
}

/// Serves until a signal comes.
pub(crate) async fn run(args: ToolArgs, context: &Context) -> Result<Exit> {
    let args = match args.command {
        ToolCommand::Serve(args) => args,
        ToolCommand::Describe(args) => return describe(args, context).await,
    };
    let launched = matches!(args.listen, Listen::Inherited(_));
    log::begin(&args.log, launched, context.output)?;
    let handler = handler(&args)?;
    let unable = |error: std::io::Error| {
        CliError::failed(Code::CoreInternal, format!("cannot wait for signals: {error}"))
    };
    let mut signals = Signals::new().map_err(unable)?;
    let digest = args.digest.clone().unwrap_or_else(|| handler.digest());
    let encrypted = args.tls_cert.is_some();
    let server = Server::bind(options(*args)).await.map_err(|error| refused(&error))?;
    let address = server.address();
    handler.prepare().await.map_err(|failure| refused(&Error::Handler(failure)))?;
    // A server goes on even when nobody reads what it prints.
    let _ = greet(context.output, &address, encrypted, &digest);
    let mut again = Signals::new().map_err(unable)?;
    let stop = async move {
        signals.next().await;
    };
    tokio::select! {
        () = server.serve_prepared(handler, stop) => Ok(Exit::Done),
        _ = async { again.next().await; again.next().await } => Ok(Exit::Failed),
    }
}

/// Prints what tools a handler has.
async fn describe(args: DescribeArgs, context: &Context) -> Result<Exit> {
    let settings = WorkerSettings::default();
    let said = if is_for_node(&args.handler) {
        describe_node(&args.handler, &args.node, &settings).await
    } else {
        describe_python(&args.handler, &args.python, &settings).await
    };
    let said = said.map_err(|failure| CliError::failed(Code::ConfigInvalid, failure.message))?;
    let failed = said.get("error").is_some();
    match args.out {
        None => context.output.json(&said)?,
        Some(file) => std::fs::write(&file, said.to_string())
            .map_err(|error| CliError::unwritable(file.display(), &error))?,
    }
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn handler(args: &ServeArgs) -> Result<Arc<dyn Handler>> {
    let mut settings = WorkerSettings::default();
    if let Some(memory) = args.bounds.memory {
        settings.memory_bytes_max = Some(memory);
    }
    if let Some(scratch) = args.files.scratch.clone().filter(|_| args.files.keep_apart) {
        settings.apart = Some(Apart::new(scratch, args.files.artifacts.clone()));
    }
    let given = |name: &OsString| Some((name.clone(), std::env::var_os(name)?));
    settings.environment = args.environment.iter().filter_map(given).collect();
    if let Some(function) = &args.bounds.function {
        settings.environment.push((FUNCTION.into(), function.into()));
    }
    if let Some(file) = args.what.handler.as_ref().filter(|file| is_for_node(file)) {
        let handler = NodeHandler::new(file, &args.bounds.node, settings);
        return Ok(Arc::new(handler.map_err(|failure| refused(&Error::Handler(failure)))?));
    }
    if let Some(file) = &args.what.handler {
        let (python, cold) = (&args.bounds.python, args.bounds.cold);
        let handler = PythonHandler::new(file, python, cold, settings);
        let handler = handler.map_err(|failure| refused(&Error::Handler(failure)))?;
        return Ok(Arc::new(handler));
    }
    let command = args.what.exec.as_deref().unwrap_or_default();
    let argv = words(command).map_err(|why| CliError::usage(format!("--exec: {why}")))?;
    let cwd = std::env::current_dir()
        .map_err(|error| CliError::unreadable("the current folder", &error))?;
    Ok(Arc::new(ExecHandler::new(argv, cwd, settings)))
}

fn options(args: ServeArgs) -> Options {
    let usual = Options::default();
    let FileArgs { origins, allow_private, artifacts, scratch, proxy, trust, .. } = args.files;
    let files = Policy::default();
    let proxy = match proxy.as_deref() {
        Some("env") => std::env::var("HTTP_PROXY").ok(),
        _ => proxy,
    };
    let files = Policy {
        origins,
        artifacts,
        // A core that launched the server copies what was written, and flushes that.
        passing: matches!(args.listen, Listen::Inherited(_)),
        proxy,
        private_names: allow_private,
        trusted: trust,
        scratch: scratch.unwrap_or_else(|| files.scratch.clone()),
        ..files
    };
    let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let is_node = args.what.handler.as_deref().is_some_and(is_for_node);
    let at_once = if is_node { NODE_RUNS } else { usual.concurrency };
    Options {
        listen: args.listen,
        profile: match args.profile {
            Dialect::Default => Profile::Default,
            Dialect::Upstream => Profile::Upstream,
        },
        token_file: args.token_file,
        tls: args.tls_cert.zip(args.tls_key).map(|(cert, key)| CertFiles { cert, key }),
        files,
        tool: args.tool.map(|tool| ToolName { reference: tool.to_string(), digest: None }),
        digest: args.digest,
        concurrency: args.bounds.concurrency.map_or(at_once, number),
        queue: number(args.bounds.queue),
        timeout: args.bounds.timeout,
        ..usual
    }
}

/// The name of a tool that has a server of its own.
fn reference(text: &str) -> std::result::Result<ToolId, String> {
    let unfit = || "it looks like text/shout@1".to_owned();
    ToolId::new(text).ok().filter(ToolId::is_reference).ok_or_else(unfit)
}

/// Says where it is, once it is ready.
fn greet(output: Output, address: &Listen, encrypted: bool, digest: &str) -> Result<()> {
    if output.is_json() {
        let url = url_of(address, encrypted);
        return output.json(&json!({"address": address.to_string(), "url": url, "digest": digest}));
    }
    let address = plain::line(&url_of(address, encrypted));
    output.line(&format!("serving at {}", output.out_paint().strong(&address)))
}

/// The address as other commands take it.
fn url_of(address: &Listen, encrypted: bool) -> String {
    match address {
        Listen::Tcp(address) if encrypted => format!("https://{address}"),
        Listen::Tcp(address) => format!("http://{address}"),
        Listen::Unix(_) | Listen::Inherited(_) => address.to_string(),
    }
}

fn refused(error: &Error) -> CliError {
    match error {
        Error::Address(_)
        | Error::Open(_)
        | Error::File { .. }
        | Error::Files(_)
        | Error::Tls(_) => CliError::usage(error.to_string()),
        Error::Bind { .. } => CliError::failed(Code::ConfigInvalid, error.to_string()),
        // The handler itself is at fault, and not the worker around it.
        Error::Handler(failure) if failure.code == code::HANDLER => {
            CliError::unusable(failure.message.clone())
        }
        Error::Handler(_) => CliError::failed(Code::ConfigInvalid, error.to_string()),
    }
}

/// The words of a command: split at spaces, unless they stand in quotes or behind a backslash.
pub(crate) fn words(command: &str) -> std::result::Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => match letters.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err("nothing follows the last backslash".to_owned()),
            },
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    if words.is_empty() {
        return Err("there is no command".to_owned());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_command_is_split_as_a_shell_would() {
        for (command, expected) in [
            ("./tool", &["./tool"][..]),
            ("  python3  tool.py ", &["python3", "tool.py"]),
            ("a 'b c' \"d e\"f", &["a", "b c", "d ef"]),
            (r#"a\ b "c\"d" 'e\f'"#, &["a b", "c\"d", "e\\f"]),
            ("a ''", &["a", ""]),
        ] {
            assert_eq!(words(command).expect(command), expected, "{command}");
        }
        for command in ["", "  ", "a 'b", "a \"b", "a\\"] {
            assert!(words(command).is_err(), "{command}");
        }
    }
}
