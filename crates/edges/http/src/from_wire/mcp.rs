//! Requests about MCP servers.

use std::path::PathBuf;

use wharf_domain::provider::{
    Entrypoint, Manifest, McpDetails, McpLogin, McpPackage, McpServing, ProviderKind,
    ProviderLimits,
};
use wharf_ports::providers::{Approve, DeclaredProvider};
use wharf_vocab::{Fault, ProviderId};
use wharf_wire::rest_v1::{AddMcp, McpOauth};

use super::agents::{folder, limits};
use crate::answer::invalid;

/// Folders that a program is looked for in.
const SEARCH_MAX: usize = 256;

/// Where a new MCP server comes from.
#[derive(Debug, PartialEq)]
pub(crate) enum NewMcp {
    /// A folder with a manifest.
    Folder(PathBuf),
    /// What the core is to write into one.
    Declared(Box<DeclaredProvider>),
}

/// A new MCP server, and how it is approved at once, if it is.
pub(crate) fn new_mcp(request: AddMcp) -> Result<(NewMcp, Option<Approve>), Fault> {
    let approve = request.approve.unwrap_or(false).then(|| Approve {
        sandbox: request.sandbox,
        isolation: request.isolation,
        ..Approve::default()
    });
    let new = match &request.folder {
        Some(path) => NewMcp::Folder(of_folder(&request, path)?),
        None => NewMcp::Declared(Box::new(declared(request)?)),
    };
    Ok((new, approve))
}

/// A server whose manifest says everything but how it is approved.
fn of_folder(request: &AddMcp, path: &str) -> Result<PathBuf, Fault> {
    let approves = request.approve.unwrap_or(false);
    let only = AddMcp {
        folder: request.folder.clone(),
        approve: request.approve,
        sandbox: request.sandbox.filter(|_| approves),
        isolation: request.isolation.filter(|_| approves),
        ..AddMcp::default()
    };
    if *request != only {
        let message = "With `folder`, the manifest there says the rest; `sandbox` and `isolation` \
                       count only with `approve: true`.";
        return Err(invalid("folder", message));
    }
    folder(path)
}

fn declared(request: AddMcp) -> Result<DeclaredProvider, Fault> {
    let id = name(request.name.as_deref())?;
    let mut details = McpDetails::new(serving(&request)?);
    details.package = package(request.npm, request.pypi)?;
    details.token_secret = request.token_secret;
    details.header_secrets = request.header_secrets.unwrap_or_default();
    details.env_secrets = request.env_secrets.unwrap_or_default();
    details.env = request.env.unwrap_or_default();
    details.accept_new = request.accept_new.unwrap_or(false);
    details.trust_annotations = request.trust_annotations.unwrap_or(true);
    details.era = request.era.unwrap_or_default();
    details.idle_s = request.idle_s;
    details.sandbox = request.sandbox;
    details.sampling = request.sampling;
    details.roots = request.roots.unwrap_or_default();
    details.oauth = request.oauth.map(login);
    let mut words = request.command.unwrap_or_default().into_iter();
    let manifest = Manifest {
        name: id.to_string(),
        version: String::new(),
        description: request.description.unwrap_or_default(),
        // A package knows its own program.
        entrypoint: Entrypoint { program: words.next().unwrap_or_default(), args: words.collect() },
        permissions: request.permissions.unwrap_or_default(),
        limits: request.limits.as_ref().map_or_else(|| Ok(ProviderLimits::default()), limits)?,
        isolation: request.isolation,
        kind: ProviderKind::Mcp(Box::new(details)),
    };
    let search = request.search.unwrap_or_default();
    if search.len() > SEARCH_MAX {
        let message = format!("The field `search` may have {SEARCH_MAX} folders at most.");
        return Err(invalid("search", message));
    }
    // What is no folder of the core's machine is not looked in.
    let search = search.into_iter().filter(|path| wharf_views::is_absolute(path));
    let cwd = request.cwd.as_deref().map(cwd).transpose()?;
    Ok(DeclaredProvider { id, manifest, cwd, search: search.map(PathBuf::from).collect() })
}

fn name(name: Option<&str>) -> Result<ProviderId, Fault> {
    let Some(name) = name else {
        let message = "The field `name` is missing: what the server is to be called.";
        return Err(invalid("name", message));
    };
    match ProviderId::new(name) {
        Ok(id) if !name.contains('/') => Ok(id),
        _ => {
            let message =
                "The field `name` must be letters, digits, dots, - and _, such as github.";
            Err(invalid("name", message))
        }
    }
}

