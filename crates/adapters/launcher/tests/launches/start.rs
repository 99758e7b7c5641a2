//! What a launched program finds when it starts, and what is said when it cannot.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{
    Bench, PROBE, ended, log_path, output, parent_of, read_until, stat, texts, write_program,
};
use wharf_ports::launcher::{ExitHow, LaunchSpec, Launcher};
use wharf_vocab::{Code, Fault};

#[tokio::test]
async fn r066_the_environment_is_exactly_what_was_given() {
    let bench = Bench::new();
    let mut names = std::env::vars_os().map(|(name, _)| name);
    assert!(names.any(|name| name != "PATH"), "there is something that could be inherited");
    let mut spec = bench.spec(&["env"]);
    spec.env = BTreeMap::from([
        ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
        ("EMPTY".to_owned(), String::new()),
        ("ODD".to_owned(), "a=b c\nd ü".to_owned()),
    ]);
    let launched = bench.launch(spec).await;
    ended(launched.exited()).await;
    let mut lines = output(&*launched).await;
    lines.sort();
    assert_eq!(lines, ["EMPTY=", "ODD=a=b c", "PATH=/usr/bin:/bin", "d ü"]);
}

#[tokio::test]
async fn an_empty_environment_is_empty() {
    let bench = Bench::new();
    let mut spec = bench.spec(&["env"]);
    spec.env.clear();
    let launched = bench.launch(spec).await;
    assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(0));
    assert_eq!(output(&*launched).await, Vec::<String>::new());
}

#[tokio::test]
async fn r065_no_argument_of_any_process_carries_the_environment() {
    let bench = Bench::new();
    let mut spec = bench.spec(&["live"]);
    spec.env.insert("TOKEN".to_owned(), "canary-token".to_owned());
    let path = log_path(&spec);
    let launched = bench.launch(spec).await;
    read_until(&*launched, |line| line.starts_with("pid")).await;
    let shim = parent_of(launched.pid());
    for pid in [shim.to_string(), launched.pid().to_string()] {
        let cmdline = fs::read(format!("/proc/{pid}/cmdline")).expect("lives");
        assert!(!String::from_utf8_lossy(&cmdline).contains("canary"), "{pid}");
    }
    let environ = fs::read(format!("/proc/{shim}/environ")).expect("lives");
    assert_eq!(environ, b"", "the shim needs no environment");
    ended(launched.kill()).await;
    assert!(!fs::read_to_string(path).expect("reads").contains("canary"));
}

#[tokio::test]
async fn arguments_arrive_as_they_are_and_no_shell_sees_them() {
    let bench = Bench::new();
    let odd = ["args", "two words", "$HOME", "`id`", "a\"b'c", "", "*", "; exit 3", "ü"];
    let (exit, lines) = bench.run(&odd).await;
    assert_eq!(exit.how, ExitHow::Code(0));
    assert_eq!(lines, odd[1..]);
}

#[tokio::test]
async fn the_working_directory_is_the_one_that_was_given() {
    let bench = Bench::new();
    let (_, lines) = bench.run(&["where"]).await;
    let expect = bench.dir.path().canonicalize().expect("exists");
    assert_eq!(lines, [expect.display().to_string()]);
}

#[tokio::test]
async fn a_program_is_found_by_a_relative_path_and_by_its_name() {
    let bench = Bench::new();
    fs::create_dir(bench.dir.path().join("bin")).expect("makes it");
    std::os::unix::fs::symlink(PROBE, bench.dir.path().join("bin/my-probe")).expect("links");
    let mut by_path = bench.spec(&["exit", "5"]);
    by_path.program = "bin/my-probe".into();
    let mut by_name = bench.spec(&["exit", "6"]);
    by_name.program = "my-probe".into();
    let path = bench.dir.path().join("bin").display().to_string();
    by_name.env.insert("PATH".to_owned(), path);
    for (spec, code) in [(by_path, 5), (by_name, 6)] {
        let launched = bench.launch(spec).await;
        assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(code));
    }
}

