//! Whether a provider can use addresses of the artifact store.

use std::net::IpAddr;

use url::Url;
use wharf_domain::Provider;
use wharf_domain::permission::Permission;
use wharf_engine::Reach;
use wharf_vocab::SandboxLevel;

/// How a provider reaches the files of its calls: by addresses if nothing keeps it from the
/// network or its permissions cover where they lead, else as files.
#[must_use]
pub fn reach(agent: &Provider, origin: Option<&str>) -> Reach {
    let level = agent.approval.as_ref().map(|approval| approval.terms.sandbox);
    if level.is_some_and(|level| level <= SandboxLevel::Basic) {
        return Reach::Storage;
    }
    let Some((host, port)) = origin.and_then(host_and_port) else { return Reach::Folder };
    // Only a permission that names the address itself leads to this machine and its networks.
    let literal = host == "localhost" || bare(&host).parse::<IpAddr>().is_ok();
    let covers = |permission: &Permission| match permission {
        Permission::Egress(hosts) => hosts.matches(&host, port) && (!literal || hosts.is_literal()),
        _ => false,
    };
    if agent.permissions().iter().any(covers) { Reach::Storage } else { Reach::Folder }
}

/// The host and port of an origin.
fn host_and_port(origin: &str) -> Option<(String, u16)> {
    let url = Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_a_host_and_a_port() {
        for (origin, wanted) in [
            ("http://127.0.0.1:7421", Some(("127.0.0.1", 7421))),
            ("https://s3.example.com", Some(("s3.example.com", 443))),
            ("http://s3.example.com/", Some(("s3.example.com", 80))),
            ("http://[::1]:9000", Some(("[::1]", 9000))),
            ("http://[::1]", Some(("[::1]", 80))),
            ("memory://objects", None),
            ("http://host:port", None),
            ("", None),
        ] {
            let wanted = wanted.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(host_and_port(origin), wanted, "{origin}");
        }
    }
}
