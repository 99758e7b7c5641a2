//! Metrics of the edge, and their text form. Labels are routes and codes, never ids or values.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use wharf_engine::Handle;
use wharf_vocab::Fault;

const REQUEST_SECONDS: &str = "wharf_http_request_seconds";

/// From a tenth of a millisecond, which a request in memory takes, to the longest wait.
const SECONDS: [f64; 14] =
    [0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Begins to record metrics in this process; later calls change nothing.
pub fn install() {
    recorder();
}

fn recorder() -> &'static PrometheusHandle {
    RECORDER.get_or_init(|| {
        let builder = PrometheusBuilder::new();
        let seconds = Matcher::Suffix("_seconds".to_owned());
        let builder = builder.set_buckets_for_metric(seconds, &SECONDS).unwrap_or_else(|error| {
            tracing::warn!(%error, "histograms are recorded without buckets");
            PrometheusBuilder::new()
        });
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("this process records its metrics elsewhere; /metrics stays empty");
        }
        describe();
        handle
    })
}

/// What is counted in this process, wherever that is.
const COUNTERS: [(&str, &str); 16] = [
    ("wharf_runs_created_total", "Runs accepted."),
    ("wharf_runs_ended_total", "Runs ended, by status."),
    ("wharf_store_failed_groups_total", "Group commits that failed."),
    ("wharf_artifact_damaged_total", "Whole reads of files that were not what was written."),
    ("wharf_artifact_presigns_total", "Addresses of files given out, by method."),
    ("wharf_artifact_bytes_read_total", "Bytes of files read through the core."),
    ("wharf_artifact_bytes_written_total", "Bytes of files written through the core."),
    ("wharf_artifact_leftovers_total", "Objects that nobody knew and that were cleared away."),
    ("wharf_artifact_leftover_bytes_total", "Bytes of objects that were cleared away so."),
    ("wharf_tool_ignored_total", "Frames of the tool protocol that were ignored, by what."),
    ("wharf_agent_violations_total", "Breaches of the agent protocol, by breach."),
    ("wharf_agent_late_results_total", "Results of agents that came too late and were dropped."),
    ("wharf_http_events_total", "Events sent on event streams."),
    ("wharf_http_requests_total", "Requests by route, method and status."),
    ("wharf_http_denied_total", "Requests refused by host, origin or token."),
    (
        "wharf_http_connections_full_total",
        "Times that new connections had to wait because too many were open.",
    ),
];
const GAUGES: [(&str, &str); 9] = [
    ("wharf_store_queue_jobs", "Calls that wait for the writer of the store."),
    ("wharf_tool_peers", "Open connections of the tool protocol, by role."),
    ("wharf_agent_connections", "Open connections of agents."),
    ("wharf_http_requests_in_flight", "Requests that are not answered yet."),
    ("wharf_http_connections", "Open connections."),
    ("wharf_http_event_streams", "Open event streams."),
    ("wharf_runs_open", "Runs that are not over."),
    ("wharf_held_bytes", "Memory that open runs and attempts under way take."),
    ("wharf_build_info", "Always 1; the label says which version runs."),
];
const HISTOGRAMS: [(&str, &str); 3] = [
    ("wharf_store_commit_seconds", "Time of one group commit, flush included."),
    ("wharf_store_group_batches", "Batches that shared one group commit."),
    (REQUEST_SECONDS, "Time until a request was answered, by route."),
];

fn describe() {
    for (name, help) in COUNTERS {
        describe_counter!(name, help);
    }
    for (name, help) in GAUGES {
        describe_gauge!(name, help);
    }
    for (name, help) in HISTOGRAMS {
        describe_histogram!(name, help);
    }
}

/// Everything that is recorded, as Prometheus reads it.
pub(crate) fn render(handle: &Handle) -> String {
    let recorder = recorder();
    #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 open runs")]
    gauge!("wharf_runs_open").set(handle.runs().open_count() as f64);
    #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 bytes of memory")]
    gauge!("wharf_held_bytes").set(handle.held_bytes() as f64);
    gauge!("wharf_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    recorder.run_upkeep();
    recorder.render()
}

/// A request was answered.
pub(crate) fn request(method: &Method, route: &'static str, status: StatusCode, took: Duration) {
    let method = method_label(method);
    let code = status.as_str().to_owned();
    counter!("wharf_http_requests_total", "method" => method, "route" => route, "status" => code)
        .increment(1);
    histogram!(REQUEST_SECONDS, "route" => route).record(took.as_secs_f64());
    let (status, took_us) = (status.as_u16(), took.as_micros());
    tracing::debug!(method, route, status, took_us, "answered");
}

/// A request was refused before it reached its route.
pub(crate) fn denied(fault: &Fault) {
    counter!("wharf_http_denied_total", "code" => fault.code.as_str().to_owned()).increment(1);
}

/// Too many connections are open to accept another one.
pub(crate) fn connections_full() {
    counter!("wharf_http_connections_full_total").increment(1);
}

/// Methods that can be made up by peers must not become labels.
pub(crate) fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Something that is counted while it lives.
#[derive(Debug)]
pub(crate) struct Gauge(&'static str);

impl Gauge {
    pub(crate) fn up(name: &'static str) -> Self {
        gauge!(name).increment(1.0);
        Self(name)
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        gauge!(self.0).decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("listed").path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with("tests") {
                sources(&path, found);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                found.push(path);
            }
        }
    }

    /// What stands in quotes in a text and looks like the name of a metric.
    fn names(text: &str) -> impl Iterator<Item = String> {
        let rest = text.split("\"wharf_").skip(1).filter_map(|rest| rest.split('"').next());
        let fits = |rest: &&str| rest.bytes().all(|byte| matches!(byte, b'_' | b'a'..=b'z'));
        rest.filter(fits).filter(|rest| rest.contains('_')).map(|rest| format!("wharf_{rest}"))
    }

    #[test]
    fn every_metric_of_every_crate_is_explained_and_stands_in_the_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut files = Vec::new();
        sources(&root.join("crates"), &mut files);
        assert!(files.len() > 500, "{}", files.len());
        let table = std::fs::read_to_string(root.join("docs/operations.md")).expect("a page");
        let own = include_str!("metrics.rs");
        let mut seen = 0;
        for file in files {
            let text = std::fs::read_to_string(&file).expect("text");
            if !["counter!(", "gauge!(", "histogram!("].iter().any(|made| text.contains(made)) {
                continue;
            }
            for name in names(&text) {
                let shown = file.display();
                assert!(own.contains(&format!("\"{name}\"")), "{name} of {shown} has no HELP");
                assert!(table.contains(&name), "{name} of {shown} is not in docs/operations.md");
                seen += 1;
            }
        }
        assert!(seen > 20, "{seen}");
    }
}
