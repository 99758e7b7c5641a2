//! `wharf backup`: copies of a home that can be restored, and `wharf restore`: a home from one.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use wharf_server::backup::{self, BackupSummary, Key, RestoreOptions, TakeOptions};

use crate::commands::{CliError, Context, Exit, Output, Result};
use crate::progress::TransferBar;
use crate::{amount, moment, plain};

/// What `wharf backup` takes.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  wharf backup /mnt/backup/wharf
  wharf backup /mnt/backup/wharf --incremental
  wharf backup key ~/wharf-backup.key
  wharf backup /mnt/backup/wharf --key-file ~/wharf-backup.key
  wharf backup verify /mnt/backup/wharf

The backup holds everything that a home needs: database, files of worlds, keys, secrets, settings.
The core may be running; the backup is the state of one moment, and is complete only after it was
read back. --incremental keeps the last complete one until then, and copies only what is new.")]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    #[command(flatten)]
    take: BackupTakeArgs,
}

#[derive(Debug, clap::Args)]
#[group(skip)]
struct BackupTakeArgs {
    /// The folder of the backup; it must be empty or absent
    #[arg(required = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Update an existing backup, or continue an interrupted one
    #[arg(long)]
    incremental: bool,
    /// Encrypt it with the key in this file (see: wharf backup key)
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// Read a whole backup and say whether it can be restored
    Verify(VerifyArgs),
    /// Create a key for encrypted backups
    Key(KeyArgs),
}

/// Takes a backup, or does what the subcommand says.
pub(crate) fn run(args: &BackupArgs, context: &Context) -> Result<Exit> {
    match &args.command {
        Some(BackupCommand::Verify(args)) => verify(args, context),
        Some(BackupCommand::Key(args)) => make_key(args, context),
        None => take(&args.take, context),
    }
}

fn take(args: &BackupTakeArgs, context: &Context) -> Result<Exit> {
    let Some(dir) = &args.dir else { return Err(CliError::usage("say where the backup goes")) };
    let (output, home) = (context.output, context.home()?);
    let options =
        TakeOptions { incremental: args.incremental, key: key_of(args.key_file.as_deref())? };
    let mut shown = BackupProgress { output, meter: None };
    let taken = backup::take(&home, dir, options, &mut shown)?;
    drop(shown);
    // A file that is not there is no reason to have no backup, but one to look.
    let exit = if taken.missing.is_empty() { Exit::Done } else { Exit::Failed };
    if output.is_json() {
        output.json(&taken)?;
        return Ok(exit);
    }
    output.line(&sentence(&taken))?;
    warn_of_missing(&taken.missing, output);
    Ok(exit)
}

fn sentence(taken: &BackupSummary) -> String {
    let (dir, all) = (plain::line(&taken.dir.display().to_string()), amount::about(taken.bytes));
    let (objects, copied) = (taken.objects, amount::about(taken.copied_bytes));
    if taken.by_reference {
        return format!(
            "backed up to {dir} and read again; {objects} files of worlds ({all}) stay in the S3 \
             and are listed by key and hash"
        );
    }
    format!(
        "backed up to {dir} and read again: {objects} files of worlds ({all}), {copied} were copied"
    )
}

/// Names files that are in the database and nowhere else.
fn warn_of_missing(missing: &[String], output: Output) {
    let Some(first) = missing.first() else { return };
    let (count, first) = (missing.len(), plain::line(first));
    let attention = output.err_paint().attention("warning:");
    output.note(&format!(
        "{attention} {count} files that the database knows were not in the store, the first is \
         {first}; see: wharf doctor"
    ));
}

/// The key that was named.
fn key_of(path: Option<&Path>) -> Result<Option<Key>> {
    Ok(path.map(Key::read).transpose()?)
}

/// Shows on a terminal what passes.
struct BackupProgress {
    output: Output,
    meter: Option<TransferBar>,
}

impl backup::Watcher for BackupProgress {
    fn begin(&mut self, what: &str, bytes: Option<u64>) {
        // The one before it makes room first.
        self.meter = None;
        self.meter = Some(TransferBar::new(self.output, what, bytes));
    }

    fn add(&mut self, bytes: u64) {
        if let Some(meter) = &self.meter {
            meter.add(bytes);
        }
    }
}

