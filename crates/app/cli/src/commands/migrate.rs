//! `wharf migrate`: brings the database of a home to another version.

use std::path::PathBuf;

use clap::Subcommand;
use wharf_server::backup::Watcher;
use wharf_server::migrate::{self, CopyOptions, DatabaseCopied, MigrationStatus};

use crate::amount;
use crate::commands::{Context, Exit, Output, Result, Table};
use crate::plain;
use crate::progress::TransferBar;

/// What `wharf migrate` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf migrate
  wharf migrate up
  wharf migrate copy --to postgres://wharf@db.example.com/wharf --dry-run")]
pub(crate) struct MigrateArgs {
    #[command(subcommand)]
    command: Option<MigrateCommand>,
}

#[derive(Debug, Subcommand)]
enum MigrateCommand {
    /// Migrate the database to the newest version
    #[command(after_help = "Examples:\n  wharf migrate up\n\nThe core must be stopped.")]
    Up,
    /// Migrate the database back to an older version
    #[command(after_help = "Examples:\n  wharf migrate down --to 1\n\nThe core must be stopped.")]
    Down {
        /// The version to go back to
        #[arg(long, value_name = "VERSION")]
        to: u32,
    },
    /// Write the database anew without the room that nothing uses
    #[command(after_help = "\
Examples:
  wharf migrate compact

The core must be stopped. It takes about as long as copying the file, and as much room on the disk.
A database that was made by an older version shrinks by itself only after this.")]
    Compact,
    /// Copy the database into PostgreSQL
    #[command(after_help = "\
Examples:
  wharf migrate copy --to postgres://wharf@db.example.com/wharf --dry-run
  wharf migrate copy --to postgres://wharf@db.example.com/wharf --password-file secrets/postgres

The core must be stopped, and the database must hold nothing of Wharf's. All of it is copied: runs
with their journal, asks, money, files' records, tokens and the audit with its seals. The home's
file stays as it is. A copy that breaks off leaves nothing behind and can be started again.

The password may also be in the address or in WHARF_STORE_PASSWORD. Files of worlds are not copied:
they stay in the home, or in the S3 that [artifacts] names.")]
    Copy(CopyArgs),
    /// Show the version of the database
    #[command(after_help = "Examples:\n  wharf migrate status --json")]
    Status,
}

#[derive(Debug, clap::Args)]
struct CopyArgs {
    /// The address of the empty database
    #[arg(long, value_name = "URL")]
    to: String,
    /// The file with its password
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Only check whether it could be copied, and say how much there is
    #[arg(long)]
    dry_run: bool,
}

/// Does what the subcommand says; shows the version when there is none.
pub(crate) fn run(args: &MigrateArgs, context: &Context) -> Result<Exit> {
    let home = context.home()?;
    if let Some(MigrateCommand::Compact) = args.command {
        let done = migrate::compact(&home)?;
        let sentence = format!(
            "the database has {}; it had {}",
            amount::about(done.after_bytes),
            amount::about(done.before_bytes)
        );
        return context.output.done(&done, &sentence);
    }
    let migrations = match &args.command {
        Some(MigrateCommand::Copy(args)) => return copy(args, context),
        Some(MigrateCommand::Up) => migrate::up(&home)?,
        Some(MigrateCommand::Down { to }) => migrate::down(&home, *to)?,
        Some(MigrateCommand::Status | MigrateCommand::Compact) | None => migrate::status(&home)?,
    };
    print(&migrations, context.output)?;
    Ok(Exit::Done)
}

fn print(migrations: &MigrationStatus, output: Output) -> Result<()> {
    if output.is_json() {
        return output.json(migrations);
    }
    let mut table = Table::new(output, &["VERSION", "NAME", "STATE"]);
    for (steps, state) in [(&migrations.applied, "applied"), (&migrations.pending, "pending")] {
        for step in steps {
            table.row([&step.version.to_string(), step.name, state]);
        }
    }
    output.text(&table.text())?;
    let (current, newest) = (migrations.current, migrations.newest);
    output.note(&if current == newest {
        format!("the database is at version {current}, the newest")
    } else {
        format!("the database is at version {current} of {newest}")
    });
    Ok(())
}

fn copy(args: &CopyArgs, context: &Context) -> Result<Exit> {
    let (output, home) = (context.output, context.home()?);
    let CopyArgs { to, password_file, dry_run } = args;
    let options =
        CopyOptions { to: to.clone(), password_file: password_file.clone(), dry_run: *dry_run };
    let mut shown = CopyProgress { output, meter: None };
    let copied = migrate::copy(&home, &options, &mut shown)?;
    drop(shown);
    if output.is_json() {
        output.json(&copied)?;
        return Ok(Exit::Done);
    }
    output.line(&sentence(&copied))?;
    if !copied.dry_run {
        output.note(
            "the home still uses its file: set url in [store] of wharf.toml to use the copy, and \
             remove path if it is set",
        );
    }
    if copied.objects_stay {
        output.note("files of worlds stay in the home's folder objects, which goes on being used");
    }
    Ok(Exit::Done)
}

fn sentence(copied: &DatabaseCopied) -> String {
    let DatabaseCopied { streams, runs, records, files, accounts, .. } = copied;
    let to = plain::line(&copied.to);
    let what = format!(
        "{streams} streams ({runs} runs), {records} records of the audit, {files} of files, \
         {accounts} accounts"
    );
    match copied.dry_run {
        true => format!("{to} is empty and can be filled: {what}"),
        false => format!("copied to {to} and read again: {what}"),
    }
}

/// Shows on a terminal what passes.
struct CopyProgress {
    output: Output,
    meter: Option<TransferBar>,
}

impl Watcher for CopyProgress {
    fn begin(&mut self, what: &str, bytes: Option<u64>) {
        self.meter = Some(TransferBar::new(self.output, what, bytes));
    }

    fn add(&mut self, bytes: u64) {
        if let Some(meter) = &self.meter {
            meter.add(bytes);
        }
    }
}
