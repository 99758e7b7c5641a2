//! What a program must never see stays out of its sight, whatever it was granted and whatever
//! its own files say.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{Bench, PROBE, can, copy_program, ended, output, tell, write_program};
use wharf_ports::launcher::{ExitHow, LaunchSpec};
use wharf_vocab::Code;
use wharf_vocab::SandboxLevel::{self, Standard, Strict};

const FIRM: [SandboxLevel; 2] = [Standard, Strict];
const PYTHON: &str = "/usr/bin/python3";

fn write(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("makes it");
    if mode == 0o755 {
        return write_program(path, text);
    }
    fs::write(path, text).expect("writes");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("marks");
}

/// A script with this first line that says whether it sees each of some files.
fn script(bench: &Bench, first_line: &str, files: &[&Path]) {
    let mut text = format!("{first_line}\nimport os\n");
    for file in files {
        let _ = writeln!(text, "print(os.path.lexists('{}'))", file.display());
    }
    write(&bench.dir.path().join("agent/agent.py"), &text, 0o755);
}

/// Attempts of the probe, and whether each went well.
async fn attempts(bench: &Bench, mut spec: LaunchSpec, words: &[String]) -> Vec<bool> {
    spec.args = ["attempt".to_owned()].iter().chain(words).cloned().collect();
    let said = bench.said(spec).await;
    assert_eq!(said.len(), words.len(), "{said:?}");
    said.iter().map(|line| line.contains(": yes")).collect()
}

#[tokio::test]
async fn a_first_line_opens_no_file_that_env_takes_for_something_else() {
    let bench = Bench::new();
    if !can(&bench, Standard).await || !Path::new(PYTHON).exists() {
        return tell("first lines");
    }
    let token = bench.dir.path().join("core/run/owner.token");
    let key = bench.dir.path().join("people/ann/.ssh/id");
    write(&token, "canary", 0o600);
    write(&key, "canary", 0o600);
    let (token_text, not_there) = (token.display(), bench.dir.path().join("people/ann/bin/x"));
    let not_there = not_there.display();
    for line in [
        format!("#!/usr/bin/env -S -u {token_text} python3"),
        format!("#!/usr/bin/env -S -u {not_there} python3"),
        format!("#!/usr/bin/env -S --argv0={token_text} python3"),
        format!("#!/usr/bin/env -S -C {not_there} python3"),
    ] {
        script(&bench, &line, &[&token, &key]);
        let mut spec = bench.fenced(Standard, &[]);
        spec.program = "./agent.py".into();
        let launched = bench.launch(spec).await;
        ended(launched.exited()).await;
        let said = output(&*launched).await;
        assert!(!said.iter().any(|line| line.contains("True")), "{line}: {said:?}");
    }
}

#[tokio::test]
async fn a_first_line_opens_neither_data_nor_somebodys_folder() {
    let bench = Bench::new();
    let ann = bench.dir.path().join("people/ann");
    let (token, notes) = (bench.dir.path().join("core/run/owner.token"), ann.join("bin/notes"));
    write(&token, "canary", 0o600);
    write(&notes, "#!/bin/sh\n# canary\n", 0o755);
    write(&ann.join(".ssh/id"), "canary", 0o600);
    write(&ann.join("lib/library"), "", 0o644);
    copy_program(PROBE, &ann.join("bin/tool"));
    let read = |path: &Path| format!("read:{}", path.display());
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        for interpreter in [&token, &notes] {
            write(
                &bench.dir.path().join("agent/run"),
                &format!("#!{}\n", interpreter.display()),
                0o755,
            );
            let mut spec = bench.fenced(level, &[]);
            spec.program = "./run".into();
            let fault = bench.try_launch(spec).await.expect_err("its interpreter is out of sight");
            assert!(fault.is(Code::AgentStartFailed), "{fault}");
            assert!(fault.message.contains("may not see it"), "{fault}");
        }
        // A real program brings what it was installed with, and nothing beside that.
        let words = [read(&ann.join("lib/library")), read(&ann.join(".ssh/id")), read(&token)];
        let line = format!("#!{} attempt\n", ann.join("bin/tool").display());
        write(&bench.dir.path().join("agent/run"), &line, 0o755);
        let mut spec = bench.fenced(level, &[]);
        spec.program = "./run".into();
        spec.args = words.to_vec();
        let launched = bench.launch(spec).await;
        assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(0));
        let said = output(&*launched).await;
        // The first word is the script itself, which is no attempt.
        let seen: Vec<bool> = said[1..].iter().map(|line| line.contains(": yes")).collect();
        assert_eq!(seen, [true, false, false], "{said:?}");
    }
}

#[tokio::test]
async fn what_is_hidden_cannot_be_granted_from_inside_nor_from_above() {
    let bench = Bench::new();
    let dir = bench.dir.path();
    write(&dir.join("all/core/run/owner.token"), "canary", 0o600);
    write(&dir.join("all/other/file"), "fine", 0o644);
    let token = format!("read:{}", dir.join("all/core/run/owner.token").display());
    let fine = format!("read:{}", dir.join("all/other/file").display());
    let words = [fine, token];
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let mut spec = bench.fenced(level, &[]);
        spec.fence.read = vec![dir.join("all/other"), dir.join("all/core/run"), dir.join("all")];
        spec.fence.write = vec![dir.join("all/core/run/owner.token")];
        assert_eq!(attempts(&bench, spec.clone(), &words).await, [true, true]);
        spec.fence.hidden = vec![dir.join("all/core")];
        assert_eq!(attempts(&bench, spec.clone(), &words).await, [true, false]);
        // Its own folders may lie there, but not around it.
        spec.cwd = dir.join("all/core/agents");
        fs::create_dir_all(&spec.cwd).expect("makes it");
        assert_eq!(attempts(&bench, spec.clone(), &words).await, [true, false]);
        for cwd in ["all", "all/core"] {
            spec.cwd = dir.join(cwd);
            let fault = bench.try_launch(spec.clone()).await.expect_err("it would be seen");
            assert!(fault.is(Code::AgentStartFailed), "{fault}");
        }
    }
}

