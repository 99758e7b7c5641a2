//! Every format is read, and no key leaves its place.

use super::*;

fn around(variables: &dyn Fn(&str) -> Option<String>) -> ConfigPlace<'_> {
    ConfigPlace {
        project: Path::new("/srv/shop"),
        home: Path::new("/home/me"),
        variables,
        bare: false,
        inputs: BTreeMap::new(),
    }
}

fn read_as(format: ClientFormat, text: &str) -> ImportedConfig {
    let variables = |name: &str| match name {
        "REGION" => Some("eu".to_owned()),
        "GITHUB_TOKEN" => Some("c4nary-github".to_owned()),
        _ => None,
    };
    read(format, text, &around(&variables)).expect("readable")
}

fn command(server: &ImportedServer) -> Vec<&str> {
    match &server.serving {
        ImportedServing::Command { program, args, .. } => {
            std::iter::once(program).chain(args).map(String::as_str).collect()
        }
        ImportedServing::Url(url) => vec![url],
    }
}

/// Place, name, and whether the text is known, of each secret.
fn secrets(server: &ImportedServer) -> Vec<(String, &str, bool)> {
    let place = |to: &SecretPlace| match to {
        SecretPlace::Variable(name) => format!("${name}"),
        SecretPlace::Bearer => "bearer".to_owned(),
        SecretPlace::Header(name) => name.clone(),
    };
    let each = |it: &ImportedSecret| (place(&it.to), it.name.clone(), it.value.is_some());
    let all: Vec<_> = server.secrets.iter().map(each).collect();
    all.into_iter()
        .map(|(place, name, known)| (place, &*Box::leak(name.into_boxed_str()), known))
        .collect()
}

fn named<'a>(config: &'a ImportedConfig, name: &str) -> &'a ImportedServer {
    let found = config.servers.iter().find(|server| server.name == name);
    found.unwrap_or_else(|| panic!("there is no {name} in {config:?}"))
}

