//! Takes the values out of rows that nobody is shown any more.
//!
//! The commit that ends a run marks its streams, and from then on readers leave the values out. Here
//! what is kept takes the place of the rows, stream by stream. The server itself keeps the old
//! versions of rows until its next vacuum, and in its log for as long as that is kept.

use wharf_domain::Progress;
use wharf_ports::StoreError;

use crate::error::from_postgres;
use crate::read::Reader;

/// Streams that are done in one go.
const STREAMS: i64 = 256;

/// Whether nothing is left to do.
pub(crate) async fn shred(reader: Reader) -> Result<bool, StoreError> {
    let mut client = reader.get().await?;
    let marked = "SELECT shard, id FROM streams WHERE withheld ORDER BY id LIMIT $1";
    let marked = client.query(marked, &[&STREAMS]).await?;
    for stream in &marked {
        let (shard, id): (i16, i64) =
            (stream.try_get(0).map_err(from_postgres)?, stream.try_get(1).map_err(from_postgres)?);
        let rows = "SELECT class, first_seq, last_seq, body FROM journal WHERE stream = $1";
        let (mut classes, mut firsts, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
        for row in client.query(rows, &[&id]).await? {
            let class: i16 = row.try_get(0).map_err(from_postgres)?;
            let (first, last): (i64, i64) =
                (row.try_get(1).map_err(from_postgres)?, row.try_get(2).map_err(from_postgres)?);
            let Some(body) = kept(class, last - first + 1, row.try_get(3).map_err(from_postgres)?)
            else {
                continue;
            };
            classes.push(class);
            firsts.push(first);
            bodies.push(body);
        }
        let done = "WITH rewritten AS (
                UPDATE journal AS j SET body = u.body
                FROM unnest($3::smallint[], $4::bigint[], $5::bytea[]) AS u (class, first_seq, body)
                WHERE j.stream = $2 AND j.class = u.class AND j.first_seq = u.first_seq)
            UPDATE streams SET sealed = NULL, withheld = false WHERE shard = $1 AND id = $2";
        client.query(done, &[&shard, &id, &classes, &firsts, &bodies]).await?;
    }
    Ok(i64::try_from(marked.len()).unwrap_or(i64::MAX) < STREAMS)
}

/// What takes the place of a row; what cannot be read stays as it is.
fn kept(class: i16, pieces: i64, body: &[u8]) -> Option<Vec<u8>> {
    if class == 0 {
        let entries = wharf_journal::decode(body).ok()?;
        let kept: Vec<_> = entries.into_iter().map(wharf_domain::Entry::withheld).collect();
        return Some(wharf_journal::encode(&kept));
    }
    let pieces = usize::try_from(pieces).ok()?;
    Some(wharf_journal::encode_progress(&vec![Progress::Withheld; pieces]))
}
