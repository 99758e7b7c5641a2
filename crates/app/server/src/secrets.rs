//! What a home is given once and keeps: the owner's token, the audit's key, the core's name.

use std::io;
use std::path::Path;

use wharf_journal::audit::AuditKey;
use wharf_vocab::{Code, Fault, NodeId};

use crate::{Home, files};

/// The owner's token; one is made if there is none.
pub(crate) fn owner_token(home: &Home) -> Result<String, Fault> {
    let path = home.owner_token_file();
    let kept =
        kept(home, &path, || Ok(format!("{}\n", hex::encode(random::<32>()?)).into_bytes()))?;
    let token = String::from_utf8(kept).unwrap_or_default().trim().to_owned();
    let fits = token.len() >= 16 && token.bytes().all(|b| b.is_ascii_graphic());
    if fits { Ok(token) } else { Err(spoiled(&path)) }
}

/// The key that seals the audit; one is made if there is none.
pub(crate) fn audit_key(home: &Home) -> Result<AuditKey, Fault> {
    let path = home.audit_key_file();
    key_of(&path, &kept(home, &path, || Ok(random::<32>()?.to_vec()))?)
}

/// The key that seals the audit, if there is one.
pub(crate) fn existing_audit_key(home: &Home) -> Result<Option<AuditKey>, Fault> {
    let path = home.audit_key_file();
    let read = files::read(&path).map_err(|error| crate::home::unreadable(&path, &error))?;
    read.map(|bytes| key_of(&path, &bytes)).transpose()
}

/// What addresses of the embedded artifact store are signed with: a name and a secret. They are
/// made if there are none.
pub(crate) fn storage_key(home: &Home) -> Result<(String, String), Fault> {
    let path = home.storage_key_file();
    let made = || {
        Ok(format!("wharf{} {}\n", hex::encode(random::<8>()?), hex::encode(random::<32>()?))
            .into_bytes())
    };
    let text = String::from_utf8(kept(home, &path, made)?).unwrap_or_default();
    let parts = text.trim().split_once(' ').map(|(id, secret)| (id.to_owned(), secret.to_owned()));
    parts.filter(|(id, secret)| id.len() >= 4 && secret.len() >= 32).ok_or_else(|| spoiled(&path))
}

/// The core's name among the cores of one Wharf; it stays the same across restarts.
pub(crate) fn node_id(home: &Home) -> Result<NodeId, Fault> {
    let path = home.node_file();
    let kept =
        kept(home, &path, || Ok(format!("n-{}\n", hex::encode(random::<8>()?)).into_bytes()))?;
    let text = String::from_utf8(kept).unwrap_or_default();
    NodeId::new(text.trim()).map_err(|_| spoiled(&path))
}

/// A number that nobody can guess.
pub(crate) fn seed(home: &Home) -> Result<u64, Fault> {
    let bytes = random::<8>().map_err(|error| home.unwritable(&error))?;
    Ok(u64::from_be_bytes(bytes))
}

fn kept(
    home: &Home,
    path: &Path,
    make: impl FnOnce() -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>, Fault> {
    let get = || {
        if let Some(found) = files::read(path)? {
            files::make_private(path, 0o600)?;
            return Ok(found);
        }
        let made = make()?;
        files::replace(path, &made)?;
        Ok(made)
    };
    get().map_err(|error| home.unwritable(&error))
}

fn key_of(path: &Path, bytes: &[u8]) -> Result<AuditKey, Fault> {
    let bytes = bytes.try_into().map_err(|_| spoiled(path))?;
    Ok(AuditKey::new(bytes))
}

fn spoiled(path: &Path) -> Fault {
    let message = format!(
        "{} is not what a core writes; put back the original, or remove it to get a new one.",
        path.display()
    );
    Fault::new(Code::ConfigInvalid, message)
}

pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn secrets_are_made_once_kept_and_private() {
        let (_dir, home) = Home::in_a_test();
        let token = owner_token(&home).expect("made");
        assert_eq!(token.len(), 64);
        assert_eq!(home.owner_token(), Ok(token.clone()));
        let (key, node) = (audit_key(&home).expect("made"), node_id(&home).expect("made"));
        assert_eq!(owner_token(&home), Ok(token));
        assert_eq!(existing_audit_key(&home), Ok(Some(key)));
        assert_eq!(node_id(&home), Ok(node));
        for path in [home.owner_token_file(), home.audit_key_file(), home.node_file()] {
            let mode = std::fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
    }

    #[test]
    fn what_was_spoiled_is_not_replaced_in_silence() {
        let (_dir, home) = Home::in_a_test();
        for path in [home.owner_token_file(), home.audit_key_file(), home.node_file()] {
            std::fs::write(&path, "??").expect("written");
        }
        assert!(owner_token(&home).is_err_and(|fault| fault.is(Code::ConfigInvalid)));
        assert!(audit_key(&home).is_err_and(|fault| fault.is(Code::ConfigInvalid)));
        assert!(node_id(&home).is_err_and(|fault| fault.is(Code::ConfigInvalid)));
    }
}
