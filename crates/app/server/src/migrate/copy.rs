//! Moves what a home's database file holds into a database of a PostgreSQL server.
//!
//! The file is only read and stays as it is. In the server all of it is one transaction: a copy
//! that breaks off leaves nothing, and can be begun again.

use std::path::{Path, PathBuf};

use serde::Serialize;
use wharf_ports::copy::{CopyPart, StoredParts as _};
use wharf_store_postgres::{PostgresImport, PostgresOptions};
use wharf_store_sqlite::{ExportSize, SqliteExport};
use wharf_vocab::{Code, Fault};

use super::alone;
use crate::backup::Watcher;
use crate::database::{Database, wait};
use crate::settings::{Settings, StoreTarget};
use crate::{Home, anchors, fault, secrets};

/// Where a database is to be copied to.
#[derive(Debug, Default)]
pub struct CopyOptions {
    /// The address of the database.
    pub to: String,
    /// The file with its password, if that stands neither in the address nor in the environment.
    pub password_file: Option<PathBuf>,
    /// Whether to look only.
    pub dry_run: bool,
}

/// What was copied, or would be.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct DatabaseCopied {
    /// The database, without anything secret.
    pub to: String,
    /// Streams: runs, asks, worlds, providers, grants and seats.
    pub streams: u64,
    /// Streams that are runs.
    pub runs: u64,
    /// Records of the audit.
    pub records: u64,
    /// Records of who wrote and read files.
    pub files: u64,
    /// Accounts.
    pub accounts: u64,
    /// Whether files of worlds stay in the folder `objects` of the home; otherwise they are in an
    /// S3 already.
    pub objects_stay: bool,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// Copies the database of a home that no core uses into an empty database of a server.
pub fn copy(
    home: &Home,
    options: &CopyOptions,
    watcher: &mut (dyn Watcher + Send),
) -> Result<DatabaseCopied, Fault> {
    let to = StoreTarget::read(home, &options.to, options.password_file.as_deref())?;
    let settings = Settings::load(home)?;
    let Database::Sqlite(path) = settings.store else {
        let message = "The home keeps its database in PostgreSQL already. To copy its file, take \
                       url out of [store] and WHARF_STORE_URL out of the environment first.";
        return Err(Fault::new(Code::RequestInvalid, message));
    };
    if !path.exists() {
        let message = format!("There is no database in {} yet.", home.path().display());
        return Err(Fault::new(Code::StoreUnavailable, message));
    }
    let _alone = alone(home)?;
    let of_store = |error| fault::of_store(&error);
    let mut from = SqliteExport::open(&path).map_err(of_store)?;
    let size = from.size().map_err(of_store)?;
    let (_, objects_stay) = Settings::places(home)?;
    let copied = summary(&to, size, objects_stay, options.dry_run);
    if options.dry_run {
        wait(PostgresImport::check(&to)).map_err(of_store)?;
        return Ok(copied);
    }
    watcher.begin("copying the database", None);
    wait(fill(&mut from, &to, watcher)).map_err(of_store)?;
    check(home, &path, &to)?;
    Ok(copied)
}

fn summary(
    to: &PostgresOptions,
    size: ExportSize,
    objects_stay: bool,
    dry_run: bool,
) -> DatabaseCopied {
    let ExportSize { streams, runs, records, files, accounts } = size;
    let to = to.place();
    DatabaseCopied { to, streams, runs, records, files, accounts, objects_stay, dry_run }
}

async fn fill(
    from: &mut SqliteExport,
    to: &PostgresOptions,
    watcher: &mut (dyn Watcher + Send),
) -> Result<(), wharf_ports::StoreError> {
    let mut import = PostgresImport::begin(to).await?;
    while let Some(part) = from.next_part()? {
        let bytes = weight(&part);
        import.add(part).await?;
        watcher.add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
    import.commit().await
}

/// About how many bytes pass with a part.
fn weight(part: &CopyPart) -> usize {
    match part {
        CopyPart::Streams(streams) => {
            streams.iter().flat_map(|stream| &stream.rows).map(|row| row.body.len()).sum()
        }
        CopyPart::Records(records) => records.iter().map(|record| record.json.len()).sum(),
        _ => 0,
    }
}

/// Reads the copy and compares what is said of its audit with what is said of the original's.
fn check(home: &Home, from: &Path, to: &PostgresOptions) -> Result<(), Fault> {
    let of_store = |error| fault::of_store(&error);
    let copy = Database::Postgres(Box::new(to.clone()));
    let mut findings = copy.integrity().map_err(of_store)?;
    if let Some(key) = secrets::existing_audit_key(home)? {
        let (anchors, _) = anchors::kept(home);
        let original = Database::Sqlite(from.to_owned());
        let before = original.verify_audit(&key, &anchors).map_err(of_store)?;
        let after = copy.verify_audit(&key, &anchors).map_err(of_store)?;
        let told = |report: &wharf_journal::audit::ChainReport| {
            let all = report.findings.iter().map(ToString::to_string);
            (report.records, report.chains, all.collect::<Vec<_>>())
        };
        if told(&before) != told(&after) {
            findings.push("its audit is not the original's".to_owned());
        }
    }
    match findings.first() {
        None => Ok(()),
        Some(first) => {
            let message = format!(
                "The copy in {} is not sound: {first} Remove its schema wharf before another try.",
                to.place()
            );
            Err(Fault::new(Code::StoreCorrupt, message))
        }
    }
}
