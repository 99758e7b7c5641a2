//! Addresses outside that a core posts to: what may be one, and where it may lie.

use std::net::IpAddr;

use url::{Host, Url};
use wharf_vocab::{Code, Fault, Zone};

/// Longest address.
const URL_BYTES_MAX: usize = 2_048;
/// What the key begins with that a receiver checks signatures with.
pub const KEY_PREFIX: &str = "whsec_";

/// Reads a receiver's address: HTTPS, or HTTP where private ones are allowed, and without a name or
/// a password in it. One that is written as numbers is judged at once; names are judged where they
/// are resolved. What is wrong is told without the address, which may be a secret.
pub fn read(text: &str, allow_private: bool) -> Result<Url, Fault> {
    let wrong = |why: &str| {
        let fault =
            Fault::new(Code::ReceiverAddress, format!("The address cannot be used: {why}."));
        fault.with("field", "url")
    };
    if text.len() > URL_BYTES_MAX {
        return Err(wrong("it is too long"));
    }
    let url = Url::parse(text).map_err(|_| wrong("it is no address such as https://host/path"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it has a name or a password in it"));
    }
    match url.scheme() {
        "https" => {}
        "http" if allow_private => {}
        "http" => return Err(wrong("it must begin with https://, or private ones be allowed")),
        _ => return Err(wrong("it must begin with https://")),
    }
    let literal = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) => None,
        None => return Err(wrong("it names no host")),
    };
    if literal.is_some_and(|address| !allows(address, allow_private)) {
        return Err(wrong("it lies on this machine or its networks, which is not allowed"));
    }
    Ok(url)
}

/// Whether a core may post to an address.
#[must_use]
pub fn allows(address: IpAddr, allow_private: bool) -> bool {
    match Zone::of(address) {
        Zone::Public => true,
        Zone::Private | Zone::Loopback => allow_private,
        Zone::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f037_an_address_that_leads_inside_is_refused_at_once() {
        for good in ["https://hooks.example/x", "https://8.8.8.8/", "https://h.example:8443/a?b=c"]
        {
            read(good, false).expect(good);
        }
        for bad in [
            "http://hooks.example/x",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://10.1.2.3/",
            "https://169.254.169.254/latest/meta-data",
            "https://[::ffff:127.0.0.1]/",
            "https://user:pass@hooks.example/",
            "ftp://hooks.example/",
            "file:///etc/passwd",
            "nonsense",
            "",
        ] {
            let fault = read(bad, false).expect_err(bad);
            assert!(fault.is(Code::ReceiverAddress), "{bad}: {fault}");
            assert!(bad.is_empty() || !fault.message.contains(bad), "it is not repeated: {fault}");
        }
        read("http://127.0.0.1:9/x", true).expect("allowed");
        read("http://192.168.1.2/x", true).expect("allowed");
        read("http://169.254.169.254/x", true).expect_err("never");
    }
}
