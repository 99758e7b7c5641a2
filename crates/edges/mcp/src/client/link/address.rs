//! Where connections to servers may go.
//!
//! A server elsewhere is reached by https, or on this machine. What a server names (another
//! address, a place to log in) is judged by the same rule, and this machine is open to it only if
//! the server itself is on it.

use std::net::IpAddr;

use url::{Host, Url};
use wharf_vocab::Zone;

/// Longest address.
const URL_BYTES_MAX: usize = 2048;

/// Which addresses may be connected to, beside those of the public internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UpstreamReach {
    /// Networks of their owner's: only if the owner said so.
    private: bool,
    /// This machine: only if the server is on it.
    loopback: bool,
}

impl UpstreamReach {
    /// Whether an address may be connected to, under a name that means this machine or another.
    pub(super) fn allows(self, address: IpAddr, is_here: bool) -> bool {
        match Zone::of(address) {
            Zone::Public => !is_here,
            Zone::Private => self.private && !is_here,
            Zone::Loopback => self.loopback && is_here,
            Zone::Never => false,
        }
    }
}

/// The address of a server elsewhere, checked as far as it can be before a name is resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamAddress {
    url: Url,
    reach: UpstreamReach,
}

impl UpstreamAddress {
    /// Reads the address that an owner wrote down. The error says what is wrong with it, as the
    /// end of a sentence.
    pub(crate) fn read(text: &str, allow_private: bool) -> Result<Self, &'static str> {
        let url = parse(text)?;
        let reach = UpstreamReach { private: allow_private, loopback: is_here(&url) };
        judge(&url, reach)?;
        Ok(Self { url, reach })
    }

    /// Reads an address that the server named, relative to its own.
    pub(crate) fn named(&self, text: &str) -> Result<Url, &'static str> {
        if text.len() > URL_BYTES_MAX {
            return Err("it is too long");
        }
        let url = self.url.join(text).map_err(|_| "it is no address")?;
        well_formed(&url)?;
        judge(&url, self.reach)?;
        Ok(url)
    }

    /// Reads a whole address that somebody named, which is judged as the server's own.
    pub(crate) fn elsewhere(&self, text: &str) -> Result<Url, &'static str> {
        let url = parse(text)?;
        judge(&url, self.reach)?;
        Ok(url)
    }

    /// The address.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Which addresses may be connected to for it.
    pub(super) fn reach(&self) -> UpstreamReach {
        self.reach
    }

    /// Whether a request of it may go to an address, as far as that says.
    pub(super) fn lets_reach(&self, url: &Url) -> bool {
        well_formed(url).and_then(|()| judge(url, self.reach)).is_ok()
    }

    /// Whether another address has the same scheme, host and port.
    pub(crate) fn is_origin_of(&self, url: &Url) -> bool {
        self.url.origin() == url.origin()
    }
}

fn parse(text: &str) -> Result<Url, &'static str> {
    if text.len() > URL_BYTES_MAX {
        return Err("it is too long");
    }
    let url = Url::parse(text).map_err(|_| "it is no address")?;
    well_formed(&url)?;
    Ok(url)
}

fn well_formed(url: &Url) -> Result<(), &'static str> {
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("it must begin with https:// and name a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not hold a name or a password");
    }
    if url.fragment().is_some() {
        return Err("it must not have a part behind #");
    }
    Ok(())
}

/// Judges an address by what it says itself; names are judged again when they are resolved.
fn judge(url: &Url, reach: UpstreamReach) -> Result<(), &'static str> {
    let here = is_here(url);
    if url.scheme() != "https" && !here {
        return Err("it must begin with https:// unless it is on this machine");
    }
    match literal(url) {
        Some(address) if !reach.allows(address, here) => Err(match Zone::of(address) {
            Zone::Private => "it lies in a private network, which its owner did not allow",
            _ => "it lies where no server of others can be",
        }),
        None if here && !reach.loopback => Err("it lies where no server of others can be"),
        _ => Ok(()),
    }
}

/// The address of a URL that has a number in the stead of a name.
fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// Whether an address says itself that it is on this machine.
fn is_here(url: &Url) -> bool {
    match (literal(url), url.host_str()) {
        (Some(address), _) => Zone::of(address) == Zone::Loopback,
        (None, Some(name)) => is_localhost(name),
        (None, None) => false,
    }
}

pub(super) fn is_localhost(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m076_a_server_is_reached_by_https_or_on_this_machine() {
        for good in [
            "https://mcp.example/mcp",
            "https://mcp.example:8443/",
            "http://localhost:3001/mcp",
            "http://LOCALHOST/",
            "http://a.localhost:1/",
            "http://127.0.0.1:3001/mcp",
            "http://127.9.9.9/",
            "http://[::1]:3001/mcp",
            "https://127.0.0.1/",
            "https://8.8.8.8/mcp",
        ] {
            assert!(UpstreamAddress::read(good, false).is_ok(), "{good}");
        }
        for bad in [
            "http://mcp.example/mcp",
            "http://8.8.8.8/",
            "http://localhost.example/",
            "https://10.0.0.1/mcp",
            "https://[fd12::1]/mcp",
            "https://192.168.1.1/",
            "https://3232235777/",
            "https://169.254.169.254/",
            "https://0.0.0.0/",
            "https://[::ffff:169.254.169.254]/",
            "https://[fe80::1]/",
            "https://user@mcp.example/",
            "https://:pw@mcp.example/",
            "https://mcp.example/#x",
            "ftp://mcp.example/",
            "file:///etc/passwd",
            "mcp.example",
            "",
        ] {
            assert!(UpstreamAddress::read(bad, false).is_err(), "{bad}");
        }
    }

    #[test]
    fn m076_private_addresses_need_the_owners_word() {
        for private in ["https://10.0.0.1/mcp", "https://[fd12::1]/mcp", "https://192.168.1.1/"] {
            assert!(UpstreamAddress::read(private, true).is_ok(), "{private}");
        }
        for never in ["http://10.0.0.1/mcp", "https://169.254.169.254/", "https://100.64.0.1/"] {
            assert!(UpstreamAddress::read(never, true).is_err(), "{never}");
        }
    }

    #[test]
    fn m076_what_a_server_elsewhere_names_is_never_this_machine() {
        let public = UpstreamAddress::read("https://mcp.example/a/mcp", false).expect("good");
        for bad in ["http://localhost:1/", "https://localhost/", "http://127.0.0.1/", "//[::1]/"] {
            assert!(public.named(bad).is_err(), "{bad}");
        }
        assert_eq!(public.named("b?x=1").expect("good").as_str(), "https://mcp.example/a/b?x=1");
        let here = UpstreamAddress::read("http://localhost:1/mcp", false).expect("good");
        assert!(here.named("http://127.0.0.1:2/").is_ok());
        assert!(here.named("https://10.0.0.1/").is_err());
    }
}
