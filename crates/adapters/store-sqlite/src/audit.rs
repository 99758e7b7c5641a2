//! Looking through the audit of a store, also while a core is using it.

use std::path::Path;

use rusqlite::Row;
use wharf_journal::audit::{self, Anchors, AuditKey, ChainReport, Verifier};
use wharf_ports::StoreError;
use wharf_vocab::{ShardId, Timestamp};

use crate::error::{corrupt, from_sqlite};
use crate::{connect, read};

/// Checks every record of the audit against its seal, the signed heads and the anchors, and says
/// what was done to it. The database is only read.
pub fn verify_audit(
    path: &Path,
    key: &AuditKey,
    anchors: &Anchors,
) -> Result<ChainReport, StoreError> {
    let mut conn = connect::onlooker(path)?;
    // One view of heads and records, or a running core would move one of them in between.
    let view = conn.transaction().map_err(from_sqlite)?;
    let mut verifier = Verifier::new(key, &read::heads(&view)?, anchors);
    let mut select = view
        .prepare("SELECT id, shard, n, at, mac, record FROM audit ORDER BY id")
        .map_err(from_sqlite)?;
    let mut rows = select.query(()).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        verifier.push(&as_row(row).map_err(from_sqlite)?.ok_or_else(|| {
            corrupt("a record of the audit has another shape than any Wharf wrote")
        })?);
    }
    Ok(verifier.finish())
}

fn as_row<'a>(row: &'a Row<'_>) -> rusqlite::Result<Option<audit::AuditRow<'a>>> {
    let mac = row.get_ref(4)?.as_blob().ok().and_then(|mac| mac.try_into().ok());
    let record = row.get_ref(5)?.as_bytes().ok();
    let shard: i64 = row.get(1)?;
    let (Some(mac), Some(record_json), Ok(shard)) = (mac, record, u8::try_from(shard)) else {
        return Ok(None);
    };
    Ok(Some(audit::AuditRow {
        shard: ShardId(shard),
        n: row.get::<_, i64>(2)?.cast_unsigned(),
        at: Timestamp(row.get::<_, i64>(3)?.cast_unsigned()),
        record_json,
        mac,
    }))
}
