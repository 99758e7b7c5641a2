//! Manifests as people write them, and what is said of those that cannot be used.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use wharf_domain::provider::{Rate, Usage};
use wharf_vocab::Isolation;

use super::*;

const FULL: &str = r#"
name = "github"
description = "Issues and pull requests"
command = ["/opt/node/bin/node", "/srv/github/index.js", "--stdio"]
permissions = ["network:egress:api.github.com", "filesystem:read:/srv/github/**", "tool:invoke:wharf/sample"]
sandbox = "strict"
isolation = "world"
idle_s = 60
accept_new = true
trust_annotations = false
era = "legacy"
sampling = "model"
roots = "caller"
timeout_s = 30.5
max_concurrency = 4
rate_limit = "60/minute"

[env]
MODE = "quiet"

[env_secrets]
GITHUB_TOKEN = "github"

[resources]
memory = "256Mi"
cpu_time = "60s"
processes = 32
"#;

fn read_text(text: &str) -> ReadManifest {
    parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

fn refused(text: &str) -> String {
    let fault = parse(text.as_bytes()).expect_err(text);
    assert!(fault.is(Code::AgentManifestInvalid), "{fault}");
    fault.message
}

#[test]
fn m043_a_manifest_says_all_of_a_server_that_is_started() {
    let ReadManifest { id, manifest, .. } = read_text(FULL);
    assert_eq!((id.as_str(), manifest.name.as_str()), ("github", "github"));
    assert_eq!(manifest.entrypoint.program, "/opt/node/bin/node");
    assert_eq!(manifest.entrypoint.args, ["/srv/github/index.js", "--stdio"]);
    assert_eq!(manifest.permissions.last().expect("some"), "secret:env:github=GITHUB_TOKEN");
    assert_eq!(manifest.permissions.len(), 4);
    assert_eq!(manifest.isolation, Some(Isolation::World));
    assert_eq!(manifest.limits.call_ms, Some(30_500));
    assert_eq!(manifest.limits.calls_max, Some(4));
    assert_eq!(manifest.limits.rate, Some(Rate { count: 60, per_ms: 60_000 }));
    let usage = Usage {
        memory_bytes: Some(256 << 20),
        cpu_ms: Some(60_000),
        processes: Some(32),
        ..Usage::default()
    };
    assert_eq!(manifest.limits.usage, usage);
    let details = manifest.mcp().expect("an MCP server");
    let secret = |name| SecretName::new(name).expect("valid");
    let expect = McpDetails {
        env: BTreeMap::from([("MODE".to_owned(), "quiet".to_owned())]),
        env_secrets: BTreeMap::from([("GITHUB_TOKEN".to_owned(), secret("github"))]),
        accept_new: true,
        trust_annotations: false,
        era: McpEraChoice::Legacy,
        idle_s: Some(60),
        sandbox: Some(SandboxLevel::Strict),
        sampling: Some(McpSampling::Model),
        roots: McpRoots::Caller,
        ..McpDetails::new(McpServing::Command)
    };
    assert_eq!(*details, expect);
}

#[test]
fn m070_secrets_of_a_server_elsewhere_are_permissions() {
    let text = "name = 'far'\nurl = 'https://mcp.example.com/mcp'\ntoken_secret = 'far'\n\
                [header_secrets]\nX-Key = 'key'\n[oauth]\nclient_id = 'me'\n\
                client_secret = 'mine'\nscopes = ['read']";
    let manifest = read_text(text).manifest;
    assert_eq!(manifest.permissions, ["secret:use:far", "secret:use:key", "secret:use:mine"]);
    assert_eq!(manifest.entrypoint.program, "https://mcp.example.com/mcp");
    let details = manifest.mcp().expect("an MCP server");
    assert!(!details.how.is_launched());
    assert_eq!(details.oauth.as_ref().expect("oauth").scopes, ["read"]);
}

#[test]
fn m043_what_cannot_be_used_is_named() {
    let start = "name = 'x'\ncommand = ['x']\n";
    let cases = [
        ("", "name is missing"),
        ("name = 'a/b'\ncommand = ['x']", "letters, digits"),
        ("name = 'wharf'\ncommand = ['x']", "a name of the core itself"),
        ("name = 'x'", "say how the server is started"),
        ("name = 'x'\ncommand = []", "say how the server is started"),
        ("name = 'x'\ncommand = ['']", "it must name a program"),
        ("name = 'x'\ncommand = 'x'", "a list of text"),
        ("name = 'x'\ncomand = ['x']", "did you mean command?"),
        ("name = 'x'\ncommand = ['x']\nurl = 'https://a.example'", "without a url"),
        ("name = 'x'\nurl = 'https://a.example'\n[env]\nA = 'b'", "without a url"),
        ("name = 'x'\nurl = 'http://a.example'", "url cannot be used"),
        ("name = 'x'\nurl = 'https://10.0.0.1'", "url cannot be used"),
        (
            "name = 'x'\nurl = 'https://a.example'\npermissions = ['env:read:A']",
            "only be permitted",
        ),
        ("name = 'x'\nnpm = 'left-pad'", "one version"),
        ("name = 'x'\nnpm = 'left-pad@latest'", "one version"),
        ("name = 'x'\nnpm = 'left-pad@^1.0.0'", "one version"),
        ("name = 'x'\nnpm = '../x@1.0.0'", "one version"),
        ("name = 'x'\npypi = 'a>=1'", "one version"),
        ("name = 'x'\nnpm = 'a@1'\npypi = 'a==1'", "says already"),
        ("\ntoken_secret = 'a'", "which have a url"),
        ("\nera = 'new'", "auto, legacy or modern"),
        ("\nidle_s = 0", "1 or more"),
        ("\ntimeout_s = -1", "seconds"),
        ("\npermissions = ['secret:env:a=B']", "env_secrets"),
        ("\npermissions = ['files']", "domain:action:pattern"),
        ("\n[env]\nPATH = '/x'", "sets this variable itself"),
        ("\n[env]\n'A B' = 'x'", "not the name of a variable"),
        ("\n[env]\nWHARF_TOKEN = 'x'", "the core's"),
        ("\n[env]\nA = 1", "must be text"),
        ("\n[env]\nA = 'x'\n[env_secrets]\nA = 'x'", "env has it already"),
        ("\n[env_secrets]\nA = '../x'", "env_secrets.A"),
        ("\n[resources]\nram = '1Mi'", "resources.ram"),
    ];
    for (text, expect) in cases {
        let text = if text.starts_with('\n') { format!("{start}{text}") } else { text.to_owned() };
        let message = refused(&text);
        assert!(message.contains(expect), "{text:?}: {message}");
    }
    let long = format!(
        "{start}[env]\n{}",
        (0..20)
            .fold(String::new(), |all, at| { format!("{all}A{at} = '{}'\n", "x".repeat(4_000)) })
    );
    assert!(refused(&long).contains("together"));
    let url = "name = 'x'\nurl = 'https://a.example'\n";
    let headers = [("Host", "for itself"), ("mcp-session-id", "for itself"), ("a b", "a header")];
    for (header, expect) in headers {
        let message = refused(&format!("{url}[header_secrets]\n'{header}' = 'x'"));
        assert!(message.contains(expect), "{header}: {message}");
    }
    assert!(refused(&format!("{url}[oauth]\nclient_secret = 'x'")).contains("client_id"));
}

#[test]
fn m076_private_addresses_take_a_word() {
    for url in ["https://10.1.2.3/mcp", "https://192.168.0.9/mcp", "https://[fd00::1]/mcp"] {
        let text = format!("name = 'x'\nurl = '{url}'\n");
        refused(&text);
        read_text(&format!("{text}allow_private = true"));
    }
    read_text("name = 'x'\nurl = 'http://127.0.0.1:3001/mcp'");
    refused("name = 'x'\nurl = 'http://10.1.2.3/mcp'\nallow_private = true");
    refused("name = 'x'\nurl = 'https://169.254.169.254/latest'\nallow_private = true");
}

#[test]
fn m043_what_is_written_reads_the_same() {
    let packages = [
        "name = 'p'\nnpm = '@a/server-b@1.2.3-rc.1'",
        "name = 'p'\npypi = 'mcp_server.x==1.2.3'\ncommand = ['other', 'stdio']",
    ];
    let far = "name = 'far'\nurl = 'https://a.example/mcp'\nallow_private = true\n\
               token_secret = 'a'\nisolation = 'run'\n[header_secrets]\nX-Key = 'key'\n\
               [oauth]\nscopes = ['a', 'b']";
    for text in [FULL, far].into_iter().chain(packages) {
        let read = read_text(text);
        let written = write(&read.id, &read.manifest).expect("writes");
        let again = read_text(&written);
        assert_eq!((again.id, again.manifest), (read.id, read.manifest), "{written}");
    }
    let package = read_text(packages[0]).manifest;
    assert_eq!(
        (package.entrypoint.program.as_str(), package.version.as_str()),
        ("server-b", "1.2.3-rc.1")
    );
}

/// A program for tests.
fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
}