/// What `wharf backup key` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf backup key ~/wharf-backup.key

Keep copies of it away from the backups: without it, an encrypted backup cannot be read.")]
pub(crate) struct KeyArgs {
    /// The file to create; it must not exist
    file: PathBuf,
}

/// Makes a key.
fn make_key(args: &KeyArgs, context: &Context) -> Result<Exit> {
    Key::make(&args.file)?;
    let output = context.output;
    if output.is_json() {
        output.json(&serde_json::json!({"key_file": args.file}))?;
    } else {
        let file = plain::line(&args.file.display().to_string());
        output.line(&format!("created {file}; keep it away from the backups"))?;
    }
    Ok(Exit::Done)
}

/// What `wharf backup verify` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf backup verify /mnt/backup/wharf
  wharf backup verify /mnt/backup/wharf --key-file ~/wharf-backup.key --json

Reads every byte and compares it with its hash. Needs no home. Exit code 1 if anything is wrong.")]
struct VerifyArgs {
    /// The folder of the backup
    dir: PathBuf,
    /// The key that it was encrypted with
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Reads the backup and says what was found.
fn verify(args: &VerifyArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let mut shown = BackupProgress { output, meter: None };
    let found = backup::verify(&args.dir, key_of(args.key_file.as_deref())?, &mut shown)?;
    drop(shown);
    let exit = if found.findings.is_empty() { Exit::Done } else { Exit::Failed };
    if output.is_json() {
        output.json(&found)?;
        return Ok(exit);
    }
    let paint = output.out_paint();
    for finding in &found.findings {
        output.line(&format!("{} {}", paint.bad("finding:"), plain::line(finding)))?;
    }
    if exit == Exit::Failed {
        let verdict = paint.bad("the backup is damaged");
        output.line(&format!("{verdict}: {} findings", found.findings.len()))?;
        return Ok(exit);
    }
    let (objects, bytes, files) = (found.objects, amount::about(found.bytes), found.files);
    let kept = if found.by_reference { ", kept in the S3 and not read" } else { "" };
    let encrypted = if found.encrypted { ", encrypted" } else { "" };
    output.line(&format!(
        "{}: taken {}{encrypted}; {objects} files of worlds ({bytes}{kept}), {files} others",
        paint.good("the backup is whole"),
        moment::clock(found.taken_at),
    ))?;
    warn_of_missing(&found.missing, output);
    Ok(exit)
}

/// What `wharf restore` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf restore /mnt/backup/wharf
  wharf restore /mnt/backup/wharf --home /srv/wharf
  wharf restore /mnt/backup/wharf --replace --key-file ~/wharf-backup.key

The home must be empty or absent. --replace moves an existing one aside, to a name that ends in
.before-TIME; nothing is removed. A home that a core uses is never touched. Every byte is verified;
a home that was not restored completely cannot be started.")]
pub(crate) struct RestoreArgs {
    /// The folder of the backup
    dir: PathBuf,
    /// Move an existing home aside
    #[arg(long)]
    replace: bool,
    /// The key that the backup was encrypted with
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Restores the backup.
pub(crate) fn restore(args: &RestoreArgs, context: &Context) -> Result<Exit> {
    let (output, home) = (context.output, context.home()?);
    let mut shown = BackupProgress { output, meter: None };
    let options = RestoreOptions { replace: args.replace, key: key_of(args.key_file.as_deref())? };
    let restored = backup::restore(&args.dir, &home, options, &mut shown)?;
    drop(shown);
    if output.is_json() {
        output.json(&restored)?;
        return Ok(Exit::Done);
    }
    let place = plain::line(&restored.home.display().to_string());
    let (objects, bytes) = (restored.objects, amount::about(restored.bytes));
    let kept = if restored.by_reference { ", still in the S3" } else { "" };
    output.line(&format!(
        "restored {place} as it was at {}: {objects} files of worlds ({bytes}{kept})",
        moment::clock(restored.taken_at)
    ))?;
    if let Some(aside) = &restored.aside {
        output.note(&format!(
            "the previous home is now {}",
            plain::line(&aside.display().to_string())
        ));
    }
    warn_of_missing(&restored.missing, output);
    Ok(Exit::Done)
}
