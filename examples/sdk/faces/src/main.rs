//! One agent, served in four ways: as an agent process, as a tool server, as an operative, and by a
//! core in the same program. The agent is in `flight.rs` and is the same in all of them.

mod flight;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use wharf_embedded::{Embedded, What};
use wharf_sdk::operative::{self, Connect};
use wharf_sdk::toolserver::ToolServer;
use wharf_sdk::{Active, AgentProcess, Scope};

use crate::flight::{SEARCH, Settings, flight};

const USAGE: &str = "faces process | server --port N | operative URL | embedded INPUT";

type Done = Result<ExitCode, Box<dyn Error>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let face = arguments.next().unwrap_or_default();
    let root = Scope::root();
    let served = flight(&root).map_err(Into::into).and_then(|flight| match face.as_str() {
        "process" => Ok(process(&flight)),
        "server" => Ok(server(&flight, arguments)),
        "operative" => Runtime::new()?.block_on(operative(&flight, arguments.next())),
        "embedded" => Runtime::new()?.block_on(embedded(&flight, arguments.next())),
        _ => Err(USAGE.into()),
    });
    served.unwrap_or_else(|error| {
        // When standard error is gone there is nobody left to tell.
        let _ = writeln!(io::stderr(), "faces: {error}");
        ExitCode::FAILURE
    })
}

/// A process that the core starts: `wharf agents add`.
fn process(flight: &Active<Settings>) -> ExitCode {
    AgentProcess::of("dev.wharf.flight", env!("CARGO_PKG_VERSION"), flight).run()
}

/// A server of one tool: `wharf tools add`.
fn server(flight: &Active<Settings>, arguments: impl Iterator<Item = String>) -> ExitCode {
    ToolServer::of("flight/search@1", flight, &SEARCH).run_with(arguments)
}

/// A program that connects to a core by itself, until it is told to stop.
async fn operative(flight: &Active<Settings>, core: Option<String>) -> Done {
    let core = core.ok_or(USAGE)?;
    let connect = Connect { token: std::env::var("WHARF_TOKEN").ok(), ..Connect::new("flight") };
    let operative = operative::connect(flight, &core, connect).await?;
    say(&json!({"tools": operative.tools()}))?;
    signal(SignalKind::terminate())?.recv().await;
    operative.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// A core in this program, one run in it, and everything that it says.
async fn embedded(flight: &Active<Settings>, input: Option<String>) -> Done {
    let input: Value = serde_json::from_str(&input.ok_or(USAGE)?)?;
    let core = Embedded::in_memory().await?;
    core.offer("flight", flight).await?;
    let run = core.run("flight/search", input).start().await?;
    let mut watch = core.watch(&run).await?;
    while let Some(event) = watch.next().await {
        match event?.what {
            What::Progress(piece) => say(&json!({"progress": piece}))?,
            What::Finished(run) => say(&json!({"outputs": run.outputs, "cost": run.cost_micro}))?,
            _ => {}
        }
    }
    core.close().await?;
    Ok(ExitCode::SUCCESS)
}

fn say(line: &Value) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}
