//! Which origins may be reached.

use reqwest::Url;
use wharf_vocab::Zone;
use wharf_wire::run_v1::code;

use super::names::{FORBIDDEN, is_localhost};
use super::{Policy, TransferTrouble};
use crate::Failure;

/// The origins that may be reached.
#[derive(Debug, Clone)]
pub(super) struct Origins {
    origins: Vec<String>,
    is_checked_elsewhere: bool,
}

impl Origins {
    /// Reads the origins of a policy.
    pub(super) fn new(policy: &Policy) -> Result<Self, Failure> {
        let origins = policy.origins.iter().map(|text| origin(text)).collect::<Result<_, _>>()?;
        Ok(Self { origins, is_checked_elsewhere: policy.proxy.is_some() })
    }

    /// Whether an address belongs to one of the origins.
    pub(super) fn contains(&self, url: &Url) -> bool {
        self.origins.contains(&url.origin().ascii_serialization())
    }

    /// Refuses an address that may not be reached. What its name leads to is checked when it is
    /// connected to.
    pub(super) fn check(&self, url: &Url) -> Result<(), TransferTrouble> {
        if !self.contains(url) {
            return Err(TransferTrouble::egress("its origin is not among those that are allowed"));
        }
        if self.is_checked_elsewhere {
            return Ok(());
        }
        // An address by its number is never resolved; it is here because somebody wrote it down
        // as an origin, which private ones and this machine's are good for.
        match literal(url).map(Zone::of) {
            Some(Zone::Never) => Err(FORBIDDEN),
            _ => Ok(()),
        }
    }
}

/// The address of a URL that has a number in the stead of a name.
fn literal(url: &Url) -> Option<std::net::IpAddr> {
    let host = url.host_str()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// The name of a URL's host that has to be resolved.
pub(super) fn name(url: &Url) -> Option<&str> {
    if literal(url).is_some() { None } else { url.host_str() }
}

/// Reads an origin: a scheme, a host and maybe a port.
fn origin(text: &str) -> Result<String, Failure> {
    let unfit = |why: &str| {
        let why = format!("The allowed origin {text:?} cannot be used: {why}.");
        Failure::new(code::EGRESS, why)
    };
    let url = Url::parse(text).map_err(|_| unfit("it is no address"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(unfit("it must begin with https:// or http:// and name a host"));
    }
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if !is_bare || !url.username().is_empty() || url.password().is_some() {
        return Err(unfit("it must end behind its host or port"));
    }
    let is_never = literal(&url).is_some_and(|address| Zone::of(address) == Zone::Never);
    if is_never && !url.host_str().is_some_and(is_localhost) {
        return Err(unfit("its address is one that storage cannot have"));
    }
    Ok(url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t025_only_whole_origins_are_allowed() {
        let policy =
            |origin: &str| Policy { origins: vec![origin.to_owned()], ..Policy::default() };
        for bad in [
            "s3.example",
            "ftp://s3.example",
            "https://s3.example/bucket",
            "https://u@s3.example",
            "https://s3.example?x",
            "http://169.254.169.254",
            "http://0.0.0.0:80",
            "http://[::]:9000",
        ] {
            assert!(Origins::new(&policy(bad)).is_err(), "{bad}");
        }
        for good in ["https://s3.example", "http://127.0.0.1:9000/", "http://10.0.0.7:9000"] {
            assert!(Origins::new(&policy(good)).is_ok(), "{good}");
        }
    }

    #[test]
    fn t025_an_origin_is_scheme_host_and_port_together() {
        let origins = vec!["https://s3.example".to_owned(), "http://127.0.0.1:9000".to_owned()];
        let origins = Origins::new(&Policy { origins, ..Policy::default() }).expect("origins");
        let allowed = |text: &str| origins.check(&Url::parse(text).expect("an address")).is_ok();
        for good in ["https://s3.example/x?y", "https://S3.Example:443/", "http://127.0.0.1:9000/x"]
        {
            assert!(allowed(good), "{good}");
        }
        for bad in [
            "http://s3.example/x",
            "https://s3.example:8443/x",
            "https://s3.example.evil.example/x",
            "https://evil.example/?https://s3.example",
            "https://s3.example./x",
            "http://127.0.0.1:9001/x",
            "http://localhost:9000/x",
            "http://[::ffff:127.0.0.1]:9000/x",
        ] {
            assert!(!allowed(bad), "{bad}");
        }
    }
}
