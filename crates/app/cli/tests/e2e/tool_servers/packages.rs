//! Handlers in Python with an interpreter and packages of their own.

use std::path::Path;

use serde_json::{Value, json};

use super::{add, handler, show, text, write};
use crate::agents::has_python;
use crate::children::{Finish as _, command};
use crate::support::{Api, TestHome};

const TOOL: &str = "test/greets@1";
/// Says what its package says, and whether it could change the package.
const GREETS: &str = r#"
import greeting
from wharf_sdk import tool

@tool
def greets(name: str) -> dict:
    try:
        open(greeting.__file__, "a").close()
        writable = True
    except OSError:
        writable = False
    return {"text": greeting.greet(name), "version": greeting.VERSION, "writable": writable}
"#;
/// Writes the wheel of a package that greets, in this version, into a folder.
const WHEEL: &str = r#"
import sys, zipfile
folder, version = sys.argv[1:]
code = "VERSION = %r\ndef greet(name): return 'Hello, ' + name + '!'\n" % version
about = "greeting-%s.dist-info/" % version
files = {
    "greeting.py": code,
    about + "METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: %s\n" % version,
    about + "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
files[about + "RECORD"] = "".join("%s,,\n" % name for name in [*files, about + "RECORD"])
with zipfile.ZipFile("%s/greeting-%s-py3-none-any.whl" % (folder, version), "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
"#;

fn wheel(folder: &Path, version: &str) {
    std::fs::create_dir_all(folder).expect("made");
    let mut python = command("python3");
    let made = python.args(["-c", WHEEL, text(folder), version]).finish();
    assert!(made.status.success(), "{made:?}");
}

fn greets(home: &TestHome) -> Value {
    home.run(&["run", TOOL, "name=Ada"]).code(0).json()["outputs"].clone()
}

fn environments(home: &TestHome) -> Vec<String> {
    let entries = std::fs::read_dir(home.path().join("envs")).expect("a folder of environments");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names.map(|name| name.into_string().expect("text")).filter(|it| !it.contains('.')).collect()
}

#[test]
fn a_tool_has_the_packages_it_names_from_a_folder_of_wheels() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let lines = "requirements = \"requirements.txt\"\nwheels = \"wheels\"";
    let folder = handler(TOOL, GREETS, lines);
    let folder = folder.path();
    write(folder, "requirements.txt", "greeting==1.0  # says hello\n");
    wheel(&folder.join("wheels"), "1.0");
    wheel(&folder.join("wheels"), "2.0");
    add(&home, folder);
    let expected = json!({"text": "Hello, Ada!", "version": "1.0", "writable": false});
    assert_eq!(greets(&home), expected);
    let first = show(&home, TOOL)["server"]["environment"].clone();
    assert_eq!(first["packages"][0]["name"], "greeting");
    assert_eq!(first["packages"][0]["version"], "1.0");
    assert_eq!(first["packages"][0]["sha256"].as_str().map(str::len), Some(64));
    assert_eq!(environments(&home), [first["key"].as_str().expect("a key")]);

    write(folder, "requirements.txt", "greeting\n");
    add(&home, folder);
    assert_eq!(greets(&home)["version"], "2.0");
    let second = show(&home, TOOL)["server"]["environment"].clone();
    assert_ne!(first["key"], second["key"]);

    // What nobody has is gone when the core starts; what was changed is not started.
    drop(core);
    let installed = home.path().join("envs").join(second["key"].as_str().expect("a key"));
    write(&installed, "more.py", "");
    let _core = home.up();
    assert_eq!(environments(&home), [second["key"].as_str().expect("a key")]);
    let refused = home.run(&["run", TOOL, "name=Ada"]);
    assert!(refused.stderr.contains("its environment"), "{refused:#?}");
    home.run(&["tools", "approve", TOOL]).code(0);
    assert_eq!(greets(&home)["version"], "2.0", "it is made again when it is approved");
    home.run(&["tools", "remove", TOOL, "--yes"]).code(0);
    assert!(environments(&home).is_empty());
}

/// A search path on which the uv of this repository's own tests stands first.
fn path_with_uv() -> Option<String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/tools/python/bin");
    let Ok(uv) = own.join("uv").canonicalize() else {
        wharf_skips::skip("there is no uv among the tools of the tests");
        return None;
    };
    let folder = uv.parent().expect("a folder").display();
    Some(format!("{folder}:{}", std::env::var("PATH").unwrap_or_default()))
}

