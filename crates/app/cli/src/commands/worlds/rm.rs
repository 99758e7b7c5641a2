//! `wharf worlds rm`.

use futures::{StreamExt as _, stream};
use wharf_client::{Client, FileFilter, RemoteFile, prefix};
use wharf_vocab::Code;

use super::removed::Removed;
use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::{amount, plain};

/// How many files are removed at the same time.
const AT_ONCE_MAX: usize = 8;

/// What `wharf worlds rm` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds rm lab /out/a.png /out/b.png
  wharf worlds rm lab /out/ --recursive
  wharf worlds rm lab /@r1/ -r --yes               local files of the run r1

Files that cannot be removed are listed, and the rest is removed. A file that an open run uses is
not removed. Lineage is kept.")]
pub(crate) struct Args {
    /// The world's id
    world: String,
    /// Files, or folders ending with /
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Also remove folders with everything in them
    #[arg(short, long)]
    recursive: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// What was named.
enum Named {
    File(RemoteFile),
    /// All paths that begin so; all of the world if there is nothing.
    Folder(Option<String>),
}

/// Removes files, once that is confirmed.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let named: Vec<_> = args.paths.iter().map(|path| named(args, path)).collect::<Result<_>>()?;
    if !args.yes {
        if !output.can_ask() {
            return Err(Failure::usage("removing files cannot be undone; confirm it with --yes"));
        }
        let what = described(args, &client, &named).await?;
        if let Some(what) = what
            && !output.confirm(&format!("Remove {what} permanently?"))
        {
            return Removed::new(output, &args.world).end();
        }
    }
    let several = args.paths.len() > 1;
    let mut removed = Removed::new(output, &args.world);
    for (path, named) in args.paths.iter().zip(&named) {
        let before = removed.count();
        let done = match named {
            Named::File(file) => remove_one(args, &client, file, &mut removed).await,
            Named::Folder(folder) => {
                remove_all(args, &client, folder.as_deref(), &mut removed).await
            }
        };
        match done {
            Ok(()) if several => removed.note(&told(path, named, removed.count() - before)),
            Ok(()) => {}
            // What is wrong with one path does not keep the others from being removed.
            Err(failure) if several && !failure.is_outage() => removed.failed(failure)?,
            Err(failure) => return removed.broken_off(failure),
        }
    }
    removed.end()
}

/// What became of one of several paths.
fn told(path: &str, named: &Named, count: u64) -> String {
    let path = plain::line(path);
    match (named, count) {
        (Named::File(_), _) => format!("removed {path}"),
        (Named::Folder(_), 1) => format!("removed 1 file below {path}"),
        (Named::Folder(_), count) => format!("removed {count} files below {path}"),
    }
}

fn named(args: &Args, path: &str) -> Result<Named> {
    if !path.ends_with('/') {
        return Ok(Named::File(RemoteFile::new(&args.world, path)?));
    }
    if !args.recursive {
        let folder = plain::line(path);
        return Err(Failure::usage(format!("{folder} is a folder; remove all of it with -r")));
    }
    Ok(Named::Folder(prefix(Some(path))?))
}

async fn remove_one(
    args: &Args,
    client: &Client,
    file: &RemoteFile,
    removed: &mut Removed,
) -> Result<()> {
    client.worlds().remove_file(file).await.map_err(|error| hinted(args, error.into()))?;
    removed.file(&file.path)
}

/// Says how folders are named to somebody who meant one.
fn hinted(args: &Args, failure: Failure) -> Failure {
    match failure {
        Failure::Reported { error, exit } if args.recursive && error.is(Code::ArtifactNotFound) => {
            let error = error.with_hint("End the path with / to name a folder.");
            Failure::Reported { error, exit }
        }
        failure => failure,
    }
}

/// What is about to be removed, in words; nothing if there is none of it.
async fn described(args: &Args, client: &Client, named: &[Named]) -> Result<Option<String>> {
    if let ([Named::File(_)], [path]) = (named, args.paths.as_slice()) {
        return Ok(Some(plain::line(path)));
    }
    let (mut count, mut bytes, mut folders): (u64, u64, u64) = (0, 0, 0);
    for named in named {
        let Named::Folder(folder) = named else {
            count += 1;
            continue;
        };
        folders += 1;
        let mut listing = client.worlds().files(filter(args, folder.as_deref()));
        while let Some(file) = listing.file().await? {
            count += 1;
            bytes = bytes.saturating_add(file.bytes);
        }
    }
    let s = if count == 1 { "" } else { "s" };
    Ok(match (count, folders) {
        (0, _) => None,
        (_, 0) => Some(format!("{count} file{s}")),
        _ => Some(format!("{count} file{s} (those in folders have {})", amount::about(bytes))),
    })
}

/// Which files lie in a folder. The whole world does not mean local files of runs.
fn filter(args: &Args, folder: Option<&str>) -> FileFilter {
    let prefix = folder.map(str::to_owned);
    FileFilter { world: args.world.clone(), prefix, local: false, recursive: true }
}

async fn remove_all(
    args: &Args,
    client: &Client,
    folder: Option<&str>,
    removed: &mut Removed,
) -> Result<()> {
    let mut listing = client.worlds().files(filter(args, folder));
    let mut found = false;
    loop {
        let mut some = Vec::new();
        while some.len() < AT_ONCE_MAX
            && let Some(file) = listing.file().await?
        {
            some.push(RemoteFile::new(&args.world, &file.path)?);
        }
        if some.is_empty() {
            break;
        }
        found = true;
        let mut removing = stream::iter(&some)
            .map(|file| async move { (file, client.worlds().remove_file(file).await) })
            .buffer_unordered(AT_ONCE_MAX);
        while let Some((file, gone)) = removing.next().await {
            match gone {
                Ok(()) => removed.file(&file.path)?,
                // Somebody else was faster.
                Err(failure) if failure.is(Code::ArtifactNotFound) => {}
                Err(failure) if failure.is(Code::ArtifactInUse) => {
                    removed.failed(failure.into())?
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
    match folder {
        // The whole world is there also when it is empty.
        Some(folder) if !found => {
            let world = plain::line(&args.world);
            let message = format!("There is nothing below {folder} in the world {world}.");
            Err(Failure::new(Code::ArtifactNotFound, message))
        }
        _ => Ok(()),
    }
}