fn command(words: &[&str]) -> Manifest {
    let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    read_text(&format!("name = 'x'\ncommand = [{}]", words.join(", "))).manifest
}

#[test]
fn m045_a_script_and_what_lies_beside_it_can_be_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().canonicalize().expect("real");
    let node = root.join("node/bin/node");
    program(&node, "\u{7f}ELF");
    let script = root.join("app/node_modules/@a/server/dist/index.js");
    program(&script, "#!/usr/bin/env node\n");
    let bin = root.join("app/node_modules/.bin");
    fs::create_dir_all(&bin).expect("made");
    std::os::unix::fs::symlink("../@a/server/dist/index.js", bin.join("server")).expect("linked");
    let around = Surroundings {
        cwd: Some(root.join("app")),
        search: vec![root.join("node/bin")],
        ..Surroundings::default()
    };
    let packages = format!("filesystem:read:{}/app/node_modules/**", root.display());

    let mut typed = command(&["node", "node_modules/.bin/server", "stdio"]);
    settle(&mut typed, &around).expect("settled");
    assert_eq!(typed.entrypoint.program, node.display().to_string());
    let link = bin.join("server").display().to_string();
    assert_eq!(typed.entrypoint.args, [link.clone(), "stdio".to_owned()]);
    assert!(typed.permissions.contains(&packages), "{:?}", typed.permissions);
    assert_eq!(hints(&typed), Vec::<String>::new());

    // A script whose interpreter no launch would find is started by it.
    let mut direct = command(&["./node_modules/.bin/server"]);
    let around_odd = Surroundings { search: vec![root.join("odd")], ..around.clone() };
    program(&root.join("odd/odd-interpreter"), "\u{7f}ELF");
    program(&script, "#!/usr/bin/env odd-interpreter\n");
    settle(&mut direct, &around_odd).expect("settled");
    assert!(direct.entrypoint.program.ends_with("/odd/odd-interpreter"));
    assert_eq!(direct.entrypoint.args, [link]);
    assert!(direct.permissions.contains(&packages));
}