/// Exactly one of a command, an address and a package.
fn serving(request: &AddMcp) -> Result<McpServing, Fault> {
    let command = request.command.is_some();
    let package = request.npm.is_some() || request.pypi.is_some();
    match &request.url {
        Some(_) if command || package => {
            let message = "A server is reached by `url`, or started by `command`, `npm` or `pypi`; \
                           send one of them.";
            Err(invalid("url", message))
        }
        Some(url) => {
            let allow_private = request.allow_private.unwrap_or(false);
            Ok(McpServing::Url { url: url.clone(), allow_private })
        }
        None if request.allow_private.is_some() => {
            let message = "The field `allow_private` counts only with `url`.";
            Err(invalid("allow_private", message))
        }
        None if command || package => Ok(McpServing::Command),
        None => {
            let message = "Say where the server comes from: by `command`, `url`, `npm`, `pypi` or \
                           `folder`.";
            Err(invalid("command", message))
        }
    }
}

fn package(npm: Option<String>, pypi: Option<String>) -> Result<Option<McpPackage>, Fault> {
    match (npm, pypi) {
        (None, None) => Ok(None),
        (Some(npm), None) => Ok(Some(McpPackage::Npm(npm))),
        (None, Some(pypi)) => Ok(Some(McpPackage::Pypi(pypi))),
        (Some(_), Some(_)) => {
            Err(invalid("pypi", "A server comes from one package; send `npm` or `pypi`."))
        }
    }
}

fn login(oauth: McpOauth) -> McpLogin {
    let McpOauth { client_id, client_secret, issuer, scopes } = oauth;
    McpLogin { client_id, client_secret, issuer, scopes }
}

fn cwd(path: &str) -> Result<PathBuf, Fault> {
    if wharf_views::is_absolute(path) {
        return Ok(PathBuf::from(path));
    }
    Err(invalid("cwd", "The field `cwd` must be an absolute path without control characters."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wharf_vocab::SandboxLevel;

    fn read(body: Value) -> Result<(NewMcp, Option<Approve>), Fault> {
        new_mcp(serde_json::from_value(body).expect("a request"))
    }

    #[track_caller]
    fn manifest(body: Value) -> Manifest {
        match read(body).expect("fits").0 {
            NewMcp::Declared(declared) => declared.manifest,
            NewMcp::Folder(folder) => panic!("{}", folder.display()),
        }
    }

    #[test]
    fn m043_a_server_is_a_folder_a_command_an_address_or_a_package() {
        let (new, approve) = read(json!({"folder": "/srv/mcp"})).expect("fits");
        assert_eq!((new, approve), (NewMcp::Folder("/srv/mcp".into()), None));
        let made = manifest(json!({"name": "every", "command": ["node", "a.js", "stdio"]}));
        assert_eq!((made.entrypoint.program.as_str(), made.entrypoint.args.len()), ("node", 2));
        let made =
            manifest(json!({"name": "x", "url": "https://a.example", "allow_private": true}));
        let how = McpServing::Url { url: "https://a.example".to_owned(), allow_private: true };
        assert_eq!(made.mcp().expect("one").how, how);
        let made = manifest(json!({"name": "x", "npm": "a@1.0.0"}));
        let package = Some(McpPackage::Npm("a@1.0.0".to_owned()));
        assert_eq!(made.mcp().expect("one").package, package);
        for (bad, field) in [
            (json!({}), "name"),
            (json!({"name": "a/b", "url": "https://a.example"}), "name"),
            (json!({"name": "x"}), "command"),
            (json!({"name": "x", "command": ["a"], "url": "https://a.example"}), "url"),
            (json!({"name": "x", "npm": "a@1", "url": "https://a.example"}), "url"),
            (json!({"name": "x", "npm": "a@1", "pypi": "a==1"}), "pypi"),
            (json!({"name": "x", "command": ["a"], "allow_private": true}), "allow_private"),
            (json!({"name": "x", "command": ["a"], "cwd": "here"}), "cwd"),
            (json!({"name": "x", "command": ["a"], "search": vec!["/a"; 257]}), "search"),
            (json!({"folder": "here"}), "folder"),
            (json!({"folder": "/a", "name": "x"}), "folder"),
            (json!({"folder": "/a", "sandbox": "none"}), "folder"),
        ] {
            let fault = read(bad.clone()).expect_err("refused");
            assert_eq!(fault.details["field"], field, "{bad}");
        }
    }

    #[test]
    fn m043_what_is_approved_at_once_is_what_was_typed() {
        let (_, approve) =
            read(json!({"folder": "/a", "approve": true, "sandbox": "none"})).expect("fits");
        let approve = approve.expect("approved");
        assert_eq!((approve.sandbox, approve.permissions), (Some(SandboxLevel::None), None));
        let body = json!({"name": "x", "command": ["a"], "sandbox": "strict"});
        let (new, approve) = read(body).expect("fits");
        assert!(approve.is_none());
        let NewMcp::Declared(declared) = new else { panic!("a folder") };
        let details = declared.manifest.mcp().expect("one").clone();
        assert_eq!(details.sandbox, Some(SandboxLevel::Strict));
    }
}
