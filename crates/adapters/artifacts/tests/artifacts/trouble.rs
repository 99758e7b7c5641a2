//! A store in S3 whose server is away, slow, failing or cut off.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use wharf_artifacts::{S3Objects, S3Options};
use wharf_ports::{
    ByteStream, ObjectError, ObjectErrorKind, ObjectStore as _, ObjectUpload, PutObject,
};

use crate::faulty::{Fault, Faulty, Seen};
use crate::seaweed;
use crate::support::{body, read, write};

/// A store behind something that behaves badly, and one that sees the same objects without it.
struct Case {
    faulty: Faulty,
    store: Arc<S3Objects>,
    plain: Arc<S3Objects>,
}

async fn case(script: impl Fn(usize, &Seen) -> Fault + Send + Sync + 'static) -> Case {
    let plain = seaweed::options();
    let faulty = Faulty::before(&plain.endpoint, script).await;
    let options = S3Options { endpoint: faulty.endpoint(), ..hasty(plain.clone()) };
    Case {
        faulty,
        store: S3Objects::open(&options).expect("opens"),
        plain: S3Objects::open(&plain).expect("opens"),
    }
}

/// Options with which waiting is short.
fn hasty(options: S3Options) -> S3Options {
    let byte_timeout = Duration::from_millis(500);
    S3Options { byte_timeout, tries: 4, pause: Duration::from_millis(1), ..options }
}

/// Fails so often, then passes.
fn fails(times: usize, fault: Fault) -> impl Fn(usize, &Seen) -> Fault {
    move |number, _| if number < times { fault } else { Fault::Pass }
}

/// Fails so many of the requests that are meant, and passes all others.
fn first_of(
    times: usize,
    fault: Fault,
    meant: impl Fn(&Seen) -> bool,
) -> impl Fn(usize, &Seen) -> Fault {
    let left = AtomicUsize::new(times);
    let take = move || left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
    move |_, seen| if meant(seen) && take() { fault } else { Fault::Pass }
}

