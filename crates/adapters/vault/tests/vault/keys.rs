//! The keys tokens are sealed with.

use std::fs;

use wharf_ports::vault::Vault;

use crate::{open, vault};

#[tokio::test]
async fn the_first_key_is_made_once_and_kept() {
    let (home, vault) = vault();
    assert!(!home.path().join("secrets/grant.keys").exists());
    let made = vault.keyring().await.expect("made");
    assert_eq!(made.keys.len(), 1);
    assert_ne!(made.keys[&made.current], [0; 32]);
    assert_eq!(vault.keyring().await.as_ref(), Ok(&made));
    assert_eq!(open(home.path()).keyring().await, Ok(made));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_ask_at_once_for_the_first_key_get_the_same() {
    let (home, vault) = vault();
    let other = open(home.path());
    let (one, two, three) = tokio::join!(vault.keyring(), other.keyring(), vault.keyring());
    assert_eq!(one, two);
    assert_eq!(two, three);
}

#[tokio::test]
async fn a_new_key_seals_and_older_ones_stay_good_up_to_eight() {
    let (home, vault) = vault();
    let mut rings = vec![vault.keyring().await.expect("made")];
    for _ in 0..12 {
        rings.push(vault.rotate(false).await.expect("rotated"));
    }
    let last = rings.last().expect("some");
    assert_eq!(last.keys.len(), 9);
    for (at, ring) in rings.iter().enumerate() {
        let kept = last.keys.get(&ring.current);
        let own = ring.keys[&ring.current];
        assert_eq!(kept, (at >= 4).then_some(&own), "the key of rotation {at}");
    }
    assert_eq!(open(home.path()).keyring().await.as_ref(), Ok(last));
}

#[tokio::test]
async fn dropping_old_keys_leaves_one_with_a_name_that_was_never_used() {
    let (home, vault) = vault();
    let first = vault.keyring().await.expect("made");
    vault.rotate(false).await.expect("rotated");
    let dropped = vault.rotate(true).await.expect("rotated");
    assert_eq!(dropped.keys.len(), 1);
    assert!(dropped.keys.contains_key(&dropped.current));
    assert_ne!(dropped.current, first.current);
    assert_eq!(open(home.path()).keyring().await.as_ref(), Ok(&dropped));
    let next = vault.rotate(false).await.expect("rotated");
    assert_eq!(next.keys.len(), 2);
    assert_ne!(next.current, dropped.current);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_rotation_is_lost_when_two_rotate_at_once() {
    let (home, vault) = vault();
    vault.keyring().await.expect("made");
    let other = open(home.path());
    let (one, two) = tokio::join!(vault.rotate(false), other.rotate(false));
    let (one, two) = (one.expect("rotated"), two.expect("rotated"));
    assert_ne!(one.current, two.current);
    assert_eq!(vault.keyring().await.expect("there").keys.len(), 3);
    let files = fs::read_dir(home.path().join("secrets")).expect("there").count();
    assert_eq!(files, 2);
}
