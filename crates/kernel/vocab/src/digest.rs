//! SHA-256 digests of canonical JSON, and the hash that spreads streams over shards.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Digest as _;

use crate::Object;

/// A SHA-256 digest in lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of several parts; each part's length is part of what is hashed.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = sha2::Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hex::encode(hash.finalize()))
    }

    /// The plain SHA-256 of some bytes, as other programs compute it of a file.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(hex::encode(sha2::Sha256::digest(bytes)))
    }

    /// The digest of a JSON object; the order of its keys does not matter.
    #[must_use]
    pub fn of_object(object: &Object) -> Self {
        let mut hash = sha2::Sha256::new();
        hash_object(&mut hash, object);
        Self(hex::encode(hash.finalize()))
    }

    /// Reads a digest from its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_hex)).then(|| Self(text.to_owned()))
    }

    /// The digest as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Feeds an object to the hash with its keys in order, whatever order the map keeps.
fn hash_object(hash: &mut sha2::Sha256, object: &Object) {
    let mut entries: Vec<_> = object.iter().collect();
    entries.sort_by_key(|(key, _)| key.as_str());
    hash.update(b"{");
    for (key, value) in entries {
        hash_text(hash, key);
        hash_value(hash, value);
    }
    hash.update(b"}");
}

fn hash_value(hash: &mut sha2::Sha256, value: &Value) {
    match value {
        Value::Object(object) => hash_object(hash, object),
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                hash_value(hash, item);
            }
            hash.update(b"]");
        }
        Value::String(text) => {
            hash.update(b"s");
            hash_text(hash, text);
        }
        Value::Number(number) => {
            hash.update(b"n");
            hash_text(hash, &number.to_string());
        }
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Null => hash.update(b"0"),
    }
}

fn hash_text(hash: &mut sha2::Sha256, text: &str) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

/// FNV-1a over several parts, a separator between them: stable for ever, since shards depend on it.
pub(crate) fn fnv1a(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cannot_be_shifted_into_each_other() {
        assert_ne!(Digest::of(&[b"ab", b"c"]), Digest::of(&[b"a", b"bc"]));
    }

    #[test]
    fn key_order_does_not_change_an_objects_digest() {
        let one: Object = serde_json::from_str(r#"{"a":1,"b":2}"#).expect("json");
        let two: Object = serde_json::from_str(r#"{"b":2,"a":1}"#).expect("json");
        assert_eq!(Digest::of_object(&one), Digest::of_object(&two));
    }
}
