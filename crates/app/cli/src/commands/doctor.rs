//! `wharf doctor`: looks for what could keep a core from working well.

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::plain;

/// What `wharf doctor` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf doctor
  wharf doctor --hash
  wharf doctor --home /srv/wharf --json

Exit code 1 if a check fails; warnings do not count.")]
pub(crate) struct Args {
    /// Also read every file of every world and verify its hash
    #[arg(long)]
    hash: bool,
}

/// Prints what was looked at and what was seen.
pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let findings = context.home()?.examine(args.hash);
    let failed = findings.iter().any(|finding| finding.verdict == "fail");
    if output.is_json() {
        output.json(&findings)?;
    } else {
        let paint = output.out_paint();
        for finding in &findings {
            let verdict = format!("{:<4}", finding.verdict);
            let verdict = match finding.verdict {
                "ok" => paint.good(&verdict),
                "warn" => paint.attention(&verdict),
                _ => paint.bad(&verdict),
            };
            let (name, text) = (plain::line(&finding.name), plain::line(&finding.text));
            output.line(&format!("{verdict}  {}  {text}", paint.strong(&format!("{name:<16}"))))?;
        }
    }
    Ok(if failed { Exit::Failed } else { Exit::Done })
}
