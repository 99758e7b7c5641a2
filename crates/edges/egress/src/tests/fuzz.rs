//! Spoilt requests: nothing panics, and what goes on is one request that nobody reads otherwise.

use wharf_fuzz::{Fuzz, Met, Stock};

use crate::request::{Forward, ProxyRequest};

const REQUESTS: &[&str] = &[
    "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n",
    "GET http://api.example.com/a?b=c HTTP/1.1\r\nHost: api.example.com\r\nAccept: */*\r\n\r\n",
    "POST http://api.example.com:8080/a HTTP/1.1\r\nHost: api.example.com:8080\r\n\
     Content-Length: 3\r\nConnection: close, x-secret\r\nX-Secret: 1\r\n\r\n",
    "PUT http://[::1]/up HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\
     Proxy-Authorization: Basic eDp5\r\n\r\n",
    "HEAD http://api.example.com HTTP/1.0\r\nUser-Agent: x\r\n\r\n",
];

/// The head that goes on is whole, has one end, and means the same when it is read again.
fn check(forward: &Forward) {
    let Forward { head, target, framing, .. } = forward;
    let text = String::from_utf8_lossy(head);
    assert!(text.ends_with("\r\n\r\n") && text.matches("\r\n\r\n").count() == 1, "{text:?}");
    let mut headers = [httparse::EMPTY_HEADER; 256];
    let mut read = httparse::Request::new(&mut headers);
    let whole = read.parse(head).expect("it can be read");
    assert_eq!(whole, httparse::Status::Complete(head.len()), "{text:?}");
    assert!(read.path.is_some_and(|path| path.starts_with('/')), "{text:?}");
    let of = |name: &str| {
        let values = read.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        values.map(|header| String::from_utf8_lossy(header.value).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("host").len(), 1, "{text:?}");
    let host = &of("host")[0];
    assert!(
        crate::target::Target::parse(host, Some(80)).as_ref() == Some(target),
        "{host} is not {target:?}"
    );
    assert!(of("proxy-authorization").is_empty(), "{text:?}");
    assert_eq!(crate::body::Framing::of(read.headers).as_ref(), Some(framing), "{text:?}");
}

#[test]
fn r083_fuzz_egress() {
    Fuzz::new("egress").run(&Stock::of_texts(REQUESTS), |_, bytes| {
        match ProxyRequest::parse(bytes) {
            Ok(ProxyRequest::Forward(forward)) => {
                check(&forward);
                Met::Taken
            }
            Ok(ProxyRequest::Tunnel(_)) => Met::Taken,
            // What is refused ends the connection.
            Err(_) => Met::Cut,
        }
    });
}
