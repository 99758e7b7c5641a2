//! The command line as a whole: global options, the list of commands, and how one is started.

mod spelling;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::CompleteEnv;
use wharf_client::{Client, Locator};
use wharf_server::Home;
use wharf_vocab::Code;

use crate::commands::{
    agents, answer, artifacts, audit, backup, completions, conformance, console, costs, decide,
    dev, doctor, env, explain, flow, inbox, logs, mcp, migrate, new, notify, operatives, operator,
    run, runs, schedule, secret, service, status, token, tool, tools, trigger, up, worlds,
};
use crate::exit::Exit;
use crate::failure::{CliError, Result};
use crate::output::Output;

/// Runs tools and agents outside its own process, and brokers everything between them and you.
#[derive(Debug, Parser)]
#[command(name = "wharf", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  wharf up                          start the core
  wharf status                      see how it fares
  wharf run wharf/count n=20        run a tool and follow it
  wharf runs                        list runs
  wharf inbox                       see what waits for you

Exit codes: 0 done or succeeded, 1 failed, 2 usage, 3 refused, 4 canceled.";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Everywhere")]
struct GlobalArgs {
    /// The core's home [default: WHARF_HOME, else the platform's data directory + wharf]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    /// The core's address [default: WHARF_URL, else what the home says]
    #[arg(long, global = true, value_name = "URL")]
    url: Option<String>,
    /// The token to show the core [default: WHARF_TOKEN, else the owner's in the home]
    #[arg(long, global = true, value_name = "TOKEN")]
    token: Option<String>,
    /// Certificates to trust the core by, in a PEM file [default: WHARF_CA, else the core's own in
    /// the home, else the system's]
    #[arg(long, global = true, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Write JSON for programs, errors included
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the core
    Up(up::UpArgs),
    /// Show how the core fares: runs, asks, providers, money and disk
    Status(status::StatusArgs),
    /// Print the core's address and your token, for other programs
    Env(env::EnvArgs),
    /// Open the console in a browser, signed in
    Console(console::ConsoleArgs),
    /// Run a tool and follow it to its end
    Run(Box<run::RunToolArgs>),
    /// List, follow, repeat, cancel and remove runs
    Runs(Box<runs::RunsArgs>),
    /// Add, check, run and steer flows: several steps in a document
    #[command(alias = "flows")]
    Flow(Box<flow::FlowArgs>),
    /// Work on a tool or an agent: reload at every change, and call it from a prompt
    Dev(dev::DevArgs),
    /// Start runs by the clock: add, list, pause and trigger schedules
    #[command(alias = "schedules")]
    Schedule(schedule::ScheduleArgs),
    /// Let programs outside start runs by calling a hook
    #[command(alias = "triggers")]
    Trigger(trigger::TriggerArgs),
    /// Tell people and programs outside what happens: asks, runs, agents, budgets
    Notify(notify::NotifyArgs),
    /// Print what was written during a run, such as a traceback
    Logs(logs::RunLogArgs),
    /// List, add, approve and inspect tools
    Tools(tools::ToolsArgs),
    /// Serve a tool to any core
    Tool(tool::ToolArgs),
    /// List, add, approve, start and stop agents
    #[command(alias = "agent")]
    Agents(agents::AgentsArgs),
    /// Serve MCP to any client, and manage MCP servers behind Wharf
    Mcp(mcp::McpArgs),
    /// List and forget operatives: programs that connect to offer tools
    #[command(alias = "operative")]
    Operatives(operatives::OperativesArgs),
    /// List questions and approvals that wait for you
    Inbox(inbox::InboxArgs),
    /// Answer a question
    Answer(answer::AnswerArgs),
    /// Approve a run that waits for it
    Approve(decide::ApproveArgs),
    /// Deny a run that waits for an approval
    Deny(decide::DenyArgs),
    /// Take an operator seat: answer questions, approve runs, carry out delegated jobs
    Operator(Box<operator::OperatorArgs>),
    /// Manage worlds: their settings, budgets and files
    #[command(alias = "world")]
    Worlds(Box<worlds::WorldsArgs>),
    /// List files, and trace who wrote and read them
    #[command(alias = "artifact")]
    Artifacts(artifacts::ArtifactsArgs),
    /// See what runs have cost
    #[command(alias = "cost")]
    Costs(costs::CostsArgs),
    /// Create, list, narrow and revoke tokens
    #[command(alias = "tokens")]
    Token(token::TokenArgs),
    /// Manage the secrets that providers may use
    #[command(alias = "secrets")]
    Secret(secret::SecretArgs),
    /// Read and verify the audit
    Audit(audit::AuditArgs),
    /// Take and verify backups of the home, even while the core runs
    Backup(backup::BackupArgs),
    /// Restore a backup into a home
    Restore(backup::RestoreArgs),
    /// Migrate the database to another version
    Migrate(migrate::MigrateArgs),
    /// Explain an error code: what it means and what to do
    Explain(explain::ExplainArgs),
    /// Check for problems that could affect the core
    Doctor(doctor::DoctorArgs),
    /// Create a project: an agent, a tool or an operative
    New(new::NewArgs),
    /// Check whether an agent or a tool server follows its protocol
    Conformance(conformance::ConformanceArgs),
    /// Drive the engine through simulated faults
    Sim(conformance::SimArgs),
    /// Let systemd keep a core running
    Service(service::ServiceArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Write the pages of the manual into a folder
    #[command(hide = true)]
    Man(completions::ManArgs),
}

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) output: Output,
    /// How to find the core.
    pub(crate) locator: Locator,
}

