//! A process that is killed in the middle of a run, and what the next one finds.
//!
//! The test starts its own program again with a folder in the environment; that one opens a core
//! there, gets into the middle of a run, says so, and waits to be killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use wharf_embedded::{Code, Embedded, RunKey, RunStatus, WorldId};
use wharf_sdk::{Answer, Cx, Fault, Scope, Tool};

use crate::tools::{asked, flight};

const FOLDER: &str = "WHARF_EMBEDDED_CRASH_FOLDER";
const SAYS: &str = "in the middle of ";

/// Starts this test again, waits until it is in the middle of a run, and kills it.
fn crashed(test: &str, folder: &Path) -> RunKey {
    let mut child = Command::new(std::env::current_exe().expect("a program"))
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let run = said(&mut child);
    child.kill().expect("killed");
    child.wait().expect("over");
    let (world, run) = run.split_once('/').expect("a world and an id");
    RunKey {
        world: WorldId::new(world).expect("a world"),
        run: wharf_embedded::RunId::new(run).expect("an id"),
    }
}

fn said(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let said = lines.map(|line| line.expect("text"));
    let said = said.filter_map(|line| line.split_once(SAYS).map(|(_, run)| run.to_owned()));
    said.into_iter().next().expect("it got into the middle")
}

/// Whether this is the program that is to be killed.
fn doomed() -> Option<std::path::PathBuf> {
    std::env::var_os(FOLDER).map(Into::into)
}

async fn wait_to_be_killed(run: &RunKey) -> ! {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{SAYS}{}/{}", run.world, run.run).expect("somebody reads");
    drop(output);
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(3_600)).await;
    }
}

const ONCE: Tool<(), u32> = Tool::new("once", "Ends when it is called in another process.");

/// A tool that hangs in the process that is killed and ends in the other.
fn once(root: &Scope, tool: &Tool<(), u32>, ends: bool, times: &Arc<AtomicU32>) -> Scope {
    let times = Arc::clone(times);
    let work = move |(), cx: Cx| {
        let times = Arc::clone(&times);
        async move {
            times.fetch_add(1, Ordering::SeqCst);
            cx.notify("at work").await?;
            if !ends {
                std::future::pending::<()>().await;
            }
            Ok::<_, Fault>(7)
        }
    };
    root.provide(tool, work).expect("free");
    root.clone()
}

async fn begun(core: &Embedded, tool: &str) -> RunKey {
    let run = core.run(tool, Value::Null).start().await.expect("accepted");
    let at_work = |what: &_| matches!(what, wharf_embedded::What::Log { .. }).then_some(());
    crate::tools::until(core, &run, at_work).await;
    run
}

#[tokio::test]
async fn k019_a_run_without_side_effects_is_tried_again_after_a_crash() {
    let (root, times) = (Scope::root(), Arc::new(AtomicU32::new(0)));
    if let Some(folder) = doomed() {
        let core = Embedded::open(folder).await.expect("a core");
        let face = once(&root, &ONCE.side_effects(false), false, &times);
        core.offer("crash", face).await.expect("offered");
        wait_to_be_killed(&begun(&core, "crash/once").await).await;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let test = "crash::k019_a_run_without_side_effects_is_tried_again_after_a_crash";
    let run = crashed(test, folder.path());
    let core = Embedded::open(folder.path()).await.expect("a core");
    assert!(!matches!(core.find(&run).await.expect("kept").status, RunStatus::Failed));
    let face = once(&root, &ONCE.side_effects(false), true, &times);
    core.offer("crash", face).await.expect("offered");
    assert_eq!(core.wait(&run).await.expect("succeeded"), json!(7));
    let end = core.find(&run).await.expect("kept");
    assert_eq!((end.status, end.attempts), (RunStatus::Succeeded, 2));
    assert_eq!(times.load(Ordering::SeqCst), 1);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k019_a_run_that_may_have_acted_is_failed_after_a_crash_and_not_repeated() {
    let (root, times) = (Scope::root(), Arc::new(AtomicU32::new(0)));
    if let Some(folder) = doomed() {
        let core = Embedded::open(folder).await.expect("a core");
        core.offer("crash", once(&root, &ONCE, false, &times)).await.expect("offered");
        wait_to_be_killed(&begun(&core, "crash/once").await).await;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let test = "crash::k019_a_run_that_may_have_acted_is_failed_after_a_crash_and_not_repeated";
    let run = crashed(test, folder.path());
    let core = Embedded::open(folder.path()).await.expect("a core");
    core.offer("crash", once(&root, &ONCE, true, &times)).await.expect("offered");
    let fault = core.wait(&run).await.expect_err("failed");
    assert_eq!(fault.details["executed"], "maybe", "{fault}");
    assert_eq!(times.load(Ordering::SeqCst), 0);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k018_k019_a_question_survives_a_crash_and_its_answer_reaches_the_next_attempt() {
    let root = Scope::root();
    let (flight, _) = flight(&root, "Crab Air");
    if let Some(folder) = doomed() {
        let core = Embedded::open(folder).await.expect("a core");
        core.offer("flight", &flight).await.expect("offered");
        let run = core.run("flight/confirm", Value::Null).start().await.expect("accepted");
        asked(&core, &run).await;
        wait_to_be_killed(&run).await;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let test =
        "crash::k018_k019_a_question_survives_a_crash_and_its_answer_reaches_the_next_attempt";
    let run = crashed(test, folder.path());
    let core = Embedded::open(folder.path()).await.expect("a core");
    let inbox = core.inbox().await.expect("readable");
    assert_eq!(inbox.len(), 1, "{inbox:?}");
    assert_eq!(inbox[0].title, "Really?");
    core.offer("flight", &flight).await.expect("offered");
    core.answer(&inbox[0].id, Answer::Accepted(json!({"ok": true}))).await.expect("answered");
    assert_eq!(core.wait(&run).await.expect("succeeded"), json!("accepted true"));
    assert!(
        core.answer(&inbox[0].id, Answer::Declined).await.expect_err("once").is(Code::AskDecided)
    );
    core.close().await.expect("closed");
}
