//! The bytes of a backup on their way to the disk and back: hashed always, encrypted on request.
//!
//! An encrypted file is a mark and a random prefix, then the text in pieces of 64 KiB, each
//! encrypted with XChaCha20-Poly1305. The nonce of a piece is the prefix, its number and whether
//! it is the last one; the name of the file is authenticated with it. So pieces cannot be cut off,
//! moved or swapped with those of another file without it being noticed.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use wharf_vocab::{B3, Code, Fault};
use zeroize::Zeroizing;

use super::error::{trouble, wrong_key};
use crate::{files, secrets};

const MARK: &[u8; 8] = b"wharf-b\x01";
const PREFIX_BYTES: usize = 15;
const PIECE_BYTES: usize = 64 * 1024;
const TAG_BYTES: usize = 16;
const KEY_WORD: &str = "wharf-backup-key-1";

/// The key that encrypted backups are made and opened with.
pub struct Key(Zeroizing<[u8; 32]>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// Makes a new key in a file that is not there yet, for its owner's eyes only.
    pub fn make(path: &Path) -> Result<(), Fault> {
        if path.symlink_metadata().is_ok() {
            let message = format!(
                "{} already exists, and backups made with a key that is replaced cannot be read; choose \
                 another name.",
                path.display()
            );
            return Err(Fault::new(Code::BackupOccupied, message));
        }
        let write = || {
            let path = std::path::absolute(path)?;
            let key = Zeroizing::new(secrets::random::<32>()?);
            let text = Zeroizing::new(format!("{KEY_WORD} {}\n", hex::encode(*key)));
            files::replace(&path, text.as_bytes())
        };
        write().map_err(|error| trouble("write", path, &error))
    }

    /// Reads a key.
    pub fn read(path: &Path) -> Result<Self, Fault> {
        let text = std::fs::read_to_string(path).map(Zeroizing::new);
        let text = text.map_err(|error| {
            wrong_key(format!("The key file {} cannot be read: {error}.", path.display()))
        })?;
        let digits = text.trim().strip_prefix(KEY_WORD).map(str::trim);
        let mut key = Zeroizing::new([0; 32]);
        let read = digits.is_some_and(|digits| hex::decode_to_slice(digits, &mut *key).is_ok());
        read.then_some(Self(key)).ok_or_else(|| {
            let path = path.display();
            let hint = "make one with: wharf backup key FILE";
            wrong_key(format!("{path} is not a key for backups; {hint}"))
        })
    }

    /// Tells keys apart without saying anything about them.
    pub(super) fn check(&self) -> String {
        blake3::keyed_hash(&self.0, b"wharf backup: which key").to_hex().to_string()
    }

    /// What a file is called whose content has this hash: without the key nobody can tell whether
    /// a known file is in the backup.
    pub(super) fn name(&self, b3: &B3) -> String {
        blake3::keyed_hash(&self.0, b3.as_str().as_bytes()).to_hex().to_string()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0).into())
    }
}

/// What encrypts or decrypts the pieces of one file.
struct Pieces {
    cipher: XChaCha20Poly1305,
    prefix: [u8; PREFIX_BYTES],
    name: String,
    number: u64,
}

impl Pieces {
    fn nonce(&mut self, last: bool) -> XNonce {
        let mut nonce = [0; 24];
        nonce[..PREFIX_BYTES].copy_from_slice(&self.prefix);
        nonce[PREFIX_BYTES..23].copy_from_slice(&self.number.to_be_bytes());
        nonce[23] = u8::from(last);
        self.number += 1;
        nonce.into()
    }

    fn seal(&mut self, plain: &[u8], last: bool) -> io::Result<Vec<u8>> {
        let nonce = self.nonce(last);
        let payload = Payload { msg: plain, aad: self.name.as_bytes() };
        self.cipher.encrypt(&nonce, payload).map_err(|_| io::Error::other("cannot encrypt"))
    }

