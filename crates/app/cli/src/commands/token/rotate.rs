//! `wharf token rotate`.

use serde_json::Value;
use wharf_wire::rest_v1::{Keys, RotateKeys};

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::{plain, table};

/// What `wharf token rotate` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf token rotate                existing tokens stay valid
  wharf token rotate --drop-old     every existing token becomes invalid

The owner's token is not affected.")]
pub(crate) struct Args {
    /// Discard older keys, which invalidates every token made with them
    #[arg(long)]
    drop_old: bool,
}

/// Makes a new key.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let body = RotateKeys { drop_old: args.drop_old.then_some(true) };
    let raw: Value = context.client()?.tokens().rotate(&body).raw().await?;
    if output.is_json() {
        output.json(&raw)?;
    } else {
        let keys: Keys = table::typed(raw)?;
        let older = keys.keys.len().saturating_sub(1);
        let current = plain::line(&keys.current);
        output.line(&format!(
            "{current} signs tokens from now on; {older} older keys are still valid"
        ))?;
    }
    Ok(Exit::Done)
}