#[test]
fn m080_every_format_is_read() {
    let plain = r#"{"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "fs", "/data"], "env": {"LOG_LEVEL": "debug"}, "cwd": "/srv"},
        "web": {"type": "http", "url": "https://mcp.example.com/mcp"}}}"#;
    for format in [ClientFormat::ClaudeDesktop, ClientFormat::Cursor, ClientFormat::Claude] {
        let config = read_as(format, plain);
        let files = named(&config, "files");
        assert_eq!(command(files), ["npx", "-y", "fs", "/data"]);
        assert_eq!(files.env["LOG_LEVEL"], "debug");
        assert_eq!(command(named(&config, "web")), ["https://mcp.example.com/mcp"]);
        assert!(config.left_out.is_empty(), "{config:?}");
    }
    let claude = r#"{"numStartups": 3, "mcpServers": {"top": {"command": "a"}},
        "projects": {"/srv/shop": {"mcpServers": {"inner": {"type": "stdio", "command": "${SHELL_X:-b}",
            "args": ["--region", "${REGION}"]}}}, "/other": {"history": []}}}"#;
    let config = read_as(ClientFormat::Claude, claude);
    assert_eq!(command(named(&config, "top")), ["a"]);
    assert_eq!(command(named(&config, "inner")), ["b", "--region", "eu"]);
    let vscode = r#"{ // mine
        "inputs": [{"type": "promptString", "id": "gh-token", "password": true},
                   {"type": "promptString", "id": "region", "default": "us"}],
        "servers": {"git": {"type": "stdio", "command": "${workspaceFolder}/run.sh",
            "args": ["${input:region}"], "env": {"GH": "${input:gh-token}"}, "envFile": ".env"},},
    }"#;
    let config = read_as(ClientFormat::Vscode, vscode);
    let git = named(&config, "git");
    assert_eq!(command(git), ["/srv/shop/run.sh", "us"]);
    assert_eq!(secrets(git), [("$GH".to_owned(), "GH_TOKEN", false)]);
    assert!(git.left_out[0].starts_with("envFile"), "{git:?}");
    let codex = "model = \"x\"\n[mcp_servers.docs]\ncommand = \"docs\"\nargs = [\"serve\"]\n\
        startup_timeout_sec = 20\nenv_vars = [\"GITHUB_TOKEN\"]\n[mcp_servers.docs.env]\nMODE = \"fast\"\n\
        [mcp_servers.far]\nurl = \"https://far.example/mcp\"\nbearer_token_env_var = \"GITHUB_TOKEN\"\n\
        [mcp_servers.off]\ncommand = \"x\"\nenabled = false\n";
    let config = read_as(ClientFormat::Codex, codex);
    let docs = named(&config, "docs");
    assert_eq!((command(docs), docs.env["MODE"].as_str()), (vec!["docs", "serve"], "fast"));
    assert_eq!(secrets(docs), [("$GITHUB_TOKEN".to_owned(), "GITHUB_TOKEN", true)]);
    assert_eq!(docs.left_out, ["startup_timeout_sec"]);
    assert_eq!(secrets(named(&config, "far")), [("bearer".to_owned(), "GITHUB_TOKEN", true)]);
    assert_eq!(config.left_out, ["off: it is switched off there"]);
    let gemini = r#"{"theme": "x", "mcpServers": {
        "a": {"httpUrl": "https://a.example/mcp", "url": "https://a.example/sse", "timeout": 5, "trust": true},
        "b": {"command": "b", "env": {"WHERE": "$REGION", "API_KEY": "$GITHUB_TOKEN"}, "excludeTools": ["x"]}}}"#;
    let config = read_as(ClientFormat::Gemini, gemini);
    assert_eq!(command(named(&config, "a")), ["https://a.example/mcp"]);
    let b = named(&config, "b");
    assert_eq!(b.env["WHERE"], "eu");
    assert_eq!(secrets(b), [("$API_KEY".to_owned(), "B_API_KEY", true)]);
    let goose = "extensions:\n  fetch:\n    enabled: true\n    type: stdio\n    cmd: uvx\n    args:\n    - fetch\n    \
        envs: {MODE: fast}\n    env_keys:\n    - GITHUB_TOKEN\n    timeout: 300\n  memory:\n    type: builtin\n    enabled: true\n  \
        far:\n    type: streamable_http\n    uri: https://far.example/mcp\n";
    for text in [goose.to_owned(), format!("config:\n{}", indented(goose))] {
        let config = read_as(ClientFormat::Goose, &text);
        let fetch = named(&config, "fetch");
        assert_eq!((command(fetch), fetch.env["MODE"].as_str()), (vec!["uvx", "fetch"], "fast"));
        assert_eq!(secrets(fetch), [("$GITHUB_TOKEN".to_owned(), "GITHUB_TOKEN", true)]);
        assert_eq!(command(named(&config, "far")), ["https://far.example/mcp"]);
        assert_eq!(config.left_out, ["memory: it is a part of Goose, not a server"]);
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[test]
fn m044_keys_are_not_copied() {
    let text = r#"{"mcpServers": {
        "env": {"command": "x", "env": {"OPENAI_API_KEY": "c4nary-1", "PLAIN": "yes",
            "ODD": "ghp_c4nary0123456789", "HEX": "0123456789abcdef0123456789abcdef", "AUTHOR_NAME": "me",
            "KEY_FILE": "/etc/key", "MODEL": "claude-sonnet-4-5-20250929"}},
        "web": {"url": "https://w.example/mcp", "headers": {"Authorization": "Bearer c4nary-2", "X-Region": "eu"}},
        "args": {"command": "x", "args": ["--api-key", "c4nary-3"]},
        "args2": {"command": "x", "args": ["--token=c4nary-4"]},
        "url": {"url": "https://w.example/mcp?exaApiKey=c4nary-5"},
        "user": {"url": "https://me:c4nary-6@w.example/mcp"}}}"#;
    let config = read_as(ClientFormat::Claude, text);
    let shown = format!("{config:?}");
    assert!(!shown.contains("c4nary"), "{shown}");
    let env = named(&config, "env");
    let names: Vec<_> = secrets(env).into_iter().map(|(place, _, _)| place).collect();
    assert_eq!(names, ["$HEX", "$ODD", "$OPENAI_API_KEY"]);
    let plain: Vec<&str> = env.env.keys().map(String::as_str).collect();
    assert_eq!(plain, ["AUTHOR_NAME", "KEY_FILE", "MODEL", "PLAIN"]);
    let known = env.secrets.iter().find(|it| it.name == "OPENAI_API_KEY").expect("named");
    assert_eq!(known.value, Some(KeyText("c4nary-1".to_owned())));
    let web = secrets(named(&config, "web"));
    assert_eq!(
        web,
        [
            ("bearer".to_owned(), "WEB_AUTHORIZATION", true),
            ("X-Region".to_owned(), "X_REGION", true),
        ]
    );
    assert_eq!(config.servers.len(), 2);
    for name in ["args: a key", "args2: a key", "url: a key", "user: a key"] {
        assert!(config.left_out.iter().any(|it| it.starts_with(name)), "{config:?}");
    }
}

