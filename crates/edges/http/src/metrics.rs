//! Metrics and their text form. Labels are routes, codes, and a bounded number of names of tools,
//! worlds and providers; never ids of runs or values.

mod process;

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use wharf_engine::Handle;
use wharf_vocab::Fault;

const REQUEST_SECONDS: &str = "wharf_http_request_seconds";
const RUN_SECONDS: &str = "wharf_run_seconds";
const RUN_WAIT_SECONDS: &str = "wharf_run_wait_seconds";
const GROUP_BATCHES: &str = "wharf_store_group_batches";

/// From a tenth of a millisecond, which a request in memory takes, to the longest wait.
const SECONDS: [f64; 14] =
    [0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];

/// From what a tool in the core takes to a working day.
const RUN_STEPS: [f64; 15] = [
    0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 28_800.0,
];

/// Each twice the one before, up to the most that share a commit.
const BATCHES: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Begins to record metrics in this process; later calls change nothing.
pub fn install() {
    recorder();
}

fn recorder() -> &'static PrometheusHandle {
    RECORDER.get_or_init(|| {
        let recorder = with_buckets().unwrap_or_else(|error| {
            tracing::warn!(%error, "histograms are recorded without buckets");
            PrometheusBuilder::new()
        });
        let recorder = recorder.build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("this process records its metrics elsewhere; /metrics stays empty");
        }
        describe();
        handle
    })
}

/// Every histogram has fixed steps: without them quantiles of this process alone would be told,
/// which cannot be added up.
fn with_buckets() -> Result<PrometheusBuilder, BuildError> {
    let named = |name: &str| Matcher::Full(name.to_owned());
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(named(RUN_SECONDS), &RUN_STEPS)?
        .set_buckets_for_metric(named(RUN_WAIT_SECONDS), &RUN_STEPS)?
        .set_buckets_for_metric(named(GROUP_BATCHES), &BATCHES)
}

