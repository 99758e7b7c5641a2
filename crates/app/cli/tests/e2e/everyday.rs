//! The day of whoever operates a core at the command line: looking, repeating, deciding, finding.

use std::io::Read as _;
use std::time::Instant;

use rustix::pty;
use serde_json::{Value, json};

use crate::children::{self, Finish as _};
use crate::operators::driver::Operator;
use crate::support::{Api, LONG, TestHome, wait_for};

/// A run that is over, under an id of ours.
fn ran(home: &TestHome, id: &str, world: &str) {
    home.run(&["run", "wharf/count", "n=2", "delay_ms=1", "--run-id", id, "--world", world, "-q"])
        .code(0);
}

fn token(home: &TestHome, arguments: &[&str]) -> String {
    let create = [&["token", "create", "--json"], arguments].concat();
    home.run(&create).code(0).json()["token"].as_str().expect("a token").to_owned()
}

#[test]
fn a_run_is_repeated_and_says_which_one() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    ran(&home, "nightly-1", "lab");
    let again = home.run(&["runs", "retry", "night"]).code(0);
    assert!(again.stderr.contains("repeating nightly-1 --world lab (wharf/count, succeeded"));
    let run = again.json();
    assert_eq!((&run["world"], &run["outputs"]["n"]), (&json!("lab"), &json!(2)));
    assert_ne!(run["run_id"], "nightly-1");

    let other = ["runs", "retry", "nightly-1", "--set", "n=4", "--in", "default", "--json"];
    let other = home.run(&other).code(0);
    assert_eq!(other.stderr, "", "with --json nothing is said beside the result");
    let run = other.json();
    assert_eq!((&run["world"], &run["outputs"]["sum"]), (&json!("default"), &json!(10)));
    let wrong = home.run(&["runs", "retry", "nightly-1", "--set", "n=many"]).code(2);
    assert!(wrong.stderr.contains("n must be a whole number"), "{wrong:#?}");
    let missing = home.run(&["runs", "retry", "nightly-1", "--unset", "n"]).code(2);
    assert!(missing.stderr.contains("tool.invalid_input"), "{missing:#?}");
    let detached = home.run(&["runs", "retry", "nightly-1", "--detach", "--json"]).code(0).json();
    let id = detached["run_id"].as_str().expect("an id").to_owned();
    assert_eq!(Api::of(&core).end_of("lab", &id)["status"], "succeeded");
}

