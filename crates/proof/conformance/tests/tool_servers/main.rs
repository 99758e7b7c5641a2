//! A tool server that keeps the run protocol passes, and each fault is found as exactly the
//! requirement it breaks.

mod examples;
mod execution;
mod ours;
mod scripted;

use std::time::Duration;

use futures::future::join_all;
use scripted::{Scripted, TOKEN};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wharf_conformance::run::{Options, Profile, check, check_aloud};
use wharf_conformance::{Error, Report, Row, Verdict};

fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

fn options(server: &Scripted) -> Options {
    Options {
        token: Some(TOKEN.to_owned()),
        inputs: object(&json!({ "text": "Hello world" })),
        first_frame: Duration::from_millis(300),
        silence: Duration::from_millis(300),
        canceled: Duration::from_millis(500),
        // Many servers are checked at once here, on machines that build other things meanwhile.
        slack: Duration::from_secs(2),
        ..Options::new(&server.url)
    }
}

async fn checked(fault: &'static str, long: bool) -> Report {
    let server = Scripted::start(fault).await;
    let mut options = options(&server);
    if long {
        options.slow = true;
        options.slow_inputs = Some(object(&json!({ "text": "slow" })));
    }
    check(options).await.expect("the server answers")
}

/// Each fault breaks exactly these requirements.
async fn broken(faults: &[(&'static str, &[u16])], long: bool) {
    let reports = join_all(faults.iter().map(|(fault, _)| checked(fault, long))).await;
    for ((fault, expected), report) in faults.iter().zip(reports) {
        assert_eq!(report.failed(), *expected, "{fault}\n{report}");
    }
}

fn skipped(report: &Report) -> Vec<u16> {
    let rows = report.rows().iter();
    rows.filter(|row| matches!(row.verdict, Verdict::NotApplicable(_))).map(|r| r.number).collect()
}

#[tokio::test]
async fn a_server_without_a_fault_keeps_every_requirement() {
    let report = checked("none", true).await;
    assert!(report.passed(), "{report}");
    assert_eq!(skipped(&report), [0; 0], "{report}");
    let json = report.to_json();
    assert_eq!(json["protocol"], "run-protocol");
    assert_eq!(json["counts"]["skipped"], 0);
    let rule = |row: usize| json["requirements"][row]["rule"].as_str();
    assert_eq!((rule(0), rule(2)), (Some("seed"), Some("addition")));
}

#[tokio::test]
async fn what_needs_time_is_skipped_unless_it_is_asked_for() {
    let report = checked("none", false).await;
    assert!(report.passed(), "{report}");
    assert_eq!(skipped(&report), [3, 13, 19, 20], "{report}");
}

#[tokio::test]
async fn the_original_protocol_is_checked_without_additions() {
    let server = Scripted::start("no-additions").await;
    let seed = Options { profile: Profile::Seed, ..options(&server) };
    let report = check(seed).await.expect("the server answers");
    assert!(report.passed(), "{report}");
    assert!(report.rows().iter().all(|row| !row.addition));
    let full = check(options(&server)).await.expect("the server answers");
    assert!(full.failed().contains(&17), "{full}");
}

#[tokio::test]
async fn rows_are_told_as_they_come_and_agree_with_the_report() {
    let server = Scripted::start("opens-docs").await;
    let mut told = std::collections::BTreeMap::new();
    let report = check_aloud(options(&server), |row: Row| {
        told.insert(row.number, row.verdict);
    });
    let report = report.await.expect("the server answers");
    for row in report.rows() {
        let known = !matches!(row.verdict, Verdict::NotApplicable(_));
        assert_eq!(told.get(&row.number), known.then_some(&row.verdict), "{row}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_does_not_hold_up_what_is_known_already() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let serving = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            if head.starts_with("GET /run") {
                // Whoever wants a run waits for ever.
                open.push(stream);
                continue;
            }
            let body = r#"{"ok":true}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let hour = Duration::from_secs(3_600);
    let slow = Options { reply: hour, ..Options::new(&url) };
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let checking =
        tokio::spawn(
            async move { check_aloud(slow, |row: Row| drop(tell.send(row))).await.is_ok() },
        );
    let first = tokio::time::timeout(Duration::from_secs(60), told.recv()).await;
    let first = first.expect("before the check is over").expect("a row");
    assert_eq!(first.number, 1, "{first}");
    assert!(first.to_string().starts_with("T1    fail"), "{first}");
    checking.abort();
    serving.abort();
}

#[tokio::test]
async fn where_nobody_listens_there_is_no_report() {
    let gone = Scripted::start("none").await.stop().await;
    assert!(matches!(check(Options::new(gone)).await, Err(Error::Unreachable { .. })));
    assert!(matches!(check(Options::new("ftp://x")).await, Err(Error::Address { .. })));
}

#[tokio::test]
async fn t001_faults_of_health_are_found() {
    let faults: &[(_, &[u16])] = &[
        ("health-without-digest", &[1]),
        ("health-takes-any-method", &[1]),
        ("opens-docs", &[1]),
        ("health-waits-for-runs", &[1]),
    ];
    broken(faults, false).await;
}

#[tokio::test]
async fn t002_faults_of_the_handshake_are_found() {
    let faults: &[(_, &[u16])] = &[
        ("takes-any-subprotocol", &[2]),
        ("echoes-nothing", &[2]),
        ("compares-without-case", &[2]),
        ("takes-no-list", &[2]),
        ("run-without-upgrade", &[2]),
    ];
    broken(faults, false).await;
}

#[tokio::test]
async fn t003_a_patient_server_is_found() {
    broken(&[("waits-for-the-first-frame", &[3])], true).await;
}

#[tokio::test]
async fn t004_faults_of_modes_are_found() {
    broken(&[("runs-unknown-modes", &[4]), ("real-by-default", &[4])], false).await;
}

#[tokio::test]
async fn t005_wrong_close_codes_are_found() {
    let faults: &[(_, &[u16])] = &[
        ("closes-with-one-code", &[5]),
        ("drops-after-a-binary-frame", &[5]),
        ("closes-without-a-reason", &[5]),
        ("takes-frames-of-any-size", &[5]),
        ("takes-an-empty-run-id", &[5]),
    ];
    broken(faults, false).await;
}

#[tokio::test]
async fn t006_faults_of_inputs_are_found() {
    let faults: &[(_, &[u16])] =
        &[("refuses-null", &[6]), ("takes-lists-as-inputs", &[6]), ("starts-before-looking", &[6])];
    broken(faults, false).await;
}

#[tokio::test]
async fn t007_faults_of_the_ack_are_found() {
    let faults: &[(_, &[u16])] = &[
        ("no-ack", &[7]),
        ("two-acks", &[7]),
        ("ack-of-another-run", &[7]),
        ("ack-waits-for-a-worker", &[7]),
    ];
    broken(faults, false).await;
}

#[tokio::test]
async fn t008_faults_of_logs_and_events_are_found() {
    let faults: &[(_, &[u16])] = &[
        ("unknown-level", &[8]),
        ("milliseconds", &[8]),
        ("unknown-phase", &[8]),
        ("progress-beyond-one", &[8]),
        ("log-of-another-run", &[8]),
    ];
    broken(faults, false).await;
}

#[tokio::test]
async fn t009_faults_of_partial_outputs_are_found() {
    broken(&[("deltas", &[9]), ("partial-lists", &[9])], false).await;
}

#[tokio::test]
async fn t010_faults_of_the_end_are_found() {
    let faults: &[(_, &[u16])] = &[
        ("no-final", &[10]),
        ("two-finals", &[10]),
        ("log-after-the-final", &[10]),
        ("closes-with-1001", &[10]),
        ("drops-after-the-final", &[10]),
        ("error-beside-success", &[10]),
        ("unknown-status", &[10]),
        ("error-without-code", &[10]),
    ];
    broken(faults, false).await;
}

#[tokio::test]
async fn t011_wrong_costs_are_found() {
    broken(&[("fraction-of-a-cost", &[11]), ("no-cost", &[11])], false).await;
}

#[tokio::test]
async fn t012_frames_that_are_not_json_are_found() {
    broken(&[("not-a-number", &[12]), ("binary-log", &[12])], false).await;
}

#[tokio::test]
async fn t013_silence_is_found() {
    broken(&[("never-shows-life", &[13])], true).await;
}

#[tokio::test]
async fn t014_unsafe_texts_are_found() {
    broken(&[("stack-trace", &[14]), ("names-a-file", &[14])], false).await;
}

#[tokio::test]
async fn t017_faults_of_repeated_requests_are_found() {
    let faults: &[(_, &[u16])] = &[
        ("no-numbers", &[17]),
        ("runs-conflicts", &[17]),
        ("ignores-after", &[17]),
        ("minds-signatures", &[17]),
        ("refuses-attempts", &[17]),
        // Whoever runs each request anew shows two connections two runs.
        ("runs-anew", &[17, 18]),
    ];
    broken(faults, false).await;
    broken(&[("keeps-older-attempts", &[17])], true).await;
}

#[tokio::test]
async fn t018_refusing_a_second_connection_is_found() {
    broken(&[("one-watcher", &[18])], false).await;
}

#[tokio::test]
async fn t019_faults_of_canceling_are_found() {
    let faults: &[(_, &[u16])] =
        &[("no-preempted", &[19]), ("dies-with-its-connection", &[19]), ("ignores-cancel", &[19])];
    broken(faults, true).await;
}

#[tokio::test]
async fn t020_a_run_beyond_its_deadline_is_found() {
    broken(&[("ignores-deadlines", &[20]), ("cancels-at-deadlines", &[20])], true).await;
}

#[tokio::test]
async fn t022_faults_of_the_token_are_found() {
    broken(&[("takes-any-token", &[22]), ("refuses-with-403", &[22])], false).await;
}

#[tokio::test]
async fn t024_fetching_what_is_not_listed_is_found() {
    broken(&[("fetches-everything", &[24]), ("refuses-unlisted", &[24])], false).await;
}

#[tokio::test]
async fn t025_addresses_out_of_bounds_are_found() {
    broken(&[("fetches-from-loopback", &[25]), ("writes-anywhere", &[25])], false).await;
}

#[tokio::test]
async fn t026_paths_out_of_bounds_are_found() {
    broken(&[("reads-any-path", &[26]), ("writes-any-path", &[26])], false).await;
}

#[tokio::test]
async fn t028_unknown_destinations_are_found() {
    broken(&[("writes-to-ftp", &[28]), ("starts-before-checking", &[28])], false).await;
}
