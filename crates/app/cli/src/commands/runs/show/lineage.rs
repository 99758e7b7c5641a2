//! Which runs wrote what this one read, and which read what it wrote.

use std::collections::BTreeSet;

use wharf_client::Client;
use wharf_vocab::Direction;
use wharf_wire::rest_v1::{Artifact, Run, Trace};

use crate::commands::{Output, Table};
use crate::{moment, plain};

/// So many files are looked up; the others are left to `wharf artifacts trace`.
const FILES_MAX: usize = 16;

/// A line for each file. What cannot be looked up is left out: it is told beside the point.
pub(super) async fn text_of(run: &Run, client: &Client, output: Output) -> String {
    let mut table = Table::bare(output);
    let mut rows = 0;
    let files = run.artifacts.as_deref().unwrap_or_default();
    for file in files.iter().take(FILES_MAX) {
        let Ok(trace) = client.worlds().trace(&file.world, &file.path).await else { continue };
        let Some(told) = told(&run.run_id, file, &trace) else { continue };
        table.row([&file.path, &told]);
        rows += 1;
    }
    if rows == 0 {
        return String::new();
    }
    let mut text = String::from("lineage\n");
    for line in table.text().lines() {
        text.push_str(&format!("  {line}\n"));
    }
    if files.len() > FILES_MAX {
        text.push_str("  … more with: wharf artifacts trace WORLD PATH\n");
    }
    text
}

/// What is known of a file beyond this run.
fn told(run: &str, file: &Artifact, trace: &Trace) -> Option<String> {
    if file.direction == Direction::In {
        // The newest writing of the very bytes that were read; without a hash nobody can tell.
        let same = |writing: &&Artifact| file.b3.is_some() && writing.b3 == file.b3;
        let writing = trace.written.iter().rev().find(same)?;
        return Some(match &writing.run_id {
            Some(writer) => format!("read here, written by run {}", plain::line(writer)),
            None => "read here, put by hand".to_owned(),
        });
    }
    let readers: BTreeSet<_> =
        trace.read.iter().filter_map(|reading| reading.run_id.as_deref()).collect();
    let readers: Vec<_> =
        readers.into_iter().filter(|reader| *reader != run).map(plain::line).collect();
    let told = match readers.len() {
        0 => "written here, read by no run so far".to_owned(),
        1 => format!("written here, read by run {}", readers[0]),
        count => format!("written here, read by {count} runs, such as {}", readers[0]),
    };
    // The file of this name may be another by now, or none.
    let own = |writing: &&Artifact| writing.run_id.as_deref() == Some(run);
    let gone = trace.written.iter().rev().find(own).and_then(|own| own.gone_at);
    Some(match gone {
        Some(at) => format!("{told}, removed {}", moment::clock(at)),
        None => told,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::output;

    fn file(b3: &str, run: Option<&str>, direction: &str) -> Value {
        json!({"world": "lab", "path": "/x", "bytes": 1, "b3": b3, "media_type": "",
            "run_id": run, "key": null, "direction": direction})
    }

    #[test]
    fn t040_a_run_knows_its_neighbours() {
        let mut gone = file("dd", Some("r9"), "out");
        gone["gone_at"] = json!("2026-11-15T10:20:30.000Z");
        let trace: Trace = output::typed(json!({
            "world": "lab", "path": "/x", "cut": false, "made_from": [], "went_into": [],
            "written": [file("aa", None, "out"), file("bb", Some("r1"), "out"), gone],
            "read": [file("bb", Some("r2"), "in"), file("bb", Some("r3"), "in")],
        }))
        .expect("a trace");
        let told = |b3: &str, run: &str, direction: &str| {
            let file: Artifact = output::typed(file(b3, Some(run), direction)).expect("a file");
            told(run, &file, &trace)
        };
        assert_eq!(told("bb", "r2", "in").as_deref(), Some("read here, written by run r1"));
        assert_eq!(told("aa", "r0", "in").as_deref(), Some("read here, put by hand"));
        assert_eq!(told("cc", "r0", "in"), None);
        let both = "written here, read by 2 runs, such as r2";
        assert_eq!(told("bb", "r1", "out").as_deref(), Some(both));
        assert_eq!(told("bb", "r2", "out").as_deref(), Some("written here, read by run r3"));
        let gone = told("dd", "r9", "out").expect("known");
        assert!(gone.contains("such as r2, removed 2026-11-15 "), "{gone}");
    }
}