#[test]
fn m045_a_project_is_shown_but_never_a_home() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = dir.path().canonicalize().expect("real");
    let script = root.join("me/project/src/server.py");
    program(&script, "");
    fs::write(root.join("me/project/pyproject.toml"), "").expect("written");
    program(&root.join("me/alone.py"), "");
    fs::write(root.join("me/package.json"), "").expect("written");
    let around = Surroundings {
        cwd: Some(root.join("me")),
        user_home: Some(root.join("me")),
        ..Surroundings::default()
    };
    let settled = |word: &str| {
        let mut typed = command(&["sh", word]);
        settle(&mut typed, &around).expect("settled");
        assert_eq!(typed.entrypoint.program, "sh", "launches find it");
        typed.permissions
    };
    let below = |path: &str| format!("filesystem:read:{}/me/{path}", root.display());
    assert_eq!(settled("project/src/server.py"), [below("project/**")]);
    assert_eq!(settled("./alone.py"), [below("alone.py")]);
    assert!(settled("stdio").is_empty());
    assert!(settled("/usr/bin/env").is_empty(), "all can read it");
}

#[test]
fn m047_what_fetches_code_and_what_is_not_shown_is_said() {
    let hint = |words: &[&str]| hints(&command(words)).join(" ");
    let npx = hint(&["npx", "-y", "@modelcontextprotocol/server-everything"]);
    assert!(npx.contains("--npm @modelcontextprotocol/server-everything@VERSION"), "{npx}");
    assert!(hint(&["/usr/bin/npx", "-y", "a@latest"]).contains("--npm a@VERSION"));
    assert!(hint(&["npm", "exec", "a"]).contains("--npm a@VERSION"));
    assert!(hint(&["uvx", "mcp-server-git"]).contains("--pypi mcp-server-git==VERSION"));
    assert!(hint(&["uv", "tool", "run", "x==1"]).contains("--pypi x==VERSION"));
    assert_eq!(hint(&["uv", "--version"]), "");
    assert!(hint(&["docker", "run", "-i", "x"]).contains("--sandbox none"));
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().display().to_string();
    let told = hint(&["sh", &folder]);
    assert!(told.contains(&format!("filesystem:write:{folder}/**")), "{told}");
    let fault = settle(&mut command(&["no-such-program"]), &Surroundings::default())
        .expect_err("nobody has it");
    assert!(fault.message.contains("no-such-program"), "{fault}");
}
