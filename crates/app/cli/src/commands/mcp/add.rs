//! `wharf mcp add`: takes up a server of MCP; nothing runs yet.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use wharf_client::Client;
use wharf_vocab::{
    Isolation, McpEraChoice, McpRoots, McpSampling, ProviderState, SandboxLevel, SecretName,
};
use wharf_wire::rest_v1::{AddMcp, McpOauth, McpServer};

use crate::commands::providers::limits;
use crate::commands::providers::start::WaitArgs;
use crate::commands::{CliError, Context, Exit, Output, Result, word};
use crate::{amount, inputs, output, plain};

use super::{start, words};

/// What `wharf mcp add` takes.
#[derive(Debug, clap::Args)]
#[command(override_usage = "wharf mcp add <NAME> [OPTIONS] -- <CMD> [ARG]...\n       \
                      wharf mcp add <NAME> [OPTIONS] --url <URL>\n       \
                      wharf mcp add <NAME> [OPTIONS] --npm <PACKAGE@VERSION> [-- <PROGRAM> [ARG]...]\n       \
                      wharf mcp add <DIR> [OPTIONS]")]
#[command(after_help = "\
Examples:
  wharf mcp add notes -- node ./notes/server.js
  wharf mcp add files --npm @modelcontextprotocol/server-filesystem@2026.8.31 \\
      --permission 'filesystem:write:~/papers/**' -- mcp-server-filesystem ~/papers
  wharf mcp add github --secret GITHUB_TOKEN --permission network:egress:api.github.com -- ./github-mcp
  wharf mcp add web --url https://mcp.example.com/mcp --token-secret EXAMPLE_TOKEN
  wharf mcp add ./folder-with-a-manifest

Adding runs nothing: it shows what would start, what it could reach and what it could see. Without
options a server sees its own program and nothing else of your files, and has no network. Its tools
are called NAME/tool once you approve it.")]
pub(crate) struct McpAddArgs {
    /// What to call the server, or the folder that holds its wharf.mcp.toml
    #[arg(value_name = "NAME|DIR")]
    name: String,
    /// The program to start, and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
    /// The address of a server elsewhere
    #[arg(id = "server_url", long = "url", value_name = "URL")]
    #[arg(conflicts_with_all = ["command", "npm", "pypi"])]
    url: Option<String>,
    /// The core's address; what is --url elsewhere is the server's here
    #[arg(id = "url", long = "core-url", value_name = "URL", hide = true)]
    core_url: Option<String>,
    /// Install this package of Node once, and start its program
    #[arg(long, value_name = "PACKAGE@VERSION", conflicts_with = "pypi")]
    npm: Option<String>,
    /// Install this package of Python once, and start its program
    #[arg(long, value_name = "PACKAGE==VERSION")]
    pypi: Option<String>,
    /// Also approve all of it, and start it
    #[arg(long)]
    approve: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    sees: SeesArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    limits: limits::LimitArgs,
}

/// What the server is given.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What it sees and reaches")]
struct SeesArgs {
    /// Ask for this permission, such as network:egress:HOST or filesystem:read:PATH
    #[arg(long = "permission", value_name = "P")]
    permissions: Vec<String>,
    /// Set a variable of its environment; never a key
    #[arg(long = "env", value_name = "VARIABLE=TEXT")]
    env: Vec<String>,
    /// Give it the secret NAME as a variable of its environment
    #[arg(long = "secret", value_name = "NAME=VARIABLE")]
    secrets: Vec<String>,
    /// Send the secret NAME as a bearer token; for --url
    #[arg(long, value_name = "NAME", requires = "server_url")]
    token_secret: Option<String>,
    /// Send the secret NAME in a header; for --url
    #[arg(long = "header-secret", value_name = "HEADER=NAME", requires = "server_url")]
    header_secrets: Vec<String>,
    /// Let the address lie in a private network; for --url
    #[arg(long, requires = "server_url")]
    allow_private: bool,
    /// The core's id as an OAuth client there; for --url
    #[arg(long, value_name = "ID", requires = "server_url")]
    oauth_client_id: Option<String>,
    /// The secret that holds that client's own secret
    #[arg(long, value_name = "NAME", requires = "oauth_client_id")]
    oauth_client_secret: Option<String>,
    /// Show that client to this issuer only
    #[arg(long, value_name = "URL", requires = "oauth_client_id")]
    oauth_issuer: Option<String>,
    /// Ask for this scope when one logs in; for --url
    #[arg(long = "oauth-scope", value_name = "SCOPE", requires = "server_url")]
    oauth_scopes: Vec<String>,
    /// Which folders it is told of: those it may use, or those of the client that calls
    #[arg(long, value_parser = word::<McpRoots>())]
    roots: Option<McpRoots>,
}

