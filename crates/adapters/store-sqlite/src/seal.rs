//! Rows that only their run's key opens.
//!
//! What a run is given and says is written down while it is open, also if no more than hashes of
//! it are kept later. SQLite moves rows between pages and leaves copies behind that no deletion
//! finds, so such rows are encrypted, and what is destroyed in the end is their key: it lies in a
//! row that never moves and is overwritten in its place.

use std::borrow::Cow;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};
use rusqlite::{Connection, OptionalExtension as _, params};
use wharf_ports::StoreError;

use crate::error::{corrupt, from_sqlite};

pub(crate) const KEY_BYTES: usize = 32;
/// Begins a sealed row; a row that is not sealed begins with a bracket.
const MARK: u8 = 0;
const ID_BYTES: usize = 8;
const NONCE_BYTES: usize = 24;
const HEAD_BYTES: usize = 1 + ID_BYTES + NONCE_BYTES;

/// A run's key and the row it lies in.
#[derive(Clone)]
pub(crate) struct RowKey {
    pub(crate) id: i64,
    key: [u8; KEY_BYTES],
}

impl RowKey {
    /// A new key for this row.
    pub(crate) fn fresh(id: i64) -> rusqlite::Result<Self> {
        Ok(Self { id, key: random()? })
    }

    /// The key that lies in a row, if there is one.
    pub(crate) fn find(conn: &Connection, id: i64) -> rusqlite::Result<Option<Self>> {
        let key: Option<[u8; KEY_BYTES]> = conn
            .prepare_cached("SELECT key FROM run_keys WHERE id = ?1")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        Ok(key.filter(|key| *key != [0; KEY_BYTES]).map(|key| Self { id, key }))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.key
    }

    /// The body of a row that only this key opens.
    pub(crate) fn seal(&self, row: i64, body: &[u8]) -> rusqlite::Result<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = random()?;
        let payload = Payload { msg: body, aad: &row.to_be_bytes() };
        let sealed = self.cipher().encrypt(<&XNonce>::from(&nonce), payload);
        let sealed = sealed.map_err(|_| failed("a row could not be encrypted"))?;
        Ok([&[MARK][..], &self.id.to_be_bytes(), &nonce, &sealed].concat())
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(<&Key>::from(&self.key))
    }
}

/// The body of a row as it was before it was sealed, if it was.
pub(crate) fn open<'a>(
    conn: &Connection,
    row: i64,
    body: &'a [u8],
) -> Result<Cow<'a, [u8]>, StoreError> {
    if body.first() != Some(&MARK) {
        return Ok(Cow::Borrowed(body));
    }
    let damaged = || corrupt(format!("the row {row} is sealed and cannot be opened"));
    let (head, sealed) = body.split_at_checked(HEAD_BYTES).ok_or_else(damaged)?;
    let (id, nonce) = head[1..].split_at(ID_BYTES);
    let id = i64::from_be_bytes(id.try_into().map_err(|_| damaged())?);
    let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| damaged())?;
    let key = RowKey::find(conn, id).map_err(from_sqlite)?.ok_or_else(damaged)?;
    let payload = Payload { msg: sealed, aad: &row.to_be_bytes() };
    let plain = key.cipher().decrypt(<&XNonce>::from(&nonce), payload);
    Ok(Cow::Owned(plain.map_err(|_| damaged())?))
}

/// Opens all sealed rows for good.
pub(crate) fn open_all(conn: &Connection) -> Result<(), StoreError> {
    let sealed: Vec<(i64, Vec<u8>)> = conn
        .prepare("SELECT id, body FROM journal WHERE substr(body, 1, 1) = x'00'")
        .and_then(|mut select| {
            select.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
        .map_err(from_sqlite)?;
    for (row, body) in sealed {
        let plain = open(conn, row, &body)?;
        conn.prepare_cached("UPDATE journal SET body = ?2 WHERE id = ?1")
            .and_then(|mut update| update.execute(params![row, plain]))
            .map_err(from_sqlite)?;
    }
    Ok(())
}

fn random<const N: usize>() -> rusqlite::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|_| failed("the operating system gives no random numbers"))?;
    Ok(bytes)
}

fn failed(what: &'static str) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(what.into())
}