#[tokio::test]
async fn no_descriptor_of_the_core_reaches_the_program() {
    let bench = Bench::new();
    // One that a careless library left open to children.
    let careless = fs::File::create(bench.dir.path().join("careless")).expect("creates");
    rustix::io::fcntl_setfd(&careless, rustix::io::FdFlags::empty()).expect("marks");
    let (_, lines) = bench.run(&["fds"]).await;
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0], "0 /dev/null");
    assert!(lines[1].starts_with("1 pipe:"), "{lines:?}");
    assert!(lines[2].starts_with("2 pipe:"), "{lines:?}");
    drop(careless);
}

#[tokio::test]
async fn a_program_can_gain_no_privileges_and_leaves_no_core_dump() {
    let bench = Bench::new();
    let (_, lines) = bench.run(&["status"]).await;
    let words: Vec<Vec<&str>> =
        lines.iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["NoNewPrivs:", "1"]);
    assert_eq!(words[1][..6], ["Max", "core", "file", "size", "0", "0"]);
}

#[tokio::test]
async fn shim_and_program_stand_apart_from_the_core() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["live"])).await;
    let pid = i32::try_from(launched.pid()).expect("fits");
    let shim = parent_of(launched.pid());
    let fields = |pid: i32| stat(pid).expect("lives");
    assert_eq!(fields(shim)[1], std::process::id().to_string(), "the shim is our child");
    assert_eq!(fields(shim)[3], shim.to_string(), "it has a session of its own");
    assert_eq!(fields(pid)[2], pid.to_string(), "the program has a group of its own");
    assert_eq!(fields(pid)[3], shim.to_string(), "in the shim's session");
    let name = fs::read_to_string(format!("/proc/{shim}/comm")).expect("lives");
    assert_eq!(name.trim(), "wharf-shim");
    ended(launched.kill()).await;
}

#[tokio::test]
async fn private_directories_are_made_for_this_user_only() {
    let bench = Bench::new();
    let mut spec = bench.spec(&["exit", "0"]);
    spec.private_dirs =
        vec![bench.dir.path().join("private/home"), bench.dir.path().join("private/tmp")];
    let dirs = spec.private_dirs.clone();
    ended(bench.launch(spec).await.exited()).await;
    for dir in dirs {
        let mode = fs::metadata(&dir).expect("exists").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}", dir.display());
    }
}

async fn refused(bench: &Bench, spec: LaunchSpec) -> Fault {
    let path = log_path(&spec);
    let fault = bench.try_launch(spec).await.expect_err("cannot start");
    // Whoever reads the log later finds the reason, too.
    if path.exists() {
        let lines = texts(&bench.launcher.tail(&path, 1).await.expect("reads"));
        assert_eq!(lines, [format!("[not started] {}", fault.message)]);
    }
    fault
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let bench = Bench::new();
    for program in ["/no/such/program", "./missing", "no-such-name"] {
        let mut spec = bench.spec(&[]);
        spec.program = program.into();
        let fault = refused(&bench, spec).await;
        assert!(fault.is(Code::AgentStartFailed), "{fault}");
        assert!(!fault.retryable);
        let expect = format!("The program {program} was not found; check its path, or install it.");
        assert_eq!(fault.message, expect);
        assert_eq!(fault.details["os_error"], 2);
        assert!(fault.details["launch_id"].is_string());
    }
}

#[tokio::test]
async fn a_program_that_is_not_executable_is_named() {
    let bench = Bench::new();
    fs::write(bench.dir.path().join("plain"), "#!/bin/sh\n").expect("writes");
    for program in ["./plain", "/"] {
        let mut spec = bench.spec(&[]);
        spec.program = program.into();
        let fault = refused(&bench, spec).await;
        let expect = format!("The program {program} may not be executed; make it executable.");
        assert_eq!(fault.message, expect);
    }
}

