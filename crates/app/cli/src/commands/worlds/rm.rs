//! `wharf worlds rm`.

use futures::{StreamExt as _, stream};
use wharf_client::{Client, FileFilter, RemoteFile, prefix};
use wharf_vocab::Code;

use crate::commands::{CliError, Context, Exit, Output, Result};
use crate::progress::Spinner;
use crate::{amount, plain};

/// How many files are removed at the same time.
const AT_ONCE_MAX: usize = 8;

/// Paths are written in blocks of about this size.
const BLOCK_BYTES: usize = 32 * 1024;

/// What `wharf worlds rm` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds rm lab /out/a.png /out/b.png
  wharf worlds rm lab /out/ --recursive
  wharf worlds rm lab /@r1/ -r --yes               local files of the run r1

Files that cannot be removed are listed, and the rest is removed. A file that an open run uses is
not removed. Lineage is kept.")]
pub(crate) struct WorldsRmArgs {
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
enum RemovalTarget {
    File(RemoteFile),
    /// All paths that begin so; all of the world if there is nothing.
    Folder(Option<String>),
}

/// Removes files, once that is confirmed.
pub(super) async fn run(args: &WorldsRmArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let named: Vec<_> = args.paths.iter().map(|path| named(args, path)).collect::<Result<_>>()?;
    if !args.yes {
        if !output.can_ask() {
            return Err(CliError::usage("removing files cannot be undone; confirm it with --yes"));
        }
        let what = described(args, &client, &named).await?;
        if let Some(what) = what
            && !output.confirm(&format!("Remove {what} permanently?"))
        {
            return RemovalReport::new(output, &args.world).end();
        }
    }
    let several = args.paths.len() > 1;
    let mut removed = RemovalReport::new(output, &args.world);
    for (path, named) in args.paths.iter().zip(&named) {
        let before = removed.count();
        let done = match named {
            RemovalTarget::File(file) => remove_one(args, &client, file, &mut removed).await,
            RemovalTarget::Folder(folder) => {
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
fn told(path: &str, named: &RemovalTarget, count: u64) -> String {
    let path = plain::line(path);
    match (named, count) {
        (RemovalTarget::File(_), _) => format!("removed {path}"),
        (RemovalTarget::Folder(_), 1) => format!("removed 1 file below {path}"),
        (RemovalTarget::Folder(_), count) => format!("removed {count} files below {path}"),
    }
}

fn named(args: &WorldsRmArgs, path: &str) -> Result<RemovalTarget> {
    if !path.ends_with('/') {
        return Ok(RemovalTarget::File(RemoteFile::new(&args.world, path)?));
    }
    if !args.recursive {
        let folder = plain::line(path);
        return Err(CliError::usage(format!("{folder} is a folder; remove all of it with -r")));
    }
    Ok(RemovalTarget::Folder(prefix(Some(path))?))
}

async fn remove_one(
    args: &WorldsRmArgs,
    client: &Client,
    file: &RemoteFile,
    removed: &mut RemovalReport,
) -> Result<()> {
    client.worlds().remove_file(file).await.map_err(|error| hinted(args, error.into()))?;
    removed.file(&file.path)
}

/// Says how folders are named to somebody who meant one.
fn hinted(args: &WorldsRmArgs, failure: CliError) -> CliError {
    match failure {
        CliError::Reported { error, exit }
            if args.recursive && error.is(Code::ArtifactNotFound) =>
        {
            let error = error.with_hint("End the path with / to name a folder.");
            CliError::Reported { error, exit }
        }
        failure => failure,
    }
}

/// What is about to be removed, in words; nothing if there is none of it.
async fn described(
    args: &WorldsRmArgs,
    client: &Client,
    named: &[RemovalTarget],
) -> Result<Option<String>> {
    if let ([RemovalTarget::File(_)], [path]) = (named, args.paths.as_slice()) {
        return Ok(Some(plain::line(path)));
    }
    let (mut count, mut bytes, mut folders): (u64, u64, u64) = (0, 0, 0);
    for named in named {
        let RemovalTarget::Folder(folder) = named else {
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
fn filter(args: &WorldsRmArgs, folder: Option<&str>) -> FileFilter {
    let prefix = folder.map(str::to_owned);
    FileFilter { world: args.world.clone(), prefix, local: false, recursive: true }
}

async fn remove_all(
    args: &WorldsRmArgs,
    client: &Client,
    folder: Option<&str>,
    removed: &mut RemovalReport,
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
            Err(CliError::new(Code::ArtifactNotFound, message))
        }
        _ => Ok(()),
    }
}

/// Tells what was removed so far, and what could not be: path by path, so that a long list needs
/// no memory.
struct RemovalReport {
    output: Output,
    spinner: Spinner,
    /// The beginning of the JSON, as far as it is not written yet.
    text: String,
    count: u64,
    failed: u64,
}

impl RemovalReport {
    /// Nothing is removed or written yet.
    fn new(output: Output, world: &str) -> Self {
        let world = serde_json::Value::from(world);
        let text = format!("{{\"world\":{world},\"removed\":[");
        Self { output, spinner: Spinner::new(output, "removing"), text, count: 0, failed: 0 }
    }

    /// This file is gone.
    fn file(&mut self, path: &str) -> Result<()> {
        self.count += 1;
        self.spinner.set(&format!("removing: {} so far", self.count));
        if !self.output.is_json() {
            return Ok(());
        }
        if self.count > 1 {
            self.text.push(',');
        }
        self.text.push_str(&plain::json(&serde_json::Value::from(path).to_string()));
        if self.text.len() < BLOCK_BYTES {
            return Ok(());
        }
        self.output.text(&std::mem::take(&mut self.text))
    }

    /// Says something while others are still being removed.
    fn note(&self, text: &str) {
        if !self.output.is_json() {
            self.spinner.aside(|| self.output.note(text));
        }
    }

    /// Something could not be removed.
    fn failed(&mut self, failure: CliError) -> Result<()> {
        if failure == CliError::ReaderGone {
            return Err(failure);
        }
        self.spinner.aside(|| self.output.failure(&failure));
        self.failed += 1;
        Ok(())
    }

    /// How many files are gone.
    fn count(&self) -> u64 {
        self.count
    }

    /// Nothing more will be removed, for this reason. What was is told all the same.
    fn broken_off(self, failure: CliError) -> Result<Exit> {
        if self.count + self.failed > 0 && failure != CliError::ReaderGone {
            self.end()?;
        }
        Err(failure)
    }

    /// All is removed that could be.
    fn end(mut self) -> Result<Exit> {
        drop(self.spinner);
        if self.output.is_json() {
            self.text.push_str(&format!("],\"failed\":{}}}\n", self.failed));
            self.output.text(&self.text)?;
        } else {
            self.output.note(&sentence(self.count, self.failed));
        }
        Ok(if self.failed == 0 { Exit::Done } else { Exit::Failed })
    }
}

fn sentence(count: u64, failed: u64) -> String {
    let removed = match count {
        0 => "nothing removed".to_owned(),
        1 => "removed 1 file".to_owned(),
        many => format!("removed {many} files"),
    };
    match failed {
        0 => removed,
        failed => format!("{removed}; {failed} could not be removed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_and_what_did_not_is_told_in_the_end() {
        assert_eq!(sentence(0, 0), "nothing removed");
        assert_eq!(sentence(1, 0), "removed 1 file");
        assert_eq!(sentence(2, 1), "removed 2 files; 1 could not be removed");
    }
}
