//! Projects that `wharf new` begins: each passes its own tests, and does what its README says with
//! a real core.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::agents::has_python;
use crate::children::{self, Finish as _};
use crate::support::{Running, TestHome, wait_for};
use crate::typescript_sdk;

const KINDS: [&str; 3] = ["agent", "tool", "operative"];

/// A project in a folder of its own.
struct Project {
    folder: PathBuf,
    made: Value,
}

impl Project {
    /// Lets the program write a project below a folder.
    #[track_caller]
    fn new(home: &TestHome, kind: &str, lang: &str, below: &Path) -> Self {
        let name = format!("{lang}-{kind}");
        let folder = below.join(&name);
        let path = folder.to_str().expect("text");
        let arguments = ["new", kind, &name, "--lang", lang, "--dir", path, "--json"];
        let made = home.run(&arguments).code(0).json();
        assert_eq!((&made["kind"], &made["lang"]), (&json!(kind), &json!(lang)));
        let project = Self { folder, made };
        project.check_files();
        project
    }

    /// All that it says it has is there, nothing else is, and no word was forgotten.
    #[track_caller]
    fn check_files(&self) {
        for file in self.made["files"].as_array().expect("files") {
            let path = self.folder.join(file.as_str().expect("a path"));
            let text = std::fs::read_to_string(&path).expect("there");
            assert!(!text.contains("{{"), "{}: {text}", path.display());
        }
        let readme = std::fs::read_to_string(self.folder.join("README.md")).expect("a page");
        for step in self.made["next"].as_array().expect("steps") {
            let command = step["command"].as_str().expect("a command");
            assert!(readme.contains(command), "{command}: {readme}");
        }
        assert!(self.folder.join(".gitignore").is_file());
        // A price that nobody named would be believed.
        if let Ok(manifest) = std::fs::read_to_string(self.folder.join("wharf.tool.toml")) {
            let priced =
                |line: &str| line.starts_with("max_cost_micro") || line.starts_with("free");
            assert!(!manifest.lines().any(priced), "{manifest}");
        }
    }

    fn id(&self) -> &str {
        self.made["id"].as_str().expect("an id")
    }

    /// What is to be typed, as far as it is a command of this program or one that stays.
    fn steps(&self) -> Vec<(String, bool)> {
        let steps = self.made["next"].as_array().expect("steps").iter();
        let told = steps.map(|step| {
            (step["command"].as_str().expect("text").to_owned(), step["stays"] == json!(true))
        });
        told.filter(|(command, stays)| *stays || command.starts_with("wharf ")).collect()
    }

