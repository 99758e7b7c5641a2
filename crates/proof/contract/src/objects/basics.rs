//! One object: written, read, replaced, copied, removed.

use futures::future::join_all;

use super::{Subject, body, broken, collect, hash, noise, pieces, put};
use wharf_ports::{ByteStream, ObjectErrorKind, PutObject};

/// Large enough not to be sent in one piece by any store.
const LARGE_BYTES: usize = 40 * 1024 * 1024 + 12_345;

/// What goes in comes out, under any name.
pub async fn an_object_comes_back_as_it_went_in(subject: Subject) {
    for path in ["plain", "deep/er/file.txt", "a b+c%20é&?=#'\"<>", "@run/x", "~", "日本/語"] {
        let bytes = noise(300_000);
        let written = subject.write(path, &bytes).await;
        assert_eq!(written.bytes, 300_000);
        assert_eq!(written.b3, Some(hash(&bytes)), "{path}");
        assert_eq!(written.media_type, "text/plain");
        let head = subject.store.head(subject.key(path)).await.expect("answered").expect("there");
        assert_eq!((head.bytes, &head.media_type), (300_000, &written.media_type), "{path}");
        assert_eq!(head.b3, Some(hash(&bytes)), "{path}");
        assert_eq!(head.tag, written.tag, "{path}");
        let found = subject.store.get(subject.key(path), None).await.expect("answered");
        let found = found.expect("there");
        assert_eq!(found.info, head, "{path}");
        assert!(collect(found.stream).await == bytes, "{path}: other bytes");
    }
}

/// An object may have no bytes.
pub async fn an_empty_object_is_an_object(subject: Subject) {
    let written = subject.write("empty", b"").await;
    assert_eq!((written.bytes, written.b3), (0, Some(hash(b""))));
    let head = subject.store.head(subject.key("empty")).await.expect("answered").expect("there");
    assert_eq!(head.bytes, 0);
    assert_eq!(subject.read("empty").await.expect("there").len(), 0);
}

/// What is not there is none, and is not an error.
pub async fn t037_what_is_not_there_is_none(subject: Subject) {
    subject.write("there", b"x").await;
    for path in ["not", "ther", "there/x", "there2"] {
        let key = subject.key(path);
        assert_eq!(subject.store.head(key.clone()).await, Ok(None), "{path}");
        assert!(subject.store.get(key.clone(), None).await.expect("answered").is_none());
        assert!(subject.store.get(key.clone(), Some(0..1)).await.expect("answered").is_none());
        assert_eq!(subject.store.delete(key.clone()).await, Ok(()));
        let copied = subject.store.copy(key, subject.key("copy")).await;
        assert_eq!(copied.expect_err("nothing to copy").kind, ObjectErrorKind::NotFound);
    }
    assert_eq!(subject.store.head(subject.key("copy")).await, Ok(None));
}

/// A range gives the bytes within it.
pub async fn a_range_gives_just_its_bytes(subject: Subject) {
    let bytes = noise(1_200_000);
    subject.write("file", &bytes).await;
    for (start, end) in [(0, 1), (0, 1_200_000), (1_199_999, 1_200_000), (5, 600_005), (7, 7)] {
        let range = u64::try_from(start).expect("small")..u64::try_from(end).expect("small");
        let found = subject.store.get(subject.key("file"), Some(range)).await.expect("answered");
        let found = found.expect("there");
        assert_eq!(found.info.bytes, 1_200_000, "the whole object is described");
        assert!(collect(found.stream).await == bytes[start..end], "{start}..{end}");
    }
}

/// The new object has nothing of the old one.
pub async fn writing_again_replaces_the_whole(subject: Subject) {
    let first = subject.write("file", b"a long first content").await;
    let second = subject.write("file", b"short").await;
    assert_ne!(first.tag, second.tag);
    assert_eq!(subject.read("file").await.as_deref(), Some(b"short".as_slice()));
    let head = subject.store.head(subject.key("file")).await.expect("answered").expect("there");
    assert_eq!((head.bytes, head.tag), (5, second.tag));
}

/// A body that is shorter or longer than it should be is not written.
pub async fn a_body_of_another_length_is_refused(subject: Subject) {
    subject.write("file", b"before").await;
    let large = noise(LARGE_BYTES);
    for (bytes, said) in [(&large[..10], 11), (&large[..10], 9), (&large, LARGE_BYTES - 1)] {
        let mut put = put(subject.key("file"), None);
        put.bytes = Some(said as u64);
        let refused = subject.store.put(put, body(bytes)).await.expect_err("another length");
        assert_eq!(refused.kind, ObjectErrorKind::Mismatch, "{refused}");
        assert_eq!(subject.read("file").await.as_deref(), Some(b"before".as_slice()));
    }
}