#[tokio::test]
async fn what_a_link_leads_to_is_not_shown_and_that_is_told() {
    let bench = Bench::new();
    let dir = bench.dir.path();
    write(&dir.join("victim/file"), "canary", 0o644);
    write(&dir.join("work/real/file"), "fine", 0o644);
    symlink(dir.join("victim"), dir.join("work/cache")).expect("links");
    symlink("real", dir.join("work/near")).expect("links");
    let path = |name: &str| dir.join(name);
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let words = [
            format!("read:{}", path("work/real/file").display()),
            format!("read:{}", path("victim/file").display()),
            format!("write:{}", path("victim/file").display()),
            format!("read:{}", path("work/cache/file").display()),
            format!("read:{}", path("work/near/file").display()),
        ];
        let mut spec = bench.fenced(level, &["attempt"]);
        spec.args.extend(words);
        spec.fence.read = vec![path("work/real"), path("work/near"), path("work/cache/file")];
        spec.fence.write = vec![path("work/cache")];
        let launched = bench.launch(spec).await;
        ended(launched.exited()).await;
        let said = output(&*launched).await;
        let done: Vec<bool> = said.iter().map(|line| line.contains(": yes")).collect();
        assert_eq!(done, [true, false, false, false, false], "{said:?}");
        let notes = launched.fence().notes.join("\n");
        for name in ["work/near", "work/cache", "work/cache/file"] {
            let note =
                format!("{} is not shown, because a link lies on its way.", path(name).display());
            assert!(notes.contains(&note), "{notes}");
        }
        let mut spec = bench.fenced(level, &["exit", "0"]);
        spec.cwd = path("work/near");
        let fault = bench.try_launch(spec).await.expect_err("a link");
        assert!(fault.message.starts_with("A link lies on the way to"), "{fault}");
        let mut spec = bench.fenced(level, &["exit", "0"]);
        spec.private_dirs.push(path("work/cache/own"));
        let fault = bench.try_launch(spec).await.expect_err("a link");
        assert!(fault.message.starts_with("A link lies on the way to"), "{fault}");
    }
}

/// Somebody who may write beside a granted folder swaps it for a link all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_swapped_for_a_link_while_a_program_starts_opens_nothing() {
    let bench = Bench::new();
    if !can(&bench, Standard).await {
        return;
    }
    let dir = bench.dir.path().to_owned();
    write(&dir.join("victim/file"), "canary", 0o644);
    write(&dir.join("work/cache/file"), "fine", 0o644);
    symlink(dir.join("victim"), dir.join("work/swap")).expect("links");
    let over = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (over, work) = (Arc::clone(&over), dir.join("work"));
        std::thread::spawn(move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let (cache, swap) = (work.join("cache"), work.join("swap"));
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &cache, CWD, &swap, RenameFlags::EXCHANGE).expect("swaps");
                std::thread::sleep(Duration::from_micros(300));
            }
        })
    };
    let mut started = 0;
    for round in 0..80 {
        let mut spec = bench.fenced(Standard, &["attempt"]);
        spec.args.push(format!("read:{}", dir.join("victim/file").display()));
        spec.args.push(format!("write:{}", dir.join("victim/file").display()));
        let grants = if round % 2 == 0 { &mut spec.fence.read } else { &mut spec.fence.write };
        grants.push(dir.join("work/cache"));
        // A start that noticed the swap half way is refused, which is fine, too.
        let Ok(launched) = bench.try_launch(spec).await else { continue };
        started += 1;
        ended(launched.exited()).await;
        let said = output(&*launched).await;
        assert!(said.iter().all(|line| line.contains(": no")), "{said:?}");
    }
    over.store(true, Ordering::Relaxed);
    swapping.join().expect("ends");
    assert!(started > 10, "only {started} started");
    assert_eq!(fs::read_to_string(dir.join("victim/file")).expect("is there"), "canary");
}

#[tokio::test]
async fn what_the_kernel_tells_of_itself_and_of_others_is_out_of_sight() {
    let bench = Bench::new();
    let names = ["keys", "key-users", "timer_list", "vmallocinfo", "slabinfo", "config.gz"];
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let words = names.map(|name| format!("read:/proc/{name}"));
        let mut spec = bench.fenced(level, &["attempt"]);
        spec.args.extend(words.clone());
        for (word, line) in words.iter().zip(bench.said(spec).await) {
            let is_empty = line == format!("{word}: yes");
            let is_refused = line.starts_with(&format!("{word}: no"));
            assert!(is_empty || is_refused, "{line}");
        }
        let said = bench.said(bench.fenced(level, &["attempt", "read:/proc/self/stat"])).await;
        assert!(said[0].contains(": yes"), "{said:?}");
    }
}
