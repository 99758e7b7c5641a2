//! What a server of MCP is, in words for whoever decides about it.

use std::collections::BTreeSet;

use wharf_client::Client;
use wharf_wire::rest_v1::McpServer;

use crate::commands::Output;
use crate::commands::Table;
use crate::commands::providers::words as shared;
use crate::plain;

/// What it starts, what it can reach and what it can see, and what it asks for.
pub(super) fn what_it_is(server: &McpServer, output: Output) -> String {
    let mut facts = Table::bare(output);
    facts.facts([
        ("it starts", server.url.is_none().then(|| command(server))),
        ("it is at", server.url.clone()),
        ("it reaches", Some(reaches(server))),
        ("it sees", Some(sees(server))),
    ]);
    let decided = server.permissions_approved.is_some();
    let asked = match server.permissions.is_empty() {
        true => String::new(),
        false => shared::permissions(&server.permissions, decided, output),
    };
    format!("{}{asked}{}", facts.text(), shared::wishes(&server.wishes, decided, output))
}

/// The program and its arguments, and where it comes from.
pub(super) fn command(server: &McpServer) -> String {
    let command = shared::command(&server.command);
    match server.npm.as_ref().or(server.pypi.as_ref()) {
        Some(package) => format!("{command} of {package}, which is installed first"),
        None => command,
    }
}

/// How it is started or reached, in a few words.
pub(super) fn how(server: &McpServer) -> String {
    match (&server.url, server.npm.as_ref().or(server.pypi.as_ref())) {
        (Some(url), _) => url.clone(),
        (None, Some(package)) => package.clone(),
        (None, None) => {
            // Whole paths would leave no room for what tells servers apart.
            let last = |word: &String| word.rsplit('/').next().unwrap_or(word).to_owned();
            shared::command(&server.command.iter().map(last).collect::<Vec<_>>())
        }
    }
}

/// The hosts that it may connect to.
fn reaches(server: &McpServer) -> String {
    if server.url.is_some() {
        return "whatever it likes: it runs elsewhere".to_owned();
    }
    let hosts = named(server, "network:egress:");
    match (hosts.is_empty(), server.sandbox_wanted.map(|level| level.as_str())) {
        (_, Some("none" | "basic")) => {
            "the whole network: its sandbox does not fence it in".to_owned()
        }
        (true, _) => "nothing".to_owned(),
        (false, _) => hosts.join(", "),
    }
}

/// Files, variables and secrets.
fn sees(server: &McpServer) -> String {
    let mut seen = Vec::new();
    if server.url.is_some() {
        seen.push("what calls send it".to_owned());
    } else {
        seen.push("a folder of its own".to_owned());
        seen.extend(some("reading", &named(server, "filesystem:read:")));
        seen.extend(some("reading and writing", &named(server, "filesystem:write:")));
        let variables = server.env.keys().cloned().chain(named(server, "env:read:"));
        seen.extend(some("the variables", &variables.collect::<Vec<_>>()));
    }
    seen.extend(some("the secrets", &Vec::from_iter(secrets(server))));
    seen.join("; ")
}

fn some(what: &str, names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("{what} {}", plain::line(&names.join(", "))))
}

/// What permissions with this beginning name.
fn named(server: &McpServer, beginning: &str) -> Vec<String> {
    let asked = server.permissions_approved.as_ref().unwrap_or(&server.permissions_requested);
    let named = asked.iter().filter_map(|permission| permission.strip_prefix(beginning));
    named.map(str::to_owned).collect()
}

/// What its owner should know, one sentence each.
pub(super) fn hints(server: &McpServer, output: Output) -> String {
    let paint = output.out_paint();
    let line = |hint: &String| format!("{} {}\n", paint.attention("note:"), plain::line(hint));
    server.hints.iter().map(line).collect()
}

/// The state, and why.
pub(super) fn state(server: &McpServer) -> String {
    shared::state(server.state.as_str(), server.reason.as_deref())
}

/// How to approve it, for someone who has not.
pub(super) fn how_to_approve(server: &McpServer) -> String {
    let command = format!("wharf mcp approve {}", plain::line(&server.server_id));
    shared::how_to_approve(&command, " --all", &server.permissions_requested)
}

/// All secrets that it is given.
fn secrets(server: &McpServer) -> BTreeSet<String> {
    let login = server.oauth.iter().filter_map(|login| login.client_secret.as_ref());
    let all = server.env_secrets.values().chain(server.header_secrets.values());
    all.chain(&server.token_secret).chain(login).map(ToString::to_string).collect()
}

/// Secrets that it is given and that the vault does not have. Nobody is told if that cannot be
/// looked up.
pub(super) async fn missing_secrets(server: &McpServer, client: &Client) -> Vec<String> {
    let wanted = secrets(server);
    if wanted.is_empty() {
        return Vec::new();
    }
    let Ok(kept) = client.secrets().list().all().await else { return Vec::new() };
    let kept: BTreeSet<&str> = kept.iter().map(|secret| secret.name.as_str()).collect();
    wanted.into_iter().filter(|name| !kept.contains(name.as_str())).collect()
}

/// How to set secrets, for someone who has not.
pub(super) fn how_to_set(missing: &[String]) -> String {
    if missing.is_empty() {
        return String::new();
    }
    let lines: String =
        missing.iter().map(|name| format!("  wharf secret set {}\n", plain::line(name))).collect();
    format!("it needs secrets that are not set; set them with\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::example;

    #[test]
    fn m043_what_a_server_reaches_and_sees_is_said_in_words() {
        let mut server = example("added");
        assert_eq!(reaches(&server), "nothing");
        assert_eq!(how(&server), "node every.js stdio");
        server.permissions_requested.extend(
            ["network:egress:api.example.dev", "filesystem:write:/srv/data/**"].map(str::to_owned),
        );
        server.env.insert("LEVEL".into(), "debug".into());
        server.env_secrets.insert("KEY".into(), "key".parse().expect("a name"));
        assert_eq!(reaches(&server), "api.example.dev");
        let expect = "a folder of its own; reading /srv/**; reading and writing /srv/data/**; \
                      the variables LEVEL; the secrets key";
        assert_eq!(sees(&server), expect);
        server.sandbox_wanted = Some(wharf_vocab::SandboxLevel::None);
        assert!(reaches(&server).starts_with("the whole network"));
        server.url = Some("https://mcp.example.com".into());
        server.env_secrets.clear();
        server.token_secret = Some("token".parse().expect("a name"));
        assert_eq!(sees(&server), "what calls send it; the secrets token");
    }

    #[test]
    fn m046_what_is_missing_can_be_typed() {
        assert_eq!(how_to_set(&[]), "");
        assert!(how_to_set(&["KEY".to_owned()]).ends_with("\n  wharf secret set KEY\n"));
    }
}
