//! A collector that is in trouble: nothing waits for it, and what is lost is counted.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde_json::json;

use crate::stage::{Stage, new, options};
use wharf_testkit::collector::{Collector, Reply};

/// How many spans were dropped for a reason, in this process.
fn dropped(reason: &str) -> u64 {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    let recorder = RECORDER
        .get_or_init(|| PrometheusBuilder::new().install_recorder().expect("the only recorder"));
    let text = recorder.render();
    let named = format!("wharf_telemetry_spans_dropped_total{{reason=\"{reason}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&named));
    line.map_or(0, |count| count.parse().expect("a count"))
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_busy_is_asked_again_and_gets_everything_once() {
    let replies = [Reply::Refuse(503), Reply::Refuse(429)];
    let collector = Collector::new(&replies);
    let stage = Stage::new(&collector.url).await;
    stage.finish(new("wharf/echo", json!({"text": "a"}))).await;
    let spans = collector.until(2);
    assert_eq!((spans.len(), collector.tries()), (2, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collector_does_not_want_is_counted_and_what_comes_next_arrives() {
    dropped("failed");
    let collector = Collector::new(&[Reply::Refuse(400), Reply::TakeBut(1)]);
    let mut set = options(&collector.url, 1.0);
    set.endpoint = set.endpoint.with_header("x-key", "k1").expect("a header");
    let stage = Stage::with(set).await;
    stage.finish(new("wharf/echo", json!({"text": "a"}))).await;
    until("nothing was dropped", || dropped("failed") == 2).await;
    stage.finish(new("wharf/echo", json!({"text": "b"}))).await;
    assert_eq!(collector.until(2).len(), 2, "the first were not sent again");
    until("nothing was rejected", || dropped("rejected") == 1).await;
    assert_eq!(collector.header("x-key").as_deref(), Some("k1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_that_stops_exports_what_it_has_and_does_not_wait_for_long() {
    dropped("stop");
    let collector = Collector::new(&[]);
    let stage = Stage::new(&collector.url).await;
    stage.finish(new("wharf/echo", json!({"text": "a"}))).await;
    stage.task.stop(Duration::from_secs(20)).await;
    assert_eq!(collector.spans().len(), 2, "it was told before the core ended");

    let silent = Collector::new(&[Reply::Silence, Reply::Silence]);
    let stage = Stage::new(&silent.url).await;
    let begun = Instant::now();
    stage.finish(new("wharf/echo", json!({"text": "b"}))).await;
    until("nothing was tried", || silent.tries() > 0).await;
    stage.task.stop(Duration::from_millis(300)).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    until("nothing was given up", || dropped("stop") >= 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_says_whether_traces_are_taken() {
    let collector = Collector::new(&[]);
    wharf_telemetry::probe(options(&collector.url, 1.0)).await.expect("taken");
    let wrong = format!("{}/elsewhere", collector.url);
    let why = wharf_telemetry::probe(options(&wrong, 1.0)).await.expect_err("refused");
    assert_eq!(why, "it answered HTTP 404");
    let nobody = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", socket.local_addr().expect("bound"))
    };
    let why = wharf_telemetry::probe(options(&nobody, 1.0)).await.expect_err("nobody is there");
    assert!(why.contains("refused"), "{why}");
}
