//! `wharf tool serve`: serves one tool to any core over the run protocol, in the foreground until
//! a signal stops it.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tracing_subscriber::{EnvFilter, fmt};
use wharf_server::Signals;
use wharf_toolserver::Handler;
use wharf_toolserver::server::{CertFiles, Error, Listen, Options, Profile, Server};
use wharf_toolserver::transfer::Policy;
use wharf_toolserver::worker::{Apart, ExecHandler, PythonHandler, WorkerSettings};
use wharf_vocab::{Code, ToolId};
use wharf_wire::run_v1::ToolName;

use crate::commands::{CliError, Context, Exit, Output, Result};
use crate::{amount, plain};

/// What `wharf tool` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tool serve --handler handler.py
  wharf tool serve --exec ./resize --listen 127.0.0.1:0")]
pub(crate) struct ToolArgs {
    #[command(subcommand)]
    command: ToolCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ToolCommand {
    /// Serve a tool until a signal stops it
    Serve(Box<ServeArgs>),
}

/// What `wharf tool serve` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf tool serve --handler handler.py
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
    /// A Python file with an `entry` function, run in a process of its own for each run
    #[arg(long, value_name = "FILE.py")]
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
    /// How many runs are executed at once [default: 8 for each core, at least 16]
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
    /// Start a new interpreter for each run of a Python handler
    #[arg(long, requires = "handler")]
    cold: bool,
    /// The interpreter of a Python handler
    #[arg(long, value_name = "PATH", default_value = "python3", requires = "handler")]
    python: PathBuf,
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
    let ToolCommand::Serve(args) = args.command;
    begin_log(&args.log, context.output)?;
    let handler = handler(&args)?;
    let unable = |error: std::io::Error| {
        CliError::failed(Code::CoreInternal, format!("cannot wait for signals: {error}"))
    };
    let mut signals = Signals::new().map_err(unable)?;
    let digest = args.digest.clone().unwrap_or_else(|| handler.digest());
    let server = Server::bind(options(*args)).await.map_err(|error| refused(&error))?;
    let address = server.address();
    handler.prepare().await.map_err(|failure| refused(&Error::Handler(failure)))?;
    // A server goes on even when nobody reads what it prints.
    let _ = greet(context.output, &address, &digest);
    let mut again = Signals::new().map_err(unable)?;
    let stop = async move {
        signals.next().await;
    };
    tokio::select! {
        () = server.serve_prepared(handler, stop) => Ok(Exit::Done),
        _ = async { again.next().await; again.next().await } => Ok(Exit::Failed),
    }
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
    if let Some(file) = &args.what.handler {
        let (python, cold) = (&args.bounds.python, args.bounds.cold);
        let handler = PythonHandler::new(file, python, cold, settings);
        let handler = handler.map_err(|failure| refused(&Error::Handler(failure)))?;
        return Ok(Arc::new(handler));
    }
    let command = args.what.exec.as_deref().unwrap_or_default();
    let argv = split(command).map_err(|why| CliError::usage(format!("--exec: {why}")))?;
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
        proxy,
        private_names: allow_private,
        trusted: trust,
        scratch: scratch.unwrap_or_else(|| files.scratch.clone()),
        ..files
    };
    let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
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
        concurrency: args.bounds.concurrency.map_or(usual.concurrency, number),
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
fn greet(output: Output, address: &Listen, digest: &str) -> Result<()> {
    if output.is_json() {
        return output.json(&json!({"address": address.to_string(), "digest": digest}));
    }
    let address = plain::line(&address.to_string());
    output.line(&format!("serving at {}", output.out_paint().strong(&address)))
}

fn refused(error: &Error) -> CliError {
    match error {
        Error::Address(_)
        | Error::Open(_)
        | Error::File { .. }
        | Error::Files(_)
        | Error::Tls(_) => CliError::usage(error.to_string()),
        Error::Bind { .. } | Error::Handler(_) => {
            CliError::failed(Code::ConfigInvalid, error.to_string())
        }
    }
}

/// Begins to log to standard error.
fn begin_log(level: &str, output: Output) -> Result<()> {
    let filter = EnvFilter::try_new(level)
        .map_err(|_| CliError::usage("--log takes error, warn, info, debug or trace"))?;
    let lines = fmt::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error means that somebody logs already, and that is well.
    let _ = if output.is_json() {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    Ok(())
}

/// The words of a command: split at spaces, unless they stand in quotes or behind a backslash.
fn split(command: &str) -> std::result::Result<Vec<String>, String> {
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
    use super::split;

    #[test]
    fn a_command_is_split_as_a_shell_would() {
        for (command, words) in [
            ("./tool", &["./tool"][..]),
            ("  python3  tool.py ", &["python3", "tool.py"]),
            ("a 'b c' \"d e\"f", &["a", "b c", "d ef"]),
            (r#"a\ b "c\"d" 'e\f'"#, &["a b", "c\"d", "e\\f"]),
            ("a ''", &["a", ""]),
        ] {
            assert_eq!(split(command).expect(command), words, "{command}");
        }
        for command in ["", "  ", "a 'b", "a \"b", "a\\"] {
            assert!(split(command).is_err(), "{command}");
        }
    }
}
