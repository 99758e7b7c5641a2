//! Canaries: what is secret or a payload is planted everywhere, everything is made to happen, and
//! then it is looked for where it must not be.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use crate::agents::{example, has_python};
use crate::support::{Core, LONG, TestHome, wait_for};

const AGENT: &str = "dev.wharf.minimal";
const SECRET: &str = "c4n4ry-secret-51aa";
const ENV: &str = "c4n4ry-env-62bb";
const INPUT: &str = "c4n4ry-input-73cc";
const OUTPUT: &str = "c4n4ry-output-84dd";
const REASON: &str = "c4n4ry-reason-95ee";

/// An agent that is given a secret and a variable, says both aloud, and gives its input back.
fn talkative() -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    let read = |name: &str| std::fs::read_to_string(example("minimal-python").join(name));
    let manifest = read("opensentience.agent.json").expect("readable");
    let permissions = r#""permissions": ["secret:use:MAIL_KEY", "env:read:CANARY_ENV"]"#;
    let manifest = manifest.replace(r#""permissions": []"#, permissions);
    std::fs::write(copy.path().join("opensentience.agent.json"), manifest).expect("written");
    let program = read("agent.py").expect("readable");
    let said = "def call(m, asked):\n    \
                secret = open(os.environ[\"WHARF_SECRETS_DIR\"] + \"/MAIL_KEY\").read()\n    \
                print(\"it is\", secret, \"and\", TOKEN, flush=True)\n    \
                print(\"in other letters\", TOKEN.encode().hex(), flush=True)\n    \
                print(\"it is\", secret, file=sys.stderr, flush=True)\n    \
                assert os.environ[\"CANARY_ENV\"].startswith(\"c4n4ry\")\n";
    let program = program.replace("def call(m, asked):\n", said);
    let output = r#""greeting": "c4n4ry-output-84dd %s %d" % (name, len(secret))"#;
    let program = program.replace(r#""greeting": "Hello, %s!" % name"#, output);
    std::fs::write(copy.path().join("agent.py"), program).expect("written");
    copy
}

fn metrics(core: &Core) -> String {
    let addr = core.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&addr).expect("connects");
    let token = core.token();
    let head = format!(
        "GET /metrics HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    stream.set_read_timeout(Some(LONG)).expect("set");
    stream.write_all(head.as_bytes()).expect("sends");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("readable").flatten() {
        let kind = entry.file_type().expect("known");
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

fn holds(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The token that an agent was let in with, which it has said in letters that nobody looks for.
fn session_token(logs: &str) -> String {
    let hex = logs.split("in other letters ").nth(1).expect("it was said");
    let hex = hex.split(|c: char| !c.is_ascii_hexdigit()).next().expect("digits");
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("a byte");
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect();
    let token = String::from_utf8(bytes).expect("text");
    assert!(token.len() >= 32, "a token is long: {}", token.len());
    token
}

#[test]
fn r052_r151_no_secret_token_input_or_output_is_found_where_it_must_not_be() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    home.configure("[log]\nlevel = \"trace\"\n");
    let core = home.up_with(&[("CANARY_ENV", ENV)]);
    home.run_with(SECRET.as_bytes(), &["secret", "set", "MAIL_KEY"]).code(0);
    let token = home.run(&["token", "create", "--verb", "run,read", "--label", "x"]).code(0).stdout;
    let token = token.trim().to_owned();
    let folder = talkative();
    home.run(&["agents", "add", folder.path().to_str().expect("text")]).code(0);
    home.run(&["agents", "approve", AGENT, "--all"]).code(0);
    home.run(&["agents", "start", AGENT]).code(0);

    // Everything happens: runs that go well, fail, are refused and canceled, with every token.
    let hello = format!("{AGENT}/hello");
    let run = home.run(&["run", &hello, &format!("name={INPUT}")]).code(0).json();
    let greeting = run["outputs"]["greeting"].as_str().expect("a greeting").to_owned();
    assert_eq!(greeting, format!("{OUTPUT} {INPUT} {}", SECRET.len()), "it was given the secret");
    home.run(&["run", &hello, "--input", &format!("{{\"name\": [\"{INPUT}\"]}}")]).code(2);
    home.run(&["run", "wharf/fail", &format!("message={OUTPUT}")]).code(1);
    let url = core.url();
    let as_token = |arguments: &[&str]| {
        let mut all = vec!["--url", &url, "--token", &token];
        all.extend(arguments);
        home.run(&all)
    };
    as_token(&["run", "wharf/echo", "--input", &format!("{{\"a\": \"{INPUT}\"}}")]).code(0);
    as_token(&["audit", "tail"]).code(3);
    home.run(&["--url", &url, "--token", &format!("{token}x"), "runs"]).code(3);
    let nap = home.run(&["run", "wharf/sleep", "ms=600000", "--detach"]).code(0).json();
    let nap = nap["run_id"].as_str().expect("an id").to_owned();
    home.run(&["runs", "cancel", &nap, "--reason", REASON]).code(0);
    let logs = wait_for("what the agent said", || {
        let logs = home.run(&["agents", "logs", AGENT]).code(0).stdout;
        let said = logs.matches("it is").count() >= 2 && logs.contains("in other letters");
        said.then_some(logs)
    });
    let session = session_token(&logs);
    home.run(&["agents", "restart", AGENT]).code(0);
    home.run(&["agents", "revoke", AGENT]).code(0);
    home.run(&["secret", "remove", "MAIL_KEY"]).code(0);

    let owner = core.token();
    let metrics = metrics(&core);
    let audit = home.run(&["audit", "export"]).code(0).stdout;
    assert!(audit.contains("tool.call_completed") && audit.contains("secret."), "{audit}");
    core.stop().code(0);
    home.run(&["audit", "verify"]).code(0);
    let log = home.log();
    assert!(log.lines().count() > 20, "the log says much: {log}");
    let canaries = [SECRET, ENV, INPUT, OUTPUT, REASON, &token, &owner, &session];
    for (place, text) in [("audit", &audit), ("core's log", &log), ("metrics", &metrics)] {
        for canary in canaries {
            let line = text.lines().find(|line| line.contains(canary));
            assert_eq!(line, None, "{canary} stands in the {place}");
        }
    }
    for secret in [SECRET, &token, &owner, &session] {
        assert!(!logs.contains(secret), "{secret} stands in the agent's log: {logs}");
    }
    let mut all = Vec::new();
    files(&home.path(), &mut all);
    let journal = std::fs::read(home.path().join("wharf.db")).expect("readable");
    assert!(holds(&journal, INPUT) && holds(&journal, OUTPUT), "what is looked for can be found");
    for path in all {
        let content = std::fs::read(&path).expect("readable");
        let name = path.strip_prefix(home.path()).expect("below").display().to_string();
        for secret in [SECRET, &token, ENV, &session] {
            assert!(!holds(&content, secret), "{secret} stands in {name}");
        }
        assert_eq!(holds(&content, &owner), name == "run/owner.token", "{name}");
        // The journal keeps payloads, and nothing else does.
        for payload in [INPUT, OUTPUT, REASON] {
            assert!(name.starts_with("wharf.db") || !holds(&content, payload), "{payload}: {name}");
        }
    }
}
