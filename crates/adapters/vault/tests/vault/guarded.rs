//! What was changed, swapped or laid open is refused with a clear word.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use wharf_ports::vault::Vault;
use wharf_vault::FileVault;
use wharf_vocab::Code;

use crate::{file, name, open, secret, vault};

#[tokio::test]
async fn a_secret_put_in_place_of_another_is_refused() {
    let (home, vault) = vault();
    vault.set(name("a"), secret("one")).await.expect("kept");
    vault.set(name("b"), secret("two")).await.expect("kept");
    fs::copy(file(&home, "a"), file(&home, "b")).expect("swapped");
    let refused = vault.get(name("b")).await.expect_err("swapped");
    assert!(refused.is(Code::StoreCorrupt) && refused.message.contains("b.0.secret"), "{refused}");
    assert_eq!(vault.get(name("a")).await.expect("untouched").expose(), b"one");
    // The keys of tokens cannot stand for a secret either, nor a secret for them.
    vault.keyring().await.expect("made");
    let keys = home.path().join("secrets/grant.keys");
    fs::copy(&keys, file(&home, "b")).expect("swapped");
    assert!(vault.get(name("b")).await.is_err_and(|fault| fault.is(Code::StoreCorrupt)));
    fs::copy(file(&home, "a"), &keys).expect("swapped");
    assert!(vault.keyring().await.is_err_and(|fault| fault.is(Code::StoreCorrupt)));
    assert!(vault.rotate(false).await.is_err_and(|fault| fault.is(Code::StoreCorrupt)));
}

#[tokio::test]
async fn a_changed_byte_anywhere_is_found_and_the_secret_can_be_removed() {
    let (home, vault) = vault();
    vault.set(name("a"), secret("some text")).await.expect("kept");
    let whole = fs::read(file(&home, "a")).expect("read");
    // The mark, its version, the nonce, the time, the text and the tag all lie in here.
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x20;
        fs::write(file(&home, "a"), changed).expect("written");
        let refused = vault.get(name("a")).await.expect_err("changed");
        assert!(refused.is(Code::StoreCorrupt), "byte {at}: {refused}");
        assert!(!refused.message.contains("some"), "{refused}");
    }
    for length in [0, 8, 31, 32, whole.len() - 1] {
        fs::write(file(&home, "a"), &whole[..length]).expect("written");
        let refused = vault.get(name("a")).await.expect_err("cut");
        assert!(refused.is(Code::StoreCorrupt), "cut at {length}: {refused}");
    }
    fs::write(file(&home, "a"), vec![0; 10_000_000]).expect("written");
    assert!(vault.get(name("a")).await.is_err_and(|fault| fault.is(Code::StoreCorrupt)));
    assert!(vault.list().await.is_err_and(|fault| fault.is(Code::StoreCorrupt)));
    vault.remove(name("a")).await.expect("removed");
    assert_eq!(vault.list().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_secret_file_under_a_foreign_name_is_told() {
    let (home, vault) = vault();
    fs::write(home.path().join("secrets/a.2.secret"), "x").expect("written");
    let refused = vault.list().await.expect_err("no such name");
    assert!(refused.is(Code::StoreCorrupt) && refused.message.contains("a.2.secret"), "{refused}");
}

#[tokio::test]
async fn another_key_opens_nothing() {
    let (home, vault) = vault();
    vault.set(name("a"), secret("text")).await.expect("kept");
    vault.keyring().await.expect("made");
    fs::write(home.path().join("secrets/vault.key"), [7; 32]).expect("written");
    let vault = open(home.path());
    let refused = vault.get(name("a")).await.expect_err("another key");
    assert!(refused.is(Code::StoreCorrupt) && refused.message.contains("vault.key"), "{refused}");
    assert!(vault.keyring().await.is_err_and(|fault| fault.is(Code::StoreCorrupt)));
}

#[tokio::test]
async fn a_key_that_is_open_to_others_spoiled_or_gone_is_not_replaced_in_silence() {
    let (home, vault) = vault();
    vault.set(name("a"), secret("text")).await.expect("kept");
    let key = home.path().join("secrets/vault.key");
    let whole = fs::read(&key).expect("there");
    let refused = |what: &str| {
        let fault = FileVault::open(home.path().join("secrets")).err().expect(what);
        assert!(fault.is(Code::ConfigInvalid), "{what}: {fault}");
        assert!(fault.message.contains("vault.key"), "{what}: {fault}");
    };
    for mode in [0o640, 0o604, 0o620, 0o601] {
        fs::set_permissions(&key, Permissions::from_mode(mode)).expect("set");
        refused("open to others");
    }
    fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("set");
    for spoiled in [&whole[..31], &[whole.as_slice(), b"\n"].concat(), b"", &[0; 32]] {
        fs::write(&key, spoiled).expect("written");
        refused("spoiled");
        assert_eq!(fs::read(&key).expect("still there"), spoiled);
    }
    fs::remove_file(&key).expect("removed");
    refused("gone");
    assert!(!key.exists());
    std::os::unix::fs::symlink("/dev/zero", &key).expect("linked");
    refused("a link");
    fs::remove_file(&key).expect("removed");
    fs::create_dir(&key).expect("made");
    refused("a folder");
    fs::remove_dir(&key).expect("removed");
    fs::write(&key, &whole).expect("put back");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("set");
    assert_eq!(open(home.path()).get(name("a")).await.expect("there").expose(), b"text");
}

#[tokio::test]
async fn a_folder_that_was_open_to_others_is_closed_and_a_link_refused() {
    let (home, _vault) = vault();
    let folder = home.path().join("secrets");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("set");
    open(home.path());
    let mode = fs::metadata(&folder).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&folder, &link).expect("linked");
    let refused = FileVault::open(link).err().expect("a link");
    assert!(refused.is(Code::ConfigInvalid), "{refused}");
}
