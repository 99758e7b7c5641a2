//! Stamps: bytes as text that only this core can make.
//!
//! A client that is told such a text and comes back with it brings what the core would otherwise
//! have to remember. The bytes are not hidden: they are the bearer's own. What must be the same
//! when the text comes back and does not stand in it, such as the bearer's grant, is sealed with
//! them.
//!
//! As text a stamp is `<bytes>.<key>.<seal>`: bytes and seal in base64url without padding, between
//! them the name of the key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Keyring;
use super::token::is_key_name;

/// Longest text of a stamp.
pub const STAMP_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a seal, which is the beginning of a longer one.
const SEAL_BYTES: usize = 16;

/// What a stamp is for: one kind never passes for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampKind {
    /// A client's session.
    Session,
    /// A place in a stream.
    Event,
    /// A run as a task.
    Task,
    /// What a client repeats a request with.
    State,
}

impl StampKind {
    fn prefix(self) -> &'static [u8] {
        match self {
            Self::Session => b"wharf.mcp.session.1\0",
            Self::Event => b"wharf.mcp.event.1\0",
            Self::Task => b"wharf.mcp.task.1\0",
            Self::State => b"wharf.mcp.state.1\0",
        }
    }
}

/// Seals bytes, and with them what is not said but must be the same later. Without a key that
/// seals now it is a text that is never good.
pub fn stamp(keyring: &Keyring, kind: StampKind, unsaid: &[u8], bytes: &[u8]) -> String {
    let kid = keyring.current.as_str();
    let Some(key) = keyring.keys.get(kid).filter(|_| is_key_name(kid)) else {
        return "unsealed".to_owned();
    };
    let seal = mac(key, kind, unsaid, bytes).finalize().into_bytes();
    let seal = URL_SAFE_NO_PAD.encode(&seal[..SEAL_BYTES]);
    format!("{}.{kid}.{seal}", URL_SAFE_NO_PAD.encode(bytes))
}

/// The bytes of a stamp of this kind, if its seal is right for what is not said in it.
pub fn read_stamp(
    keyring: &Keyring,
    kind: StampKind,
    unsaid: &[u8],
    text: &str,
) -> Option<Vec<u8>> {
    if text.len() > STAMP_BYTES_MAX {
        return None;
    }
    let (bytes, rest) = text.split_once('.')?;
    let (kid, seal) = rest.split_once('.')?;
    let key = keyring.keys.get(kid)?;
    let seal: [u8; SEAL_BYTES] = URL_SAFE_NO_PAD.decode(seal).ok()?.try_into().ok()?;
    let bytes = URL_SAFE_NO_PAD.decode(bytes).ok()?;
    mac(key, kind, unsaid, &bytes).verify_truncated_left(&seal).ok()?;
    Some(bytes)
}

fn mac(key: &[u8; 32], kind: StampKind, unsaid: &[u8], bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac: Hmac<Sha256> = Hmac::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(kind.prefix());
    mac.update(&(unsaid.len() as u64).to_be_bytes());
    mac.update(unsaid);
    mac.update(bytes);
    mac
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn ring(current: &str, names: &[&str]) -> Keyring {
        let key = |name: &&str| ((*name).to_owned(), [name.as_bytes()[1]; 32]);
        Keyring { current: current.to_owned(), keys: names.iter().map(key).collect() }
    }

    #[test]
    fn m004_a_stamp_is_good_for_its_kind_its_key_and_what_it_does_not_say() {
        let old = ring("k1", &["k1"]);
        let text = stamp(&old, StampKind::Session, b"grant", b"some bytes");
        let read = |ring: &Keyring, kind, unsaid: &[u8]| read_stamp(ring, kind, unsaid, &text);
        assert_eq!(read(&old, StampKind::Session, b"grant").as_deref(), Some(&b"some bytes"[..]));
        let both = ring("k2", &["k1", "k2"]);
        assert!(read(&both, StampKind::Session, b"grant").is_some(), "an older key is still good");
        assert_eq!(read(&ring("k2", &["k2"]), StampKind::Session, b"grant"), None);
        assert_eq!(read(&old, StampKind::Task, b"grant"), None);
        assert_eq!(read(&old, StampKind::Session, b"another"), None);
        assert_eq!(read(&old, StampKind::Session, b""), None);
        assert_eq!(
            read(
                &Keyring { current: "k1".into(), keys: BTreeMap::new() },
                StampKind::Session,
                b"grant"
            ),
            None
        );
    }

    #[test]
    fn m004_no_other_text_is_a_stamp() {
        let ring = ring("k1", &["k1", "k2"]);
        let text = stamp(&ring, StampKind::Task, b"", b"run");
        for (at, byte) in text.bytes().enumerate() {
            for other in [b'A', b'B', b'.', b'='] {
                let mut wrong = text.clone().into_bytes();
                wrong[at] = other;
                let wrong = String::from_utf8(wrong).expect("text");
                let read = read_stamp(&ring, StampKind::Task, b"", &wrong);
                assert_eq!(read.is_some(), other == byte, "{at}: {wrong}");
            }
        }
        for wrong in ["", ".", "..", "unsealed", &text[1..], &format!("{text}.")] {
            assert_eq!(read_stamp(&ring, StampKind::Task, b"", wrong), None, "{wrong:?}");
        }
        let long = "A".repeat(STAMP_BYTES_MAX);
        assert_eq!(read_stamp(&ring, StampKind::Task, b"", &format!("{long}{text}")), None);
        let unsealed = stamp(&Keyring::none(), StampKind::Task, b"", b"run");
        assert_eq!(read_stamp(&Keyring::none(), StampKind::Task, b"", &unsealed), None);
    }
}
