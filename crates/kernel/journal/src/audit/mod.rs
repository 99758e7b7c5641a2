//! The audit's chain: one per shard, each record sealed together with all before it.
//!
//! Whoever stores a record seals it in the same transaction and signs the new head of the chain.
//! The seal covers the stored bytes of the record, its place, its moment and the seal before it,
//! in an encoding in which no two different lists of fields look the same. Without the key
//! nobody can make a seal or a signature; [`verify`](Verifier) finds what was done to the rows.

mod finding;
mod verify;

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use wharf_vocab::{ShardId, Timestamp};

pub use finding::{ChainReport, Finding, Trouble};
pub use verify::{AuditRow, Verifier, verify};

/// The seal before the first record of a chain.
pub const GENESIS: [u8; 32] = [0; 32];

/// What is sealed begins with what it is, so that a head never passes for a record.
const RECORD: &[u8] = b"wharf.audit.record.1\0";
const HEAD: &[u8] = b"wharf.audit.head.1\0";

/// The secret that seals the audit. It lies in the home, never in the store.
#[derive(Clone, PartialEq, Eq)]
pub struct AuditKey([u8; 32]);

impl AuditKey {
    /// The key made of these bytes, which must come from a good source of chance.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditKey(…)")
    }
}

/// Makes and checks seals and signatures with one key.
#[derive(Clone)]
pub struct Sealer(Hmac<Sha256>);

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer(…)")
    }
}

impl Sealer {
    /// A sealer with this key.
    pub fn new(key: &AuditKey) -> Self {
        Self(Hmac::new_from_slice(&key.0).expect("HMAC takes a key of any length"))
    }

    /// The seal of the record at place `n` (from 1) of a shard's chain. `record_json` are the
    /// bytes that are stored.
    pub fn seal(
        &self,
        prev_mac: &[u8; 32],
        shard: ShardId,
        n: u64,
        at: Timestamp,
        record_json: &[u8],
    ) -> [u8; 32] {
        self.record(prev_mac, shard, n, at, record_json).finalize().into_bytes().into()
    }

    /// The head of a chain, signed.
    pub fn sign(&self, shard: ShardId, n: u64, mac: [u8; 32]) -> SignedHead {
        let sig = self.head(shard, n, &mac).finalize().into_bytes().into();
        SignedHead { shard, n, mac, sig }
    }

    /// Whether the head was signed with this key; the time it takes tells nothing.
    pub fn signed(&self, head: &SignedHead) -> bool {
        self.head(head.shard, head.n, &head.mac).verify_slice(&head.sig).is_ok()
    }

    /// Whether the row was sealed with this key behind `prev_mac`; the time it takes tells
    /// nothing.
    fn sealed(&self, prev_mac: &[u8; 32], row: &AuditRow<'_>) -> bool {
        self.record(prev_mac, row.shard, row.n, row.at, row.record_json)
            .verify_slice(&row.mac)
            .is_ok()
    }

    fn record(
        &self,
        prev_mac: &[u8; 32],
        shard: ShardId,
        n: u64,
        at: Timestamp,
        record_json: &[u8],
    ) -> Hmac<Sha256> {
        // Every field but the last has a fixed length, and the last carries its own.
        let mut mac = self.0.clone();
        mac.update(RECORD);
        mac.update(prev_mac);
        mac.update(&[shard.0]);
        mac.update(&n.to_be_bytes());
        mac.update(&at.0.to_be_bytes());
        mac.update(&(record_json.len() as u64).to_be_bytes());
        mac.update(record_json);
        mac
    }

    fn head(&self, shard: ShardId, n: u64, head_mac: &[u8; 32]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(HEAD);
        mac.update(&[shard.0]);
        mac.update(&n.to_be_bytes());
        mac.update(head_mac);
        mac
    }
}

/// How far a shard's chain has come, signed. Kept outside the store it is an anchor: it shows
/// that the store was replaced by an older or shorter copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedHead {
    /// The shard.
    pub shard: ShardId,
    /// The place of the last record, from 1.
    pub n: u64,
    /// The seal of the last record.
    #[serde(with = "hex")]
    pub mac: [u8; 32],
    /// The signature over all of it.
    #[serde(with = "hex")]
    pub sig: [u8; 32],
}

/// Signed heads of all chains at one moment, to be kept outside the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchors {
    /// One head per shard that has records.
    pub heads: Vec<SignedHead>,
}

/// 32 bytes as lower-case hex text.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    const DIGITS: &[u8; 16] = b"0123456789abcdef";

    pub(super) fn serialize<S: Serializer>(bytes: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
        let text: String = bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect();
        to.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(from)?;
        parse(&text).ok_or_else(|| de::Error::custom("64 hex digits are expected"))
    }

    fn parse(text: &str) -> Option<[u8; 32]> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let nibble = |digit: u8| {
            let at = DIGITS.iter().position(|&known| known == digit)?;
            u8::try_from(at).ok()
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(bytes)
    }
}