impl Context {
    /// A core to talk to.
    pub(crate) fn client(&self) -> Result<Client> {
        Ok(Client::new(self.locator.clone())?)
    }

    /// The home on this machine.
    pub(crate) fn home(&self) -> Result<Home> {
        Ok(Home::resolve(self.locator.home.clone())?)
    }
}

/// Runs the command that was typed.
pub(crate) fn main() -> ExitCode {
    // A shell that wants to offer something asks in the place of a command.
    if std::env::var_os(completions::VARIABLE).is_some() {
        let command = || crate::complete::with_values(Cli::command());
        CompleteEnv::with_factory(command).var(completions::VARIABLE).complete();
    }
    let arguments = spelling::usual(std::env::args_os().collect());
    let Cli { global, command } = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let output = Output::new(global.json);
    let context = Context { output, locator: locator(global) };
    match start(command, &context) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output.failure(&failure);
            failure.exit().into()
        }
    }
}

/// Says what is wrong with the command line, or shows the help that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    let tip = spelling::tip(error);
    if !error.use_stderr() || !wants_json {
        // What clap itself proposes is only like what was typed, and misleads beside a tip of ours.
        let Some(tip) = tip else { error.exit() };
        let said = sentence(&error.render().to_string());
        let failure = CliError::usage(format!("{said}; {tip}"));
        Output::new(false).failure(&failure);
        return failure.exit().into();
    }
    let mut said = sentence(&error.render().to_string());
    if let Some(tip) = tip {
        said = format!("{said}; {tip}");
    }
    let failure = CliError::usage(said);
    Output::new(true).failure(&failure);
    failure.exit().into()
}

/// The part of a usage error that says what is wrong, on one line.
fn sentence(error: &str) -> String {
    let said = error.split("\n\n").next().unwrap_or_default();
    crate::plain::line(said.strip_prefix("error: ").unwrap_or(said))
}

fn locator(global: GlobalArgs) -> Locator {
    let GlobalArgs { url, token, home, ca, .. } = global;
    let env = Locator::from_env();
    Locator { url, token, home, ca: ca.or_else(|| env.ca.clone()), ..env }
}

