//! Where people log in for a server: its own document, then the issuer's.

use url::Url;

use super::LoginFailure;
use super::challenge::{Challenge, scopes};
use super::documents::{IssuerDocument, ResourceDocument};
use super::web::LoginWeb;

/// Longest name of an issuer or a resource.
const NAME_BYTES_MAX: usize = 2048;
/// What the server's own document is called when something is wrong with it.
const RESOURCE: &str = "the server's metadata";
/// The same of the issuer's.
const ISSUER: &str = "the metadata of the place where one logs in";

/// Where people log in for a server.
#[derive(Debug, Clone)]
pub(super) struct LoginPlace {
    /// The server, exactly as its document names it.
    pub(super) resource: String,
    /// What one may ask for, if the server says so.
    pub(super) scopes: Option<Vec<String>>,
    /// Who lets people in.
    pub(super) issuer: IssuerDocument,
    /// Where tokens are to be had.
    pub(super) token_endpoint: Url,
}

/// Finds the place. A server without a document of its own may be of 2025-03-26 and be its own
/// issuer.
pub(super) async fn find(
    web: &LoginWeb,
    challenge: &Challenge,
) -> Result<LoginPlace, LoginFailure> {
    let server = web.server().url().clone();
    let (resource, issuer, supported) = match resource(web, challenge).await? {
        Some(document) => {
            if !covers(&document.resource, &server) {
                let why = "the server's metadata speaks of another resource than this server";
                return Err(LoginFailure::new(why));
            }
            let first = document.authorization_servers.into_iter().next();
            let none =
                || LoginFailure::new("the server's metadata names nobody who lets people in");
            (document.resource, first.ok_or_else(none)?, document.scopes_supported)
        }
        None => (canonical(&server), server.origin().ascii_serialization(), None),
    };
    let supported = supported.map(|all| scopes(all.iter().map(String::as_str)));
    let document = issuer_document(web, &issuer).await?;
    let token_endpoint = document.token_endpoint.as_deref();
    let none = || LoginFailure::new("the place where one logs in gives no tokens");
    let token_endpoint = web.named(token_endpoint.ok_or_else(none)?, "its token endpoint")?;
    Ok(LoginPlace { resource, scopes: supported, issuer: document, token_endpoint })
}

async fn resource(
    web: &LoginWeb,
    challenge: &Challenge,
) -> Result<Option<ResourceDocument>, LoginFailure> {
    if let Some(named) = &challenge.resource_metadata {
        let url = web.named(named, RESOURCE)?;
        let found = web.document(url, RESOURCE).await?;
        let none = || LoginFailure::new(format!("{RESOURCE} is not where the server says"));
        return found.ok_or_else(none).map(Some);
    }
    let server = web.server().url();
    let path = server.path().trim_end_matches('/');
    for path in [path, ""].into_iter().take(if path.is_empty() { 1 } else { 2 }) {
        let url = at(server, &format!("/.well-known/oauth-protected-resource{path}"));
        // Some answer everything with a page of their own.
        match web.document(url, RESOURCE).await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(None)
}

/// An issuer's document, if it says of itself that it is this very issuer.
async fn issuer_document(web: &LoginWeb, issuer: &str) -> Result<IssuerDocument, LoginFailure> {
    if issuer.len() > NAME_BYTES_MAX {
        return Err(LoginFailure::new("the issuer has too long a name"));
    }
    let base = web.named(issuer, "the issuer")?;
    if base.query().is_some() {
        return Err(LoginFailure::new("the issuer has a query in its name"));
    }
    let path = base.path().trim_end_matches('/').to_owned();
    let mut places = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    for place in places {
        let found: Option<IssuerDocument> = web.document(at(&base, &place), ISSUER).await?;
        let Some(found) = found else { continue };
        if found.issuer != issuer {
            let why = "the metadata is that of another issuer than the one the server names";
            return Err(LoginFailure::new(why));
        }
        return Ok(found);
    }
    Err(LoginFailure::new(format!("{ISSUER} is nowhere to be found")))
}

fn at(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url
}

/// Whether a resource is this server, or what this server is a part of.
pub(super) fn covers(resource: &str, server: &Url) -> bool {
    if resource.len() > NAME_BYTES_MAX {
        return false;
    }
    let Ok(resource) = Url::parse(resource) else { return false };
    let is_plain = resource.fragment().is_none()
        && resource.username().is_empty()
        && resource.password().is_none();
    let whole = resource.path().trim_end_matches('/');
    let part = server.path().trim_end_matches('/');
    let is_within = part.strip_prefix(whole).is_some_and(|it| it.is_empty() || it.starts_with('/'));
    let same_query = resource.query().is_none_or(|query| server.query() == Some(query));
    is_plain && resource.origin() == server.origin() && is_within && same_query
}

/// The name of a server that has no document of its own.
fn canonical(server: &Url) -> String {
    let mut url = server.clone();
    url.set_query(None);
    url.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m071_a_resource_is_the_server_or_what_it_is_part_of() {
        let server = Url::parse("https://mcp.example/a/mcp").expect("an address");
        for good in [
            "https://mcp.example",
            "https://mcp.example/",
            "https://mcp.example/a",
            "https://mcp.example/a/mcp",
            "https://MCP.example:443/a/mcp/",
        ] {
            assert!(covers(good, &server), "{good}");
        }
        for bad in [
            "https://mcp.example/a/m",
            "https://mcp.example/a/mcp/b",
            "https://mcp.example/b",
            "https://mcp.example:444/a/mcp",
            "http://mcp.example/a/mcp",
            "https://mcp.example.evil.example/a/mcp",
            "https://u@mcp.example/a/mcp",
            "https://mcp.example/a/mcp#x",
            "https://mcp.example/a/mcp?x=1",
            "urn:x",
            "",
        ] {
            assert!(!covers(bad, &server), "{bad}");
        }
        assert_eq!(canonical(&server), "https://mcp.example/a/mcp");
    }
}
