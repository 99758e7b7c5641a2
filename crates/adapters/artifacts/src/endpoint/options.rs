//! How an endpoint is to behave.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Url;
use wharf_tls::CertFiles;

use crate::Credentials;

/// How an endpoint is to behave.
#[derive(Debug, Clone)]
pub struct EndpointOptions {
    /// Where it listens; port 0 picks one.
    pub listen: SocketAddr,
    /// What addresses are signed with. With the same ones, addresses outlive a restart.
    pub credentials: Credentials,
    /// What addresses begin with, where that is not what the endpoint listens on: scheme, host
    /// and port. Whatever stands in between must leave the path and the `Host` header alone.
    pub public_url: Option<String>,
    /// With it the endpoint speaks TLS.
    pub tls: Option<CertFiles>,
    /// How many connections there may be at once; others wait to be accepted.
    pub connections_max: usize,
    /// How long a peer may take for the head of a request or a handshake, and stay idle.
    pub head_timeout: Duration,
    /// How long a peer may take for the next byte of a body, in both directions.
    pub byte_timeout: Duration,
    /// How long requests may take to end when the endpoint is told to stop.
    pub stop_grace: Duration,
    /// How much of a refused body is still read, so that the peer learns why it was refused.
    pub refused_body_bytes_max: u64,
}

impl EndpointOptions {
    /// The usual limits.
    #[must_use]
    pub fn new(listen: SocketAddr, credentials: Credentials) -> Self {
        Self {
            listen,
            credentials,
            public_url: None,
            tls: None,
            connections_max: 4096,
            head_timeout: Duration::from_secs(10),
            byte_timeout: Duration::from_secs(30),
            stop_grace: Duration::from_secs(5),
            refused_body_bytes_max: 1024 * 1024 * 1024,
        }
    }
}

/// Checks what addresses are to begin with.
pub(crate) fn public(text: &str) -> io::Result<Url> {
    let unfit = |why: &str| {
        let why = format!("the public address of the artifact store {why}");
        io::Error::new(ErrorKind::InvalidInput, why)
    };
    let url =
        Url::parse(text).map_err(|_| unfit("is no URL, such as https://files.example.com"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(unfit("must begin with http:// or https:// and name a host"));
    }
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if !bare || !url.username().is_empty() || url.password().is_some() {
        return Err(unfit("must end behind its host or port, because addresses are signed whole"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_is_a_scheme_a_host_and_maybe_a_port() {
        for good in ["https://files.example.com", "http://10.0.0.1:9000/", "https://[::1]:1"] {
            assert!(public(good).is_ok(), "{good}");
        }
        for bad in ["files.example.com", "ftp://x", "https://x/y", "https://u:p@x", "https://x?y"] {
            let error = public(bad).expect_err(bad);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{bad}");
        }
    }
}