fn start(command: Command, context: &Context) -> Result<Exit> {
    match command {
        // What works on this machine alone needs no runtime, and may make one of its own.
        Command::Backup(args) => backup::run(&args, context),
        Command::Restore(args) => backup::restore(&args, context),
        Command::Migrate(args) => migrate::run(&args, context),
        Command::Doctor(args) => doctor::run(&args, context),
        Command::Explain(args) => explain::run(&args, context),
        Command::Env(args) => env::run(&args, context),
        Command::New(args) => new::run(&args, context),
        Command::Sim(args) => conformance::simulate(&args, context),
        Command::Service(args) => service::run(args, context),
        Command::Completions(args) => completions::run(&args, context),
        Command::Man(args) => completions::man(&args, context),
        Command::Up(args) => serve(up::run(args, context)),
        Command::Dev(args) => serve(dev::run(args, context)),
        Command::Tool(args) => serve(tool::run(args, context)),
        Command::Conformance(args) => serve(conformance::run(args, context)),
        Command::Status(args) => talk(status::run(args, context)),
        Command::Console(args) => talk(console::run(args, context)),
        Command::Run(args) => talk(run::run(*args, context)),
        Command::Runs(args) => talk(runs::run(*args, context)),
        Command::Flow(args) => talk(flow::run(*args, context)),
        Command::Logs(args) => talk(logs::run(args, context)),
        Command::Tools(args) => talk(tools::run(args, context)),
        Command::Agents(args) => talk(agents::run(args, context)),
        Command::Mcp(args) => talk(mcp::run(args, context)),
        Command::Inbox(args) => talk(inbox::run(args, context)),
        Command::Answer(args) => talk(answer::run(args, context)),
        Command::Approve(args) => talk(decide::approve(args, context)),
        Command::Deny(args) => talk(decide::deny(args, context)),
        Command::Operator(args) => talk(operator::run(*args, context)),
        Command::Worlds(args) => talk(worlds::run(*args, context)),
        Command::Artifacts(args) => talk(artifacts::run(args, context)),
        Command::Costs(args) => talk(costs::run(args, context)),
        Command::Audit(args) => talk(audit::run(args, context)),
        Command::Token(args) => talk(token::run(args, context)),
        Command::Trigger(args) => talk(trigger::run(args, context)),
        Command::Notify(args) => talk(notify::run(args, context)),
        Command::Schedule(args) => talk(schedule::run(args, context)),
        Command::Operatives(args) => talk(operatives::run(args, context)),
        Command::Secret(args) => talk(secret::run(args, context)),
    }
}

/// Runs what serves others on as many threads as there are processors.
fn serve(work: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    runtime(tokio::runtime::Builder::new_multi_thread())?.block_on(work)
}

/// Runs what talks to a core.
fn talk(work: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    let runtime = runtime(tokio::runtime::Builder::new_current_thread())?;
    let ended = runtime.block_on(work);
    // A read of standard input that nobody waits for any more must not hold the exit.
    runtime.shutdown_background();
    ended
}