/// What is counted in this process, wherever that is.
const COUNTERS: [(&str, &str); 30] = [
    ("wharf_runs_created_total", "Runs accepted, by tool and world."),
    ("wharf_runs_ended_total", "Runs ended, by tool, world and status."),
    ("wharf_run_cost_micro_total", "What runs that ended cost, by tool and world."),
    ("wharf_provider_launches_total", "Processes of providers that were started."),
    ("wharf_provider_crashes_total", "Processes that ended by themselves or could not start."),
    ("wharf_runs_purged_total", "Runs that were removed."),
    ("wharf_store_failed_groups_total", "Group commits that failed."),
    ("wharf_store_groups_again_total", "Group commits tried again: others were in the way."),
    ("wharf_store_lost_connections_total", "Connections to the database lost by a lane."),
    ("wharf_store_rewound_shards_total", "Parts of a database that came back with less."),
    ("wharf_artifact_damaged_total", "Whole reads of files that were not what was written."),
    ("wharf_artifact_presigns_total", "Addresses of files given out, by method."),
    ("wharf_artifact_bytes_read_total", "Bytes of files read through the core."),
    ("wharf_artifact_bytes_written_total", "Bytes of files written through the core."),
    ("wharf_artifact_leftovers_total", "Objects that nobody knew and that were cleared away."),
    ("wharf_artifact_leftover_bytes_total", "Bytes of objects that were cleared away so."),
    ("wharf_tool_ignored_total", "Frames of the tool protocol that were ignored, by what."),
    ("wharf_agent_violations_total", "Breaches of the agent protocol, by breach."),
    ("wharf_agent_late_results_total", "Results of agents that came too late and were dropped."),
    ("wharf_mcp_stray_lines_total", "Lines of MCP servers that were no messages."),
    ("wharf_telemetry_spans_exported_total", "Spans that the collector of traces took."),
    ("wharf_telemetry_spans_dropped_total", "Spans that nobody will see, by why."),
    ("wharf_notification_tries_total", "Tries to bring a notification, by what came of it."),
    ("wharf_trigger_firings_total", "What triggers owed because of files and runs, by result."),
    ("wharf_trigger_calls_total", "Calls of hooks, by what came of them."),
    (
        "wharf_schedule_firings_total",
        "Times of schedules that were dealt with, by what came of it.",
    ),
    ("wharf_http_events_total", "Events sent on event streams."),
    ("wharf_http_requests_total", "Requests by route, method and status."),
    ("wharf_http_denied_total", "Requests refused by host, origin or token."),
    (
        "wharf_http_connections_full_total",
        "Times that new connections had to wait because too many were open.",
    ),
];
const GAUGES: [(&str, &str); 25] = [
    ("wharf_store_queue_jobs", "Calls that wait for the writer of the store."),
    ("wharf_tool_peers", "Open connections of the tool protocol, by role."),
    ("wharf_agent_connections", "Open connections of agents."),
    ("wharf_http_requests_in_flight", "Requests that are not answered yet."),
    ("wharf_http_connections", "Open connections."),
    ("wharf_http_event_streams", "Open event streams."),
    ("wharf_runs_open", "Runs that are not over."),
    ("wharf_held_bytes", "Memory that open runs and attempts under way take."),
    ("wharf_attempts_running", "Attempts at work."),
    ("wharf_inputs_waiting", "Inputs that wait for the engine."),
    ("wharf_world_limit_micro", "The most that runs of a world may cost; +Inf for no limit."),
    ("wharf_world_spent_micro", "What runs of a world have cost."),
    ("wharf_world_held_micro", "What is set aside for runs of a world."),
    ("wharf_world_files", "Files of a world."),
    ("wharf_world_bytes", "Bytes of a world's files."),
    ("wharf_asks_open", "Questions and approvals that wait for somebody."),
    ("wharf_ask_oldest_seconds", "How long the oldest of them has waited; 0 if there is none."),
    ("wharf_provider_state", "1 for the state a provider is in, 0 for all others."),
    ("wharf_provider_processes", "Processes of a provider that run."),
    ("wharf_provider_runs", "Runs of a provider that are not over, by how they stand."),
    ("wharf_telemetry_queue_runs", "Runs that wait to be told to the collector of traces."),
    ("wharf_store_bytes", "The size of the database's file."),
    ("wharf_store_free_bytes", "How much of it nothing uses."),
    ("wharf_store_log_bytes", "What was committed and is not yet moved into it."),
    ("wharf_build_info", "Always 1; the label says which version runs."),
];
const HISTOGRAMS: [(&str, &str); 5] = [
    (RUN_SECONDS, "Time from a run's acceptance to its end, by tool."),
    (RUN_WAIT_SECONDS, "Time from a run's acceptance to its first attempt, by tool."),
    ("wharf_store_commit_seconds", "Time of one group commit, flush included."),
    (GROUP_BATCHES, "Batches that shared one group commit."),
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
    gauge!("wharf_runs_open").set(handle.run_lists().open_count() as f64);
    #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 bytes of memory")]
    gauge!("wharf_held_bytes").set(handle.held_bytes() as f64);
    gauge!("wharf_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    recorder.run_upkeep();
    let mut text = recorder.render();
    process::write(&mut text);
    text
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
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

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

    /// What a core can serve.
    fn served() -> BTreeSet<String> {
        let all = COUNTERS.iter().chain(&GAUGES).chain(&HISTOGRAMS).map(|(name, _)| *name);
        all.chain(process::NAMES).map(str::to_owned).collect()
    }

    /// Words of a text that are names of metrics, without what histograms add to theirs.
    fn mentioned(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names = words.filter(|it| it.starts_with("wharf_") || it.starts_with("process_"));
        let plain = |name: &str| {
            let ends = ["_bucket", "_sum", "_count"];
            let base = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            base.to_owned()
        };
        names.map(plain).collect()
    }

    #[test]
    fn the_table_in_the_docs_names_what_a_core_serves_and_nothing_else() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let page = std::fs::read_to_string(root.join("docs/operations.md")).expect("a page");
        let rows = page
            .lines()
            .filter(|line| line.starts_with("| `wharf_") || line.starts_with("| `process_"));
        let names = rows.map(|row| row.split('|').nth(1).unwrap_or_default());
        let table = mentioned(&names.collect::<Vec<_>>().join(" "));
        assert_eq!(table, served());
    }

    #[test]
    fn every_metric_of_the_dashboard_and_the_alerts_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy");
        for (file, least) in [("grafana/wharf.json", 30), ("prometheus/alerts.yml", 10)] {
            let text = std::fs::read_to_string(root.join(file)).expect("a file");
            if let Some(json) =
                file.ends_with("json").then(|| serde_json::from_str::<serde_json::Value>(&text))
            {
                assert!(json.is_ok_and(|it| it["panels"].is_array()), "{file} is no dashboard");
            }
            let named = mentioned(&text);
            let unknown: Vec<_> = named.difference(&served()).cloned().collect();
            assert_eq!(unknown, [""; 0], "in {file}");
            assert!(named.len() >= least, "{file}: {named:?}");
        }
    }
}
