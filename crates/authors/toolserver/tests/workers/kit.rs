//! What the tests share: handlers from text, runs, and a look at processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wharf_toolserver::transfer::{FileTransfer, Policy, RunFiles};
use wharf_toolserver::worker::{Apart, ExecHandler, PythonHandler, WorkerSettings};
use wharf_toolserver::{Call, Done, Failure, Handler, Report, Reporter};
use wharf_wire::run_v1::{Mode, RequestControl, RunRequest};

/// How long anything may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A handler in a folder of its own.
pub(crate) struct Tool {
    pub(crate) folder: TempDir,
    pub(crate) handler: Arc<dyn Handler>,
    transfer: FileTransfer,
}

/// How a run went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) done: Done,
    pub(crate) reports: Vec<Report>,
}

/// A run that may still go on.
pub(crate) struct Running {
    pub(crate) cancel: CancellationToken,
    pub(crate) reports: mpsc::Receiver<Report>,
    pub(crate) task: tokio::task::JoinHandle<Done>,
    pub(crate) files: Arc<RunFiles>,
    pub(crate) spent: tokio::sync::watch::Receiver<u64>,
}

/// A folder for a tool, and settings that keep its runs apart.
fn apart() -> (TempDir, WorkerSettings) {
    let folder = TempDir::new().expect("a folder");
    let others = [folder.path().join("artifacts")];
    let apart = Apart::new(folder.path().join("scratch"), others);
    (folder, WorkerSettings { apart: Some(apart), ..WorkerSettings::default() })
}

impl Tool {
    /// A warm Python handler.
    pub(crate) fn python(text: &str) -> Self {
        Self::python_with(text, false, WorkerSettings::default())
    }

    pub(crate) fn python_with(text: &str, cold: bool, settings: WorkerSettings) -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("handler.py");
        std::fs::write(&file, text).expect("a handler");
        Self::of_file(folder, file, cold, settings)
    }

    /// A Python handler whose runs are kept apart.
    pub(crate) fn python_apart(text: &str, cold: bool) -> Self {
        let (folder, settings) = apart();
        let file = folder.path().join("handler.py");
        std::fs::write(&file, text).expect("a handler");
        Self::of_file(folder, file, cold, settings)
    }

    /// A TypeScript handler, with the files beside it, whose runs are kept apart.
    #[cfg(feature = "node")]
    pub(crate) fn node(files: &[(&str, &str)], mut settings: WorkerSettings) -> Self {
        let (folder, kept_apart) = apart();
        settings.apart = kept_apart.apart;
        for (name, text) in files {
            write(&folder.path().join("tool"), name, text);
        }
        let file = folder.path().join("tool").join(files[0].0);
        let handler = wharf_toolserver::worker::NodeHandler::new(file, "node", settings)
            .expect("a handler")
            .with_keeper(env!("CARGO_BIN_EXE_wharf-toolserver-keeper"));
        Self::of(folder, Arc::new(handler))
    }

    /// A program whose runs are kept apart.
    pub(crate) fn program_apart(text: &str) -> Self {
        let (folder, settings) = apart();
        std::fs::write(folder.path().join("program.py"), text).expect("a program");
        let handler = ExecHandler::new(["python3", "-u", "program.py"], folder.path(), settings)
            .with_keeper(env!("CARGO_BIN_EXE_wharf-toolserver-keeper"));
        Self::of(folder, Arc::new(handler))
    }

    pub(crate) fn of_file(
        folder: TempDir,
        file: PathBuf,
        cold: bool,
        settings: WorkerSettings,
    ) -> Self {
        let handler = PythonHandler::new(file, "python3", cold, settings).expect("a handler");
        Self::of(folder, Arc::new(handler))
    }

    /// A program that is started for each run: a Python file that speaks the lines by itself.
    pub(crate) fn program(text: &str, settings: WorkerSettings) -> Self {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("program.py"), text).expect("a program");
        let handler = ExecHandler::new(["python3", "-u", "program.py"], folder.path(), settings)
            .with_keeper(env!("CARGO_BIN_EXE_wharf-toolserver-keeper"));
        Self::of(folder, Arc::new(handler))
    }

    pub(crate) fn of(folder: TempDir, handler: Arc<dyn Handler>) -> Self {
        let artifacts = folder.path().join("artifacts");
        let scratch = folder.path().join("scratch");
        std::fs::create_dir_all(&artifacts).expect("a folder of artifacts");
        std::fs::create_dir_all(&scratch).expect("a scratch folder");
        let policy = Policy { artifacts: Some(artifacts), scratch, ..Policy::default() };
        let transfer = FileTransfer::new(policy).expect("a transfer");
        Self { folder, handler, transfer }
    }

    pub(crate) async fn prepare(&self) -> Result<(), Failure> {
        tokio::time::timeout(PATIENCE, self.handler.prepare()).await.expect("ready in time")
    }

    pub(crate) fn start(&self, inputs: &Value, outputs: &Value) -> Running {
        let (sender, reports) = mpsc::channel(64);
        let report = Reporter::new(sender);
        let inputs = inputs.as_object().expect("inputs").clone();
        let outputs = outputs.as_object().expect("outputs").clone();
        let control = RequestControl::new("run-1", Mode::Real);
        let (asked_in, asked_out) = (inputs.clone(), outputs.clone());
        let request = RunRequest { control, inputs: asked_in, outputs: asked_out };
        let files = self.transfer.for_run(&request, report.clone());
        let files = Arc::new(files);
        let cancel = CancellationToken::new();
        let call = Call {
            run_id: "run-1".to_owned(),
            attempt: 1,
            traceparent: None,
            tracestate: None,
            mode: Mode::Real,
            inputs,
            outputs,
            files: Arc::clone(&files),
            steps: None,
            cancel: cancel.clone(),
        };
        let spent = report.follow_spent();
        let task = tokio::spawn(self.handler.run(call, report));
        Running { cancel, reports, task, files, spent }
    }

    /// Runs with inputs and no places.
    pub(crate) async fn run(&self, inputs: Value) -> Outcome {
        self.start(&inputs, &json!({})).end().await
    }
}