fn runtime(mut builder: tokio::runtime::Builder) -> Result<tokio::runtime::Runtime> {
    builder
        .enable_all()
        .build()
        .map_err(|error| CliError::new(Code::CoreInternal, format!("cannot start: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn m043_the_address_of_a_server_is_not_the_cores() {
        let read = |line: &str| Cli::try_parse_from(line.split(' ')).expect(line).global.url;
        assert_eq!(read("wharf mcp add web --url https://mcp.example.com"), None);
        let both = "wharf --url http://core mcp add web --url https://mcp.example.com";
        assert_eq!(read(both).as_deref(), Some("http://core"));
        let here = "wharf mcp add web --url https://mcp.example.com --core-url http://core";
        assert_eq!(read(here).as_deref(), Some("http://core"));
        assert_eq!(read("wharf mcp list --url http://core").as_deref(), Some("http://core"));
    }

    #[test]
    fn every_command_shows_an_example() {
        fn check(command: &clap::Command) {
            for command in command.get_subcommands() {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                let name = command.get_name();
                assert!(help.contains("Examples:\n  wharf "), "{name} has no example");
                check(command);
            }
        }
        check(&Cli::command());
    }

    #[test]
    fn what_the_manual_shows_can_be_typed() {
        for line in [
            "wharf up --listen 127.0.0.1:0 --home /tmp/h --demo",
            "wharf run wharf/count n=20",
            "wharf run wharf/count n=20 --input - --out a.world=/x --world w --mode mock \
             --continues r1 --timeout 30s --durability memory --detach",
            "wharf run wharf/echo --input @in.json --run-id r1 --idempotency-key k --budget-micro 5",
            "wharf runs",
            "wharf runs --status failed",
            "wharf runs list --world w --tool wharf/count --status failed --limit 5 --all --json",
            "wharf --json runs show r1",
            "wharf runs watch r1 --after 3 --json",
            "wharf runs cancel r1 --reason enough",
            "wharf runs retry r1",
            "wharf runs retry r1 --world w --set n=5 --set a.world=/x --unset m --in v --mode mock \
             --timeout 30s --budget-micro 5 --detach --quiet --json",
            "wharf status --json",
            "wharf env --json",
            "wharf explain",
            "wharf explain tool.timeout --json",
            "wharf inbox show c3 --json",
            "wharf trigger",
            "wharf trigger list --world w --json",
            "wharf trigger add t --webhook wharf/echo text=a --proof token --secret-file f --world w \
             --body b --header h=x-a --query q=p --budget-micro 5 --allow llm/*",
            "wharf trigger show t",
            "wharf trigger pause t",
            "wharf trigger resume t",
            "wharf trigger remove t",
            "wharf notify",
            "wharf notify list --json",
            "wharf notify add n --webhook https://a.example/x --on ask,run --status failed --world w \
             --slack --allow-private",
            "wharf notify add n --webhook - --on budget --on agent",
            "wharf notify show n",
            "wharf notify test n --json",
            "wharf notify history n",
            "wharf notify pause n",
            "wharf notify resume n",
            "wharf notify remove n",
            "wharf schedule",
            "wharf schedules list --world w --json",
            "wharf schedule add n --every 15m wharf/echo text=a --catch-up none --overlap parallel",
            "wharf schedule add n --at 2026-12-24T18:00 --tz Europe/Berlin wharf/echo --allow llm/*",
            "wharf schedule add n --cron @daily wharf/echo --world w --mode mock --timeout 5s \
             --budget-micro 5 --durability journal --input {} --out a.world=/x",
            "wharf schedule show n",
            "wharf schedule pause n",
            "wharf schedule resume n --json",
            "wharf schedule trigger n",
            "wharf schedule remove n",
            "wharf schedule history n --json",
            "wharf tokens list",
            "wharf secrets list",
            "wharf agent list",
            "wharf world show w",
            "wharf token create --verb read --ttl never",
            "wharf agents approve hello --none",
            "wharf audit --event run.* --actor owner --subject run:a/b --since 7d --until 1d -f",
            "wharf audit export --event token.*",
            "wharf operator list --json",
            "wharf operator remove S-1 desk",
            "wharf operator --name desk --person",
            "wharf runs purge r1 r2 --yes",
            "wharf runs purge --older-than 30d --dry-run",
            "wharf runs purge --older-than 12h --status succeeded,failed --tool a/b --world w --yes",
            "wharf tool serve --handler handler.py",
            "wharf tool serve --exec ./tool --listen unix:/tmp/x --profile upstream --token-file t \
             --tls-cert c --tls-key k --allow-origin http://127.0.0.1:1 --artifacts d \
             --concurrency 4 --queue 0 --timeout 10m --memory 1Gi --digest x --json",
            "wharf tool serve --handler h.py --cold --python /usr/bin/python3",
            "wharf new agent greeter",
            "wharf new tool acme/shout --lang rust --dir /tmp/shout --sdk /src/wharf --json",
            "wharf mcp add web --url https://mcp.example.com/mcp --token-secret t --allow-private",
            "wharf mcp add every --secret A=B --env C=D --approve -- node every.js --url x",
            "wharf mcp import .mcp.json notes --from claude --take-secrets --dry-run --json",
            "wharf mcp approve every --permission network:egress:a.example --sandbox strict",
            "wharf mcp refresh every --timeout 5s",
            "wharf mcp logs every -n 5 -f",
            "wharf tools",
            "wharf tools show wharf/count",
            "wharf tools diff",
            "wharf tools diff dev.example.hello/echo",
            "wharf tools approve dev.example.hello/echo",
            "wharf tools list --json",
            "wharf tools add ./shout",
            "wharf tools add ./shout --approve --sandbox strict --permission a:b --permission c:d",
            "wharf tools show text/shout@1",
            "wharf tools approve text/shout@1 --permission a:b --sandbox strict --isolation run \
             --memory 256Mi --calls 4",
            "wharf tools enable text/shout@1",
            "wharf tools disable text/shout@1 --json",
            "wharf tools restart text/shout@1",
            "wharf tools logs text/shout@1 -n 20 -f",
            "wharf tools logs text/shout@1 --lines 20",
            "wharf tools remove text/shout@1 --yes",
            "wharf run wharf/echo --project-root .",
            "wharf token",
            "wharf token create --world a --world b --verb run,read --tool a/* --tool */b --ttl 8h \
             --budget-micro 5 --person --label phone",
            "wharf token list --json",
            "wharf token revoke g-1",
            "wharf token rotate --drop-old",
            "wharf token narrow --verb read --token x",
            "wharf token narrow --world a --tool a/b --ttl 5m --name ci",
            "wharf operatives",
            "wharf operatives list --json",
            "wharf operatives forget browser",
            "wharf up --allow-origin http://localhost:5173 --allow-origin https://app.example",
            "wharf up --console-dir console/dist",
            "wharf up --listen 0.0.0.0:7420 --tls-cert c.pem --tls-key k.pem",
            "wharf runs --url https://wharf.example --ca c.pem",
            "wharf console",
            "wharf console --print --json",
            "wharf secret",
            "wharf secret set KEY --keep-newline",
            "wharf secret list",
            "wharf secret remove KEY",
            "wharf agents scan ./agents --add",
            "wharf agents revoke hello",
            "wharf agents approve hello --all --sandbox strict --isolation run --memory 256Mi \
             --cpu-time 60s --processes 8 --open-files 64 --disk 100Mi --calls 4 \
             --rate 60/minute --call-time 15s",
            "wharf approve c3 --for-parent",
            "wharf agents",
            "wharf agents list --json",
            "wharf agents add ./hello",
            "wharf agents show hello",
            "wharf agents approve hello --all",
            "wharf agents approve hello --permission a:b --permission c:d",
            "wharf agents approve hello --permission a:b c:d",
            "wharf agents start hello --detach",
            "wharf agents stop hello",
            "wharf agents restart hello --timeout 2m",
            "wharf agents logs hello -n 20 -f",
            "wharf agents remove hello",
            "wharf mcp",
            "wharf mcp --provider github --world w --tool a/*,b/* --patience 50s --detach --start",
            "wharf mcp export claude --write",
            "wharf inbox --watch",
            "wharf answer c3 blue",
            "wharf answer c3 a=1 b=2",
            "wharf answer c3 --value {}",
            "wharf answer c3 --decline",
            "wharf answer c3 --text no",
            "wharf approve c3 --reason fine",
            "wharf deny c3 --reason no",
            "wharf operator --desc x --role a --role b --execute coder=./x --approve-all --json",
            "wharf operator --keep --token-file f --deny-all --jobs 2",
            "wharf operator --seat S-1 --token-file f",
            "wharf worlds",
            "wharf worlds create w --limit-micro 5 --default-hold-micro 1",
            "wharf worlds budget w --limit-micro 5",
            "wharf worlds budget w --no-limit",
            "wharf worlds create w --publish staged --retention 30d --policy []",
            "wharf worlds set w --limit-micro none --default-hold-micro 1 --publish direct \
             --retention none --policy @rules.json",
            "wharf worlds show w",
            "wharf worlds remove w --force --yes",
            "wharf worlds remove w --purge-runs --yes",
            "wharf worlds set w --run-retention 90d",
            "wharf worlds ls w",
            "wharf worlds ls w /out/ --local -l -r --json",
            "wharf worlds put w /in/a a.bin --media-type image/png --no-resume",
            "wharf worlds put w /in/ -",
            "wharf worlds get w /in/a a.bin",
            "wharf worlds get w /in/a -",
            "wharf worlds rm w /a /b --yes",
            "wharf worlds rm w /in/ --recursive -y",
            "wharf worlds du w",
            "wharf worlds gc w --dry-run",
            "wharf backup /b",
            "wharf backup /b --incremental --key-file k",
            "wharf backup verify /b --key-file k --json",
            "wharf backup key k",
            "wharf restore /b --home h --replace --key-file k",
            "wharf doctor --hash",
            "wharf artifacts list w /out/",
            "wharf artifacts trace w /out/a.png --json",
            "wharf costs",
            "wharf costs --by day --since 7d --until 2026-12-01T00:00:00Z --world w --json",
            "wharf audit",
            "wharf audit tail -n 5 -f",
            "wharf audit export --out a.jsonl",
            "wharf audit verify",
            "wharf migrate",
            "wharf migrate down --to 1",
            "wharf migrate copy --to postgres://h/w --password-file p --dry-run",
            "wharf doctor",
            "wharf conformance agent-protocol --json --dir d -- python3 agent.py --flag",
            "wharf sim --seed 7 --steps 100",
            "wharf completions zsh",
            "wharf man /tmp/man1",
            "wharf service install --socket --listen 127.0.0.1:0 --no-start",
            "wharf service install --system --print",
            "wharf service status --json",
            "wharf service uninstall --system",
        ] {
            let parsed = Cli::try_parse_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {}", parsed.expect_err("an error"));
        }
    }

    #[test]
    fn a_program_is_told_in_one_sentence_what_is_wrong() {
        let error = Cli::try_parse_from(["wharf", "worlds", "budget", "w"]).expect_err("refused");
        let said = sentence(&error.render().to_string());
        assert!(said.starts_with("the following required arguments were not provided: "), "{said}");
        assert!(!said.contains("Usage") && !said.contains('\n'), "{said}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "wharf run",
            "wharf run wharf/count --timeout 30",
            "wharf run wharf/count --mode dream",
            "wharf deny c3",
            "wharf answer c3 blue --decline",
            "wharf answer c3 --decline --cancel",
            "wharf worlds budget w",
            "wharf worlds budget w --limit-micro 5 --no-limit",
            "wharf worlds set w",
            "wharf worlds set w --publish later",
            "wharf worlds set w --retention 12h",
            "wharf worlds put w /a",
            "wharf worlds rm w",
            "wharf artifacts",
            "wharf artifacts trace w",
            "wharf costs --by month",
            "wharf agents add",
            "wharf agents approve hello",
            "wharf agents approve hello --all --permission a:b",
            "wharf agents approve hello --all --none",
            "wharf runs retry",
            "wharf inbox show",
            "wharf agents logs hello -n 10001",
            "wharf runs list --status asleep",
            "wharf notify add n --webhook https://a.example/x",
            "wharf notify add n --on ask",
            "wharf schedule add n wharf/echo",
            "wharf schedule add n --every 15m --cron @daily wharf/echo",
            "wharf token create",
            "wharf token create --verb fly",
            "wharf token narrow",
            "wharf secret set",
            "wharf secret set KEY value",
            "wharf agents approve hello --all --sandbox loose",
            "wharf agents approve hello --all --memory 5x",
            "wharf migrate down",
            "wharf tools add",
            "wharf tools add ./shout --sandbox strict",
            "wharf tools add ./shout --permission a:b",
            "wharf tools add ./shout --approve --sandbox loose",
            "wharf tools disable",
            "wharf tools logs text/shout@1 -n 10001",
        ] {
            let parsed = Cli::try_parse_from(line.split_whitespace());
            assert_eq!(parsed.expect_err("refused").exit_code(), 2, "{line}");
        }
    }
}
