//! Understands a request's head, strictly: what two readers could take for two different requests
//! is refused.

use httparse::{EMPTY_HEADER, Header, Status};
use wharf_vocab::Code;

use crate::body::Framing;
use crate::head::{self, HEADERS_MAX};
use crate::refusal::ProxyRefusal;
use crate::target::Target;

/// What is asked of the proxy.
#[derive(Debug, PartialEq)]
pub(crate) enum ProxyRequest {
    /// A tunnel.
    Tunnel(Target),
    /// A request to be forwarded.
    Forward(Forward),
}

/// A request to be forwarded.
#[derive(Debug, PartialEq)]
pub(crate) struct Forward {
    /// Where to.
    pub(crate) target: Target,
    /// The head as it goes on.
    pub(crate) head: Vec<u8>,
    /// How long its body is.
    pub(crate) framing: Framing,
    /// Whether the answer has no body whatever its head says.
    pub(crate) is_head: bool,
}

impl ProxyRequest {
    /// Reads a whole head.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ProxyRefusal> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(Status::Complete(length)) if length == bytes.len() => {}
            Err(httparse::Error::TooManyHeaders) => {
                let message = format!("The request has more than {HEADERS_MAX} headers.");
                return Err(ProxyRefusal::with_status(431, Code::RequestTooLarge, message));
            }
            _ => return Err(ProxyRefusal::invalid("This is not a request of HTTP/1.1.")),
        }
        let (Some(method), Some(target), Some(minor)) =
            (request.method, request.path, request.version)
        else {
            return Err(ProxyRefusal::invalid("This is not a request of HTTP/1.1."));
        };
        let headers = &*request.headers;
        let framing = framing(headers, minor)?;
        if method == "CONNECT" {
            return tunnel(target, framing);
        }
        let (target, path) = whole_address(target)?;
        check_host(headers, &target, minor)?;
        let line = RequestLine { method, path: &path, minor };
        let head = rewrite(&line, &target, headers, framing)?;
        Ok(Self::Forward(Forward { target, head, framing, is_head: method == "HEAD" }))
    }

    /// Where it wants to go.
    pub(crate) fn target(&self) -> &Target {
        match self {
            Self::Tunnel(target) | Self::Forward(Forward { target, .. }) => target,
        }
    }
}

/// A request's first line.
struct RequestLine<'a> {
    method: &'a str,
    path: &'a str,
    minor: u8,
}

fn tunnel(target: &str, framing: Framing) -> Result<ProxyRequest, ProxyRefusal> {
    if !matches!(framing, Framing::None | Framing::Length(0)) {
        return Err(ProxyRefusal::invalid("A CONNECT has no body."));
    }
    let target = Target::parse(target, None);
    let target =
        target.ok_or_else(|| ProxyRefusal::invalid("A CONNECT must name a host and a port."))?;
    Ok(ProxyRequest::Tunnel(target))
}

