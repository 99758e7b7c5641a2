//! Tokens and secrets with the real program: made, used, narrowed, revoked, kept, removed.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::time::Instant;

use rustix::pty;
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::Value;

use crate::children::{PROGRAM, ended, until_readable};
use crate::support::{Core, Ended, LONG, TestHome, mode, wait_for};

/// The program with another token than the owner's.
fn as_token(home: &TestHome, core: &Core, token: &str, arguments: &[&str]) -> Ended {
    let url = core.url();
    let mut all = vec!["--url", &url, "--token", token];
    all.extend(arguments);
    home.run(&all)
}

#[test]
fn a_token_gives_what_it_says_until_it_is_revoked() {
    let home = TestHome::new();
    let core = home.up();
    let made = home
        .run(&[
            "token",
            "create",
            "--verb",
            "run,read",
            "--world",
            "default",
            "--tool",
            "wharf/e*",
            "--ttl",
            "1h",
            "--label",
            "ci",
            "--budget-micro",
            "1000",
        ])
        .code(0);
    let token = made.stdout.trim().to_owned();
    assert!(token.starts_with("whf1.") && !made.stderr.contains(&token), "{made:#?}");

    as_token(&home, &core, &token, &["run", "wharf/echo", "--input", "{}"]).code(0);
    let refused = as_token(&home, &core, &token, &["run", "wharf/count", "n=1"]).code(3);
    assert!(refused.stderr.contains("tool:invoke:wharf/count"), "{refused:#?}");
    as_token(&home, &core, &token, &["audit", "tail"]).code(3);
    as_token(&home, &core, &token, &["worlds", "create", "lab"]).code(3);
    as_token(&home, &core, &token, &["secret", "list"]).code(3);
    as_token(&home, &core, &token, &["runs", "list", "--world", "lab"]).code(3);

    let listed = home.run(&["token", "list", "--json"]).code(0);
    assert!(!listed.stdout.contains(&token), "{listed:#?}");
    let listed = listed.json()[0].clone();
    assert_eq!((&listed["state"], &listed["label"]), (&"active".into(), &"ci".into()));
    let id = listed["token_id"].as_str().expect("an id").to_owned();
    let table = home.run(&["token"]).code(0).stdout;
    assert!(table.contains(&id) && table.contains("active"), "{table}");

    home.run(&["token", "revoke", &id]).code(0);
    let gone = as_token(&home, &core, &token, &["runs", "--json"]).code(3);
    let error: Value = serde_json::from_str(&gone.stderr).expect("JSON");
    assert_eq!(error["error"]["code"], "auth.invalid");
    assert!(!gone.stderr.contains(&token));
    let audit = home.run(&["audit", "export"]).code(0).stdout;
    assert!(audit.contains("grant.revoked") && audit.contains("security.denied"), "{audit}");
    assert!(!audit.contains(&token) && !home.log().contains(&token));
    core.stop().code(0);
}

#[test]
fn a_token_is_narrowed_without_a_core_and_never_widened() {
    let home = TestHome::new();
    let core = home.up();
    let token = home.run(&["token", "create", "--verb", "run,read", "--person"]).code(0).stdout;
    let elsewhere = TestHome::new();
    let narrowed = elsewhere.run_with(
        token.as_bytes(),
        &["token", "narrow", "--verb", "read,admin", "--name", "laptop"],
    );
    let narrowed = narrowed.code(0).stdout.trim().to_owned();
    as_token(&home, &core, &narrowed, &["runs"]).code(0);
    as_token(&home, &core, &narrowed, &["run", "wharf/echo", "--detach"]).code(3);
    as_token(&home, &core, &narrowed, &["audit", "tail"]).code(3);
    let blind = home.run(&["token", "create", "--verb", "run"]).code(0).stdout;
    let id = ["run", "wharf/echo", "--run-id", "unseen"];
    let told = as_token(&home, &core, blind.trim(), &id).code(3);
    assert!(told.stderr.contains("the run unseen continues"), "{told:#?}");
    wait_for("the run", || {
        let run = home.run(&["runs", "show", "unseen", "--json"]).code(0).json();
        (run["status"] == "succeeded").then_some(())
    });
    let audit = home.run(&["audit", "export"]).code(0).stdout;
    assert!(audit.contains(".laptop\""), "the audit names the narrower token: {audit}");

    let again = elsewhere.run(&["token", "narrow", "--token", &narrowed, "--ttl", "1ms", "--json"]);
    let short = again.code(0).json()["token"].as_str().expect("a token").to_owned();
    wait_for("the token to expire", || {
        (as_token(&home, &core, &short, &["runs"]).code == Some(3)).then_some(())
    });
    let odd = elsewhere.run_with(b"c4nary", &["token", "narrow", "--verb", "read"]).code(2);
    assert!(!odd.stderr.contains("c4nary"), "{odd:#?}");
    elsewhere.run(&["token", "narrow", "--verb", "read"]).code(2);

    home.run(&["token", "rotate"]).code(0);
    as_token(&home, &core, &narrowed, &["runs"]).code(0);
    home.run(&["token", "rotate", "--drop-old", "--json"]).code(0);
    as_token(&home, &core, &narrowed, &["runs"]).code(3);
    // Keys and revocations outlive the core.
    let fresh = home.run(&["token", "create", "--verb", "read"]).code(0).stdout;
    core.stop().code(0);
    let core = home.up();
    as_token(&home, &core, fresh.trim(), &["runs"]).code(0);
    as_token(&home, &core, &narrowed, &["runs"]).code(3);
}

