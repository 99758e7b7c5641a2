//! An S3 that keeps versions: the embedded endpoint, spoken to as any other server.

use futures::TryStreamExt as _;
use wharf_artifacts::{S3Objects, S3Options};
use wharf_contract::objects::{PlainClient as _, Request};
use wharf_ports::{ObjectStore as _, ObjectVersion};

use crate::support::{self, Embedded, read, write};

#[tokio::test]
async fn a_version_in_another_s3_is_read_and_addressed_by_its_id() {
    let server = Embedded::start().await;
    let keys = support::credentials();
    let endpoint = format!("http://{}", server.serving.addr());
    let options = S3Options::new(endpoint, "wharf", keys.key_id, keys.secret);
    let store = S3Objects::open(&options).expect("opens");
    write(&*store, "w/file", b"approved").await;
    let info = store.head("w/file".to_owned()).await.expect("answered").expect("there");
    let seen = ObjectVersion::of("w/file".to_owned(), info);
    assert!(seen.version.is_some() && seen.tag.is_none(), "{seen:?}");
    write(&*store, "w/file", b"something else").await;
    let located = store.locate(seen.clone()).await.expect("answered");
    assert_eq!(located, Some(seen.clone()), "it is kept");
    let body = store.get_version(seen.clone()).await.expect("answered").expect("kept");
    let pieces: Vec<_> = body.stream.try_collect().await.expect("read");
    assert_eq!(pieces.concat(), b"approved");
    assert_eq!(read(&*store, "w/file").await.as_deref(), Some(b"something else".as_slice()));

    let url = store.presign_version(&seen, "nobody looks at it there", 60);
    assert!(url.contains("versionId=") && !url.contains("holder"), "{url}");
    let client = support::Client::new();
    let answer = client.send(Request { method: "GET", url, ..Request::default() }).await;
    let answer = answer.expect("an answer");
    assert_eq!((answer.status, answer.body), (200, "approved".into()));

    // What is gone there is gone, whatever lies in its place.
    let unknown = ObjectVersion { version: Some("000000000000001-00".to_owned()), ..seen };
    assert_eq!(store.locate(unknown.clone()).await.expect("answered"), None);
    assert!(store.get_version(unknown).await.expect("answered").is_none());
}