/// How far the server is trusted, and how it runs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How it runs")]
struct TrustArgs {
    /// The sandbox it runs in [default: as the core is configured, else standard]
    #[arg(long, value_parser = word::<SandboxLevel>())]
    sandbox: Option<SandboxLevel>,
    /// Which runs share a process [default: shared]
    #[arg(long, value_parser = word::<Isolation>())]
    isolation: Option<Isolation>,
    /// Take on tools that it offers after its approval, without asking
    #[arg(long)]
    accept_new: bool,
    /// Take every tool to act, whatever the server says of it
    #[arg(long)]
    no_trust_annotations: bool,
    /// Who answers what it asks of a model [default: as the core is configured]
    #[arg(long, value_parser = word::<McpSampling>())]
    sampling: Option<McpSampling>,
    /// Which of the protocol's two ways to speak is tried [default: auto]
    #[arg(long, value_parser = word::<McpEraChoice>())]
    era: Option<McpEraChoice>,
    /// How long a process without a call is kept, such as 5m [default: as the core is configured]
    #[arg(long, value_name = "DURATION", value_parser = amount::duration)]
    idle: Option<Duration>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// Adds the server, and shows what it would start, reach and see.
pub(super) async fn run(args: McpAddArgs, context: &Context) -> Result<Exit> {
    let approve = args.approve;
    let (detach, timeout) = (args.wait.detach, args.wait.timeout);
    let body = body(args)?;
    let client = context.client()?;
    let raw = client.mcp_servers().add(&body).raw().await?;
    if !approve {
        return print(raw, &client, context.output).await;
    }
    if !context.output.is_json() {
        let server: McpServer = output::typed(raw.clone())?;
        context.output.text(&introduction(&server, "added and approved", context.output))?;
    }
    start::finish(&client, raw, (!detach).then_some(timeout), context).await
}

/// What was typed, as the core takes it.
fn body(args: McpAddArgs) -> Result<AddMcp> {
    let is_folder =
        args.command.is_empty() && args.url.is_none() && args.npm.is_none() && args.pypi.is_none();
    let mut body = AddMcp {
        approve: args.approve.then_some(true),
        sandbox: args.trust.sandbox,
        isolation: args.trust.isolation,
        ..AddMcp::default()
    };
    if is_folder {
        if !PathBuf::from(&args.name).is_dir() {
            let name = plain::line(&args.name);
            let message = format!(
                "say how {name} is started: wharf mcp add {name} -- CMD ARG…; or by --url where \
                 it is; or name a folder with a wharf.mcp.toml"
            );
            return Err(CliError::usage(message));
        }
        body.folder = Some(inputs::absolute_path(&PathBuf::from(&args.name))?);
        return Ok(body);
    }
    let SeesArgs { permissions, env, secrets, header_secrets, .. } = &args.sees;
    body.name = Some(args.name.clone());
    body.description = args.trust.description.clone();
    let is_started = args.url.is_none();
    body.command = (!args.command.is_empty()).then_some(args.command);
    body.cwd = is_started.then(here).transpose()?;
    body.search = is_started.then(search);
    body.npm = args.npm;
    body.pypi = args.pypi;
    body.allow_private = args.sees.allow_private.then_some(true);
    body.env = pairs(env, "--env", |name, text| Ok((name.to_owned(), text.to_owned())))?;
    body.env_secrets = env_secrets(secrets)?;
    body.token_secret = args.sees.token_secret.as_deref().map(secret).transpose()?;
    body.header_secrets = pairs(header_secrets, "--header-secret", |header, name| {
        Ok((header.to_owned(), secret(name)?))
    })?;
    body.oauth = oauth(&args.sees)?;
    body.roots = args.sees.roots;
    body.permissions = (!permissions.is_empty()).then(|| permissions.clone());
    body.accept_new = args.trust.accept_new.then_some(true);
    body.trust_annotations = args.trust.no_trust_annotations.then_some(false);
    body.sampling = args.trust.sampling;
    body.era = args.trust.era;
    body.idle_s = args.trust.idle.map(|idle| idle.as_secs().max(1));
    body.limits = args.limits.to_limits();
    body.url = args.url;
    Ok(body)
}

/// Where one is, for paths in a command.
pub(super) fn here() -> Result<String> {
    inputs::absolute_path(&PathBuf::from("."))
}

/// Where one's own shell would look for a program.
pub(super) fn search() -> Vec<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.display().to_string()).collect()
}

