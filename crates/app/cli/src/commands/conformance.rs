//! `wharf conformance`: checks whether a peer keeps a protocol.
//! Also `wharf sim`, which checks the engine itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wharf_conformance::run::{self, Mode};
use wharf_conformance::{Error, Options, Profile, Report, Row, Verdict};
use wharf_testkit::sim::{self, SimOptions};
use wharf_vocab::{Code, Object};

use crate::commands::{CliError, Context, Exit, Result};
use crate::{inputs, plain};

/// What `wharf conformance` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf conformance agent-protocol -- python3 agent.py
  wharf conformance agent-protocol --json -- ./my-agent --option
  wharf conformance run-protocol http://127.0.0.1:8080

Exit code 1 if a requirement is not met.")]
pub(crate) struct ConformanceArgs {
    #[command(subcommand)]
    protocol: Protocol,
}

#[derive(Debug, clap::Subcommand)]
enum Protocol {
    /// Act as a core for an agent and show which requirements it meets
    AgentProtocol(AgentArgs),
    /// Act as a core for a tool server and show which requirements it meets
    RunProtocol(RunArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf conformance agent-protocol -- python3 agent.py
  wharf conformance agent-protocol --dir examples/agents/hello-python -- python3 agent.py
  wharf conformance agent-protocol --profile seed -- ./my-agent

Needs no core. Each row is a requirement of docs/protocols/agent.md.")]
struct AgentArgs {
    /// The agent's folder, where its command starts
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Whether Wharf's additions are checked too
    #[arg(long, value_enum, default_value = "full")]
    profile: CheckProfile,
    /// The command that starts the agent
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf conformance run-protocol http://127.0.0.1:8080
  wharf conformance run-protocol unix:/tmp/tool.sock --inputs '{\"text\":\"hello\"}'
  wharf conformance run-protocol wss://tools.example.com --token-file token --profile seed

Needs no core. Each row is a requirement of docs/protocols/run.md.")]
struct RunArgs {
    /// Where the tool server is: http://, https://, ws://, wss://, or unix: and a path
    #[arg(value_name = "URL")]
    url: String,
    /// A file with the bearer token it asks for
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Inputs of an ordinary run, as JSON, @file, or - for standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    inputs: String,
    /// Inputs of a run that takes a minute, so that canceling can be checked
    #[arg(long, value_name = "JSON")]
    slow_inputs: Option<String>,
    /// The mode of the one ordinary run; everything else is mock
    #[arg(long, value_enum, default_value = "mock")]
    mode: RunMode,
    /// Whether Wharf's additions are checked too
    #[arg(long, value_enum, default_value = "full")]
    profile: CheckProfile,
    /// Also run checks that take many seconds
    #[arg(long)]
    slow: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum RunMode {
    Mock,
    Real,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CheckProfile {
    /// All requirements
    Full,
    /// Those of the original protocol
    Seed,
}

impl From<CheckProfile> for Profile {
    fn from(checked: CheckProfile) -> Self {
        match checked {
            CheckProfile::Full => Self::Full,
            CheckProfile::Seed => Self::Seed,
        }
    }
}

/// Checks the peer and prints the report.
pub(crate) async fn run(args: ConformanceArgs, context: &Context) -> Result<Exit> {
    let what = match &args.protocol {
        Protocol::AgentProtocol(_) => "agent",
        Protocol::RunProtocol(_) => "tool server",
    };
    if context.output.err_is_terminal() && !context.output.is_json() {
        context.output.note(&format!("Checking the {what}; this takes a few seconds."));
    }
    let mut shown = BTreeMap::new();
    let checking = async {
        match args.protocol {
            Protocol::AgentProtocol(args) => {
                let profile = args.profile.into();
                let options = Options { dir: args.dir, profile, ..Options::default() };
                wharf_conformance::run(args.command, options).await.map_err(failure)
            }
            Protocol::RunProtocol(args) => {
                // A server that hangs takes minutes; what is known by then is shown at once.
                let tell = |row: Row| {
                    if !context.output.is_json() && line(&row, context).is_ok() {
                        shown.insert(row.number, row.verdict);
                    }
                };
                run::check_aloud(options(args)?, tell).await.map_err(failure)
            }
        }
    };
    let report = tokio::select! {
        report = checking => report?,
        // Giving the check up ends what it started.
        _ = tokio::signal::ctrl_c() => return Ok(Exit::Canceled),
    };
    show(&report, &shown, context)
}

/// Shows the report, without the rows that stand there already.
fn show(report: &Report, shown: &BTreeMap<u16, Verdict>, context: &Context) -> Result<Exit> {
    if context.output.is_json() {
        context.output.json(&report.to_json())?;
    } else {
        for row in report.rows() {
            if shown.get(&row.number) != Some(&row.verdict) {
                line(row, context)?;
            }
        }
        context.output.line(&report.summary())?;
    }
    Ok(if report.passed() { Exit::Done } else { Exit::Failed })
}

fn line(row: &Row, context: &Context) -> Result<()> {
    context.output.line(&plain::line(&row.to_string()))
}

fn options(args: RunArgs) -> Result<run::Options> {
    Ok(run::Options {
        token: args.token_file.as_deref().map(token).transpose()?,
        inputs: object(&args.inputs, "--inputs")?,
        slow_inputs: match &args.slow_inputs {
            Some(text) => Some(object(text, "--slow-inputs")?),
            None => None,
        },
        mode: match args.mode {
            RunMode::Mock => Mode::Mock,
            RunMode::Real => Mode::Real,
        },
        profile: args.profile.into(),
        slow: args.slow,
        ..run::Options::new(args.url)
    })
}

fn token(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::unreadable(file.display(), &error))?;
    let token = text.trim();
    // It goes into a header, where nothing else may stand.
    if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(CliError::usage(format!("{} holds no token", file.display())));
    }
    Ok(token.to_owned())
}

fn object(text: &str, option: &str) -> Result<Object> {
    match inputs::json(text)? {
        Value::Object(object) => Ok(object),
        _ => Err(CliError::usage(format!("{option} must be a JSON object"))),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what an error is mapped with")]
fn failure(error: Error) -> CliError {
    match error {
        Error::NoCommand
        | Error::Folder { .. }
        | Error::Start { .. }
        | Error::Address { .. }
        | Error::Unreachable { .. } => CliError::usage(error.to_string()),
        Error::Place(_) => CliError::new(Code::HomeUnwritable, error.to_string()),
        Error::Http(_) => CliError::failed(Code::RequestInvalid, error.to_string()),
    }
}

/// What `wharf sim` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf sim
  wharf sim --seed 7 --steps 50000

The same seed always gives the same faults. Exit code 1 if a rule was broken.")]
pub(crate) struct SimArgs {
    /// Which faults happen, and when
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many steps to simulate
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    steps: u32,
}

/// Runs the simulation and prints its report.
pub(crate) fn simulate(args: &SimArgs, context: &Context) -> Result<Exit> {
    let report = sim::run(SimOptions { seed: args.seed, steps: args.steps });
    if context.output.is_json() {
        context.output.json(&report.to_json())?;
    } else {
        context.output.line(report.to_string().trim_end())?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}