#[test]
fn uv_makes_the_same_environment_as_pip_and_each_step_is_told() {
    let Some(path) = path_with_uv().filter(|_| has_python()) else { return };
    let lines = "requirements = \"requirements.txt\"\nwheels = \"wheels\"";
    let folder = handler(TOOL, GREETS, lines);
    let folder = folder.path();
    write(folder, "requirements.txt", "greeting\n");
    wheel(&folder.join("wheels"), "1.0");
    let made = |variables: &[(&str, &str)], by: &str| {
        let home = TestHome::new();
        let core = home.up_with(variables);
        let added = home.run(&["tools", "add", text(folder), "--approve"]).code(0);
        let steps = [
            format!("resolving the packages of requirements.txt with {by}"),
            "installing greeting 1.0".to_owned(),
        ];
        for step in &steps {
            assert!(added.stderr.contains(step), "{step:?} is missing in {added:#?}");
        }
        let expected = json!({"text": "Hello, Ada!", "version": "1.0", "writable": false});
        assert_eq!(greets(&home), expected);
        let environment = show(&home, TOOL)["server"]["environment"].clone();
        // Who asks for it by the API gets the steps as events, and the tool as the last one.
        let events = [("accept", "text/event-stream")];
        let body = json!({"folder": folder});
        let (status, tool, _) = Api::of(&core).rpc("/v1/tools", &events, &body);
        assert_eq!((status, &tool["tool_id"]), (200, &json!(TOOL)));
        let (status, failed, _) =
            Api::of(&core).rpc("/v1/tools", &events, &json!({"folder": "/nowhere"}));
        assert_eq!((status, &failed["status"]), (200, &json!(422)), "{failed}");
        assert_eq!(failed["error"]["code"], "tool.manifest_invalid");
        (home, core, environment)
    };
    let (_pip_home, _pip_core, by_pip) = made(&[("PATH", "/usr/bin:/bin")], "pip");
    let (home, _core, by_uv) = made(&[("PATH", &path)], "uv");
    assert_eq!((&by_pip["packages"], &by_pip["key"]), (&by_uv["packages"], &by_uv["key"]));

    write(folder, "requirements.txt", "greeting==3\n");
    let refused = home.run(&["tools", "add", text(folder)]);
    assert!(refused.stderr.contains("[tool.environment_failed]"), "{refused:#?}");
    assert!(refused.stderr.contains("greeting==3"), "{refused:#?}");
}

#[test]
fn a_package_that_cannot_be_had_is_named() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let lines = "requirements = \"requirements.txt\"\nwheels = \"wheels\"";
    let folder = handler(TOOL, GREETS, lines);
    let folder = folder.path();
    write(folder, "requirements.txt", "greeting==3\n");
    wheel(&folder.join("wheels"), "1.0");
    let refused = home.run(&["tools", "add", text(folder)]);
    assert!(refused.stderr.contains("[tool.environment_failed]"), "{refused:#?}");
    assert!(refused.stderr.contains("greeting==3"), "{refused:#?}");
    assert!(environments(&home).is_empty(), "nothing is left behind");

    write(folder, "requirements.txt", "-e .\n");
    let refused = home.run(&["tools", "add", text(folder)]);
    assert!(refused.stderr.contains("only packages by name"), "{refused:#?}");
}

#[test]
fn an_interpreter_is_a_path_or_a_version() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let source = "import sys\ndef entry(payload):\n    return {'prefix': sys.prefix}\n";
    let folder = handler(TOOL, source, "python = \"venv/bin/python\"");
    let folder = folder.path();
    let mut python = command("python3");
    let made = python.args(["-m", "venv", "--without-pip", text(&folder.join("venv"))]).finish();
    assert!(made.status.success(), "{made:?}");
    add(&home, folder);
    let run = home.run(&["run", TOOL]).code(0).json();
    let real = std::fs::canonicalize(folder).expect("there");
    assert_eq!(run["outputs"]["prefix"], text(&real.join("venv")));

    write(
        folder,
        "wharf.tool.toml",
        &format!(
            "ref = \"{TOOL}\"\ndescription = \"x\"\nhandler = \"handler.py\"\npython = \"2.1\"\n"
        ),
    );
    let refused = home.run(&["tools", "add", text(folder)]);
    assert!(refused.stderr.contains("no interpreter python2.1"), "{refused:#?}");
}

#[test]
fn a_package_of_the_registry_is_fetched_once() {
    if !has_python() {
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let mut pip = command("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d"]);
    if !pip.arg(scratch.path()).arg("humanize").finish().status.success() {
        return wharf_skips::skip("no registry of Python packages can be reached");
    }
    let home = TestHome::new();
    let path = path_with_uv().unwrap_or_else(|| std::env::var("PATH").unwrap_or_default());
    let _core = home.up_with(&[("PATH", &path)]);
    let source = "import humanize\nfrom wharf_sdk import tool\n@tool\ndef words(n: int) -> str:\n    \
                  return humanize.intcomma(n)\n";
    let folder = handler(TOOL, source, "requirements = \"pyproject.toml\"");
    let project = "[project]\nname = \"x\"\nversion = \"1\"\ndependencies = [\"humanize>=4\"]\n";
    write(folder.path(), "pyproject.toml", project);
    add(&home, folder.path());
    let run = home.run(&["run", TOOL, "n=1234567"]).code(0).json();
    assert_eq!(run["outputs"]["value"], "1,234,567");
}