#[test]
fn a_run_is_found_by_its_beginning_in_whichever_world_has_it() {
    let home = TestHome::new();
    let _core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    ran(&home, "alpha-1", "lab");
    ran(&home, "alpha-2", "default");
    ran(&home, "same", "lab");
    ran(&home, "same", "default");
    let world_of = |arguments: &[&str]| -> Value {
        let show = [&["runs", "show", "--json"], arguments].concat();
        home.run(&show).code(0).json()["world"].clone()
    };
    assert_eq!(world_of(&["alpha-1"]), "lab");
    assert_eq!(world_of(&["lab/alpha-1"]), "lab");
    assert_eq!(world_of(&["same"]), "default", "the usual world needs no name");
    assert_eq!(world_of(&["same", "--world", "lab"]), "lab");
    let several = home.run(&["runs", "show", "alpha"]).code(2);
    assert!(several.stderr.contains("alpha-1 --world lab"), "{several:#?}");
    assert!(several.stderr.contains("alpha-2"), "{several:#?}");
    let astray = home.run(&["runs", "show", "alpha-1", "--world", "default"]).code(2);
    assert!(astray.stderr.contains("type: alpha-1 --world lab [run.not_found]"), "{astray:#?}");
    let none = home.run(&["runs", "watch", "zebra"]).code(2);
    assert!(none.stderr.contains("in any world that this token may see"), "{none:#?}");
    assert_eq!(home.run(&["runs", "watch", "alpha-1"]).code(0).json()["run_id"], "alpha-1");

    let reads = token(&home, &["--verb", "read", "--world", "lab"]);
    assert_eq!(world_of(&["alpha", "--token", &reads]), "lab", "it sees one world only");
    // Whoever may run and not look still names a run as a whole.
    let runs = token(&home, &["--verb", "run", "--world", "lab"]);
    let nap = ["run", "wharf/sleep", "ms=600000", "--run-id", "nap", "--world", "lab", "--detach"];
    home.run(&[&nap[..], &["--token", &runs]].concat()).code(0);
    let cancel = ["runs", "cancel", "nap", "--world", "lab", "--token", &runs];
    let stopping = home.run(&cancel).code(0);
    assert!(stopping.stderr.contains("canceling nap"), "{stopping:#?}");
    let ended = home.run(&["runs", "watch", "nap", "--world", "lab"]);
    assert_eq!(ended.json()["status"], "canceled");
    let again = home.run(&["runs", "cancel", "nap", "--world", "lab"]).code(1);
    assert!(again.stderr.contains("nap is over: canceled"), "{again:#?}");
    let over = home.run(&["runs", "cancel", "alpha-1"]).code(1);
    assert!(over.stderr.contains("alpha-1 is over: succeeded"), "{over:#?}");
    let over = home.run(&["runs", "cancel", "alpha-2", "--json"]).code(1).json();
    assert_eq!(over[0]["status"], "succeeded");

    let child = ["runs", "list", "--parent", "alpha-2", "--json"];
    assert_eq!(home.run(&child).code(0).json(), json!([]), "it started none");
    home.run(&["runs", "list", "--parent", "zebra"]).code(2);
    let next = ["run", "wharf/echo", "text=x", "--continues", "alpha-", "--json"];
    let next = home.run(&next).code(0).json();
    assert_eq!(next["continues"], "alpha-2", "{next}");

    home.run(&["runs", "purge", "alpha-1", "alpha-2", "--yes"]).code(0);
    home.run(&["runs", "show", "alpha-1"]).code(2);
    let nowhere = home.run(&["runs", "list", "--world", "nosuch"]).code(2);
    assert!(nowhere.stderr.contains("world.not_found"), "{nowhere:#?}");
}

#[test]
fn status_shows_how_the_core_fares_and_what_a_token_may_see() {
    let home = TestHome::new();
    let away = home.run(&["status"]).code(1);
    assert!(away.stderr.contains("core.unreachable"), "{away:#?}");
    let core = home.up();
    home.run(&["worlds", "create", "lab", "--limit-micro", "1000"]).code(0);
    home.run(&["run", "wharf/sleep", "ms=1", "cost_micro=900", "--world", "lab", "-q"]).code(0);
    home.run(&["run", "wharf/fail", "-q"]).code(1);
    let asking = home.run(&["run", "wharf/ask", "question=Which?", "--detach"]).code(0).json();
    wait_for("the question", || {
        let waits = home.run(&["status", "--json"]).code(0).json();
        (waits["asks"]["open"] == 1).then_some(())
    });
    let status = home.run(&["status", "--json"]).code(0).json();
    assert_eq!((&status["well"], &status["url"]), (&json!(true), &json!(core.url())));
    assert_eq!((&status["runs"]["waiting"], &status["runs"]["failed_24h"]), (&json!(1), &json!(1)));
    assert_eq!(status["money"]["today_micro"], 900);
    assert_eq!(status["money"]["nearly_used"][0]["account"], "world:lab");
    assert_eq!(status["not_shown"], json!([]));
    let text = home.run(&["status"]).code(0).stdout;
    for part in
        ["owner", "1 waiting", "wharf inbox", "world:lab has used 90% of $0.001", " free of "]
    {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }

    let narrow = token(&home, &["--verb", "run", "--world", "lab", "--label", "ci", "--ttl", "8h"]);
    let seen = home.run(&["status", "--token", &narrow]).code(0).stdout;
    for part in ["(ci): may run in lab", "it ends in 8h", "left out", "this token may not see that"]
    {
        assert!(seen.contains(part), "{part:?} is missing in {seen}");
    }
    let run = asking["run_id"].as_str().expect("an id");
    home.run(&["runs", "cancel", run]).code(0);
}

