//! What shells offer, in real shells; and the pages of the manual.

use crate::children::{Finish as _, command};
use crate::support::TestHome;

/// What a shell is offered for the last of these words.
fn offered(home: &TestHome, words: &[&str]) -> Vec<String> {
    let mut command = home.wharf(&["--"]);
    command.args(words).env("COMPLETE", "fish");
    let done = command.finish();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    let text = String::from_utf8(done.stdout).expect("text");
    // The name, and behind a tab what it is.
    text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn names_of_what_the_core_has_are_offered() {
    let home = TestHome::new();
    // Without a core words are offered and names are not, and nothing is said.
    assert!(offered(&home, &["wharf", "run", ""]).iter().all(|name| !name.contains("count")));
    assert!(offered(&home, &["wharf", "ru"]).contains(&"runs".to_owned()));
    let core = home.up();
    let tools = offered(&home, &["wharf", "run", "wharf/"]);
    assert!(tools.contains(&"wharf/count".to_owned()), "{tools:?}");
    assert!(tools.iter().all(|tool| tool.starts_with("wharf/")), "{tools:?}");
    home.run(&["run", "wharf/count", "n=1", "--run-id", "my-run", "-q"]).code(0);
    assert_eq!(offered(&home, &["wharf", "runs", "show", "my"]), ["my-run"]);
    home.run(&["worlds", "create", "lab"]).code(0);
    assert_eq!(offered(&home, &["wharf", "worlds", "ls", "l"]), ["lab"]);
    assert_eq!(offered(&home, &["wharf", "run", "wharf/count", "--world", "l"]), ["lab"]);
    home.run(&["run", "wharf/ask", "question=Ready?", "--detach"]).code(0);
    let asks = offered(&home, &["wharf", "answer", ""]);
    let inbox = home.run(&["inbox", "--json"]).code(0).json();
    let ask = inbox[0]["ask_id"].as_str().expect("an ask").to_owned();
    assert!(asks.contains(&ask), "{asks:?}");
    let every = ["--every", "1h", "wharf/count", "n=1"];
    home.run(&[&["schedule", "add", "hourly"][..], &every].concat()).code(0);
    assert_eq!(offered(&home, &["wharf", "schedule", "pause", "h"]), ["hourly"]);
    home.run(&["trigger", "add", "pushes", "--webhook", "wharf/echo", "--body", "text"]).code(0);
    assert_eq!(offered(&home, &["wharf", "trigger", "show", "pu"]), ["pushes"]);
    assert_eq!(offered(&home, &["wharf", "explain", "tool.timeo"]), ["tool.timeout"]);
    assert_eq!(offered(&home, &["wharf", "token", "create", "--world", "l"]), ["lab"]);
    // The home that was typed is asked, not the one of the environment.
    let elsewhere = TestHome::new();
    let typed = home.path().display().to_string();
    let tools = offered(&elsewhere, &["wharf", "--home", &typed, "tools", "show", "wharf/co"]);
    assert_eq!(tools, ["wharf/count"]);
    core.stop().code(0);
}

/// A folder with the program under its name, and a variable that leads there first.
fn path_of(home: &TestHome) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = home.wharf(&[]).get_program().to_owned();
    std::os::unix::fs::symlink(program, folder.path().join("wharf")).expect("linked");
    let rest = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{rest}", folder.path().display());
    (folder, path)
}

#[test]
fn bash_completes_a_tool() {
    let home = TestHome::new();
    let core = home.up();
    let (_folder, path) = path_of(&home);
    let script = "
        source <(wharf completions bash)
        COMP_WORDS=(wharf run wharf/co) COMP_CWORD=2 COMP_LINE='wharf run wharf/co' COMP_POINT=18
        COMP_TYPE=9
        complete -p wharf >&2
        _clap_complete_wharf wharf wharf/co run
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = command("bash");
    bash.args(["--norc", "-c", script]).env("PATH", path).env("WHARF_HOME", home.path());
    let done = bash.finish();
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(said.trim(), "wharf/count", "{done:?}");
    core.stop().code(0);
}

#[test]
fn zsh_completes_a_tool() {
    if wharf_skips::lacks("zsh") {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let (_folder, path) = path_of(&home);
    // The words are handed to the function as the line editor would.
    let script = "
        autoload -Uz compinit && compinit -D -u
        source <(wharf completions zsh)
        function _describe { local -a found; found=(${(P)${@[-1]}}); print -l -- $found }
        function compadd { print -l -- ${@[-1]} }
        words=(wharf run wharf/co) CURRENT=3
        _clap_dynamic_completer_wharf";
    let mut zsh = command("zsh");
    zsh.args(["-f", "-c", script]).env("PATH", path).env("WHARF_HOME", home.path());
    let done = zsh.finish();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("wharf/count"), "{done:?}");
    core.stop().code(0);
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let home = TestHome::new();
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    home.run(&["man", &pages.display().to_string()]).code(0);
    for page in ["wharf.1", "wharf-run.1", "wharf-runs-show.1", "wharf-service-install.1"] {
        let text = std::fs::read_to_string(pages.join(page)).expect(page);
        assert!(text.contains(".SH NAME") && text.contains("wharf"), "{page}: {text}");
    }
    let run = std::fs::read_to_string(pages.join("wharf-run.1")).expect("a page");
    assert!(run.contains("wharf run wharf/count"), "the examples are there: {run}");
}
