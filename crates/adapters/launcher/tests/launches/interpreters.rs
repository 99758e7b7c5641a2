//! Interpreted programs start behind a fence, wherever their interpreters are installed.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{Bench, PROBE, copy_program, ended, output, tell, write_program};
use wharf_ports::launcher::{ExitHow, LaunchSpec, Launcher};
use wharf_vocab::SandboxLevel::{Standard, Strict};

/// Runs it at each firm level and expects these lines.
async fn runs(bench: &Bench, make: impl Fn(&mut LaunchSpec), expect: &[&str]) {
    let achieved = bench.launcher.probe().await;
    for level in [Standard, Strict] {
        if achieved.level < level {
            tell(&format!("{level}: {:?}", achieved.notes));
            continue;
        }
        let mut spec = bench.fenced(level, &[]);
        make(&mut spec);
        let launched = bench.launch(spec).await;
        let exit = ended(launched.exited()).await;
        let lines = output(&*launched).await;
        assert_eq!(exit.how, ExitHow::Code(0), "{level}: {lines:?}");
        assert_eq!(lines, expect, "{level}");
    }
}

fn script(bench: &Bench, name: &str, text: &str) {
    let dir = bench.dir.path().join("agent");
    fs::create_dir_all(&dir).expect("makes it");
    write_program(&dir.join(name), text);
}

const PYTHON: &str = "import json, ssl, asyncio, threading, tempfile, os, sys\n\
                      threading.Thread(target=lambda: None).start()\n\
                      open(os.path.join(tempfile.gettempdir(), 'x'), 'w').write('y')\n\
                      print(json.dumps({'ok': sys.version_info[0]}))\n";
const NODE: &str = "const fs = require('fs'), os = require('os');\n\
                    fs.writeFileSync(os.tmpdir() + '/x', 'y');\n\
                    let sum = 0; for (let i = 0; i < 1e6; i++) sum += i % 7;\n\
                    new (require('worker_threads').Worker)('1', { eval: true })\n\
                      .on('exit', () => console.log('ok', sum > 0));\n";

#[tokio::test]
async fn python_starts_by_name_and_by_its_first_line() {
    let bench = Bench::new();
    if !Path::new("/usr/bin/python3").exists() {
        return tell("python3 is not installed");
    }
    script(&bench, "agent.py", &format!("#!/usr/bin/env python3\n{PYTHON}"));
    let by_name = |spec: &mut LaunchSpec| {
        spec.program = "python3".into();
        spec.args = vec!["agent.py".to_owned()];
        spec.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    };
    runs(&bench, by_name, &["{\"ok\": 3}"]).await;
    let by_line = |spec: &mut LaunchSpec| spec.program = "./agent.py".into();
    runs(&bench, by_line, &["{\"ok\": 3}"]).await;
}

#[tokio::test]
async fn node_starts_with_its_compiler_and_threads() {
    let bench = Bench::new();
    if !Path::new("/usr/bin/node").exists() {
        return tell("node is not installed");
    }
    script(&bench, "agent.js", &format!("#!/usr/bin/node\n{NODE}"));
    runs(&bench, |spec| spec.program = "./agent.js".into(), &["ok true"]).await;
    let by_name = |spec: &mut LaunchSpec| {
        spec.program = "node".into();
        spec.args = vec!["agent.js".to_owned()];
    };
    runs(&bench, by_name, &["ok true"]).await;
}

/// A Python that somebody installed in their home.
fn python_at_home() -> Option<PathBuf> {
    let versions = std::env::home_dir()?.join(".pyenv/versions");
    let mut found: Vec<PathBuf> = fs::read_dir(versions)
        .ok()?
        .flatten()
        .map(|entry| entry.path().join("bin/python3"))
        .filter(|python| python.exists())
        .collect();
    found.sort();
    found.pop()
}

#[tokio::test]
async fn python_under_a_home_starts_and_the_home_stays_hidden() {
    let bench = Bench::new();
    // That nobody installed one there is no lack of the machine: there is nothing to hide then, and
    // interpreters outside the system's folders are tried below with one of the test's own.
    let Some(python) = python_at_home() else { return };
    let home = std::env::home_dir().expect("a home").display().to_string();
    script(
        &bench,
        "agent.py",
        &format!(
            "{PYTHON}for p in ['', '/.profile', '/.ssh', '/.pyenv/shims']:\n    \
                  print(p, os.access('{home}' + p, os.R_OK) and bool(os.path.exists('{home}' + p)) and p != '')\n\
                  try:\n    print(os.listdir('{home}'))\n\
                  except OSError as e:\n    print('hidden')\n"
        ),
    );
    let make = |spec: &mut LaunchSpec| {
        spec.program = python.clone();
        spec.args = vec!["agent.py".to_owned()];
    };
    let expect = [
        "{\"ok\": 3}",
        " False",
        "/.profile False",
        "/.ssh False",
        "/.pyenv/shims False",
        "hidden",
    ];
    runs(&bench, make, &expect).await;
}

