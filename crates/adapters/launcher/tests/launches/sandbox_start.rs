//! What a fenced program finds when it starts, and what is said when it cannot.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use crate::support::{Bench, PROBE, can, copy_program, ended};
use wharf_ports::launcher::ExitHow;
use wharf_vocab::SandboxLevel::{self, Basic, Standard, Strict};

const FIRM: [SandboxLevel; 2] = [Standard, Strict];

#[tokio::test]
async fn the_level_that_was_asked_for_is_the_level_that_is_told() {
    let bench = Bench::new();
    for level in [SandboxLevel::None, Basic, Standard, Strict] {
        if can(&bench, level).await {
            let launched = bench.launch(bench.fenced(level, &["exit", "0"])).await;
            assert_eq!(launched.fence().level, level, "{:?}", launched.fence());
            assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(0));
        }
    }
}

#[tokio::test]
async fn r066_the_environment_is_exact_at_every_level() {
    let bench = Bench::new();
    for level in [SandboxLevel::None, Basic, Standard, Strict] {
        if !can(&bench, level).await {
            continue;
        }
        let mut spec = bench.fenced(level, &["env"]);
        spec.env = [("ONLY".to_owned(), "this".to_owned())].into();
        assert_eq!(bench.said(spec).await, ["ONLY=this"], "{level}");
    }
}

#[tokio::test]
async fn no_descriptor_reaches_the_program_but_its_connection() {
    let bench = Bench::new();
    let careless = fs::File::create(bench.dir.path().join("careless")).expect("creates");
    rustix::io::fcntl_setfd(&careless, rustix::io::FdFlags::empty()).expect("marks");
    for level in [SandboxLevel::None, Basic, Standard, Strict] {
        if !can(&bench, level).await {
            continue;
        }
        let said = bench.said(bench.fenced(level, &["fds"])).await;
        assert_eq!(said.len(), 3, "{level} {said:?}");
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let mut spec = bench.fenced(level, &["fds"]);
        spec.connection = Some(std::sync::Arc::new(theirs.into()));
        let said = bench.said(spec).await;
        assert_eq!(said.len(), 4, "{level} {said:?}");
        assert!(said[3].starts_with("3 socket:"), "{level} {said:?}");
        drop(ours);
    }
    drop(careless);
}

#[tokio::test]
async fn a_program_speaks_on_the_connection_it_inherited() {
    use std::io::Read;
    let bench = Bench::new();
    for level in [SandboxLevel::None, Basic, Standard] {
        if !can(&bench, level).await {
            continue;
        }
        let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let mut spec = bench.fenced(level, &["-c", "echo hello >&3"]);
        spec.program = "sh".into();
        spec.connection = Some(std::sync::Arc::new(theirs.into()));
        let launched = bench.launch(spec).await;
        assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(0), "{level}");
        let mut heard = String::new();
        // All other holders are gone, so this ends.
        ours.read_to_string(&mut heard).expect("reads");
        assert_eq!(heard, "hello\n", "{level}");
    }
}

#[tokio::test]
async fn m045_a_program_speaks_on_standard_streams_that_lead_to_the_core() {
    use std::io::{Read, Write};
    let bench = Bench::new();
    for level in [SandboxLevel::None, Basic, Standard, Strict] {
        if !can(&bench, level).await {
            continue;
        }
        let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let mut spec = bench.fenced(level, &["-c", "read word; echo \"$word back\"; echo log >&2"]);
        spec.program = "sh".into();
        spec.stdio = Some(std::sync::Arc::new(theirs.into()));
        ours.write_all(b"hello\n").expect("writes");
        let launched = bench.launch(spec).await;
        let exit = ended(launched.exited()).await;
        assert_eq!((exit.how, exit.last_stderr.as_deref()), (ExitHow::Code(0), Some("log")));
        let mut heard = String::new();
        // All other holders are gone, so this ends.
        ours.read_to_string(&mut heard).expect("reads");
        assert_eq!(heard, "hello back\n", "{level}");
    }
}

#[tokio::test]
async fn a_folder_with_spaces_and_odd_letters_is_no_obstacle() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("my agent's ü \\ folder");
    fs::create_dir(&folder).expect("makes it");
    copy_program(PROBE, &folder.join("my program"));
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let mut spec = bench.fenced(level, &["where"]);
        spec.cwd = folder.clone();
        spec.program = "./my program".into();
        let expect = folder.canonicalize().expect("exists").display().to_string();
        assert_eq!(bench.said(spec).await, [expect]);
    }
}

#[tokio::test]
async fn neither_the_whole_machine_nor_its_processes_can_be_granted() {
    let bench = Bench::new();
    if !can(&bench, Standard).await {
        return;
    }
    for path in ["/", "/proc", "/usr/.."] {
        let mut spec = bench.fenced(Standard, &["exit", "0"]);
        spec.fence.read = vec![path.into()];
        let fault = bench.try_launch(spec).await.expect_err("refused");
        let expect = format!("The path {path} cannot be opened to a program that is fenced in.");
        assert_eq!(fault.message, expect);
        let mut spec = bench.fenced(Standard, &["exit", "0"]);
        spec.cwd = path.into();
        assert!(bench.try_launch(spec).await.is_err());
    }
    assert!(Path::new("/").exists());
}

#[tokio::test]
async fn what_cannot_start_is_told_as_without_a_fence() {
    let bench = Bench::new();
    if !can(&bench, Standard).await {
        return;
    }
    let refused = async |spec| bench.try_launch(spec).await.expect_err("cannot start").message;
    let mut spec = bench.fenced(Standard, &[]);
    spec.program = "no-such-program".into();
    let expect = "The program no-such-program was not found; check its path, or install it.";
    assert_eq!(refused(spec).await, expect);
    let mut spec = bench.fenced(Standard, &[]);
    spec.cwd = "/no/such/folder".into();
    assert_eq!(refused(spec).await, "The working directory /no/such/folder does not exist.");
    let mut spec = bench.fenced(Standard, &[]);
    fs::write(spec.cwd.join("plain"), "#!/bin/sh\n").expect("writes");
    spec.program = "./plain".into();
    let expect = "The program ./plain may not be executed; make it executable.";
    assert_eq!(refused(spec).await, expect);
}