/// Options of the form `one=other`, read; nothing if there are none.
fn pairs<T>(
    given: &[String],
    option: &str,
    read: impl Fn(&str, &str) -> Result<(String, T)>,
) -> Result<Option<BTreeMap<String, T>>> {
    let mut all = BTreeMap::new();
    for pair in given {
        let parts = pair.split_once('=').filter(|(name, _)| !name.is_empty());
        let Some((name, value)) = parts else {
            let pair = plain::line(pair);
            return Err(CliError::usage(format!("{option} {pair} is not of the form NAME=VALUE")));
        };
        let (name, value) = read(name, value)?;
        if all.contains_key(&name) {
            return Err(CliError::usage(format!("{option} names {} twice", plain::line(&name))));
        }
        all.insert(name, value);
    }
    Ok((!all.is_empty()).then_some(all))
}

/// Variables with secrets. A secret without a variable has that of its own name.
fn env_secrets(given: &[String]) -> Result<Option<BTreeMap<String, SecretName>>> {
    let whole: Vec<String> = given
        .iter()
        .map(|pair| if pair.contains('=') { pair.clone() } else { format!("{pair}={pair}") })
        .collect();
    pairs(&whole, "--secret", |name, variable| Ok((variable.to_owned(), secret(name)?)))
}

fn secret(name: &str) -> Result<SecretName> {
    SecretName::new(name).map_err(|error| {
        CliError::usage(format!("{:?} is no name of a secret: {error}", plain::line(name)))
    })
}

fn oauth(args: &SeesArgs) -> Result<Option<McpOauth>> {
    let oauth = McpOauth {
        client_id: args.oauth_client_id.clone(),
        client_secret: args.oauth_client_secret.as_deref().map(secret).transpose()?,
        issuer: args.oauth_issuer.clone(),
        scopes: args.oauth_scopes.clone(),
    };
    Ok((oauth != McpOauth::default()).then_some(oauth))
}

/// Prints a server that was added, with what to do next.
pub(super) async fn print(raw: serde_json::Value, client: &Client, output: Output) -> Result<Exit> {
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let server: McpServer = output::typed(raw)?;
    if server.state != ProviderState::Added {
        let id = output.out_paint().strong(&plain::line(&server.server_id));
        let state = words::state(&server);
        output.text(&format!("{id} is known and has not changed; it is {state}\n"))?;
        return Ok(Exit::Done);
    }
    let missing = words::missing_secrets(&server, client).await;
    let mut text = introduction(&server, "added", output);
    text.push_str(&words::how_to_set(&missing));
    text.push_str(&words::how_to_approve(&server));
    output.text(&text)?;
    Ok(Exit::Done)
}

