//! `wharf worlds get`.

use std::path::PathBuf;

use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::files::{self, Fetch, Place};
use crate::{plain, size};

/// What `wharf worlds get` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds get lab /out/small.jpg small.jpg
  wharf worlds get lab /out/src.tar - | tar t

The file is compared with its hash before it takes its name. If something comes in between, the
same command goes on from what is there.")]
pub(crate) struct Args {
    /// The world's id
    world: String,
    /// The file's path in the world
    path: String,
    /// The file of this machine, or - for standard output
    file: PathBuf,
}

/// Fetches a file.
pub(super) async fn run(args: Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let place = Place::new(&args.world, &args.path)?;
    let fetch = Fetch { client: context.client()?, place: &place, output };
    let is_stdout = args.file.as_os_str() == "-";
    let fetched = async {
        match is_stdout {
            true => files::to_stdout(&fetch).await,
            false => files::to_file(&fetch, &args.file).await,
        }
    };
    let ended = tokio::select! {
        fetched = fetched => Some(fetched?),
        _ = tokio::signal::ctrl_c() => None,
    };
    let Some(fetched) = ended else {
        let hint = if is_stdout { "" } else { "; the same command goes on from what is there" };
        output.note(&format!("stopped{hint}"));
        return Ok(Exit::Canceled);
    };
    if is_stdout {
        return Ok(Exit::Done);
    }
    let file = args.file.display();
    if output.is_json() {
        let facts = json!({"file": file.to_string(), "bytes": fetched.bytes, "b3": fetched.b3,
            "checked": fetched.checked});
        output.json(&facts)?;
        return Ok(Exit::Done);
    }
    let checked = if fetched.checked { "" } else { "; the core knows no hash to compare it with" };
    let file = plain::line(&file.to_string());
    output.note(&format!("got {file} ({}{checked})", size::about(fetched.bytes)));
    Ok(Exit::Done)
}
