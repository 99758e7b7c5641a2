//! `wharf artifacts trace`: a file's way as a small tree.

use std::collections::HashSet;

use wharf_client::RemoteFile;
use wharf_wire::rest_v1::{Artifact, Trace, TraceStep};

use crate::commands::worlds::short;
use crate::commands::{Context, Exit, Paint, Result};
use crate::{amount, moment, plain};

/// What `wharf artifacts trace` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf artifacts trace lab /out/small.jpg
  wharf artifacts trace lab /@r1/state.json --json

Shows the run that wrote it and its inputs, and the runs that read it and their outputs. Removed
files can be traced too.")]
pub(crate) struct ArtifactsTraceArgs {
    /// The world's id
    world: String,
    /// The file's path in the world
    path: String,
}

/// Shows where a file comes from and where it went.
pub(super) async fn run(args: &ArtifactsTraceArgs, context: &Context) -> Result<Exit> {
    let file = RemoteFile::new(&args.world, &args.path)?;
    let raw = context.client()?.worlds().trace(&file.world, &file.path).raw().await?;
    context.output.answer(raw, |trace| tree(&trace, context.output.out_paint()))
}

/// One line of the tree and what hangs below it.
struct Branch {
    text: String,
    below: Vec<Branch>,
}

fn tree(trace: &Trace, paint: Paint) -> String {
    let name = format!("world://{}{}", plain::line(&trace.world), plain::line(&trace.path));
    let mut text = format!("{}\n", paint.strong(&name));
    let written = trace.written.iter().map(|file| writing(file, &trace.made_from)).collect();
    let readings = once_each(&trace.read);
    let read: Vec<_> = readings.iter().map(|file| reading(file, &trace.went_into)).collect();
    let mut parts = vec![Branch { text: "written".to_owned(), below: written }];
    let never = if read.is_empty() { "read by no run" } else { "read" };
    parts.push(Branch { text: never.to_owned(), below: read });
    draw(&parts, "", &mut text);
    if trace.cut {
        text.push_str("there is more than shown here\n");
    }
    text
}

/// A run that read the file under several names read it once.
fn once_each(read: &[Artifact]) -> Vec<&Artifact> {
    let mut seen = HashSet::new();
    read.iter().filter(|file| seen.insert(file.run_id.as_deref())).collect()
}

fn writing(file: &Artifact, made_from: &[TraceStep]) -> Branch {
    let who = match &file.run_id {
        Some(run) => format!("by run {}{}", plain::line(run), as_key(file)),
        None => "put by hand".to_owned(),
    };
    let gone = match file.gone_at {
        Some(at) => format!(", removed {}", moment::clock(at)),
        None => String::new(),
    };
    let text = format!("{}{who}: {}{gone}", at(file), facts(file));
    let below = files_of(file.run_id.as_deref(), made_from, "from");
    Branch { text, below }
}

fn reading(file: &Artifact, went_into: &[TraceStep]) -> Branch {
    let run = file.run_id.as_deref().map(plain::line).unwrap_or_default();
    let text = format!("{}by run {run}{}", at(file), as_key(file));
    Branch { text, below: files_of(file.run_id.as_deref(), went_into, "which wrote") }
}

/// The files a run read or wrote.
fn files_of(run: Option<&str>, steps: &[TraceStep], how: &str) -> Vec<Branch> {
    let step = steps.iter().find(|step| Some(step.run_id.as_str()) == run);
    let files = step.map(|step| step.files.as_slice()).unwrap_or_default();
    let line = |file: &Artifact| {
        format!("{how} {}{}: {}", plain::line(&file.path), as_key(file), facts(file))
    };
    files.iter().map(|file| Branch { text: line(file), below: Vec::new() }).collect()
}

fn at(file: &Artifact) -> String {
    file.at.map(|at| format!("{} ", moment::clock(at))).unwrap_or_default()
}

fn as_key(file: &Artifact) -> String {
    file.key.as_deref().map(|key| format!(" as {}", plain::line(key))).unwrap_or_default()
}

fn facts(file: &Artifact) -> String {
    let hash = file.b3.as_deref().map(|hash| format!(", b3 {}", short(hash))).unwrap_or_default();
    format!("{}{hash}", amount::about(file.bytes))
}

fn draw(branches: &[Branch], before: &str, text: &mut String) {
    for (number, branch) in branches.iter().enumerate() {
        let is_last = number + 1 == branches.len();
        let (corner, line) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        text.push_str(&format!("{before}{corner}{}\n", branch.text));
        draw(&branch.below, &format!("{before}{line}"), text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::output;

    fn file(path: &str, run: Option<&str>, key: Option<&str>, direction: &str) -> Value {
        json!({"world": "lab", "path": path, "bytes": 1_536, "b3": "ab".repeat(32),
            "media_type": "", "run_id": run, "key": key, "direction": direction})
    }

    #[test]
    fn t040_a_file_is_traced_both_ways() {
        let trace = output::typed(json!({
            "world": "lab", "path": "/mid", "cut": false,
            "written": [file("/mid", None, None, "out"), file("/mid", Some("r1"), Some("text"), "out")],
            "read": [file("/mid", Some("r2"), Some("a"), "in"), file("/mid", Some("r2"), Some("b"), "in")],
            "made_from": [{"run_id": "r1", "files": [file("/in", Some("r1"), Some("x"), "in")]}],
            "went_into": [{"run_id": "r2", "files": [file("/out", Some("r2"), Some("y"), "out")]}],
        }))
        .expect("a trace");
        let expect = "\
world://lab/mid
├─ written
│  ├─ put by hand: 1.5 KiB, b3 abababababababab
│  └─ by run r1 as text: 1.5 KiB, b3 abababababababab
│     └─ from /in as x: 1.5 KiB, b3 abababababababab
└─ read
   └─ by run r2 as a
      └─ which wrote /out as y: 1.5 KiB, b3 abababababababab
";
        assert_eq!(tree(&trace, Paint::off()), expect);
    }

    #[test]
    fn a_file_that_nobody_read_says_so() {
        let trace = output::typed(json!({
            "world": "lab", "path": "/x", "cut": true, "written": [file("/x", None, None, "out")],
            "read": [], "made_from": [], "went_into": [],
        }))
        .expect("a trace");
        let text = tree(&trace, Paint::off());
        assert!(text.contains("└─ read by no run\nthere is more"), "{text}");
    }
}