#[tokio::test]
async fn a_missing_interpreter_is_told_from_a_missing_program() {
    let bench = Bench::new();
    let script = bench.dir.path().join("script");
    write_program(&script, "#!/no/such/interpreter\n");
    let mut spec = bench.spec(&[]);
    spec.program = "./script".into();
    let fault = refused(&bench, spec).await;
    assert!(fault.message.contains("interpreter"), "{fault}");
}

#[tokio::test]
async fn a_missing_working_directory_is_named() {
    let bench = Bench::new();
    let mut spec = bench.spec(&["exit", "0"]);
    spec.cwd = "/no/such/directory".into();
    let fault = refused(&bench, spec).await;
    assert_eq!(fault.message, "The working directory /no/such/directory does not exist.");
    let mut spec = bench.spec(&["exit", "0"]);
    spec.cwd = PROBE.into();
    let fault = refused(&bench, spec).await;
    assert!(fault.message.contains("cannot be entered: not a directory"), "{fault}");
}

#[tokio::test]
async fn what_no_system_can_start_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    for (name, value) in [("", "x"), ("A=B", "x"), ("NUL", "a\0b"), ("N\0", "x")] {
        let mut spec = bench.spec(&["exit", "0"]);
        spec.env.insert(name.to_owned(), value.to_owned());
        let fault = bench.try_launch(spec).await.expect_err("refused");
        assert!(fault.message.contains("environment variable"), "{fault}");
        assert!(!fault.message.contains("a\0b"));
    }
    let mut huge = bench.spec(&["exit", "0"]);
    huge.args.push("x".repeat(3 * 1024 * 1024));
    assert!(bench.try_launch(huge).await.is_err());
    let mut long = bench.spec(&["exit", "0"]);
    long.args.push("x".repeat(1024 * 1024));
    let fault = bench.try_launch(long).await.expect_err("no system takes that");
    assert!(fault.message.contains("cannot be run: argument list too long"), "{fault}");
}

#[tokio::test]
async fn a_log_or_directory_that_cannot_be_made_is_named() {
    let bench = Bench::new();
    fs::write(bench.dir.path().join("file"), "").expect("writes");
    let mut spec = bench.spec(&["exit", "0"]);
    spec.private_dirs = vec![bench.dir.path().join("file/home")];
    let fault = bench.try_launch(spec).await.expect_err("refused");
    assert!(fault.is(Code::HomeUnwritable), "{fault}");
    let mut spec = bench.spec(&["exit", "0"]);
    spec.log.path = bench.dir.path().join("file/x.log");
    let fault = bench.try_launch(spec).await.expect_err("refused");
    assert!(fault.message.contains("file/x.log cannot be written"), "{fault}");
}

#[tokio::test]
async fn a_shim_that_cannot_be_started_is_an_error_and_not_a_hang() {
    for program in ["/no/such/shim", "/bin/false"] {
        let options = wharf_launcher::LauncherOptions { shim_program: Some(program.into()) };
        let launcher = wharf_launcher::ProcessLauncher::start(options).expect("starts");
        let bench = Bench { dir: tempfile::tempdir().expect("a directory"), launcher };
        let fault = bench.try_launch(bench.spec(&["exit", "0"])).await.expect_err("no shim");
        assert!(fault.message.contains("supervisor"), "{fault}");
    }
}

#[test]
fn the_hidden_word_typed_by_hand_is_refused() {
    let words = [None, Some("apart"), Some("enter"), Some("nonsense")];
    for args in words.map(|word| ["__shim"].into_iter().chain(word).collect::<Vec<_>>()) {
        let output = std::process::Command::new(PROBE)
            .args(&args)
            .stdin(std::process::Stdio::null())
            .output()
            .expect("runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("Wharf's own use"), "{said}");
    }
}