#[test]
fn m044_keys_that_differ_have_names_that_differ() {
    let text = r#"{"mcpServers": {
        "a": {"command": "x", "env": {"SHOP_KEY": "one"}},
        "b": {"command": "x", "env": {"SHOP_KEY": "two"}},
        "c": {"command": "x", "env": {"SHOP_KEY": "one"}}}}"#;
    let config = read_as(ClientFormat::Cursor, text);
    let names: Vec<_> = config.servers.iter().map(|it| it.secrets[0].name.as_str()).collect();
    assert_eq!(names, ["SHOP_KEY", "B_SHOP_KEY", "SHOP_KEY"]);
}

#[test]
fn m044_what_is_not_there_is_said() {
    let text = r#"{"mcpServers": {
        "a": {"command": "${NOWHERE}/x"},
        "b": {"command": "x", "env": {"KEY": "${NOWHERE}"}},
        "c": {"command": "x", "env": {"PLACE": "${NOWHERE}"}},
        "d": {"args": ["x"]}, "e": 7, "f": {"command": "x", "args": "y"},
        "g": {"type": "ws", "url": "wss://g.example"}, "h": {"command": "x", "disabled": true}}}"#;
    let config = read_as(ClientFormat::Claude, text);
    assert_eq!(config.servers.len(), 1);
    assert_eq!(secrets(named(&config, "b")), [("$KEY".to_owned(), "B_KEY", false)]);
    assert_eq!(
        config.left_out,
        [
            "a: it needs the variable NOWHERE, which is not set",
            "c: it needs the variable NOWHERE, which is not set",
            "d: it has neither a command nor an address",
            "e: it is no object",
            "f: its args are no list",
            "g: it is reached over a WebSocket, which MCP does not have",
            "h: it is switched off there",
        ]
    );
    for (format, text) in [
        (ClientFormat::Claude, "{"),
        (ClientFormat::Claude, "[]"),
        (ClientFormat::Codex, "a = = 1"),
        (ClientFormat::Goose, "a: &b c"),
    ] {
        assert!(read(format, text, &around(&|_| None)).is_err(), "{text}");
    }
}

#[test]
fn m080_a_file_says_whose_it_is() {
    for (path, format) in [
        ("/home/me/.claude.json", ClientFormat::Claude),
        ("/w/.mcp.json", ClientFormat::Claude),
        (".mcp.json", ClientFormat::Claude),
        ("/home/me/.config/Claude/claude_desktop_config.json", ClientFormat::ClaudeDesktop),
        ("/w/.cursor/mcp.json", ClientFormat::Cursor),
        ("/w/.vscode/mcp.json", ClientFormat::Vscode),
        ("/home/me/.config/Code/User/mcp.json", ClientFormat::Vscode),
        ("/home/me/.codex/config.toml", ClientFormat::Codex),
        ("/home/me/.gemini/settings.json", ClientFormat::Gemini),
        ("/home/me/.config/goose/config.yaml", ClientFormat::Goose),
        ("mcp.json", ClientFormat::Cursor),
    ] {
        assert_eq!(ClientFormat::of_file(Path::new(path)), Some(format), "{path}");
    }
    assert_eq!(ClientFormat::of_file(Path::new("/w/x.json")), None);
    let (home, project) = (Path::new("/home/me"), Path::new("/w"));
    for format in <ClientFormat as clap::ValueEnum>::value_variants() {
        for file in format.usual_files(home, project) {
            assert_eq!(ClientFormat::of_file(&file), Some(*format), "{}", file.display());
        }
    }
}