/// What somebody decides about: what it starts, reaches and sees, and what to know of it.
pub(super) fn introduction(server: &McpServer, done: &str, output: Output) -> String {
    let paint = output.out_paint();
    let mut text =
        format!("{} {}", paint.good(done), paint.strong(&plain::line(&server.server_id)));
    if !server.description.is_empty() {
        text.push_str(&format!(", {}", plain::cut(&server.description, 100)));
    }
    text.push('\n');
    text.push_str(&words::what_it_is(server, output));
    text.push_str(&words::hints(server, output));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::example;
    use clap::Parser as _;

    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        args: McpAddArgs,
    }

    fn read(words: &[&str]) -> Result<AddMcp> {
        let all = ["add"].into_iter().chain(words.iter().copied());
        body(Typed::try_parse_from(all).expect("options").args)
    }

    #[test]
    fn m043_a_command_is_taken_as_it_was_typed() {
        let body =
            read(&["every", "--accept-new", "--", "node", "e.js", "--url", "x"]).expect("fits");
        assert_eq!(
            body.command.as_deref(),
            Some(&["node", "e.js", "--url", "x"].map(String::from)[..])
        );
        assert_eq!((body.name.as_deref(), body.accept_new), (Some("every"), Some(true)));
        assert!(body.cwd.is_some_and(|cwd| cwd.starts_with('/')));
        assert_eq!((body.url, body.approve, body.trust_annotations), (None, None, None));
    }

    #[test]
    fn m046_secrets_are_given_by_name() {
        let body = read(&["x", "--secret", "a=A", "--secret", "B", "--", "c"]).expect("fits");
        let secrets = body.env_secrets.expect("some");
        assert_eq!((secrets["A"].as_str(), secrets["B"].as_str()), ("a", "B"));
        for wrong in [&["x", "--secret", "=A", "--", "c"][..], &["x", "--env", "A", "--", "c"]] {
            assert_eq!(read(wrong).expect_err("refused").exit().number(), 2);
        }
        let twice = read(&["x", "--env", "A=1", "--env", "A=2", "--", "c"]).expect_err("refused");
        assert!(twice.message().contains("names A twice"), "{twice:?}");
    }

    #[test]
    fn m070_a_server_elsewhere_gets_its_rights_by_name() {
        let words = ["x", "--url", "https://a.example", "--token-secret", "t"];
        let more = ["--header-secret", "x-key=k", "--allow-private", "--oauth-scope", "read"];
        let body = read(&[&words[..], &more].concat()).expect("fits");
        assert_eq!(body.token_secret.as_deref(), Some("t"));
        assert_eq!(body.header_secrets.expect("one")["x-key"].as_str(), "k");
        assert_eq!((body.allow_private, body.cwd, body.search), (Some(true), None, None));
        assert_eq!(body.oauth.expect("said").scopes, ["read"]);
    }

    #[test]
    fn m043_what_would_start_is_a_folder_or_has_to_be_said() {
        let said = read(&["nowhere-to-be-found"]).expect_err("refused");
        assert!(said.message().contains("wharf mcp add nowhere-to-be-found -- CMD"), "{said:?}");
        let here = tempfile::tempdir().expect("a folder");
        let body = read(&[here.path().to_str().expect("text"), "--approve"]).expect("fits");
        assert_eq!((body.approve, body.name), (Some(true), None));
        assert!(body.folder.is_some());
    }

    #[test]
    fn m043_a_new_server_is_introduced() {
        let text = introduction(&example("added"), "added", Output::new(false));
        for part in [
            "added every, tries everything\n",
            "it starts   node /srv/every.js stdio\n",
            "it reaches  nothing\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
    }
}