#[test]
fn r151_a_secret_is_kept_unreadable_and_only_its_name_is_shown() {
    const CANARY: &str = "c4n4ry-secret-9b1d";
    let home = TestHome::new();
    let core = home.up();
    let set = home.run_with(format!("{CANARY}\n").as_bytes(), &["secret", "set", "MAIL_KEY"]);
    let set = set.code(0);
    assert!(!set.stdout.contains(CANARY) && !set.stderr.contains(CANARY));
    home.run_with(b"", &["secret", "set", "EMPTY"]).code(2);
    home.run_with(&vec![b'x'; 64 * 1024 + 1], &["secret", "set", "LARGE"]).code(2);
    let listed = home.run(&["secret", "list", "--json"]).code(0);
    assert_eq!(listed.json()[0]["name"], "MAIL_KEY");
    assert_eq!(listed.json().as_array().map(Vec::len), Some(1));
    assert!(home.run(&["secret"]).code(0).stdout.contains("MAIL_KEY"));
    for entry in std::fs::read_dir(home.path().join("secrets")).expect("there").flatten() {
        let content = std::fs::read(entry.path()).expect("readable");
        let plain = String::from_utf8_lossy(&content).contains(CANARY);
        assert!(!plain, "{:?} holds the secret as it is", entry.path());
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
    }
    core.stop().code(0);
    let _core = home.up();
    home.run(&["secret", "remove", "MAIL_KEY"]).code(0);
    home.run(&["secret", "remove", "MAIL_KEY"]).code(2);
    let audit = home.run(&["audit", "export"]).code(0).stdout;
    assert!(audit.contains("secret.set") && !audit.contains(CANARY), "{audit}");
    assert!(!home.log().contains(CANARY));
}

#[test]
fn a_secret_that_is_typed_is_not_shown() {
    const TYPED: &str = "c4n4ry-typed-1f2e";
    let home = TestHome::new();
    let _core = home.up();
    let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).expect("a pty");
    pty::grantpt(&terminal).expect("granted");
    pty::unlockpt(&terminal).expect("unlocked");
    let name = pty::ptsname(&terminal, Vec::new()).expect("a name");
    let open = || File::options().read(true).write(true).open(name.to_str().expect("text"));
    let end = open().expect("opens");
    let mut command = home.wharf(&["secret", "set", "TYPED"]);
    command.stdin(open().expect("opens")).stderr(open().expect("opens"));
    let child = command.spawn().expect("the program starts");
    drop(command);
    // What is typed before the program hides it would be shown.
    let hides =
        |end: &File| !tcgetattr(end).expect("a terminal").local_modes.contains(LocalModes::ECHO);
    wait_for("the program to ask", || hides(&end).then_some(()));
    let mut terminal = File::from(terminal);
    terminal.write_all(format!("{TYPED}\n").as_bytes()).expect("typed");
    let ended = ended(child, "wharf secret set", PROGRAM);
    assert!(ended.status.success());
    assert!(!hides(&end), "the terminal shows again what is typed");
    let mut shown = vec![0; 4096];
    until_readable(&terminal, Instant::now() + LONG, "what the terminal shows");
    let count = terminal.read(&mut shown).expect("readable");
    let shown = String::from_utf8_lossy(&shown[..count]).into_owned();
    assert!(shown.starts_with("TYPED: ") && !shown.contains(TYPED), "{shown:?}");
    assert!(home.run(&["secret"]).code(0).stdout.contains("TYPED"));
}
