//! Addresses, used by a client that knows nothing of S3.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Request, Subject, noise};
use wharf_ports::Method;

impl Subject {
    fn address(&self, method: Method, path: &str) -> String {
        self.store.presign(method, &self.key(path), 3_600)
    }
}

/// A plain client reads and writes by an address, and the core sees the same object.
pub async fn t032_an_address_reads_and_writes_its_key(subject: Subject) {
    for path in ["file", "deep/a b+c%20é&=?#.txt", "@run/state.json"] {
        let address = subject.address(Method::Put, path);
        assert!(address.starts_with(&subject.store.origin()), "{path}");
        let answer = subject.put_at(&address, b"written by address").await;
        assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
        let found = subject.read(path).await;
        assert_eq!(found.as_deref(), Some(b"written by address".as_slice()), "{path}");
        let answer = subject.get_at(&subject.address(Method::Get, path)).await;
        assert_eq!((answer.status, answer.body), (200, "written by address".into()), "{path}");
    }
    let typed = Request {
        method: "PUT",
        url: subject.address(Method::Put, "typed"),
        headers: vec![("content-type", "image/png".to_owned())],
        body: Bytes::from_static(b"png"),
    };
    assert_eq!(subject.send(typed).await.status, 200);
    let answer = subject.get_at(&subject.address(Method::Get, "typed")).await;
    assert_eq!(answer.header("content-type"), Some("image/png"));
    assert_eq!(answer.header("content-length"), Some("3"));
}

/// An address to read with is no address to write or remove with, and the other way round.
pub async fn t032_an_address_is_good_for_its_method_only(subject: Subject) {
    subject.write("file", b"content").await;
    let get = subject.address(Method::Get, "file");
    let put = subject.address(Method::Put, "file");
    let methods = [("PUT", &get), ("HEAD", &get), ("DELETE", &get), ("POST", &get)];
    let others = [("GET", &put), ("HEAD", &put), ("DELETE", &put), ("POST", &put)];
    for (method, url) in methods.into_iter().chain(others) {
        let body = if method == "PUT" { Bytes::from_static(b"changed") } else { Bytes::new() };
        let request = Request { method, url: url.clone(), body, ..Request::default() };
        let status = subject.send(request).await.status;
        assert!(matches!(status, 403 | 405), "{method} was answered with {status}");
        let found = subject.read("file").await;
        assert_eq!(found.as_deref(), Some(b"content".as_slice()), "{method} changed it");
    }
}

/// An address for one key is none for another, whatever is done to its path.
pub async fn t032_an_address_is_good_for_its_key_only(subject: Subject) {
    for path in ["mine", "other", "mine/below"] {
        subject.write(path, b"content").await;
    }
    let get = subject.address(Method::Get, "mine");
    let put = subject.address(Method::Put, "mine");
    for path in ["other", "mine/below", "mine/../other", "mine/%2e%2e/other", "mine%2F..%2Fother"] {
        let moved = |url: &str| url.replacen("mine?", &format!("{path}?"), 1);
        let read = subject.get_at(&moved(&get)).await.status;
        let written = subject.put_at(&moved(&put), b"changed").await.status;
        assert!(matches!((read, written), (400 | 403, 400 | 403)), "{path}: {read} {written}");
    }
    for path in ["mine", "other", "mine/below"] {
        let found = subject.read(path).await;
        assert_eq!(found.as_deref(), Some(b"content".as_slice()), "{path}");
    }
}

