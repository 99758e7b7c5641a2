//! Opening the file: who may see it, and how SQLite is set.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use wharf_ports::{StoreError, StoreErrorKind};

use crate::error::{corrupt, from_sqlite, unavailable};
use crate::{migrations, room};

/// Says "Whrf" to whoever looks at the file's header.
pub(crate) const APPLICATION_ID: i32 = 0x5768_7266;

/// How long a writer waits for another process that writes the same file.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// Statements a connection keeps prepared.
const STATEMENTS: usize = 64;

/// Opens the file for writing, makes it if it is not there, and brings it up to the newest
/// schema. A file of a newer version is left alone.
pub(crate) fn writer(path: &Path) -> Result<Connection, StoreError> {
    make_private(path)?;
    let mut conn = exclusive(path)?;
    room::keep_movable(&conn).map_err(from_sqlite)?;
    set_up_log(&conn, path)?;
    migrations::bring_up(&mut conn)?;
    conn.execute_batch(
        // The cache holds the pages that many open runs are written to. Memory is not mapped,
        // because a disk that fails under a mapping kills the process instead of giving an
        // error. The log is moved into the file often, since a commit waits while it is moved:
        // a longer log does not raise the rate and stretches the slowest commits.
        "PRAGMA cache_size = -16384;
         PRAGMA wal_autocheckpoint = 1000;
         PRAGMA journal_size_limit = 67108864;
         PRAGMA temp_store = MEMORY;",
    )
    .map_err(from_sqlite)?;
    Ok(conn)
}

/// Opens the file of a running or closed store for reading only.
pub(crate) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let conn = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    refuse_foreign_or_newer(&conn, path)?;
    Ok(conn)
}

/// The same, also where nothing can be written beside the file, as on a disk that is mounted for
/// reading. SQLite wants to make an index of the log there; without a log it needs none.
pub(crate) fn onlooker(path: &Path) -> Result<Connection, StoreError> {
    let refused = match reader(path) {
        Err(refused) if refused.kind == StoreErrorKind::Unavailable => refused,
        done => return done,
    };
    if fs::metadata(log_of(path)).is_ok_and(|log| log.len() > 0) {
        return Err(refused);
    }
    let access = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let conn = open(&immutable(path), access).map_err(|_| refused)?;
    refuse_foreign_or_newer(&conn, path)?;
    Ok(conn)
}

/// Where what was committed lies until it is moved into the file.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

/// The file as an address that says that nobody changes it.
fn immutable(path: &Path) -> PathBuf {
    let mut address = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(*byte),
            byte if byte.is_ascii_alphanumeric() => address.push(*byte),
            byte => address.extend(format!("%{byte:02x}").into_bytes()),
        }
    }
    address.extend(b"?immutable=1");
    PathBuf::from(OsString::from_vec(address))
}

/// Opens an existing file for changes of the schema.
pub(crate) fn exclusive(path: &Path) -> Result<Connection, StoreError> {
    // Looked at without writing first, so that a newer file stays as it is to the last byte.
    reader(path)?;
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Commits go to a log that is flushed with each of them.
pub(crate) fn set_up_log(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let mode: String =
        conn.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0)).map_err(from_sqlite)?;
    if mode != "wal" {
        let message = format!("the file system of {} does not take a log", path.display());
        return Err(unavailable(message));
    }
    conn.execute_batch("PRAGMA synchronous = FULL").map_err(from_sqlite)
}

fn open(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|error| {
        let inner = from_sqlite(error);
        StoreError {
            message: format!("cannot open {}: {}", path.display(), inner.message),
            ..inner
        }
    })?;
    conn.busy_timeout(BUSY).map_err(from_sqlite)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

fn refuse_foreign_or_newer(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let version = migrations::version(conn)?;
    let newest = migrations::NEWEST;
    if version > newest {
        return Err(StoreError {
            kind: StoreErrorKind::Newer,
            message: format!(
                "the database {} has schema {version} and this version knows {newest}; start the \
                 newer version",
                path.display()
            ),
        });
    }
    let application: i32 =
        conn.query_row("PRAGMA application_id", (), |row| row.get(0)).map_err(from_sqlite)?;
    let tables: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))
        .map_err(from_sqlite)?;
    if application != APPLICATION_ID && tables > 0 {
        return Err(corrupt(format!("{} is not a database of Wharf", path.display())));
    }
    Ok(())
}

/// Makes folder and file for their owner's eyes only. SQLite gives the files it adds beside the
/// database the same mode.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let failed = |what: &str, error: &std::io::Error| file_trouble(what, path, error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed("make the folder of", &error))?;
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| failed("write", &error))?;
    let mode = fs::metadata(path).map_err(|error| failed("look at", &error))?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o600))
            .map_err(|error| failed("protect", &error))?;
    }
    Ok(())
}

/// Trouble with a file of the store.
pub(crate) fn file_trouble(what: &str, path: &Path, error: &std::io::Error) -> StoreError {
    let kind = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StoreErrorKind::Full,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError { kind, message: format!("cannot {what} {}: {error}", path.display()) }
}