/// Splits `http://host:port/path` into where it leads and what is asked there.
fn whole_address(text: &str) -> Result<(Target, String), ProxyRefusal> {
    let wrong = || {
        ProxyRefusal::invalid(
            "A request to this proxy must be a CONNECT or name a whole address like \
             http://host/path.",
        )
    };
    let scheme = text.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let rest = scheme.map(|_| &text[7..]).ok_or_else(wrong)?;
    if !rest.is_ascii() || rest.contains('#') {
        return Err(wrong());
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // An empty port is the usual one.
    let authority = authority.strip_suffix(':').unwrap_or(authority);
    let target = Target::parse(authority, Some(80)).ok_or_else(wrong)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok((target, format!("{slash}{path}")))
}

/// The `Host` must be there once and mean the same as the address.
fn check_host(headers: &[Header<'_>], target: &Target, minor: u8) -> Result<(), ProxyRefusal> {
    let several = |_| ProxyRefusal::invalid("The request has several Host headers.");
    let Some(host) = head::only(headers, "host").map_err(several)? else {
        return match minor {
            0 => Ok(()),
            _ => Err(ProxyRefusal::invalid("The request has no Host header.")),
        };
    };
    let host = std::str::from_utf8(host).ok();
    let host =
        host.and_then(|host| Target::parse(host.strip_suffix(':').unwrap_or(host), Some(80)));
    if host.as_ref() == Some(target) {
        return Ok(());
    }
    Err(ProxyRefusal::invalid("The request's Host header and its address are not the same."))
}

fn framing(headers: &[Header<'_>], minor: u8) -> Result<Framing, ProxyRefusal> {
    let framing = Framing::of(headers).filter(|framing| minor == 1 || *framing != Framing::Chunked);
    framing.ok_or_else(|| {
        ProxyRefusal::invalid(
            "The request does not say clearly where its body ends: it needs one Content-Length or \
             a Transfer-Encoding of chunked, not both.",
        )
    })
}

fn rewrite(
    line: &RequestLine<'_>,
    target: &Target,
    headers: &[Header<'_>],
    framing: Framing,
) -> Result<Vec<u8>, ProxyRefusal> {
    let named = head::named_by_connection(headers).ok_or_else(|| {
        ProxyRefusal::invalid("The request's Connection header names a header that must go on.")
    })?;
    let first = format!("{} {} HTTP/1.{}\r\n", line.method, line.path, line.minor);
    let mut head = first.into_bytes();
    let host = match target.port {
        80 => target.host.to_string(),
        _ => target.to_string(),
    };
    head::push(&mut head, "Host", host.as_bytes());
    let goes_on = |header: &str| {
        !header.eq_ignore_ascii_case("host")
            && !named.iter().any(|name| header.eq_ignore_ascii_case(name))
    };
    head::finish(&mut head, headers, framing, goes_on, true);
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ProxyRequest, ProxyRefusal> {
        ProxyRequest::parse(text.as_bytes())
    }

    fn forward(text: &str) -> Forward {
        match parse(text) {
            Ok(ProxyRequest::Forward(forward)) => forward,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_tunnel_needs_a_host_and_a_port_and_nothing_else() {
        for text in [
            "CONNECT Example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
            "CONNECT example.com:443 HTTP/1.0\r\n\r\n",
            "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        ] {
            let target = Target::parse("example.com:443", None).expect("a target");
            assert_eq!(parse(text), Ok(ProxyRequest::Tunnel(target)), "{text}");
        }
        for text in [
            "CONNECT example.com HTTP/1.1\r\n\r\n",
            "CONNECT http://example.com:443/ HTTP/1.1\r\n\r\n",
            "CONNECT a@example.com:443 HTTP/1.1\r\n\r\n",
            "CONNECT example.com:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
            "CONNECT example.com:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "connect example.com:443 HTTP/1.1\r\n\r\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_request_goes_on_without_what_was_for_the_proxy() {
        let forward = forward(
            "POST http://Example.com./a?b HTTP/1.1\r\nHOST: example.com:80\r\nX-One: 1\r\n\
             Proxy-Authorization: Basic xyz\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
             Connection: keep-alive, X-Two\r\nX-Two: 2\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\n\
             Content-Length: 3\r\n\r\n",
        );
        assert_eq!(
            String::from_utf8(forward.head).expect("text"),
            "POST /a?b HTTP/1.1\r\nHost: example.com\r\nX-One: 1\r\nContent-Length: 3\r\n\
             Connection: close\r\n\r\n"
        );
        assert_eq!(forward.framing, Framing::Length(3));
    }

    #[test]
    fn addresses_are_taken_apart_in_one_way() {
        for (address, host, wanted, line) in [
            ("http://a.example", "a.example", "a.example:80", "GET / "),
            ("HTTP://a.example:8080?q", "a.example:8080", "a.example:8080", "GET /?q "),
            ("http://a.example:/x", "a.example", "a.example:80", "GET /x "),
            ("http://[::1]:81/x", "[::1]:81", "[::1]:81", "GET /x "),
        ] {
            let forward = forward(&format!("GET {address} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(forward.target.to_string(), wanted);
            assert!(forward.head.starts_with(line.as_bytes()), "{address}");
        }
        for address in [
            "/",
            "*",
            "example.com:80",
            "https://a.example/",
            "ftp://a.example/",
            "http://",
            "http:///x",
            "http://u@a.example/",
            "http://u:p@a.example/",
            "http://a.example#x",
            "http://a.example:99999/",
            "http://127.1/",
            "http://a.example\\@b.example/",
            "//a.example/",
        ] {
            let text = format!("GET {address} HTTP/1.1\r\nHost: a.example\r\n\r\n");
            assert!(parse(&text).is_err(), "{address}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for headers in [
            "",
            "Host: a.example\r\nHost: a.example",
            "Host: b.example",
            "Host: a.example:81",
            "Host: a.example, b.example",
            "Host: a.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
            "Host: a.example\r\nContent-Length: 3\r\nContent-Length: 3",
            "Host: a.example\r\nContent-Length: 3, 3",
            "Host: a.example\r\nContent-Length: +3",
            "Host: a.example\r\nContent-Length: -1",
            "Host: a.example\r\nContent-Length: 0x3",
            "Host: a.example\r\nContent-Length: 3 3",
            "Host: a.example\r\nContent-Length:",
            "Host: a.example\r\nContent-Length: 99999999999999999999",
            "Host: a.example\r\nTransfer-Encoding: gzip, chunked",
            "Host: a.example\r\nTransfer-Encoding: chunked, identity",
            "Host: a.example\r\nTransfer-Encoding: xchunked",
            "Host: a.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Host: a.example\r\nTransfer-Encoding : chunked",
            "Host: a.example\r\nConnection: content-length\r\nContent-Length: 3",
            "Host: a.example\r\nConnection: close, Transfer-Encoding",
            "Host: a.example\r\nX: a\r\n b",
            "Host: a.example\r\n: b",
            "Host: a.example\r\nno colon",
        ] {
            let text = format!("POST http://a.example/ HTTP/1.1\r\n{headers}\r\n\r\n");
            assert!(parse(&text).is_err(), "{headers}");
        }
        for line in [
            "GET  http://a.example/ HTTP/1.1",
            "GET http://a.example/ HTTP/2.0",
            "GET http://a.example/",
            "GET http://a.example/ x HTTP/1.1",
            "PRI * HTTP/2.0",
        ] {
            assert!(parse(&format!("{line}\r\nHost: a.example\r\n\r\n")).is_err(), "{line}");
        }
        let chunked = "POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(parse(chunked).is_err());
    }
}