/// A body whose hash is another one is not written.
pub async fn a_body_with_another_hash_is_refused(subject: Subject) {
    subject.write("file", b"before").await;
    let large = noise(LARGE_BYTES);
    for bytes in [&large[..10], &large] {
        let mut put = put(subject.key("file"), None);
        put.b3 = Some(hash(b"something else"));
        let refused = subject.store.put(put, body(bytes)).await.expect_err("another hash");
        assert_eq!(refused.kind, ObjectErrorKind::Mismatch, "{refused}");
        assert_eq!(subject.read("file").await.as_deref(), Some(b"before".as_slice()));
    }
}

/// A sender that goes away leaves what was there, and nothing where there was nothing.
pub async fn a_body_that_breaks_off_changes_nothing(subject: Subject) {
    subject.write("file", b"before").await;
    let large = noise(LARGE_BYTES);
    for bytes in [&large[..0], &large[..10], &large] {
        for path in ["file", "new"] {
            let put = put(subject.key(path), None);
            let failed = subject.store.put(put, broken(bytes)).await.expect_err("broke off");
            assert_eq!(failed.kind, ObjectErrorKind::Interrupted, "{failed}");
        }
        assert_eq!(subject.read("file").await.as_deref(), Some(b"before".as_slice()));
        assert_eq!(subject.store.head(subject.key("new")).await, Ok(None));
    }
}

/// An object of which neither length nor hash is known before it is read.
pub async fn a_large_object_comes_back_in_pieces(subject: Subject) {
    let bytes = noise(LARGE_BYTES);
    let put = PutObject { media_type: "video/mp4".to_owned(), ..put(subject.key("film"), None) };
    let sent: ByteStream = pieces(&bytes, 123_457);
    let written = subject.store.put(put, sent).await.expect("written");
    assert_eq!((written.bytes, written.b3), (LARGE_BYTES as u64, Some(hash(&bytes))));
    let head = subject.store.head(subject.key("film")).await.expect("answered").expect("there");
    assert_eq!((head.bytes, head.media_type.as_str()), (LARGE_BYTES as u64, "video/mp4"));
    assert!(subject.read("film").await.expect("there") == bytes, "other bytes");
}

/// A copy does not change with its source, and making it again changes nothing.
pub async fn a_copy_is_an_object_of_its_own(subject: Subject) {
    subject.write("from", b"content").await;
    let (from, to) = (subject.key("from"), subject.key("deep/to"));
    let copied = subject.store.copy(from.clone(), to.clone()).await.expect("copied");
    assert_eq!(
        (copied.bytes, copied.b3, copied.media_type.as_str()),
        (7, Some(hash(b"content")), "text/plain")
    );
    subject.store.copy(from.clone(), to.clone()).await.expect("copied again");
    assert_eq!(subject.read("deep/to").await.as_deref(), Some(b"content".as_slice()));
    subject.write("from", b"changed").await;
    assert_eq!(subject.read("deep/to").await.as_deref(), Some(b"content".as_slice()));
    subject.store.copy(from.clone(), to.clone()).await.expect("copied anew");
    subject.store.delete(from).await.expect("removed");
    assert_eq!(subject.read("deep/to").await.as_deref(), Some(b"changed".as_slice()));
}

/// Removing takes effect at once and may be done twice.
pub async fn what_is_removed_is_gone(subject: Subject) {
    subject.write("file", b"content").await;
    subject.write("file", b"content again").await;
    subject.write("file/below", b"other").await;
    for _ in 0..2 {
        subject.store.delete(subject.key("file")).await.expect("removed");
        assert_eq!(subject.read("file").await, None);
    }
    assert_eq!(subject.read("file/below").await.as_deref(), Some(b"other".as_slice()));
    subject.write("file", b"new").await;
    assert_eq!(subject.read("file").await.as_deref(), Some(b"new".as_slice()));
}

/// Whoever writes last wins, and wins as a whole.
pub async fn many_writers_of_one_key_leave_one_of_their_objects(subject: Subject) {
    let object = |index: usize| noise(10_000 + index * 7);
    let writes = (0..100).map(|index| {
        let bytes = object(index);
        let put = put(subject.key("file"), Some(&bytes));
        subject.store.put(put, body(&bytes))
    });
    for written in join_all(writes).await {
        written.expect("written");
    }
    let found = subject.store.get(subject.key("file"), None).await.expect("answered");
    let found = found.expect("there");
    let index = usize::try_from(found.info.bytes).expect("small").saturating_sub(10_000) / 7;
    assert!(index < 100, "{} bytes were never written", found.info.bytes);
    assert_eq!(found.info.b3, Some(hash(&object(index))));
    assert!(collect(found.stream).await == object(index), "a mixture");
}
