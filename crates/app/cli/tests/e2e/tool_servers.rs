//! Tool servers as their users meet them: added, called, fenced in, killed, on this machine and
//! as servers of their own.

mod elsewhere;
mod examples;
mod faults;
mod fenced;
mod first;
mod images;
mod packages;
mod serving;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::children::first_line;
use crate::support::{LONG, TestHome, wait_for};

/// Where an example lies.
fn example(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../examples/tools").join(path)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(folder).expect("made");
    std::fs::write(folder.join(name), text).expect("written");
}

/// A folder with a handler and the manifest of a tool that it serves, with these lines besides.
pub(crate) fn handler(reference: &str, source: &str, more: &str) -> tempfile::TempDir {
    let folder = manifest(reference, &format!("handler = \"handler.py\"\n{more}"));
    write(folder.path(), "handler.py", source);
    folder
}

/// A folder with a program of Python that is told its port.
pub(crate) fn program(reference: &str, source: &str, more: &str) -> tempfile::TempDir {
    let exec = "exec = [\"python3\", \"server.py\", \"{port}\"]";
    let folder = manifest(reference, &format!("{exec}\n{more}"));
    write(folder.path(), "server.py", source);
    folder
}

/// A folder with nothing but a manifest.
pub(crate) fn manifest(reference: &str, lines: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("ref = \"{reference}\"\ndescription = \"A tool of the tests\"\n{lines}\n");
    write(folder.path(), "wharf.tool.toml", &text);
    folder
}

#[track_caller]
pub(crate) fn add(home: &TestHome, folder: &Path) {
    home.run(&["tools", "add", text(folder), "--approve"]).code(0);
}

#[track_caller]
pub(crate) fn show(home: &TestHome, tool: &str) -> Value {
    home.run(&["tools", "show", tool, "--json"]).code(0).json()
}

#[track_caller]
fn file(home: &TestHome, path: &str) -> String {
    home.run(&["worlds", "get", "default", path, "-"]).code(0).stdout
}

/// Where addresses of a core's files lead.
fn storage(home: &TestHome) -> String {
    let port = std::fs::read_to_string(home.path().join("run/storage.port")).expect("kept");
    format!("127.0.0.1:{}", port.trim())
}

/// `wharf tool serve` in a process of its own; it is killed when the test ends.
pub(crate) struct Served {
    child: Child,
    address: String,
    /// Folders of manifests that lead there.
    folders: RefCell<Vec<tempfile::TempDir>>,
}

impl Served {
    /// Starts it on a free port and waits until it is ready.
    pub(crate) fn start(home: &TestHome, arguments: &[&str]) -> Self {
        Self::start_in(home, arguments, &[])
    }

    /// The same with these variables in its environment.
    pub(crate) fn start_in(
        home: &TestHome,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let all = [&["tool", "serve", "--listen", "127.0.0.1:0", "--json"], arguments].concat();
        let mut command = home.wharf(&all);
        command.stderr(Stdio::null()).envs(variables.iter().copied());
        let mut child = command.spawn().expect("it starts");
        let stdout = child.stdout.take().expect("piped");
        let line = first_line(stdout, LONG, "the address of a tool server");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        let address = said["address"].as_str().expect("text").to_owned();
        Self { child, address, folders: RefCell::default() }
    }

    /// Host and port where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Adds it to a core under this name.
    #[track_caller]
    pub(crate) fn add_to(&self, home: &TestHome, reference: &str, more: &str) {
        let lines = format!("url = \"ws://{}/run\"\n{more}", self.address);
        let folder = manifest(reference, &lines);
        add(home, folder.path());
        self.folders.borrow_mut().push(folder);
    }

    /// Asks it to stop, as a service manager does; its exit code.
    fn stop(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it is there");
        let ended =
            wait_for("the end of a tool server", || self.child.try_wait().expect("a child"));
        ended.code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
