//! Agents that keep the protocol pass, and each fault is found as the requirement it breaks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf_conformance::{Error, Options, Profile, Report, Verdict, run};

fn options(dir: &Path) -> Options {
    Options {
        dir: dir.to_owned(),
        heartbeat: Duration::from_millis(500),
        reply: Duration::from_secs(30),
        // Many agents run at once here, on machines that build other things meanwhile.
        slack: Duration::from_secs(3),
        ..Options::default()
    }
}

async fn check(dir: &Path, args: &[&str]) -> Report {
    let command = ["python3"].iter().chain(args).map(|&word| word.to_owned()).collect();
    run(command, options(dir)).await.expect("the agent starts")
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/agents").join(name)
}

fn not_applicable(report: &Report) -> Vec<u16> {
    let rows = report.rows().iter();
    rows.filter(|row| matches!(row.verdict, Verdict::NotApplicable(_))).map(|r| r.number).collect()
}

/// Runs the agent with a fault and expects exactly these requirements to be broken.
async fn broken(fault: &str, expect: &[u16]) {
    if wharf_skips::lacks("python3") {
        return;
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let report = check(&dir, &["broken.py", fault]).await;
    assert_eq!(report.failed(), expect, "{fault}\n{report}");
}

#[tokio::test]
async fn the_reference_agent_in_python_keeps_every_requirement() {
    if wharf_skips::lacks("python3") {
        return;
    }
    let report = check(&example("hello-python"), &["agent.py"]).await;
    assert!(report.passed(), "{report}");
    // It reports no cost; everything else came up.
    assert_eq!(not_applicable(&report), [165], "{report}");
}

#[tokio::test]
async fn the_agent_of_the_manual_keeps_every_requirement_that_concerns_it() {
    if wharf_skips::lacks("python3") {
        return;
    }
    let report = check(&example("minimal-python"), &["agent.py"]).await;
    assert!(report.passed(), "{report}");
    let tools = [17, 39, 88, 91, 94, 105, 107, 109, 113, 123, 127, 130, 134, 137, 159, 165, 168];
    assert_eq!(not_applicable(&report), tools, "{report}");
}

#[test]
fn the_manual_shows_the_agent_that_is_checked() {
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a file of the repository");
    let code = read(example("minimal-python").join("agent.py"));
    let manual = read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/agents.md"));
    assert!(code.lines().count() <= 40);
    assert!(manual.contains(&format!("```python\n{code}```\n")), "docs/agents.md shows other code");
}

#[tokio::test]
async fn an_agent_without_a_fault_passes() {
    broken("none", &[]).await;
}

#[tokio::test]
async fn r003_going_on_after_what_is_not_json_is_found() {
    // Bytes that are no text are no JSON either.
    broken("skips-what-is-not-json", &[3, 4]).await;
}

#[tokio::test]
async fn r005_going_on_after_an_empty_frame_is_found() {
    broken("takes-empty-frames", &[5]).await;
}

#[tokio::test]
async fn r009_waiting_for_a_frame_of_any_size_is_found() {
    broken("waits-for-any-size", &[9]).await;
}

#[tokio::test]
async fn r035_a_wrong_echo_is_found() {
    broken("wrong-echo", &[35]).await;
}

#[tokio::test]
async fn r037_a_reply_without_the_id_it_answers_is_found() {
    broken("no-reply-to", &[37]).await;
}

#[tokio::test]
async fn r037_what_the_original_protocol_does_not_ask_for_is_no_fault_by_its_profile() {
    if wharf_skips::lacks("python3") {
        return;
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let options = Options { profile: Profile::Seed, ..options(&dir) };
    let command = ["python3", "broken.py", "no-reply-to"].map(str::to_owned).to_vec();
    let report = run(command, options).await.expect("the agent starts");
    assert!(report.passed(), "{report}");
    assert!(report.rows().iter().all(|row| ![3, 37, 91, 92, 148].contains(&row.number)));
}

#[tokio::test]
async fn r040_a_result_before_the_hello_is_found() {
    broken("result-first", &[40]).await;
}

#[tokio::test]
async fn r052_a_printed_token_is_found() {
    broken("prints-token", &[52, 61]).await;
}

#[tokio::test]
async fn r061_a_loop_of_retries_is_found() {
    broken("retry-loop", &[61]).await;
}

#[tokio::test]
async fn r062_a_version_that_was_not_offered_must_not_be_taken() {
    broken("any-version", &[62]).await;
}

#[tokio::test]
async fn r064_an_agent_that_stays_after_the_goodbye_is_found() {
    broken("stays", &[64]).await;
}

#[tokio::test]
async fn r071_a_tool_under_another_name_is_found() {
    broken("foreign-tool", &[71]).await;
}

#[tokio::test]
async fn r090_another_code_for_an_unknown_tool_is_found() {
    broken("wrong-code", &[90]).await;
}

#[tokio::test]
async fn r092_a_call_that_is_run_again_is_found() {
    broken("runs-again", &[92]).await;
}

#[tokio::test]
async fn r117_two_results_for_one_call_are_found() {
    broken("two-results", &[117]).await;
}

#[tokio::test]
async fn r133_accepting_to_cancel_an_unknown_call_is_found() {
    broken("accepts-any-cancel", &[133]).await;
}

#[tokio::test]
async fn r147_two_pongs_for_one_ping_are_found() {
    broken("two-pongs", &[147]).await;
}

#[tokio::test]
async fn r149_answering_an_unknown_notice_is_found() {
    broken("answers-notices", &[149]).await;
}

#[tokio::test]
async fn r150_answering_an_error_is_found() {
    broken("answers-errors", &[150]).await;
}

#[tokio::test]
async fn r139_missing_heartbeats_are_found() {
    broken("no-heartbeat", &[139]).await;
}

#[tokio::test]
async fn r140_an_uptime_that_goes_back_is_found() {
    broken("uptime-goes-back", &[140]).await;
}

#[tokio::test]
async fn r154_a_stack_trace_in_an_error_is_found() {
    broken("stack-trace", &[154]).await;
}

#[tokio::test]
async fn a_program_that_never_connects_fails_the_handshake() {
    let report = run(vec!["true".to_owned()], options(Path::new("."))).await.expect("it starts");
    assert_eq!(report.failed(), [40], "{report}");
}

#[tokio::test]
async fn what_cannot_be_started_is_an_error_and_no_report() {
    let missing = run(vec!["./no-such-agent".to_owned()], options(Path::new("."))).await;
    assert!(matches!(missing, Err(Error::Start { .. })));
    assert!(matches!(run(vec![], Options::default()).await, Err(Error::NoCommand)));
    let nowhere = Options { dir: PathBuf::from("no/such/folder"), ..Options::default() };
    assert!(matches!(run(vec!["true".to_owned()], nowhere).await, Err(Error::Folder { .. })));
}

/// Something that left the agent's process group and session is ended with it.
#[tokio::test]
async fn nothing_that_an_agent_started_is_left_behind() {
    let place = tempfile::tempdir().expect("a folder");
    let script = "setsid sleep 300 & echo $! > \"$0/pid\"; exit 1";
    let path = place.path().display().to_string();
    let command = ["sh", "-c", script, &path].map(ToOwned::to_owned).to_vec();
    let report = run(command, options(place.path())).await.expect("it starts");
    assert_eq!(report.failed(), [40], "{report}");
    let pid = std::fs::read_to_string(place.path().join("pid")).expect("the script ran");
    let process = Path::new("/proc").join(pid.trim());
    let gone = async {
        // A killed process may wait for its new parent to take note of it.
        while std::fs::read(process.join("cmdline")).is_ok_and(|words| !words.is_empty()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("no process is left behind");
}
