//! What is kept of a program's output, and what is not.

use std::fs;
use std::time::Duration;

use crate::support::{Bench, DEADLINE, ended, eventually, log_path, output, texts};
use futures::StreamExt;
use tokio::time::timeout;
use wharf_ports::launcher::{ExitHow, Launcher, LogSource};
use wharf_vocab::limits::{LOG_BYTES_MAX, LOG_LINE_BYTES_MAX, LOG_LINES_KEPT_MAX};

#[tokio::test]
async fn output_is_kept_with_its_source_and_ends_with_how_it_ended() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["say", "one", "two"])).await;
    ended(launched.exited()).await;
    let lines = launched.tail(9).await.expect("reads");
    assert_eq!(texts(&lines), ["one", "two", "[ended with exit code 0]"]);
    let sources: Vec<_> = lines.iter().map(|line| line.source).collect();
    assert_eq!(sources, [LogSource::Stdout, LogSource::Stdout, LogSource::Launcher]);
    assert!(lines.iter().all(|line| line.at.0 > 1_600_000_000_000));
    assert_eq!(texts(&launched.tail(1).await.expect("reads")), ["[ended with exit code 0]"]);
}

#[tokio::test]
async fn the_last_line_on_standard_error_explains_an_exit() {
    let bench = Bench::new();
    let (exit, _) = bench.run(&["complain", "warming up", "ValueError: boom", " "]).await;
    assert_eq!(exit.last_stderr.as_deref(), Some("ValueError: boom"));
    assert_eq!(exit.to_string(), "exit code 0: ValueError: boom");
    let (exit, _) = bench.run(&["say", "not an error"]).await;
    assert_eq!(exit.last_stderr, None);
}

#[tokio::test]
async fn a_log_outlives_its_launch_its_handle_and_its_launcher() {
    let bench = Bench::new();
    let spec = bench.spec(&["say", "still here"]);
    let path = log_path(&spec);
    let launched = bench.launch(spec).await;
    ended(launched.exited()).await;
    drop(launched);
    let later = Bench::new();
    let lines = later.launcher.tail(&path, 9).await.expect("reads");
    assert_eq!(texts(&lines), ["still here", "[ended with exit code 0]"]);
    let missing = bench.dir.path().join("never.log");
    assert_eq!(later.launcher.tail(&missing, 9).await.expect("reads"), []);
}

#[tokio::test]
async fn more_lines_than_memory_holds_come_from_the_file() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["count", "3000"])).await;
    ended(launched.exited()).await;
    let lines = output(&*launched).await;
    let expect: Vec<String> = (1..=3000).map(|n| n.to_string()).collect();
    assert_eq!(lines, expect);
    let kept = launched.follow(usize::MAX).collect::<Vec<_>>().await;
    assert_eq!(kept.len(), LOG_LINES_KEPT_MAX);
    assert_eq!(&*kept[LOG_LINES_KEPT_MAX - 2].text, "3000");
}

#[tokio::test]
async fn following_sees_every_line_as_it_comes_and_then_the_end() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["polite"])).await;
    let mut lines = launched.follow(usize::MAX);
    let mut next = async || timeout(DEADLINE, lines.next()).await.expect("in time");
    assert_eq!(next().await.map(|line| line.text.to_string()).as_deref(), Some("ready"));
    drop(launched.stop(DEADLINE));
    assert_eq!(next().await.map(|line| line.text.to_string()).as_deref(), Some("heard TERM"));
    let last = next().await.expect("a line");
    assert_eq!(&*last.text, "[ended with exit code 7]");
    assert_eq!(next().await, None);
}

#[tokio::test]
async fn a_long_line_is_cut_and_control_characters_are_kept() {
    let bench = Bench::new();
    let long = "x".repeat(LOG_LINE_BYTES_MAX + 1);
    let exact = "y".repeat(LOG_LINE_BYTES_MAX);
    let spec = bench.spec(&["say", &long, &exact, "\u{1b}[31mred\u{7}\r"]);
    let path = log_path(&spec);
    let launched = bench.launch(spec).await;
    ended(launched.exited()).await;
    let lines = output(&*launched).await;
    assert_eq!(lines[0], "x".repeat(LOG_LINE_BYTES_MAX - 6) + " [cut]");
    assert_eq!(lines[1], exact);
    assert_eq!(lines[2], "\u{1b}[31mred\u{7}\r");
    assert!(fs::read_to_string(path).expect("reads").contains("\u{1b}[31mred\u{7}\r\n"));
}