#[test]
fn runs_are_found_by_their_error() {
    let home = TestHome::new();
    let _core = home.up();
    ran(&home, "fine", "default");
    home.run(&["run", "wharf/fail", "--run-id", "told-to", "-q"]).code(1);
    home.run(&["run", "wharf/sleep", "ms=60000", "--timeout", "50ms", "--run-id", "slow", "-q"])
        .code(1);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let list = home.run(&[&["runs", "list", "--json"], arguments].concat()).code(0).json();
        let list = list.as_array().expect("a list").clone();
        list.iter().map(|run| run["run_id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids(&["--error", "tool.timeout"]), ["slow"]);
    assert_eq!(ids(&["--error", "tool.*"]), ["slow", "told-to"]);
    assert_eq!(ids(&["--text", "TOLD to"]), ["told-to"]);
    assert_eq!(ids(&["--error", "tool.*", "--text", "told", "--since", "1h"]), ["told-to"]);
    assert_eq!(ids(&["--error", "budget.exceeded"]), [""; 0]);
    let none = home.run(&["runs", "--error", "budget.exceeded"]).code(0);
    assert!(none.stderr.contains("no run fits"), "{none:#?}");
}

#[test]
fn an_ill_provider_is_told_with_its_reason() {
    let home = TestHome::new();
    let _core = home.up();
    let folder = home.path().join("../ill");
    std::fs::create_dir_all(&folder).expect("made");
    let manifest = json!({"id": "dev.example.ill", "version": "1.0.0", "permissions": [],
        "entrypoint": {"type": "command", "value": "sh", "args": ["-c", "echo no model found >&2; exit 3"]}});
    let file = folder.join("opensentience.agent.json");
    std::fs::write(file, manifest.to_string()).expect("written");
    home.run(&["agents", "add", folder.to_str().expect("text")]).code(0);
    home.run(&["agents", "approve", "dev.example.ill", "--none"]).code(0);
    home.run(&["agents", "start", "dev.example.ill"]).code(1);
    let status = wait_for("the agent to be ill", || {
        let status = home.run(&["status", "--json"]).json();
        (status["well"] == false).then_some(status)
    });
    let ill = &status["providers"]["ill"][0];
    assert_eq!(ill["provider_id"], "dev.example.ill");
    assert!(ill["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{ill}");
    let text = home.run(&["status"]).code(1).stdout;
    assert!(text.contains("wharf agents logs dev.example.ill"), "{text}");
    assert!(text.contains("not all is well"), "{text}");
}

#[test]
fn a_code_is_explained_without_a_core() {
    let home = TestHome::new();
    let page = home.run(&["explain", "tool.timeout"]).code(0).stdout;
    assert!(page.starts_with("tool.timeout\n") && page.contains("What to do\n"), "{page}");
    assert!(!page.contains("```") && !page.contains("## "), "{page}");
    let all = home.run(&["explain", "--json"]).code(0).json();
    assert!(all.as_array().is_some_and(|codes| codes.len() > 100), "{all}");
    let some = home.run(&["explain", "budget"]).code(0).stdout;
    assert!(some.contains("budget.exceeded"), "{some}");
    let near = home.run(&["explain", "tool.timeot"]).code(2);
    assert!(near.stderr.contains("did you mean tool.timeout?"), "{near:#?}");
    let json = home.run(&["explain", "run.not_found", "--json"]).code(0).json();
    assert_eq!((&json["http_status"], &json["retryable"]), (&json!(404), &json!(false)));
}

#[test]
fn whoever_decides_sees_the_arguments_and_what_was_decided_before() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    let waiting = |purpose: &str| {
        let purpose = format!("purpose={purpose}");
        let run = ["run", "wharf/approve-me", &purpose, "--world", "lab", "--detach"];
        let run = home.run(&run).code(0).json()["run_id"].as_str().expect("an id").to_owned();
        let ask = wait_for("the approval", || {
            let inbox = home.run(&["inbox", "--json"]).code(0).json();
            inbox.as_array().expect("a list").iter().find_map(|ask| {
                (ask["run_id"] == *run).then(|| ask["ask_id"].as_str().map(str::to_owned))?
            })
        });
        (run, ask)
    };
    let (run, ask) = waiting("send the letter");
    let inbox = home.run(&["inbox"]).code(0).stdout;
    for part in
        ["argument purpose", "\"send the letter\"", &format!("wharf runs show {run} --world lab")]
    {
        assert!(inbox.contains(part), "{part:?} is missing in {inbox}");
    }
    let begin = &ask[..ask.len() - 4];
    let shown = home.run(&["inbox", "show", begin]).code(0).stdout;
    for part in ["\"send the letter\"", "side effects", &format!("wharf approve {ask}")] {
        assert!(shown.contains(part), "{part:?} is missing in {shown}");
    }
    home.run(&["approve", begin]).code(0);
    assert_eq!(Api::of(&core).end_of("lab", &run)["status"], "succeeded");
    let twice = home.run(&["approve", begin]).code(1);
    assert!(twice.stderr.contains("has been decided already: allow by grant:owner"), "{twice:#?}");
    let decided = home.run(&["inbox", "show", begin]).code(0).stdout;
    assert!(
        decided.contains("allow by grant:owner") && !decided.contains("wharf approve"),
        "{decided}"
    );

    let (_, next) = waiting("send another");
    let shown = home.run(&["inbox", "show", &next]).code(0).stdout;
    for part in ["earlier decisions about this tool", "was \"send the letter\""] {
        assert!(shown.contains(part), "{part:?} is missing in {shown}");
    }
    home.run(&["deny", &next, "--reason", "one is enough"]).code(0);
}

#[test]
fn a_command_is_run_for_each_new_ask() {
    let home = TestHome::new();
    let _core = home.up();
    let file = home.path().join("../told");
    let command = format!("echo \"$WHARF_ASK_KIND $WHARF_ASK_TITLE\" >>{}", file.display());
    let mut watching = home.spawn(&["inbox", "--watch", "--exec", &command]);
    home.run(&["run", "wharf/ask", "question=Which?", "--detach"]).code(0);
    let told = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_for("the command to have run", || (told() == "question Which?\n").then_some(()));
    home.run(&["run", "wharf/approve-me", "purpose=x", "--detach"]).code(0);
    wait_for("it to have run for the second ask", || (told().lines().count() == 2).then_some(()));
    assert!(watching.is_running());
    let alone = home.run(&["inbox", "--exec", "true"]).code(2);
    assert!(alone.stderr.contains("--watch"), "{alone:#?}");
}

#[test]
fn words_that_nearly_fit_lead_on() {
    let home = TestHome::new();
    let _core = home.up();
    let near = home.run(&["run", "wharf/cout", "n=3"]).code(2);
    assert!(near.stderr.contains("Did you mean wharf/count?"), "{near:#?}");
    let shown = home.run(&["tools", "show", "wharf/cout"]).code(2);
    assert!(shown.stderr.contains("Did you mean wharf/count?"), "{shown:#?}");
    let missing = home.run(&["run", "wharf/count"]).code(2);
    assert!(missing.stderr.contains("fit the tool: `n` is missing."), "{missing:#?}");
    let bare = home.run(&["run", "count", "n=3"]).code(2);
    assert!(bare.stderr.contains("Did you mean wharf/count?"), "{bare:#?}");
    let tools = home.run(&["tool", "list"]).code(0).stdout;
    assert!(tools.contains("wharf/count"), "{tools}");
    home.run(&["tokens", "list"]).code(0);
    home.run(&["secrets"]).code(0);
    let tip = home.run(&["retry", "r1"]).code(2);
    assert!(tip.stderr.contains("wharf runs retry RUN"), "{tip:#?}");
    let tip = home.run(&["ps", "--json"]).code(2);
    assert!(tip.stderr.contains("wharf runs") && tip.stderr.starts_with('{'), "{tip:#?}");

    let endless = home.run(&["token", "create", "--verb", "read"]).code(0);
    assert!(endless.stderr.contains("warning: it is valid until you revoke it"), "{endless:#?}");
    let bounded = home.run(&["token", "create", "--verb", "read", "--ttl", "8h"]).code(0);
    assert!(bounded.stderr.contains("it ends in 8h") && !bounded.stderr.contains("warning"));
    let chosen = home.run(&["token", "create", "--verb", "read", "--ttl", "never"]).code(0);
    assert!(!chosen.stderr.contains("warning"), "{chosen:#?}");
}

#[test]
fn the_audit_is_narrowed_by_what_and_when() {
    let home = TestHome::new();
    let core = home.up();
    ran(&home, "audited", "default");
    token(&home, &["--verb", "read"]);
    let events = |arguments: &[&str]| -> Vec<String> {
        let all = home.run(&[&["audit", "--json", "-n", "500"], arguments].concat()).code(0).json();
        let all = all.as_array().expect("a list").clone();
        all.iter().map(|record| record["event"].as_str().expect("text").to_owned()).collect()
    };
    let calls = events(&["--event", "tool.*"]);
    assert!(!calls.is_empty() && calls.iter().all(|event| event.starts_with("tool.")), "{calls:?}");
    assert!(events(&[]).len() > calls.len());
    assert!(!events(&["--actor", "grant:owner"]).is_empty());
    assert!(!events(&["--subject", "run:default/audited"]).is_empty());
    assert_eq!(events(&["--until", "1d"]), [""; 0]);
    assert_eq!(events(&["--actor", "nobody"]), [""; 0]);
    let file = home.path().join("../calls.jsonl");
    let out = file.to_str().expect("text");
    home.run(&["audit", "export", "--event", "tool.*", "--out", out]).code(0);
    let lines = std::fs::read_to_string(&file).expect("written").lines().count();
    assert_eq!(lines, calls.len());
    core.stop().code(0);
}

#[test]
fn a_seat_has_a_name_and_is_listed_and_given_up() {
    let home = TestHome::new();
    let _core = home.up();
    let sit = || {
        let mut operator = Operator::wharf(&home, &["--name", "desk"]);
        let seat = operator.sid.clone();
        operator.type_line("quit");
        assert_eq!(operator.code(), Some(0));
        seat
    };
    let first = sit();
    assert_eq!(sit(), first, "it is the same seat");
    // One with a name that is said to be for something else.
    let mut night = Operator::wharf(&home, &["--name", "night", "--desc", "while others sleep"]);
    night.type_line("quit");
    assert_eq!(night.code(), Some(0));
    home.run(&["operator", "remove", "night"]).code(0);
    let seats = home.run(&["operator", "list"]).code(0).stdout;
    assert!(seats.contains(&first) && seats.contains("desk") && seats.contains("away"), "{seats}");
    home.run(&["operator", "remove", "desk"]).code(0);
    let none = home.run(&["operator", "list", "--json"]).code(0).json();
    assert_eq!(none, json!([]));
    home.run(&["operator", "remove", "desk"]).code(2);
    assert_ne!(sit(), first, "one that was given up is not come back to");
}

#[test]
fn a_program_is_told_nothing_beside_the_result() {
    let home = TestHome::new();
    let _core = home.up();
    let run = home.run(&["run", "wharf/count", "n=3", "delay_ms=1", "--json"]).code(0);
    assert_eq!((run.stderr.as_str(), &run.json()["outputs"]["sum"]), ("", &json!(6)));
    let failed = home.run(&["run", "wharf/fail", "--json"]).code(1);
    assert_eq!((failed.stderr.as_str(), &failed.json()["status"]), ("", &json!("failed")));
    let piped = home.run(&["run", "wharf/count", "n=3", "delay_ms=1"]).code(0);
    assert_eq!(piped.json()["outputs"]["sum"], 6);
    assert!(piped.stderr.contains("succeeded after"), "{piped:#?}");
}

/// What a command shows on a terminal.
fn on_a_terminal(home: &TestHome, arguments: &[&str]) -> (String, Option<i32>) {
    let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).expect("a pty");
    pty::grantpt(&terminal).expect("granted");
    pty::unlockpt(&terminal).expect("unlocked");
    let name = pty::ptsname(&terminal, Vec::new()).expect("a name");
    let name = name.to_str().expect("text").to_owned();
    let side = || std::fs::File::options().read(true).write(true).open(&name).expect("opened");
    let mut command = home.wharf(arguments);
    command.env("NO_COLOR", "1").stdin(side()).stdout(side()).stderr(side());
    let child = command.spawn().expect("it starts");
    drop(command);
    let mut screen = std::fs::File::from(terminal);
    let (mut seen, mut piece) = (Vec::new(), [0; 1024]);
    let deadline = Instant::now() + LONG;
    // When nobody holds the other side any more, reading is an error.
    loop {
        let what =
            format!("the end of {arguments:?}, which showed: {}", String::from_utf8_lossy(&seen));
        children::until_readable(&screen, deadline, &what);
        let Ok(count @ 1..) = screen.read(&mut piece) else { break };
        seen.extend_from_slice(&piece[..count]);
    }
    let code = children::ended(child, &format!("{arguments:?}"), LONG).status.code();
    (String::from_utf8_lossy(&seen).replace("\r\n", "\n"), code)
}

#[test]
fn a_person_sees_the_outputs_and_where_to_read_on() {
    let home = TestHome::new();
    let _core = home.up();
    let (seen, code) = on_a_terminal(&home, &["run", "wharf/count", "n=3", "delay_ms=1"]);
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("\nn    3\nsum  6\n") && !seen.contains("\"outputs\""), "{seen}");
    let (seen, code) = on_a_terminal(&home, &["run", "wharf/fail"]);
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("more: wharf runs show "), "{seen}");
    let (seen, _) = on_a_terminal(&home, &["run", "wharf/count", "n=3", "delay_ms=1", "--json"]);
    let run: Value = serde_json::from_str(seen.trim()).expect("one JSON object and nothing else");
    assert_eq!(run["outputs"]["sum"], 6);
    let (seen, code) = on_a_terminal(&home, &["worlds", "show", "nosuch"]);
    assert_eq!(code, Some(2), "{seen}");
    assert!(seen.contains("more: wharf explain world.not_found"), "{seen}");
    let piped = home.run(&["worlds", "show", "nosuch"]).code(2);
    assert!(!piped.stderr.contains("wharf explain"), "a script is spared: {piped:#?}");
}

