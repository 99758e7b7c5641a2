//! `wharf sim`: drives the real engine through simulated faults.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::local;

/// What `wharf sim` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf sim
  wharf sim --seed 7 --steps 50000

The same seed always gives the same faults. Exit code 1 if a rule was broken.")]
pub(crate) struct Args {
    /// Which faults happen, and when
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How long the simulation goes on
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    steps: u32,
}

/// Runs the simulation and prints its report.
pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit> {
    let report = local::simulate(args.seed, args.steps);
    if context.output.is_json() {
        context.output.json(&report.json)?;
    } else {
        context.output.line(report.text.trim_end())?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}