#[tokio::test]
async fn secrets_stand_nowhere_however_they_are_written() {
    let bench = Bench::new();
    let secret = "tok-ABCDEFGHIJKLMNOP-0123456789";
    let near = format!("{}!", &secret[..secret.len() - 1]);
    let all = format!("a {secret} b {near} c {secret}{secret}");
    for behaviour in ["drip", "say", "complain"] {
        let mut spec = bench.spec(&[behaviour, &all]);
        spec.secrets = vec![secret.to_owned()];
        let path = log_path(&spec);
        let launched = bench.launch(spec).await;
        let exit = ended(launched.exited()).await;
        let lines = output(&*launched).await;
        let expect = format!("a [redacted] b {near} c [redacted][redacted]");
        assert_eq!(lines[0], expect, "{behaviour}");
        assert!(!format!("{exit:?} {launched:?}").contains(secret));
        assert!(!fs::read_to_string(path).expect("reads").contains(secret), "{behaviour}");
    }
}

#[tokio::test]
async fn a_flood_blocks_nobody_and_grows_nothing() {
    let bench = Bench::new();
    let spec = bench.spec(&["flood"]);
    let path = log_path(&spec);
    let before = path.with_extension("log.1");
    let launched = bench.launch(spec).await;
    let size = |path: &std::path::Path| fs::metadata(path).map_or(0, |meta| meta.len());
    let mut turned = Vec::new();
    eventually("the log has turned three times", || {
        let total = size(&path) + size(&before);
        assert!(total <= LOG_BYTES_MAX, "{total}");
        if let Ok(meta) = fs::metadata(&before) {
            let number = std::os::unix::fs::MetadataExt::ino(&meta);
            if turned.last() != Some(&number) {
                turned.push(number);
            }
        }
        turned.len() >= 3
    })
    .await;
    // While it floods, other launches start, speak and end.
    let (exit, lines) = bench.run(&["say", "undisturbed"]).await;
    assert_eq!((exit.how, lines), (ExitHow::Code(0), vec!["undisturbed".to_owned()]));
    assert_eq!(launched.tail(10).await.expect("reads").len(), 10);
    // A reader that never reads does not matter either.
    let idle = launched.follow(usize::MAX);
    assert_eq!(ended(launched.kill()).await.how, ExitHow::Signal(9));
    let kept = timeout(DEADLINE, idle.collect::<Vec<_>>()).await.expect("ends");
    assert!(kept.len() <= LOG_LINES_KEPT_MAX + 2, "{}", kept.len());
    assert!(size(&path) + size(&before) <= LOG_BYTES_MAX);
}

#[tokio::test]
async fn a_full_disk_costs_the_log_and_nothing_else() {
    let bench = Bench::new();
    let mut spec = bench.spec(&["say", "one", "two"]);
    spec.log.path = bench.dir.path().join("full.log");
    std::os::unix::fs::symlink("/dev/full", &spec.log.path).expect("links");
    let launched = bench.launch(spec).await;
    assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(0));
    assert_eq!(output(&*launched).await, ["one", "two"], "memory has it");
}

#[tokio::test]
async fn a_line_can_be_read_as_soon_as_it_is_whole() {
    let bench = Bench::new();
    let launched = bench.launch(bench.spec(&["stubborn"])).await;
    let mut lines = launched.follow(1);
    let first = timeout(DEADLINE, lines.next()).await.expect("in time").expect("a line");
    assert_eq!(&*first.text, "ready");
    drop(launched);
    let rest = timeout(DEADLINE + Duration::from_secs(1), lines.collect::<Vec<_>>()).await;
    assert_eq!(texts(&rest.expect("ends")), ["[ended with signal 9 (KILL)]"]);
}
