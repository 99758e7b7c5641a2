//! Keeps secrets, and the keys tokens are sealed with, in encrypted files of one folder.
//!
//! The folder holds `vault.key`, `grant.keys` and one file per secret. Everything but the key
//! itself is encrypted with it and bound to its own name, so that a file which was changed, or
//! put in place of another, is refused. The key lies beside what it opens: this keeps secrets out
//! of backups, searches and logs that take single files, not from somebody who can read the whole
//! folder as its owner.
//!
//! Every file is replaced as a whole, under a lock that also holds between processes. Nothing is
//! kept in memory but the cipher.

mod folder;
mod keyring;
mod seal;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use futures::future::BoxFuture;
use wharf_domain::grant::Keyring;
use wharf_ports::vault::{KeptSecret, Secret, Vault};
use wharf_vocab::{Code, Fault, SecretName, Timestamp};
use zeroize::Zeroizing;

use crate::folder::Folder;
use crate::seal::{Purpose, Sealer};

/// Most bytes of a secret.
pub const SECRET_BYTES_MAX: usize = 64 * 1024;

/// How many bytes the moment a secret was set takes before its text.
const SET_AT_BYTES: usize = 8;

/// A vault in a folder.
pub struct FileVault {
    rooms: Arc<Rooms>,
}

/// What the work on blocking threads needs.
struct Rooms {
    folder: Folder,
    sealer: Sealer,
}

impl FileVault {
    /// Opens the vault in a folder, and makes folder and key the first time. A key that others
    /// may read, that is not one, or that is gone while there are secrets, is refused.
    pub fn open(folder: PathBuf) -> Result<Self, Fault> {
        let folder = Folder::open(folder)?;
        let sealer = folder.sealer()?;
        Ok(Self { rooms: Arc::new(Rooms { folder, sealer }) })
    }

    fn work<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Rooms) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Fault>> {
        let rooms = Arc::clone(&self.rooms);
        let work = async move {
            let done = tokio::task::spawn_blocking(move || job(&rooms)).await;
            done.map_err(|_| Fault::new(Code::CoreInternal, "The vault's work broke off."))?
        };
        work.boxed()
    }
}

impl Vault for FileVault {
    fn set(&self, name: SecretName, secret: Secret) -> BoxFuture<'_, Result<(), Fault>> {
        self.work(move |rooms| rooms.set(&name, &secret))
    }

    fn get(&self, name: SecretName) -> BoxFuture<'_, Result<Secret, Fault>> {
        self.work(move |rooms| rooms.get(&name).map(|(_, secret)| secret))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptSecret>, Fault>> {
        self.work(Rooms::list)
    }

    fn remove(&self, name: SecretName) -> BoxFuture<'_, Result<(), Fault>> {
        self.work(move |rooms| rooms.remove(&name))
    }

    fn keyring(&self) -> BoxFuture<'_, Result<Keyring, Fault>> {
        self.work(|rooms| keyring::current(&rooms.folder, &rooms.sealer))
    }

    fn rotate(&self, drop_old: bool) -> BoxFuture<'_, Result<Keyring, Fault>> {
        self.work(move |rooms| keyring::rotate(&rooms.folder, &rooms.sealer, drop_old))
    }
}

impl Rooms {
    fn set(&self, name: &SecretName, secret: &Secret) -> Result<(), Fault> {
        let text = secret.expose();
        if text.is_empty() {
            let message = format!("The secret {name} is empty; give it some text.");
            return Err(Fault::new(Code::RequestInvalid, message));
        }
        if text.len() > SECRET_BYTES_MAX {
            let message = format!("The secret {name} is longer than {SECRET_BYTES_MAX} bytes.");
            return Err(Fault::new(Code::RequestTooLarge, message));
        }
        let mut plain = Zeroizing::new(Vec::with_capacity(SET_AT_BYTES + text.len()));
        plain.extend_from_slice(&now().0.to_be_bytes());
        plain.extend_from_slice(text);
        let sealed = self.sealer.seal(Purpose::Secret(name), &plain)?;
        self.folder.lock()?.replace(&folder::file_of(name), &sealed)
    }

    fn get(&self, name: &SecretName) -> Result<(Timestamp, Secret), Fault> {
        let file = folder::file_of(name);
        let most = seal::bytes_max(SET_AT_BYTES + SECRET_BYTES_MAX);
        let sealed = self.folder.read(&file, most)?.ok_or_else(|| not_found(name))?;
        let plain = self.sealer.open(Purpose::Secret(name), &sealed);
        let plain = plain.map_err(|damage| self.folder.damaged(&file, damage))?;
        let (set_at, text) = plain
            .split_first_chunk::<SET_AT_BYTES>()
            .ok_or_else(|| self.folder.damaged(&file, seal::Damage::Form))?;
        Ok((Timestamp(u64::from_be_bytes(*set_at)), Secret::new(text)))
    }

    fn list(&self) -> Result<Vec<KeptSecret>, Fault> {
        let mut kept = Vec::new();
        for file in self.folder.files()? {
            if !folder::is_secret(&file) {
                continue;
            }
            let name = folder::name_of(&file)
                .ok_or_else(|| self.folder.damaged(&file, seal::Damage::Name))?;
            match self.get(&name) {
                Ok((set_at, _)) => kept.push(KeptSecret { name, set_at }),
                // Somebody removed it meanwhile.
                Err(fault) if fault.is(Code::SecretNotFound) => {}
                Err(fault) => return Err(fault),
            }
        }
        kept.sort_by(|one, two| one.name.cmp(&two.name));
        Ok(kept)
    }

    /// Removes without reading, so that a damaged secret can be got rid of.
    fn remove(&self, name: &SecretName) -> Result<(), Fault> {
        let removed = self.folder.lock()?.remove(&folder::file_of(name))?;
        if removed { Ok(()) } else { Err(not_found(name)) }
    }
}

fn not_found(name: &SecretName) -> Fault {
    let message = format!("There is no secret {name}; set it with wharf secret set {name}.");
    Fault::new(Code::SecretNotFound, message).with("secret", name.as_str())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
