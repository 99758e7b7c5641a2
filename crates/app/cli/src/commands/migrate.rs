//! `wharf migrate`: brings the database of a home to another version.

use clap::Subcommand;
use wharf_server::migrate::{self, MigrationStatus};

use crate::amount;
use crate::commands::{Context, Exit, Output, Result, Table};

/// What `wharf migrate` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf migrate
  wharf migrate up")]
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
    /// Show the version of the database
    #[command(after_help = "Examples:\n  wharf migrate status --json")]
    Status,
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
    let migrations = match args.command {
        Some(MigrateCommand::Up) => migrate::up(&home)?,
        Some(MigrateCommand::Down { to }) => migrate::down(&home, to)?,
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
