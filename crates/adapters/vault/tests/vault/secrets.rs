//! Secrets are kept, listed, replaced and forgotten.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use wharf_ports::vault::{Secret, Vault};
use wharf_vault::SECRET_BYTES_MAX;
use wharf_vocab::Code;

use crate::{file, name, open, secret, vault};

#[tokio::test]
async fn a_secret_comes_back_also_after_a_restart_and_with_any_bytes() {
    let (home, vault) = vault();
    let bytes: Vec<u8> = (0..=255).collect();
    vault.set(name("api"), Secret::new(bytes.as_slice())).await.expect("kept");
    vault.set(name("API"), secret("upper")).await.expect("kept");
    let again = open(home.path());
    assert_eq!(again.get(name("api")).await.expect("there").expose(), bytes);
    assert_eq!(again.get(name("API")).await.expect("there").expose(), b"upper");
    vault.set(name("api"), secret("second")).await.expect("replaced");
    assert_eq!(again.get(name("api")).await.expect("there").expose(), b"second");
}

#[tokio::test]
async fn the_list_names_each_secret_and_when_it_was_set() {
    let (home, vault) = vault();
    assert_eq!(vault.list().await, Ok(Vec::new()));
    let before = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    for one in ["b", "a", "vault.key", "grant.keys", "A"] {
        vault.set(name(one), secret("text")).await.expect("kept");
    }
    // What is not a secret's file is nobody's business.
    std::fs::write(home.path().join("secrets/notes.txt"), "hello").expect("written");
    let listed = vault.list().await.expect("listed");
    let names: Vec<&str> = listed.iter().map(|kept| kept.name.as_str()).collect();
    assert_eq!(names, ["A", "a", "b", "grant.keys", "vault.key"]);
    let after = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    for kept in listed {
        assert!((before..=after).contains(&u128::from(kept.set_at.0)), "{kept:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_missing() {
    let (_home, vault) = vault();
    vault.set(name("here"), secret("text")).await.expect("kept");
    let missing = vault.get(name("gone")).await.expect_err("is not there");
    assert!(missing.is(Code::SecretNotFound) && missing.message.contains("gone"), "{missing}");
    let missing = vault.remove(name("gone")).await.expect_err("is not there");
    assert!(missing.is(Code::SecretNotFound), "{missing}");
    vault.remove(name("here")).await.expect("removed");
    assert!(vault.get(name("here")).await.is_err_and(|fault| fault.is(Code::SecretNotFound)));
}

#[tokio::test]
async fn a_secret_has_some_bytes_and_not_too_many() {
    let (_home, vault) = vault();
    let longest = vec![7; SECRET_BYTES_MAX];
    vault.set(name("long"), Secret::new(longest.as_slice())).await.expect("kept");
    assert_eq!(vault.get(name("long")).await.expect("there").expose(), longest);
    let longer = Secret::new(vec![7; SECRET_BYTES_MAX + 1]);
    let refused = vault.set(name("long"), longer).await.expect_err("too long");
    assert!(refused.is(Code::RequestTooLarge), "{refused}");
    let refused = vault.set(name("long"), secret("")).await.expect_err("empty");
    assert!(refused.is(Code::RequestInvalid), "{refused}");
    assert_eq!(vault.get(name("long")).await.expect("as before").expose(), longest);
}

#[tokio::test]
async fn r151_no_secret_lies_readable_on_the_disk_or_shows_in_words() {
    const CANARY: &str = "canary-7f3a91-in-the-vault";
    let (home, vault) = vault();
    vault.set(name("a"), secret(CANARY)).await.expect("kept");
    vault.set(name("a"), secret(&format!("{CANARY}-2"))).await.expect("replaced");
    let ring = vault.keyring().await.expect("made");
    let shown = format!("{ring:?} {:?}", vault.get(name("a")).await.expect("there"));
    assert!(!shown.contains("canary"), "{shown}");
    let key = std::fs::read(home.path().join("secrets/vault.key")).expect("there");
    let mut files = 0;
    for entry in std::fs::read_dir(home.path().join("secrets")).expect("there") {
        let path = entry.expect("read").path();
        let content = std::fs::read(&path).expect("read");
        let holds = |text: &[u8]| content.windows(text.len()).any(|part| part == text);
        assert!(!holds(b"canary"), "{}", path.display());
        assert!(!holds(&ring.keys[&ring.current]), "{}", path.display());
        assert_eq!(holds(&key), path.ends_with("vault.key"), "{}", path.display());
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        files += 1;
    }
    assert_eq!(files, 3);
    let folder = std::fs::metadata(home.path().join("secrets")).expect("there");
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_set_one_secret_at_once_one_wins_whole() {
    let (home, vault) = vault();
    let other = open(home.path());
    let vaults = [Arc::new(vault), Arc::new(other)];
    let texts: Vec<String> = (0..16).map(|n| format!("{n:02}").repeat(20_000)).collect();
    let sets = texts.iter().enumerate().map(|(at, text)| {
        let (vault, text) = (Arc::clone(&vaults[at % 2]), text.clone());
        tokio::spawn(async move { vault.set(name("a"), secret(&text)).await })
    });
    for set in sets.collect::<Vec<_>>() {
        // Whoever reads meanwhile sees a whole one as well, once there is one.
        if let Ok(found) = vaults[0].get(name("a")).await {
            assert!(texts.iter().any(|text| text.as_bytes() == found.expose()));
        }
        set.await.expect("ends").expect("kept");
    }
    let won = vaults[1].get(name("a")).await.expect("there");
    assert!(texts.iter().any(|text| text.as_bytes() == won.expose()));
    assert!(file(&home, "a").exists());
    let files = std::fs::read_dir(home.path().join("secrets")).expect("there").count();
    assert_eq!(files, 2, "the key, the secret and nothing else");
}