impl Running {
    /// Waits for the end, and for everything that was said until then.
    pub(crate) async fn end(mut self) -> Outcome {
        let all = async {
            let mut said = Vec::new();
            let mut done = self.task;
            // The files of a run may report too, so the end of reports does not come by itself.
            let done = loop {
                tokio::select! {
                    report = self.reports.recv() => said.extend(report),
                    done = &mut done => break done.expect("a handler does not panic"),
                }
            };
            while let Ok(report) = self.reports.try_recv() {
                said.push(report);
            }
            Outcome { done, reports: said }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("an end in time")
    }

    /// Waits for a line that starts so, and gives the rest of it.
    pub(crate) async fn line(&mut self, start: &str) -> String {
        let found = async {
            loop {
                match self.reports.recv().await.expect("the line before the end") {
                    Report::Log { text, .. } if text.starts_with(start) => {
                        return text[start.len()..].to_owned();
                    }
                    _ => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("a line in time")
    }

    /// Waits for a line that starts so and names processes.
    pub(crate) async fn pids(&mut self, start: &str) -> Vec<i32> {
        let line = self.line(start).await;
        line.split_whitespace().map(|pid| pid.parse().expect("an id")).collect()
    }
}

impl Outcome {
    pub(crate) fn outputs(&self) -> Value {
        let outputs = self.done.result.as_ref();
        Value::Object(outputs.unwrap_or_else(|failure| panic!("{failure}: {self:?}")).clone())
    }

    pub(crate) fn failure(&self) -> &Failure {
        self.done.result.as_ref().expect_err("a failure")
    }

    pub(crate) fn lines(&self) -> Vec<&str> {
        let mut lines = Vec::new();
        for report in &self.reports {
            if let Report::Log { text, .. } = report {
                lines.push(text.as_str());
            }
        }
        lines
    }
}

/// Whether a process exists and is not merely waiting to be taken note of.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until none of these processes is alive.
pub(crate) async fn until_gone(pids: &[i32]) {
    until("processes are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

pub(crate) fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).expect("an id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a kill");
}

/// Writes a file below a folder, with its parents.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    std::fs::write(&path, text).expect("a file");
    path
}
