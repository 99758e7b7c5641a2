//! Versions: what somebody saw is what they get, or they are told that it is gone.

use bytes::Bytes;
use wharf_vocab::Timestamp;

use super::{Subject, collect};
use wharf_ports::{BoundVersions, ObjectVersion};

impl Subject {
    async fn seen(&self, path: &str, bytes: &[u8]) -> ObjectVersion {
        self.write(path, bytes).await;
        let info = self.store.head(self.key(path)).await.expect("answered").expect("there");
        ObjectVersion::of(self.key(path), info)
    }

    /// What is read of a version, which must be what is located.
    async fn of_version(&self, wanted: &ObjectVersion) -> Option<Bytes> {
        let located = self.store.locate(wanted.clone()).await.expect("answered");
        let found = self.store.get_version(wanted.clone()).await.expect("answered");
        assert_eq!(located.is_some(), found.is_some());
        match found {
            Some(body) => Some(collect(body.stream).await),
            None => None,
        }
    }
}

/// A version that was replaced is read as it was, or not at all.
pub async fn a_version_is_read_as_it_was_seen_or_not_at_all(subject: Subject) {
    let seen = subject.seen("file", b"approved").await;
    assert_eq!(subject.of_version(&seen).await.as_deref(), Some(b"approved".as_slice()));
    subject.write("file", b"replaced").await;
    let kept = seen.version.is_some().then_some(b"approved".as_slice());
    assert_eq!(subject.of_version(&seen).await.as_deref(), kept);
    assert_eq!(subject.read("file").await.as_deref(), Some(b"replaced".as_slice()));
    subject.write("file", b"approved").await;
    let again = subject.of_version(&seen).await;
    assert_eq!(again.as_deref(), Some(b"approved".as_slice()), "the same bytes are as good");
    let unnamed = ObjectVersion { version: None, tag: None, ..seen };
    let found = subject.of_version(&unnamed).await;
    assert_eq!(found.as_deref(), Some(b"approved".as_slice()), "a hash is enough");
    subject.write("file", b"replaced").await;
    let located = subject.store.locate(unnamed.clone()).await.expect("answered");
    if let Some(located) = located {
        assert_eq!(subject.of_version(&located).await.as_deref(), Some(b"approved".as_slice()));
    }
    let none = ObjectVersion { key: subject.key("none"), ..unnamed };
    assert_eq!(subject.of_version(&none).await, None);
}

/// A sweep takes versions that were replaced, and leaves those that somebody is bound to.
pub async fn a_sweep_leaves_versions_that_somebody_is_bound_to(subject: Subject) {
    let (kept, gone) = (subject.seen("kept", b"one").await, subject.seen("gone", b"one").await);
    let Some(version) = kept.version.clone() else { return };
    for path in ["kept", "gone"] {
        subject.write(path, b"two").await;
    }
    let bound = BoundVersions::from([(kept.key.clone(), version)]);
    subject.store.sweep(Timestamp(u64::MAX / 2), bound).await.expect("swept");
    assert_eq!(subject.of_version(&kept).await.as_deref(), Some(b"one".as_slice()));
    // A server elsewhere keeps versions for as long as its own rules say.
    let left = subject.of_version(&gone).await;
    assert!(left.is_none() || subject.keeps_all_versions, "{left:?}");
}

/// An address for one version shows that one, whatever is written later.
pub async fn t032_an_address_of_a_version_shows_nothing_else(subject: Subject) {
    let seen = subject.seen("file", b"approved").await;
    let located = subject.store.locate(seen).await.expect("answered").expect("there");
    let address = subject.store.presign_version(&located, "holder", 600);
    let answer = subject.get_at(&address).await;
    assert_eq!((answer.status, answer.body), (200, "approved".into()));
    if located.version.is_none() {
        return;
    }
    subject.write("file", b"replaced by more").await;
    let answer = subject.get_at(&address).await;
    assert_eq!((answer.status, answer.body), (200, "approved".into()));
}
