//! Encrypts and decrypts a file's content, bound to what it is.
//!
//! A sealed file is a mark, a version, a random nonce, then the text encrypted with
//! XChaCha20-Poly1305. The mark, the version, the kind and the name are authenticated with it.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};
use wharf_vocab::{Code, Fault, SecretName};
use zeroize::Zeroizing;

/// How long keys are.
pub(crate) const KEY_BYTES: usize = 32;

const MARK: &[u8; 8] = b"wharf-v\x01";
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// What is sealed; one cannot stand for another.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// A secret.
    Secret(&'a SecretName),
    /// The keys of tokens.
    Keyring,
}

/// Why a sealed file cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// It does not look like a sealed file of this version.
    Form,
    /// It was changed, is not what its name says, or was sealed with another key.
    Seal,
    /// Its name is not one the vault gives.
    Name,
}

/// How long a sealed file may be for so many bytes of text.
pub(crate) const fn bytes_max(plain: usize) -> usize {
    MARK.len() + NONCE_BYTES + plain + TAG_BYTES
}

/// The cipher. It is never shown, and wipes its key at the end.
pub(crate) struct Sealer(XChaCha20Poly1305);

impl Sealer {
    pub(crate) fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(XChaCha20Poly1305::new(<&Key>::from(key)))
    }

    pub(crate) fn seal(&self, what: Purpose<'_>, plain: &[u8]) -> Result<Vec<u8>, Fault> {
        let nonce = random::<NONCE_BYTES>()?;
        let payload = Payload { msg: plain, aad: &bound_to(what) };
        let sealed = self.0.encrypt(<&XNonce>::from(&nonce), payload);
        let failed = |_| Fault::new(Code::CoreInternal, "The vault could not encrypt.");
        Ok([MARK.as_slice(), &nonce, &sealed.map_err(failed)?].concat())
    }

    pub(crate) fn open(
        &self,
        what: Purpose<'_>,
        file: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Damage> {
        let rest = file.strip_prefix(MARK).ok_or(Damage::Form)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(Damage::Form)?;
        let payload = Payload { msg: sealed, aad: &bound_to(what) };
        let plain = self.0.decrypt(<&XNonce>::from(nonce), payload);
        plain.map(Zeroizing::new).map_err(|_| Damage::Seal)
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    let failed = "The operating system gives no random numbers.";
    getrandom::fill(&mut bytes).map_err(|_| Fault::new(Code::CoreInternal, failed))?;
    Ok(bytes)
}

fn bound_to(what: Purpose<'_>) -> Vec<u8> {
    let (kind, name) = match what {
        Purpose::Secret(name) => ("secret:", name.as_str()),
        Purpose::Keyring => ("keyring:", ""),
    };
    [MARK.as_slice(), kind.as_bytes(), name.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_only_as_what_it_is() {
        let sealer = Sealer::new(&[7; KEY_BYTES]);
        let name = SecretName::new("a").expect("a name");
        let other = SecretName::new("b").expect("a name");
        let sealed = sealer.seal(Purpose::Secret(&name), b"text").expect("sealed");
        assert_eq!(sealed.len(), bytes_max(4));
        assert_eq!(
            sealer.open(Purpose::Secret(&name), &sealed).expect("opens").as_slice(),
            b"text"
        );
        for wrong in [Purpose::Secret(&other), Purpose::Keyring] {
            assert_eq!(sealer.open(wrong, &sealed), Err(Damage::Seal));
        }
        let stranger = Sealer::new(&[8; KEY_BYTES]);
        assert_eq!(stranger.open(Purpose::Secret(&name), &sealed), Err(Damage::Seal));
    }

    #[test]
    fn the_same_text_is_never_sealed_alike() {
        let sealer = Sealer::new(&[7; KEY_BYTES]);
        let seal = || sealer.seal(Purpose::Keyring, b"text").expect("sealed");
        assert_ne!(seal(), seal());
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_found() {
        let sealer = Sealer::new(&[7; KEY_BYTES]);
        let sealed = sealer.seal(Purpose::Keyring, b"text").expect("sealed");
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut changed = sealed.clone();
                changed[at] ^= 1 << bit;
                assert!(sealer.open(Purpose::Keyring, &changed).is_err(), "byte {at}, bit {bit}");
            }
            assert!(sealer.open(Purpose::Keyring, &sealed[..at]).is_err(), "cut at {at}");
        }
        let longer = [sealed.as_slice(), b"x"].concat();
        assert!(sealer.open(Purpose::Keyring, &longer).is_err());
    }
}