/// When its lifetime is over, an address is good for nothing.
pub async fn t032_an_address_ends_with_its_lifetime(subject: Subject) {
    subject.write("file", b"content").await;
    let get = subject.store.presign(Method::Get, &subject.key("file"), 1);
    let put = subject.store.presign(Method::Put, &subject.key("file"), 1);
    let begun = Instant::now();
    while subject.get_at(&get).await.status != 403 {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never ended");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(subject.put_at(&put, b"late").await.status, 403);
    assert_eq!(subject.read("file").await.as_deref(), Some(b"content".as_slice()));
}

/// Every parameter of an address is signed.
pub async fn t032_changed_parameters_are_refused(subject: Subject) {
    subject.write("file", b"content").await;
    let good = subject.address(Method::Get, "file");
    assert_eq!(subject.get_at(&good).await.status, 200);
    let digit = good.chars().last().expect("a signature");
    let flipped = if digit == '0' { "1" } else { "0" };
    let changed = [
        good.replace("X-Amz-Expires=3600", "X-Amz-Expires=360000"),
        good.replace("X-Amz-Credential=", "X-Amz-Credential=A"),
        good.replace("X-Amz-SignedHeaders=host", "X-Amz-SignedHeaders="),
        format!("{}{flipped}", &good[..good.len() - 1]),
        good.replace("X-Amz-Signature=", "X-Amz-Signature=0"),
        format!("{good}&response-content-type=text%2Fhtml"),
    ];
    for url in changed {
        assert_ne!(url, good);
        let status = subject.get_at(&url).await.status;
        assert!(matches!(status, 400 | 403), "{status} for a changed address");
    }
}

/// Without a signature there is neither a reading nor a writing nor a list.
pub async fn t032_nothing_is_answered_without_a_signature(subject: Subject) {
    subject.write("file", b"content").await;
    let get = subject.address(Method::Get, "file");
    let bare = get.split_once('?').expect("a query").0;
    let bucket = bare.strip_suffix(&subject.key("file")).expect("the key comes last");
    let root = subject.store.origin();
    for (method, url) in [
        ("GET", bare),
        ("HEAD", bare),
        ("PUT", bare),
        ("DELETE", bare),
        ("GET", bucket),
        ("PUT", bucket),
        ("GET", &format!("{root}/")),
    ] {
        let request = Request { method, url: url.to_owned(), ..Request::default() };
        let answer = subject.send(request).await;
        assert_eq!(answer.status, 403, "{method}: {:?}", answer.body);
    }
    assert_eq!(subject.read("file").await.as_deref(), Some(b"content".as_slice()));
}

/// A header that would make a copy of another object's content is of no use.
pub async fn t032_a_put_by_address_cannot_read_another_key(subject: Subject) {
    subject.write("secret", b"nobody's business").await;
    let secret = subject.address(Method::Get, "secret");
    let path = secret.strip_prefix(&subject.store.origin()).expect("an origin");
    let path = path.split_once('?').expect("a query").0.to_owned();
    let request = Request {
        method: "PUT",
        url: subject.address(Method::Put, "mine"),
        headers: vec![("x-amz-copy-source", path)],
        body: Bytes::new(),
    };
    subject.send(request).await;
    let found = subject.read("mine").await.unwrap_or_default();
    assert!(found.is_empty(), "another key was read");
}

/// A part of an object can be asked for.
pub async fn ranges_are_answered_over_http(subject: Subject) {
    subject.write("file", b"0123456789").await;
    let url = subject.address(Method::Get, "file");
    for (range, status, body) in [
        ("bytes=0-0", 206, "0"),
        ("bytes=2-4", 206, "234"),
        ("bytes=7-", 206, "789"),
        ("bytes=-2", 206, "89"),
        ("bytes=8-100", 206, "89"),
        ("bytes=10-", 416, ""),
    ] {
        let headers = vec![("range", range.to_owned())];
        let request = Request { method: "GET", url: url.clone(), headers, ..Request::default() };
        let answer = subject.send(request).await;
        assert_eq!(answer.status, status, "{range}");
        if status == 206 {
            assert_eq!(answer.body, body, "{range}");
            let said = answer.header("content-range").expect("a range");
            assert!(said.ends_with("/10"), "{range}: {said}");
        }
    }
}

/// A good address for an object that is not there yet.
pub async fn a_missing_object_is_not_found_over_http(subject: Subject) {
    assert_eq!(subject.get_at(&subject.address(Method::Get, "none")).await.status, 404);
}

/// A peer that is still sending learns that it was refused.
pub async fn a_refused_put_tells_why_even_when_its_body_is_large(subject: Subject) {
    let url = subject.address(Method::Get, "file");
    let body = Bytes::from(noise(20 * 1024 * 1024));
    for _ in 0..3 {
        let (url, body) = (url.clone(), body.clone());
        let answer = subject.send(Request { method: "PUT", url, body, ..Request::default() }).await;
        assert_eq!(answer.status, 403);
    }
    assert_eq!(subject.read("file").await, None);
}
