//! Runs whose values are not kept: their rows are sealed while they are open, and when they end
//! what is kept takes the rows' place and the key is overwritten.

use rusqlite::{OptionalExtension as _, params};
use wharf_domain::Progress;
use wharf_ports::plan::{Class, Plan, Prepared};
use wharf_vocab::RunKey;

use super::Writer;
use crate::number::{first_row, first_seq, last_row};
use crate::seal::{self, KEY_BYTES, RowKey};

/// What becomes of the rows of a batch.
pub(super) enum Seal {
    /// They stand as they are.
    None,
    /// They are sealed.
    With(RowKey),
    /// They stand as they are, and what was sealed before is there no more.
    Ends { run: RunKey, key: i64 },
}

impl Seal {
    /// The key that new streams of the batch are sealed with.
    pub(super) fn key(&self) -> Option<&RowKey> {
        match self {
            Self::With(key) => Some(key),
            Self::None | Self::Ends { .. } => None,
        }
    }
}

impl Writer {
    /// What is to become of the rows of a batch, which is about one run at most.
    pub(super) fn seal_of(&mut self, batch: &Prepared, plan: &Plan<'_>) -> rusqlite::Result<Seal> {
        let Some(run) = batch.appends.iter().find_map(|append| append.sealed_with.as_ref()) else {
            return Ok(Seal::None);
        };
        let stream = run.stream();
        let own = plan.targets.iter().find(|target| target.last.stream == stream);
        let known = match own {
            Some(own) if own.is_new => None,
            _ => self.key_of(run)?,
        };
        match (own, known) {
            (Some(own), known) if !own.last.open => {
                Ok(known.map_or(Seal::None, |key| Seal::Ends { run: run.clone(), key: key.id }))
            }
            (_, Some(key)) => Ok(Seal::With(key)),
            (Some(own), None) if own.is_new => {
                let key = self.make_key()?;
                self.known.keys.insert(run.clone(), key.clone());
                Ok(Seal::With(key))
            }
            (_, None) => Ok(Seal::None),
        }
    }

    fn key_of(&mut self, run: &RunKey) -> rusqlite::Result<Option<RowKey>> {
        if let Some(key) = self.known.keys.get(run) {
            return Ok(Some(key.clone()));
        }
        let stream = run.stream();
        let id: Option<Option<i64>> = self
            .conn
            .prepare_cached("SELECT sealed FROM streams WHERE kind = ?1 AND key = ?2")?
            .query_row(params![stream.kind().as_str(), stream.key()], |row| row.get(0))
            .optional()?;
        let Some(id) = id.flatten() else { return Ok(None) };
        let key = RowKey::find(&self.conn, id)?;
        if let Some(key) = &key {
            self.known.keys.insert(run.clone(), key.clone());
        }
        Ok(key)
    }

    fn make_key(&mut self) -> rusqlite::Result<RowKey> {
        let free = match self.known.free_keys.take() {
            Some(free) => free,
            None => self
                .conn
                .prepare_cached("SELECT id FROM run_keys WHERE key = zeroblob(32)")?
                .query_map((), |row| row.get(0))?
                .collect::<Result<Vec<i64>, _>>()?,
        };
        let free = self.known.free_keys.insert(free);
        if let Some(id) = free.pop() {
            let key = RowKey::fresh(id)?;
            let mut update = self.conn.prepare_cached(OVERWRITE)?;
            update.execute(params![id, &key.bytes()[..]])?;
            return Ok(key);
        }
        self.conn.prepare_cached("INSERT INTO run_keys (key) VALUES (zeroblob(32))")?.execute(())?;
        let key = RowKey::fresh(self.conn.last_insert_rowid())?;
        self.conn.prepare_cached(OVERWRITE)?.execute(params![key.id, &key.bytes()[..]])?;
        Ok(key)
    }

    /// Puts what is kept in the place of all that a key opens, and overwrites the key.
    pub(super) fn end_seal(&mut self, run: &RunKey, key: i64) -> rusqlite::Result<()> {
        let streams: Vec<i64> = self
            .conn
            .prepare_cached("SELECT id FROM streams WHERE sealed = ?1")?
            .query_map([key], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for stream in streams {
            self.withhold(stream)?;
        }
        self.conn
            .prepare_cached("UPDATE streams SET sealed = NULL WHERE sealed = ?1")?
            .execute([key])?;
        self.conn.prepare_cached(OVERWRITE)?.execute(params![key, &[0_u8; KEY_BYTES][..]])?;
        self.known.keys.remove(run);
        if let Some(free) = &mut self.known.free_keys {
            free.push(key);
        }
        self.unshredded = true;
        Ok(())
    }

    fn withhold(&self, stream: i64) -> rusqlite::Result<()> {
        let mut select = self
            .conn
            .prepare_cached("SELECT id, last_seq, body FROM journal WHERE id BETWEEN ?1 AND ?2")?;
        let mut update = self.conn.prepare_cached("UPDATE journal SET body = ?2 WHERE id = ?1")?;
        for class in [Class::Entries, Class::Progress] {
            let mut rows = select.query([first_row(stream, class), last_row(stream, class)])?;
            while let Some(found) = rows.next()? {
                let id: i64 = found.get(0)?;
                let body = match class {
                    Class::Entries => {
                        let body = found.get_ref(2)?.as_blob()?;
                        // What cannot be read stays as it is, and can be read less than before.
                        let Ok(body) = seal::open(&self.conn, id, body) else { continue };
                        let Ok(entries) = wharf_journal::decode(&body) else { continue };
                        let kept: Vec<_> =
                            entries.into_iter().map(wharf_domain::Entry::withheld).collect();
                        wharf_journal::encode(&kept)
                    }
                    Class::Progress => {
                        let last = found.get::<_, i64>(1)?.cast_unsigned();
                        let pieces = last.saturating_sub(first_seq(id)).saturating_add(1);
                        let pieces = usize::try_from(pieces).unwrap_or_default();
                        wharf_journal::encode_progress(&vec![Progress::Withheld; pieces])
                    }
                };
                update.execute(params![id, body])?;
            }
        }
        Ok(())
    }
}

/// The row keeps its size, so it stays where it is.
const OVERWRITE: &str = "UPDATE run_keys SET key = ?2 WHERE id = ?1";
