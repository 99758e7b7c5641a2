//! `wharf doctor`: looks for what could keep a core from working well.

use wharf_server::doctor::{self, Verdict};

use crate::commands::{Context, Exit, Result};
use crate::plain;

/// What `wharf doctor` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf doctor
  wharf doctor --hash
  wharf doctor --home /srv/wharf --json

Exit code 1 if a check fails; warnings do not count.")]
pub(crate) struct DoctorArgs {
    /// Also read every file of every world and verify its hash
    #[arg(long)]
    hash: bool,
}

/// Prints what was looked at and what was seen.
pub(crate) fn run(args: &DoctorArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let home = context.home()?;
    let mut findings = doctor::check(&home, args.hash);
    findings.extend(doctor::check_sandbox(&home));
    let failed = findings.iter().any(|finding| finding.verdict == Verdict::Fail);
    if output.is_json() {
        output.json(&findings)?;
    } else {
        let paint = output.out_paint();
        for finding in &findings {
            let verdict = format!("{:<4}", finding.verdict);
            let verdict = match finding.verdict {
                Verdict::Ok => paint.good(&verdict),
                Verdict::Warn => paint.attention(&verdict),
                Verdict::Fail => paint.bad(&verdict),
            };
            let (name, text) = (plain::line(&finding.name), plain::line(&finding.text));
            output.line(&format!("{verdict}  {}  {text}", paint.strong(&format!("{name:<16}"))))?;
        }
    }
    Ok(if failed { Exit::Failed } else { Exit::Done })
}
