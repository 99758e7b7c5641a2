//! The keys tokens are sealed with: one encrypted file, oldest key first, the current one last.
//!
//! Keys are numbered and no number comes twice, so that a token never meets another key than its
//! own under the same name.

use wharf_domain::grant::Keyring;
use wharf_vocab::Fault;
use zeroize::Zeroizing;

use crate::folder::{Folder, KEYRING_FILE};
use crate::seal::{self, Damage, KEY_BYTES, Purpose, Sealer};

/// How many keys that no longer seal are kept.
const OLD_KEYS_MAX: usize = 8;

const NUMBER_BYTES: usize = 4;
const ROW_BYTES: usize = NUMBER_BYTES + KEY_BYTES;
const FILE_BYTES_MAX: usize = seal::bytes_max((OLD_KEYS_MAX + 1) * ROW_BYTES);

/// The keys there are; the first is made if there is none.
pub(crate) fn current(folder: &Folder, sealer: &Sealer) -> Result<Keyring, Fault> {
    if let Some(keys) = Keys::read(folder, sealer)? {
        return Ok(keys.ring());
    }
    change(folder, sealer, |keys| if keys.0.is_empty() { keys.add() } else { Ok(()) })
}

/// The keys with a new one that seals from now on.
pub(crate) fn rotate(folder: &Folder, sealer: &Sealer, drop_old: bool) -> Result<Keyring, Fault> {
    change(folder, sealer, |keys| {
        keys.add()?;
        let kept = if drop_old { 1 } else { OLD_KEYS_MAX + 1 };
        let surplus = keys.0.len().saturating_sub(kept);
        keys.0.drain(..surplus);
        Ok(())
    })
}

fn change(
    folder: &Folder,
    sealer: &Sealer,
    change: impl FnOnce(&mut Keys) -> Result<(), Fault>,
) -> Result<Keyring, Fault> {
    let locked = folder.lock()?;
    let mut keys = Keys::read(folder, sealer)?.unwrap_or_default();
    change(&mut keys)?;
    let sealed = sealer.seal(Purpose::Keyring, &keys.write())?;
    locked.replace(KEYRING_FILE, &sealed)?;
    Ok(keys.ring())
}

/// Keys by number, oldest first.
#[derive(Default)]
struct Keys(Vec<(u32, Zeroizing<[u8; KEY_BYTES]>)>);

impl Keys {
    fn read(folder: &Folder, sealer: &Sealer) -> Result<Option<Self>, Fault> {
        let Some(sealed) = folder.read(KEYRING_FILE, FILE_BYTES_MAX)? else { return Ok(None) };
        let plain = sealer.open(Purpose::Keyring, &sealed);
        let keys = plain.and_then(|plain| Self::parse(&plain).ok_or(Damage::Form));
        keys.map(Some).map_err(|damage| folder.damaged(KEYRING_FILE, damage))
    }

    fn parse(plain: &[u8]) -> Option<Self> {
        let (rows, rest) = plain.as_chunks::<ROW_BYTES>();
        let keys = rows.iter().map(|row| {
            let (number, key) = row.split_first_chunk::<NUMBER_BYTES>()?;
            Some((u32::from_be_bytes(*number), Zeroizing::new(key.try_into().ok()?)))
        });
        let keys = keys.collect::<Option<Vec<_>>>()?;
        let in_order = keys.is_sorted_by(|(one, _), (two, _)| one < two);
        (in_order && rest.is_empty() && !keys.is_empty()).then_some(Self(keys))
    }

    fn write(&self) -> Zeroizing<Vec<u8>> {
        // Room for all at once, so that nothing is moved and left behind.
        let mut plain = Zeroizing::new(Vec::with_capacity(self.0.len() * ROW_BYTES));
        for (number, key) in &self.0 {
            plain.extend_from_slice(&number.to_be_bytes());
            plain.extend_from_slice(key.as_slice());
        }
        plain
    }

    fn add(&mut self) -> Result<(), Fault> {
        let number = self.0.last().map_or(0, |(number, _)| *number).saturating_add(1);
        self.0.push((number, Zeroizing::new(seal::random()?)));
        Ok(())
    }

    fn ring(&self) -> Keyring {
        let name = |number: &u32| format!("k{number}");
        Keyring {
            current: self.0.last().map(|(number, _)| name(number)).unwrap_or_default(),
            keys: self.0.iter().map(|(number, key)| (name(number), **key)).collect(),
        }
    }
}
