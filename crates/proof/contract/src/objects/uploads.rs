//! Uploads in parts.

use wharf_vocab::Timestamp;
use wharf_vocab::limits::UPLOAD_PART_BYTES_MIN;

use super::{Subject, body, broken, hash, noise};
use wharf_ports::{BoundVersions, ObjectErrorKind, ObjectUpload, UploadPart};

impl Subject {
    async fn begin(&self, path: &str) -> ObjectUpload {
        let key = self.key(path);
        let id = self.store.begin_upload(key.clone(), "video/mp4".to_owned()).await;
        ObjectUpload { key, id: id.expect("begun") }
    }

    async fn part(&self, upload: &ObjectUpload, number: u32, bytes: &[u8]) -> UploadPart {
        let said = bytes.len() as u64;
        let part = self.store.put_part(upload.clone(), number, said, body(bytes)).await;
        part.expect("taken")
    }
}

/// The smallest part that may have others behind it.
fn least() -> usize {
    usize::try_from(UPLOAD_PART_BYTES_MIN).expect("small")
}

/// Parts in order become one object, which nobody sees before.
pub async fn parts_become_one_object(subject: Subject) {
    let bytes = noise(2 * least() + 1_000);
    let upload = subject.begin("film").await;
    assert_eq!(subject.store.parts(upload.clone()).await, Ok(Some(Vec::new())));
    let mut sent = Vec::new();
    for (number, part) in (1..).zip(bytes.chunks(least())) {
        sent.push(subject.part(&upload, number, part).await);
        assert_eq!(sent[sent.len() - 1].bytes, part.len() as u64);
    }
    assert_eq!(subject.store.parts(upload.clone()).await, Ok(Some(sent)));
    assert_eq!(subject.store.head(subject.key("film")).await, Ok(None));
    let whole = subject.store.complete_upload(upload.clone(), Some(hash(&bytes))).await;
    let whole = whole.expect("completed");
    assert_eq!((whole.bytes, whole.b3), (bytes.len() as u64, Some(hash(&bytes))));
    assert_eq!(whole.media_type, "video/mp4");
    assert!(subject.read("film").await.expect("there") == bytes, "other bytes");
    assert_eq!(subject.store.parts(upload).await, Ok(None));
}

/// The number of a part is its place, whenever it comes; the last of a number counts.
pub async fn parts_may_come_in_any_order_and_twice(subject: Subject) {
    let bytes = noise(2 * least() + 10);
    let upload = subject.begin("film").await;
    let first = subject.part(&upload, 1, b"not this").await;
    let (head, tail) = bytes.split_at(2 * least());
    subject.part(&upload, 3, tail).await;
    subject.part(&upload, 2, &head[least()..]).await;
    let again = subject.part(&upload, 1, &head[..least()]).await;
    assert_ne!(first.tag, again.tag);
    let cut = subject.store.put_part(upload.clone(), 2, 10, broken(b"123")).await;
    assert_eq!(cut.expect_err("broke off").kind, ObjectErrorKind::Interrupted);
    let short = subject.store.put_part(upload.clone(), 2, 10, body(b"123")).await;
    assert_eq!(short.expect_err("too short").kind, ObjectErrorKind::Mismatch);
    let parts = subject.store.parts(upload.clone()).await.expect("answered").expect("there");
    let numbers: Vec<_> = parts.iter().map(|part| (part.number, part.bytes)).collect();
    assert_eq!(numbers, [(1, UPLOAD_PART_BYTES_MIN), (2, UPLOAD_PART_BYTES_MIN), (3, 10)]);
    let whole = subject.store.complete_upload(upload, Some(hash(&bytes))).await;
    assert_eq!(whole.expect("completed").bytes, bytes.len() as u64);
    assert!(subject.read("film").await.expect("there") == bytes, "other bytes");
}

/// An object that is not what it should be does not stay.
pub async fn an_upload_of_another_hash_leaves_nothing(subject: Subject) {
    for in_order in [true, false] {
        let upload = subject.begin("film").await;
        if !in_order {
            subject.part(&upload, 1, b"replaced").await;
        }
        subject.part(&upload, 1, b"content").await;
        let refused = subject.store.complete_upload(upload.clone(), Some(hash(b"other"))).await;
        assert_eq!(refused.expect_err("another hash").kind, ObjectErrorKind::Mismatch);
        assert_eq!(subject.store.head(subject.key("film")).await, Ok(None), "{in_order}");
        subject.store.abort_upload(upload).await.expect("given up");
    }
}

/// An upload that was given up takes nothing any more.
pub async fn an_upload_given_up_is_gone(subject: Subject) {
    let upload = subject.begin("film").await;
    subject.part(&upload, 1, b"content").await;
    for _ in 0..2 {
        subject.store.abort_upload(upload.clone()).await.expect("given up");
    }
    assert_eq!(subject.store.parts(upload.clone()).await, Ok(None));
    let refused = subject.store.put_part(upload.clone(), 1, 1, body(b"x")).await;
    assert_eq!(refused.expect_err("gone").kind, ObjectErrorKind::NotFound);
    let refused = subject.store.complete_upload(upload, None).await;
    assert_eq!(refused.expect_err("gone").kind, ObjectErrorKind::NotFound);
    assert_eq!(subject.store.head(subject.key("film")).await, Ok(None));
}

/// An id is good for its own key only.
pub async fn an_upload_that_is_unknown_is_not_found(subject: Subject) {
    let upload = subject.begin("film").await;
    let other = ObjectUpload { key: subject.key("other"), ..upload.clone() };
    let unknown = ObjectUpload { id: "0123456789abcdef".to_owned(), ..upload.clone() };
    for wrong in [other, unknown] {
        assert_eq!(subject.store.parts(wrong.clone()).await, Ok(None), "{wrong:?}");
        let refused = subject.store.put_part(wrong.clone(), 1, 1, body(b"x")).await;
        assert_eq!(refused.expect_err("unknown").kind, ObjectErrorKind::NotFound, "{wrong:?}");
        let refused = subject.store.complete_upload(wrong.clone(), None).await;
        assert_eq!(refused.expect_err("unknown").kind, ObjectErrorKind::NotFound, "{wrong:?}");
        assert_eq!(subject.store.abort_upload(wrong).await, Ok(()));
    }
    assert_eq!(subject.store.parts(upload).await, Ok(Some(Vec::new())));
}

/// A sweep ends uploads that were begun before a moment; objects stay.
pub async fn a_sweep_ends_old_uploads_and_nothing_else(subject: Subject) {
    subject.write("file", b"content").await;
    let upload = subject.begin("film").await;
    subject.part(&upload, 1, b"content").await;
    subject.store.sweep(Timestamp(1), BoundVersions::new()).await.expect("swept");
    let parts = subject.store.parts(upload.clone()).await.expect("answered");
    assert_eq!(parts.map(|parts| parts.len()), Some(1));
    subject.store.sweep(Timestamp(u64::MAX / 2), BoundVersions::new()).await.expect("swept");
    assert_eq!(subject.store.parts(upload).await, Ok(None));
    assert_eq!(subject.read("file").await.as_deref(), Some(b"content".as_slice()));
}