    /// Runs a line in its folder as its reader would.
    fn shell(&self, home: &TestHome, line: &str) -> Command {
        let wharf = Path::new(env!("CARGO_BIN_EXE_wharf")).parent().expect("a folder");
        let mut paths = vec![wharf.to_owned()];
        paths.extend(std::env::split_paths(&std::env::var_os("PATH").expect("a path")));
        let mut command = children::command("sh");
        // What stays is the program itself, so that it can be ended.
        command.args(["-c", &format!("exec {line}")]).current_dir(&self.folder);
        command.env("WHARF_HOME", home.path()).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("PATH", std::env::join_paths(paths).expect("paths"));
        for name in ["WHARF_URL", "WHARF_TOKEN", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Does what the README says with a core, and gives what the last command printed.
    #[track_caller]
    fn follow(&self, home: &TestHome) -> Value {
        let mut printed = String::new();
        let mut staying: Vec<Running> = Vec::new();
        for (line, stays) in self.steps() {
            if stays {
                // Rust programs were built elsewhere, all at once.
                let name = self.folder.file_name().expect("a name").to_string_lossy();
                let line = line.replace("cargo run", &format!("target/debug/{name}"));
                let mut running =
                    Running::of(self.shell(home, &line).spawn().expect("it starts"), &line);
                running.until_stderr("serving ");
                staying.push(running);
            } else {
                printed = ran(self.shell(home, &line));
            }
        }
        for running in staying {
            running.signal(rustix::process::Signal::TERM);
            running.wait().code(0);
        }
        let run: Value = serde_json::from_str(&printed).expect("a run");
        assert_eq!(run["status"], "succeeded", "{run}");
        run["outputs"].clone()
    }
}

/// Runs a command to its end, which must be a good one.
#[track_caller]
fn ran(mut command: Command) -> String {
    let output = command.finish_within(children::BUILD);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}\n{wrong}");
    said
}

/// Adds each to a core, uses it, and compares what it gives.
#[track_caller]
fn used(home: &TestHome, projects: &[Project]) {
    let _core = home.up();
    for project in projects {
        let outputs = project.follow(home);
        let wanted = match project.made["kind"].as_str() {
            Some("agent") => json!({"text": "Hello, Ada!"}),
            Some("tool") => json!({"words": 6, "lines": 1}),
            _ => json!({"said": "hello", "times": 1}),
        };
        assert_eq!(outputs, wanted, "{}", project.id());
    }
    // An operative that ended in good order is not waited for.
    let operative = projects.iter().find(|project| project.made["kind"] == "operative");
    let name = operative.expect("one of them").id();
    wait_for("the core to see that it has gone", || {
        let operatives = home.run(&["operatives", "--json"]).code(0).json();
        let listed = operatives.to_string();
        listed.contains(&format!("\"{name}\"")).then_some(())?;
        (!listed.contains("\"connected\":true")).then_some(())
    });
}

fn made(home: &TestHome, lang: &str, below: &Path) -> Vec<Project> {
    KINDS.iter().map(|kind| Project::new(home, kind, lang, below)).collect()
}

#[test]
fn k034_projects_in_python_pass_their_tests_and_work() {
    if !has_python() {
        return;
    }
    let (home, place) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
    let projects = made(&home, "python", place.path());
    for project in &projects {
        ran(project.shell(&home, "python3 -m unittest"));
    }
    used(&home, &projects);
}

#[test]
fn k034_projects_in_typescript_pass_their_tests_and_work() {
    let Some(package) = typescript_sdk::built() else { return };
    let (home, place) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
    let projects = made(&home, "typescript", place.path());
    for project in &projects {
        // What `npm install` would fetch is there already.
        let modules = package.join("node_modules").canonicalize().expect("installed");
        std::os::unix::fs::symlink(modules, project.folder.join("node_modules")).expect("linked");
        ran(project.shell(&home, "npm test"));
    }
    used(&home, &projects);
}

#[test]
fn k034_projects_in_rust_pass_their_tests_and_work() {
    let (home, place) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
    let projects = made(&home, "rust", place.path());
    let built = build(&projects, place.path());
    for project in &projects {
        let name = project.folder.file_name().expect("a name");
        let folder = project.folder.join("target/debug");
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::copy(built.join(name), folder.join(name)).expect("copied");
    }
    used(&home, &projects);
}

/// Checks, tests and builds Rust projects as one workspace, so that what they depend on is built once,
/// also for later runs of this test. Gives the folder with the programs.
fn build(projects: &[Project], place: &Path) -> PathBuf {
    let names = projects.iter().map(|project| project.folder.file_name().expect("a name"));
    let members: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = [{}]\n", members.join(", "));
    std::fs::write(place.join("Cargo.toml"), manifest).expect("written");
    // With the versions that are here already nothing has to be fetched.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../Cargo.lock");
    std::fs::copy(lock, place.join("Cargo.lock")).expect("copied");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-projects");
    std::fs::create_dir_all(&target).expect("made");
    let busy = File::create(target.join("busy.lock")).expect("a file to lock");
    busy.lock().expect("a lock");
    for line in [
        "fmt --check -p rust-agent -p rust-tool -p rust-operative",
        "test --quiet --offline",
        "build --quiet --offline",
    ] {
        let mut command = children::command(env!("CARGO"));
        command.args(line.split(' ')).current_dir(place).stdin(Stdio::null());
        command.env("CARGO_TARGET_DIR", &target).env("CARGO_INCREMENTAL", "0");
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("RUSTFLAGS");
        // They are built as their authors build them, without Wharf's own lints.
        command.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("CLIPPY_ARGS");
        ran(command);
    }
    let kept = place.join("programs");
    std::fs::create_dir(&kept).expect("made");
    for project in projects {
        let name = project.folder.file_name().expect("a name");
        std::fs::copy(target.join("debug").join(name), kept.join(name)).expect("copied");
    }
    kept
}

#[test]
fn k034_what_cannot_be_made_is_said_and_nothing_is_written() {
    let (home, place) = (TestHome::new(), tempfile::tempdir().expect("a folder"));
    let path = place.path().join("there");
    let dir = path.to_str().expect("text");
    let refused = home.run(&["new", "agent", "My Agent", "--dir", dir]).code(2);
    assert!(refused.stderr.contains("small letters"), "{}", refused.stderr);
    home.run(&["new", "lamp", "x", "--dir", dir]).code(2);
    home.run(&["new", "agent", "x", "--lang", "cobol", "--dir", dir]).code(2);
    let refused = home.run(&["new", "agent", "x", "--lang", "rust", "--dir", dir, "--sdk", "/"]);
    assert!(refused.code(2).stderr.contains("not a clone of Wharf"));
    let refused = home.run(&["new", "agent", "x", "--dir", dir, "--sdk", "/"]).code(2);
    assert!(refused.stderr.contains("only projects in Rust"), "{}", refused.stderr);
    assert!(!path.exists());

    home.run(&["new", "agent", "x", "--dir", dir]).code(0);
    let before = std::fs::read(path.join("agent.py")).expect("there");
    let refused = home.run(&["new", "tool", "x", "--dir", dir, "--json"]).code(2);
    assert!(refused.stderr.contains("not empty"), "{}", refused.stderr);
    assert_eq!(std::fs::read(path.join("agent.py")).expect("there"), before);
    assert!(!path.join("handler.py").exists());
}