#[test]
fn a_program_is_told_where_the_core_is_and_as_whom() {
    let home = TestHome::new();
    let none = home.run(&["env"]).code(1);
    assert!(none.stderr.contains("core.unreachable") && none.stdout.is_empty(), "{none:#?}");
    let core = home.up();
    let json = home.run(&["env", "--json"]).code(0).json();
    assert_eq!(json, json!({"url": core.url(), "token": core.token(), "ca": null}));
    let less = token(&home, &["--verb", "read", "--world", "default"]);
    // What is printed is all that is needed, also where there is no home.
    let elsewhere = TestHome::new();
    for (arguments, person) in [(vec!["env"], true), (vec!["env", "--token", &less], false)] {
        let printed = home.run(&arguments).code(0).stdout;
        assert!(!printed.contains("WHARF_CA"), "{printed}");
        let mut shell = children::command("sh");
        shell.args(["-c", "eval \"$1\"; exec \"$2\" status --json", "sh", &printed]);
        shell.arg(elsewhere.wharf(&[]).get_program()).env("WHARF_HOME", elsewhere.path());
        let done = shell.stdin(std::process::Stdio::null()).finish();
        let status: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert_eq!(status["url"], core.url(), "{status}");
        assert_eq!(status["token"]["person"], person, "{status}");
    }
    core.stop().code(0);
}