#[tokio::test]
async fn an_interpreter_behind_links_is_found() {
    let bench = Bench::new();
    // Its place is neither a part of the system nor of the agent's folder.
    let prefix = bench.dir.path().join("tools/probe-1.0");
    fs::create_dir_all(prefix.join("bin")).expect("makes it");
    copy_program(PROBE, &prefix.join("bin/probe-1"));
    symlink("probe-1", prefix.join("bin/probe")).expect("links");
    let links = bench.dir.path().join("links");
    fs::create_dir_all(&links).expect("makes it");
    symlink(prefix.join("bin/probe"), links.join("tool")).expect("links");
    let tool = links.join("tool").display().to_string();
    runs(
        &bench,
        |spec| {
            spec.program = links.join("tool");
            spec.args = vec!["say".to_owned(), "by its link".to_owned()];
        },
        &["by its link"],
    )
    .await;
    script(&bench, "scripted", &format!("#!{tool} args\n"));
    let path = bench.dir.path().join("agent/scripted").display().to_string();
    runs(&bench, |spec| spec.program = path.clone().into(), &[&path]).await;
    script(&bench, "by-env", "#!/usr/bin/env -S tool args\n");
    runs(
        &bench,
        |spec| {
            spec.program = "./by-env".into();
            spec.env.insert("PATH".to_owned(), links.display().to_string());
        },
        &["./by-env"],
    )
    .await;
}

#[tokio::test]
async fn a_virtual_environment_in_the_agents_folder_works() {
    let bench = Bench::new();
    if !Path::new("/usr/bin/python3").exists() {
        return tell("python3 is not installed");
    }
    let venv = bench.dir.path().join("agent/venv");
    fs::create_dir_all(venv.join("bin")).expect("makes it");
    fs::write(venv.join("pyvenv.cfg"), "home = /usr/bin\n").expect("writes");
    symlink("/usr/bin/python3", venv.join("bin/python")).expect("links");
    let text = "import sys\nprint(sys.prefix == sys.argv[1], sys.prefix != sys.base_prefix)\n";
    script(&bench, "agent.py", text);
    let prefix = venv.display().to_string();
    runs(
        &bench,
        |spec| {
            spec.program = "venv/bin/python".into();
            spec.args = vec!["agent.py".to_owned(), prefix.clone()];
        },
        &["True True"],
    )
    .await;
}

#[tokio::test]
async fn what_python_can_try_by_raw_calls_is_denied() {
    let bench = Bench::new();
    if !Path::new("/usr/bin/python3").exists() || !cfg!(target_arch = "x86_64") {
        return tell("python3 is not installed, or the numbers of calls are others here");
    }
    // By their numbers, because a hostile program needs no library's leave.
    let text = "import ctypes, os\n\
        c = ctypes.CDLL(None, use_errno=True)\n\
        def call(name, *args):\n    \
            ctypes.set_errno(0)\n    \
            r = c.syscall(*args)\n    \
            print(name, 'DONE' if r >= 0 else os.strerror(ctypes.get_errno()))\n\
        call('ptrace', 101, 16, 1, 0, 0)\n\
        call('process_vm_readv', 310, 1, 0, 0, 0, 0, 0)\n\
        call('bpf', 321, 0, 0, 0)\n\
        call('keyctl', 250, 0, -3, 0)\n\
        call('io_uring', 425, 1, 0)\n\
        call('userfaultfd', 323, 1)\n\
        call('perf', 298, 0, 0, 0, 0, 0)\n\
        call('mount', 165, b'none', b'/tmp', b'tmpfs', 0, 0)\n\
        call('fsopen', 430, b'tmpfs', 0)\n\
        call('unshare', 272, 0x10000000)\n\
        call('clone', 56, 0x10000000 | 17, 0, 0, 0, 0)\n\
        call('clone3', 435, 0, 0)\n\
        call('setns', 308, 0, 0)\n\
        call('personality', 135, 0x0040000)\n\
        call('tiocsti', 16, 0, 0x5412, b'x')\n\
        call('mptcp', 41, 2, 1, 262)\n\
        call('sctp', 41, 2, 1, 132)\n\
        call('udp6', 41, 10, 2, 0)\n\
        call('vsock', 41, 40, 1, 0)\n\
        call('x32 ptrace', 0x40000000 + 101, 16, 1, 0, 0)\n\
        call('handle', 304, 0, 0, 0)\n";
    script(&bench, "agent.py", text);
    let make = |spec: &mut LaunchSpec| {
        spec.program = "/usr/bin/python3".into();
        spec.args = vec!["agent.py".to_owned()];
    };
    let names = [
        "ptrace",
        "process_vm_readv",
        "bpf",
        "keyctl",
        "io_uring",
        "userfaultfd",
        "perf",
        "mount",
        "fsopen",
        "unshare",
        "clone",
        "clone3",
        "setns",
        "personality",
        "tiocsti",
        "mptcp",
        "sctp",
        "udp6",
        "vsock",
        "x32 ptrace",
        "handle",
    ];
    let expect = names.map(|name| match name {
        "clone3" => format!("{name} Function not implemented"),
        _ => format!("{name} Operation not permitted"),
    });
    let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
    runs(&bench, make, &expect).await;
}