    fn open(&mut self, sealed: &[u8], last: bool) -> io::Result<Vec<u8>> {
        let nonce = self.nonce(last);
        let payload = Payload { msg: sealed, aad: self.name.as_bytes() };
        self.cipher.decrypt(&nonce, payload).map_err(|_| changed())
    }
}

fn changed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it was changed, cut off or swapped with another")
}

/// Writes a file of a backup. What it is called goes with the content when that is encrypted.
pub(super) struct Writer {
    file: File,
    pieces: Option<Pieces>,
    held: Vec<u8>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Writer {
    pub(super) fn new(mut file: File, key: Option<&Key>, name: &str) -> io::Result<Self> {
        let pieces = match key {
            None => None,
            Some(key) => {
                let prefix = secrets::random::<PREFIX_BYTES>()?;
                file.write_all(MARK)?;
                file.write_all(&prefix)?;
                let (cipher, name) = (key.cipher(), name.to_owned());
                Some(Pieces { cipher, prefix, name, number: 0 })
            }
        };
        Ok(Self { file, pieces, held: Vec::new(), hasher: blake3::Hasher::new(), bytes: 0 })
    }

    /// Ends the file and says how many bytes of text it holds, and their hash.
    pub(super) fn finish(mut self) -> io::Result<(u64, B3)> {
        if let Some(pieces) = &mut self.pieces {
            let sealed = pieces.seal(&self.held, true)?;
            self.file.write_all(&sealed)?;
        }
        self.file.flush()?;
        Ok((self.bytes, hash(&self.hasher)))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(pieces) = &mut self.pieces else {
            self.file.write_all(bytes)?;
            self.hasher.update(bytes);
            self.bytes += bytes.len() as u64;
            return Ok(bytes.len());
        };
        // A full piece is held back until it is known not to be the last one.
        if self.held.len() == PIECE_BYTES {
            let sealed = pieces.seal(&self.held, false)?;
            self.file.write_all(&sealed)?;
            self.held.clear();
        }
        let taken = bytes.len().min(PIECE_BYTES - self.held.len());
        self.held.extend_from_slice(&bytes[..taken]);
        self.hasher.update(&bytes[..taken]);
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a file of a backup.
pub(super) struct BackupReader {
    file: File,
    pieces: Option<Pieces>,
    /// Text that was decrypted and not read yet.
    ready: Vec<u8>,
    read: usize,
    /// What comes next in the file.
    ahead: Vec<u8>,
    done: bool,
}

impl BackupReader {
    pub(super) fn new(mut file: File, key: Option<&Key>, name: &str) -> io::Result<Self> {
        let (mut pieces, mut ahead) = (None, Vec::new());
        if let Some(key) = key {
            let mut head = [0; MARK.len() + PREFIX_BYTES];
            file.read_exact(&mut head).map_err(|_| changed())?;
            let prefix = head.strip_prefix(MARK).and_then(|prefix| prefix.try_into().ok());
            let prefix = prefix.ok_or_else(changed)?;
            let (cipher, name) = (key.cipher(), name.to_owned());
            pieces = Some(Pieces { cipher, prefix, name, number: 0 });
            fill(&mut file, &mut ahead)?;
        }
        Ok(Self { file, pieces, ready: Vec::new(), read: 0, ahead, done: false })
    }

    fn next_piece(&mut self, next: Vec<u8>) -> io::Result<()> {
        let Some(pieces) = &mut self.pieces else { return Ok(()) };
        self.done = next.is_empty();
        self.ready = pieces.open(&self.ahead, self.done)?;
        self.read = 0;
        self.ahead = next;
        Ok(())
    }
}

/// Reads one sealed piece, or what is left.
fn fill(file: &mut File, piece: &mut Vec<u8>) -> io::Result<()> {
    let most = (PIECE_BYTES + TAG_BYTES) as u64;
    Read::by_ref(file).take(most).read_to_end(piece).map(drop)
}

impl Read for BackupReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.pieces.is_none() {
            return self.file.read(into);
        }
        while self.read == self.ready.len() {
            if self.done {
                return Ok(0);
            }
            let mut next = Vec::new();
            fill(&mut self.file, &mut next)?;
            self.next_piece(next)?;
        }
        let count = into.len().min(self.ready.len() - self.read);
        into[..count].copy_from_slice(&self.ready[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

pub(super) fn hash(hasher: &blake3::Hasher) -> B3 {
    B3::parse(hasher.finalize().to_hex().as_str()).expect("64 digits of hex are a hash")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(dir: &Path, name: &str) -> Key {
        let path = dir.join(name);
        Key::make(&path).expect("made");
        Key::read(&path).expect("read")
    }

    fn sealed(dir: &Path, key: &Key, name: &str, text: &[u8]) -> Vec<u8> {
        let path = dir.join("sealed");
        let file = File::create(&path).expect("made");
        let mut writer = Writer::new(file, Some(key), name).expect("begun");
        writer.write_all(text).expect("written");
        let (bytes, b3) = writer.finish().expect("ended");
        assert_eq!((bytes, b3), (text.len() as u64, hash(blake3::Hasher::new().update(text))));
        std::fs::read(path).expect("there")
    }

    fn opened(dir: &Path, key: &Key, name: &str, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let path = dir.join("opened");
        std::fs::write(&path, sealed)?;
        let mut text = Vec::new();
        BackupReader::new(File::open(path)?, Some(key), name)?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn what_was_sealed_can_be_opened_whatever_its_length() {
        let dir = tempfile::tempdir().expect("a folder");
        let key = key(dir.path(), "key");
        for length in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
            let text: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let sealed = sealed(dir.path(), &key, "a", &text);
            assert_eq!(opened(dir.path(), &key, "a", &sealed).expect("opens"), text, "{length}");
            assert!(length < 16 || !sealed.windows(16).any(|part| part == &text[..16]));
        }
    }

    #[test]
    fn what_was_cut_moved_changed_or_swapped_is_noticed() {
        let dir = tempfile::tempdir().expect("a folder");
        let (right, wrong) = (key(dir.path(), "key"), key(dir.path(), "other key"));
        let text = vec![7; 3 * PIECE_BYTES];
        let whole = sealed(dir.path(), &right, "a", &text);
        let head = MARK.len() + PREFIX_BYTES;
        let piece = PIECE_BYTES + TAG_BYTES;
        let mut flipped = whole.clone();
        flipped[head + 5] ^= 1;
        let mut swapped = whole.clone();
        swapped[head..head + 2 * piece].rotate_left(piece);
        let longer = [&whole[..], &whole[head..head + piece]].concat();
        for (what, bytes) in [
            ("cut at a piece", whole[..head + piece].to_vec()),
            ("cut in a piece", whole[..whole.len() - 1].to_vec()),
            ("nothing left", whole[..head].to_vec()),
            ("no head", whole[..3].to_vec()),
            ("changed", flipped),
            ("moved", swapped),
            ("longer", longer),
        ] {
            let error = opened(dir.path(), &right, "a", &bytes).expect_err(what);
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{what}");
        }
        assert!(opened(dir.path(), &right, "b", &whole).is_err(), "another file's name");
        assert!(opened(dir.path(), &wrong, "a", &whole).is_err(), "another key");
        assert_ne!(right.check(), wrong.check());
    }

    #[test]
    fn a_key_is_never_replaced_and_nothing_else_is_taken_for_one() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("key");
        Key::make(&path).expect("made");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(Key::make(&path).expect_err("there").is(Code::BackupOccupied));
        for text in ["", "wharf-backup-key-1 12", "hello"] {
            std::fs::write(&path, text).expect("written");
            assert!(Key::read(&path).expect_err("no key").is(Code::BackupKeyInvalid), "{text}");
        }
    }
}
