//! Processor time of calls, with a real process that uses some.

use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use wharf_ports::providers::{Approve, ProviderState};
use wharf_vocab::{Isolation, RunStatus};

use crate::agent::{Agent, LONG};
use crate::launcher::Launch;
use crate::stage::Stage;

/// Counts for a while when it is told to, by itself or in a process of its own.
const BURNER: &str = "
burn() { i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; }
while read -r how; do
    if [ $how = own ]; then burn; else (burn); fi
    echo done
done";

/// A process that uses processor time when it is told to.
struct Burner {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Burner {
    fn start() -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", BURNER]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("a shell");
        let orders = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, orders, answers }
    }

    async fn burn(&mut self, how: &str) {
        self.orders.write_all(format!("{how}\n").as_bytes()).await.expect("it listens");
        let answer = tokio::time::timeout(LONG, self.answers.next_line()).await;
        assert_eq!(answer.expect("in time").expect("readable").as_deref(), Some("done"));
    }
}

/// An agent whose process is a burner.
async fn joined(stage: &mut Stage, isolation: Isolation) -> (Launch, Agent, Burner) {
    let approve = Approve { isolation: Some(isolation), ..Approve::default() };
    let launch = stage.started_with(approve).await;
    let burner = Burner::start();
    launch.is_really(burner.child.id().expect("it runs"));
    let agent = stage.join(&launch, &["burn"]).await;
    stage.until(|view| view.state == ProviderState::Running).await;
    (launch, agent, burner)
}

#[tokio::test]
async fn t041_a_call_that_has_a_process_for_itself_has_its_processor_time_in_the_receipt() {
    for (isolation, how) in
        [(Isolation::Shared, "own"), (Isolation::Shared, "child"), (Isolation::Run, "own")]
    {
        let mut stage = Stage::new().await;
        let (_launch, mut agent, mut burner) = joined(&mut stage, isolation).await;
        let run = stage.run("burn", json!({})).await.expect("accepted");
        let call = agent.call().await;
        burner.burn(how).await;
        agent.succeed(&call, json!({})).await;
        let run = stage.end_of(&run.key).await;
        assert_eq!(run.status(), RunStatus::Succeeded);
        let cpu_ms = run.metered.cpu_ms.expect("it is known");
        assert!((1..60_000).contains(&cpu_ms), "{isolation} {how}: {cpu_ms} ms");
        let records = stage.audited("tool.call_completed").await;
        assert_eq!(records[0].facts.get("cpu_ms"), Some(&json!(cpu_ms)), "{records:?}");
    }
}

#[tokio::test]
async fn t041_also_a_call_that_fails_has_used_its_time() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent, mut burner) = joined(&mut stage, Isolation::Shared).await;
    let run = stage.run("burn", json!({})).await.expect("accepted");
    let call = agent.call().await;
    burner.burn("own").await;
    agent.fail(&call, "tool.failed", false).await;
    let run = stage.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Failed);
    assert!(run.metered.cpu_ms.is_some_and(|ms| ms > 0), "{:?}", run.metered);
}

#[tokio::test]
async fn t041_nothing_is_said_of_calls_that_shared_a_process_for_any_time() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent, mut burner) = joined(&mut stage, Isolation::Shared).await;
    let long = stage.run("burn", json!({})).await.expect("accepted");
    let long_call = agent.call().await;
    let short = stage.run("burn", json!({})).await.expect("accepted");
    let short_call = agent.call().await;
    agent.succeed(&short_call, json!({})).await;
    assert_eq!(stage.end_of(&short.key).await.metered.cpu_ms, None);
    burner.burn("own").await;
    agent.succeed(&long_call, json!({})).await;
    assert_eq!(stage.end_of(&long.key).await.metered.cpu_ms, None);
    // The next one is alone again.
    let mut times = Vec::new();
    for burns in [true, false] {
        let alone = stage.run("burn", json!({})).await.expect("accepted");
        let call = agent.call().await;
        if burns {
            burner.burn("own").await;
        }
        agent.succeed(&call, json!({})).await;
        times.push(stage.end_of(&alone.key).await.metered.cpu_ms.expect("it is known"));
    }
    assert!(times[1] < times[0], "what was used before a call is not the call's: {times:?}");
}