fn check_quiet(error: &ObjectError) {
    let text = format!("{error} {error:?}");
    for secret in ["X-Amz", "Signature", "http://", "?"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test]
async fn t029_a_store_that_is_away_is_unavailable_and_says_so_without_an_address() {
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let endpoint = format!("http://{}", closed.local_addr().expect("an address"));
    drop(closed);
    let store = S3Objects::open(&hasty(S3Options::new(endpoint, "b-b", "k", "s"))).expect("opens");
    let failures = [
        store.head("w/x".to_owned()).await.expect_err("away"),
        store.get("w/x".to_owned(), None).await.expect_err("away"),
        store.put(unknown("w/x"), body(b"x")).await.expect_err("away"),
        store.put(unknown("w/x"), body(&vec![7; 20_000_000])).await.expect_err("away"),
        store.delete("w/x".to_owned()).await.expect_err("away"),
        store.list("w/".to_owned(), None, 1).await.expect_err("away"),
        store.check().await.expect_err("away"),
    ];
    for error in failures {
        assert_eq!(error.kind, ObjectErrorKind::Unavailable, "{error}");
        check_quiet(&error);
    }
}

#[tokio::test]
async fn t029_what_fails_for_a_while_is_tried_again() {
    for fault in [Fault::Status(500), Fault::Status(503), Fault::Silent] {
        let case = case(fails(3, fault)).await;
        write(&*case.store, "w/file", b"content").await;
        assert_eq!(case.faulty.seen().len(), 4, "{fault:?}");
        assert_eq!(read(&*case.plain, "w/file").await.as_deref(), Some(b"content".as_slice()));
    }
    for fault in [Fault::Status(502), Fault::Forget, Fault::Silent] {
        let case = case(fails(2, fault)).await;
        write(&*case.plain, "w/file", b"content").await;
        assert_eq!(read(&*case.store, "w/file").await.as_deref(), Some(b"content".as_slice()));
        assert_eq!(case.faulty.seen().len(), 3, "{fault:?}");
    }
}

#[tokio::test]
async fn t029_what_fails_for_good_is_given_up() {
    for (fault, kind, requests) in [
        (Fault::Status(500), ObjectErrorKind::Unavailable, 4),
        (Fault::Silent, ObjectErrorKind::Unavailable, 4),
        (Fault::Status(403), ObjectErrorKind::Denied, 1),
        (Fault::Status(507), ObjectErrorKind::Full, 1),
    ] {
        let case = case(move |_, _| fault).await;
        let error = case.store.head("w/file".to_owned()).await.expect_err("fails");
        assert_eq!(error.kind, kind, "{error}");
        check_quiet(&error);
        assert_eq!(case.faulty.seen().len(), requests, "{fault:?}");
        let error = case.store.put(unknown("w/file"), body(b"x")).await.expect_err("fails");
        assert_eq!(error.kind, kind, "{error}");
        assert_eq!(case.faulty.seen().len(), 2 * requests, "{fault:?}");
    }
}

#[tokio::test]
async fn t029_a_download_goes_on_where_it_stopped() {
    let whole: Vec<u8> =
        (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for fault in [Fault::Cut(1_000_000), Fault::Stall(1_000_000)] {
        let case = case(fails(2, fault)).await;
        write(&*case.plain, "w/file", &whole).await;
        assert!(read(&*case.store, "w/file").await.expect("there") == whole, "{fault:?}");
        let ranges: Vec<_> = case.faulty.seen().into_iter().map(|seen| seen.range).collect();
        let from = |start| Some(format!("bytes={start}-2999999"));
        assert_eq!(ranges, [None, from(1_000_000), from(2_000_000)], "{fault:?}");
    }
}

#[tokio::test]
async fn a_download_that_gets_nowhere_ends_with_an_error() {
    let case = case(|number, _| Fault::Cut(if number == 0 { 1_000_000 } else { 0 })).await;
    write(&*case.plain, "w/file", &vec![7; 3_000_000]).await;
    let found = case.store.get("w/file".to_owned(), None).await.expect("answered").expect("there");
    let error = found.stream.try_collect::<Vec<_>>().await.expect_err("never whole");
    assert_eq!(error.kind, ObjectErrorKind::Unavailable, "{error}");
    check_quiet(&error);
    assert_eq!(case.faulty.seen().len(), 4);
}

#[tokio::test]
async fn a_download_never_mixes_two_versions() {
    let case = case(fails(1, Fault::Stall(1_000))).await;
    write(&*case.plain, "w/file", &[1; 100_000]).await;
    let mut found =
        case.store.get("w/file".to_owned(), None).await.expect("answered").expect("there");
    let first = found.stream.next().await.expect("a piece").expect("read");
    assert_eq!(first.as_ref(), [1; 1_000]);
    write(&*case.plain, "w/file", &[2; 100_000]).await;
    let error = found.stream.try_collect::<Vec<_>>().await.expect_err("it was replaced");
    assert_eq!(error.kind, ObjectErrorKind::Mismatch, "{error}");
}

#[tokio::test]
async fn parts_of_a_large_object_are_sent_again() {
    let script = first_of(2, Fault::Status(500), |seen| seen.query.contains("partNumber=2"));
    let case = case(script).await;
    let whole = vec![7; 40_000_000];
    let written = write(&*case.store, "w/film", &whole).await;
    assert_eq!(written.b3.expect("hashed").as_str(), blake3::hash(&whole).to_hex().as_str());
    assert!(read(&*case.plain, "w/film").await.expect("there") == whole, "other bytes");
    let seen = case.faulty.seen();
    let second = seen.iter().filter(|seen| seen.query.contains("partNumber=2")).count();
    assert_eq!(second, 3, "{seen:?}");
}

#[tokio::test]
async fn an_answer_that_was_lost_does_not_undo_what_is_done() {
    // The upload is completed, but nobody hears of it the first time.
    let completes = |seen: &Seen| seen.method == "POST" && seen.query.contains("uploadId");
    let script = first_of(1, Fault::Forget, completes);
    let case = case(script).await;
    let whole = vec![7; 20_000_000];
    let written = write(&*case.store, "w/film", &whole).await;
    assert_eq!(written.bytes, 20_000_000);
    assert!(read(&*case.plain, "w/film").await.expect("there") == whole, "other bytes");
}

#[tokio::test]
async fn a_large_put_that_nobody_waits_for_is_given_up() {
    let case = case(|_, _| Fault::Pass).await;
    let endless: ByteStream = body(&vec![7; 20_000_000]).chain(stream::pending()).boxed();
    let mut putting = case.store.put(unknown("w/film"), endless).boxed();
    let begun = Instant::now();
    let seen = |method: &str, query: &str| {
        let found = case.faulty.seen();
        found.iter().any(|seen| seen.method == method && seen.query.contains(query))
    };
    while !seen("PUT", "partNumber=1") {
        let polled = tokio::time::timeout(Duration::from_millis(20), &mut putting).await;
        assert!(polled.is_err() && begun.elapsed() < Duration::from_secs(20), "never begun");
    }
    drop(putting);
    while !seen("DELETE", "uploadId") {
        assert!(begun.elapsed() < Duration::from_secs(20), "the parts were left behind");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(read(&*case.plain, "w/film").await, None);
}

#[tokio::test]
async fn a_part_too_large_to_keep_is_sent_as_it_comes() {
    let case = case(|_, _| Fault::Pass).await;
    let key = "w/film".to_owned();
    let id = case.store.begin_upload(key.clone(), "video/mp4".to_owned()).await.expect("begun");
    let upload = ObjectUpload { key, id };
    let part = vec![7; 17_000_000];
    let bytes = part.len() as u64;
    let short = case.store.put_part(upload.clone(), 1, bytes + 1, body(&part)).await;
    assert_eq!(short.expect_err("too short").kind, ObjectErrorKind::Mismatch);
    let error = ObjectError::new(ObjectErrorKind::Interrupted, "the sender went away");
    let broken = body(&part[..1_000]).chain(stream::iter([Err(error)])).boxed();
    let broken = case.store.put_part(upload.clone(), 1, bytes, broken).await;
    assert_eq!(broken.expect_err("broke off").kind, ObjectErrorKind::Interrupted);
    case.store.put_part(upload.clone(), 1, bytes, body(&part)).await.expect("taken");
    let whole = case.store.complete_upload(upload, None).await.expect("completed");
    assert_eq!(whole.b3.expect("hashed").as_str(), blake3::hash(&part).to_hex().as_str());
}

#[tokio::test]
async fn an_object_too_large_for_one_request_is_copied_in_parts() {
    let limit = 5 * 1024 * 1024;
    let options = S3Options { copy_bytes_max: limit, ..seaweed::options() };
    let store = S3Objects::open(&options).expect("opens");
    let whole: Vec<u8> = (0..12_000_000_u32).map(|n| (n >> 8) as u8).collect();
    write(&*store, "w/from", &whole).await;
    let copied = store.copy("w/from".to_owned(), "w/to é".to_owned()).await.expect("copied");
    assert_eq!((copied.bytes, copied.media_type.as_str()), (12_000_000, "text/plain"));
    assert_eq!(copied.b3.expect("kept").as_str(), blake3::hash(&whole).to_hex().as_str());
    assert!(read(&*store, "w/to é").await.expect("there") == whole, "other bytes");
}

#[tokio::test]
async fn other_keys_and_buckets_are_told_from_a_server_that_is_away() {
    let good = seaweed::options();
    let other = S3Options { secret: "another".to_owned(), ..good.clone() };
    let store = S3Objects::open(&other).expect("opens");
    assert_eq!(store.check().await.expect_err("refused").kind, ObjectErrorKind::Denied);
    assert_eq!(
        store.head("w/x".to_owned()).await.expect_err("refused").kind,
        ObjectErrorKind::Denied
    );
    let other = S3Options { bucket: "no-such-bucket".to_owned(), ..good };
    let store = S3Objects::open(&other).expect("opens");
    assert_eq!(store.check().await.expect_err("refused").kind, ObjectErrorKind::Denied);
}

fn unknown(key: &str) -> PutObject {
    let media_type = "text/plain".to_owned();
    PutObject { key: key.to_owned(), media_type, bytes: None, b3: None }
}
