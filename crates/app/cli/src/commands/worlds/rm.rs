//! `wharf worlds rm`.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use reqwest::Method;
use wharf_vocab::Code;

use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::files::{Listing, Order, Place, prefix};
use crate::spinner::Spinner;
use crate::{plain, size};

const TIMEOUT: Duration = Duration::from_secs(60);
/// How many files are removed at the same time.
const AT_ONCE_MAX: usize = 8;

/// What `wharf worlds rm` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds rm lab /out/a.png /out/b.png
  wharf worlds rm lab /out/ --recursive
  wharf worlds rm lab /@r1/ -r --yes               local files of the run r1

A file that a run under way reads is not removed. Where files came from stays known.")]
pub(crate) struct Args {
    /// The world's id
    world: String,
    /// Files, or folders with / at their end
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Folders, too, with all that lies in them
    #[arg(short, long)]
    recursive: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Removes files, once that is confirmed.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let (folders, files): (Vec<_>, Vec<_>) =
        args.paths.iter().partition(|path| path.ends_with('/'));
    let files: Vec<_> =
        files.iter().map(|path| Place::new(&args.world, path)).collect::<Result<_>>()?;
    if let (Some(folder), false) = (folders.first(), args.recursive) {
        let folder = plain::line(folder);
        return Err(Failure::usage(format!("{folder} is a folder; remove all of it with -r")));
    }
    let folders: Vec<_> =
        folders.iter().map(|folder| prefix(Some(folder.as_str()))).collect::<Result<_>>()?;
    if !args.yes {
        if !output.can_ask() {
            return Err(Failure::usage("removing files cannot be undone; confirm it with --yes"));
        }
        let what = described(args, &client, &folders, files.len() as u64).await?;
        if !output.confirm(&format!("Remove {what} for good?")) {
            output.note("nothing removed");
            return Ok(Exit::Done);
        }
    }
    let mut removed: u64 = 0;
    for place in &files {
        remove(&client, place).await?;
        removed += 1;
    }
    let spinner = Spinner::new(output, "removing");
    for folder in folders {
        removed += remove_all(args, &client, folder, &spinner).await?;
    }
    drop(spinner);
    output.note(&format!("removed {removed} file{}", if removed == 1 { "" } else { "s" }));
    Ok(Exit::Done)
}

/// What is about to be removed, in words.
async fn described(
    args: &Args,
    client: &Client,
    folders: &[Option<String>],
    mut count: u64,
) -> Result<String> {
    if let ([], [path]) = (folders, args.paths.as_slice()) {
        return Ok(plain::line(path));
    }
    let mut bytes: u64 = 0;
    for folder in folders {
        let mut listing = Listing::new(client, order(args, folder.clone()));
        while let Some(file) = listing.file().await? {
            count += 1;
            bytes = bytes.saturating_add(file.bytes);
        }
    }
    let s = if count == 1 { "" } else { "s" };
    match folders {
        [] => Ok(format!("{count} file{s}")),
        _ => Ok(format!("{count} file{s} (those in folders have {})", size::about(bytes))),
    }
}

/// Which files lie in a folder. The whole world does not mean local files of runs.
fn order(args: &Args, prefix: Option<String>) -> Order {
    Order { world: args.world.clone(), prefix, local: false, recursive: true }
}

async fn remove_all(
    args: &Args,
    client: &Client,
    folder: Option<String>,
    spinner: &Spinner,
) -> Result<u64> {
    let mut listing = Listing::new(client, order(args, folder));
    let mut removed: u64 = 0;
    loop {
        let mut some = Vec::new();
        while some.len() < AT_ONCE_MAX
            && let Some(file) = listing.file().await?
        {
            some.push(Place::new(&args.world, &file.path)?);
        }
        if some.is_empty() {
            return Ok(removed);
        }
        removed += some.len() as u64;
        let mut removing = stream::iter(&some)
            .map(|place| async move { remove(client, place).await })
            .buffer_unordered(AT_ONCE_MAX);
        while let Some(gone) = removing.next().await {
            match gone {
                // Somebody else was faster.
                Err(failure) if failure.is(Code::ArtifactNotFound) => {}
                gone => gone?,
            }
        }
        spinner.set(&format!("removing: {removed} so far"));
    }
}

async fn remove(client: &Client, place: &Place) -> Result<()> {
    let request = place.request(client, Method::DELETE)?.timeout(TIMEOUT);
    client.send(request).await.map(drop)
}
