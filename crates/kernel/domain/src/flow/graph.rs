//! A document as a picture, in the words of Mermaid.

use std::fmt::Write as _;

use super::{Document, Step, StepKind};

impl Document {
    /// The source of a Mermaid flowchart: every step a box, arrows in the order of doing.
    pub fn mermaid(&self) -> String {
        let mut graph = Graph { text: String::from("flowchart TD\n  begin([begin])\n"), level: 1 };
        let lasts = graph.sequence(&self.steps, vec![("begin".to_owned(), None)]);
        graph.line("over([end])");
        graph.arrows(&lasts, "over");
        if let Some(step) = &self.on_cancel {
            graph.line("canceled([canceled])");
            graph.step(step, &[("canceled".to_owned(), None)]);
        }
        graph.text
    }
}

/// Where an arrow begins, and what is written on it.
type Loose = (String, Option<String>);

struct Graph {
    text: String,
    level: usize,
}

impl Graph {
    fn line(&mut self, line: &str) {
        let _written = writeln!(self.text, "{}{line}", "  ".repeat(self.level));
    }

    fn arrows(&mut self, from: &[Loose], to: &str) {
        for (from, label) in from {
            match label {
                Some(label) => self.line(&format!("{from} -->|{}| {to}", quoted(label))),
                None => self.line(&format!("{from} --> {to}")),
            }
        }
    }

    /// Steps one after another; what is left are the arrows that lead out of the last.
    fn sequence(&mut self, steps: &[Step], from: Vec<Loose>) -> Vec<Loose> {
        steps.iter().fold(from, |from, step| self.step(step, &from))
    }

    fn step(&mut self, step: &Step, from: &[Loose]) -> Vec<Loose> {
        let id = node(step);
        if let StepKind::Seq(steps) = &step.kind {
            return self.sequence(steps, from.to_vec());
        }
        self.line(&shape(step));
        self.arrows(from, &id);
        let out = |label: Option<&str>| vec![(id.clone(), label.map(str::to_owned))];
        match &step.kind {
            StepKind::Parallel(parallel) => {
                let branches = parallel.branches.iter();
                branches.flat_map(|branch| self.step(branch, &out(None))).collect()
            }
            StepKind::Each(each) => self.step(&each.step, &out(Some("each"))),
            StepKind::Loop(again) => {
                let lasts = self.step(&again.step, &out(Some("while")));
                self.arrows(&lasts, &id);
                out(Some("else"))
            }
            StepKind::Branch(branch) => {
                let mut lasts = Vec::new();
                for case in &branch.cases {
                    lasts.extend(self.step(&case.step, &out(Some(case.when.as_str()))));
                }
                match &branch.otherwise {
                    Some(step) => lasts.extend(self.step(step, &out(Some("else")))),
                    None => lasts.extend(out(Some("else"))),
                }
                lasts
            }
            StepKind::Try(attempt) => {
                let mut lasts = self.step(&attempt.step, &out(None));
                for catch in &attempt.catches {
                    let codes: Vec<&str> = catch.codes.iter().map(|code| code.as_str()).collect();
                    let label = if codes.is_empty() { "error".to_owned() } else { codes.join(" ") };
                    lasts.extend(self.step(&catch.step, &[(id.clone(), Some(label))]));
                }
                match &attempt.finally {
                    Some(step) => self.step(step, &lasts),
                    None => lasts,
                }
            }
            StepKind::Return(_) | StepKind::Fail(_) | StepKind::Restart(_) => Vec::new(),
            _ => out(None),
        }
    }
}

fn node(step: &Step) -> String {
    // The names of the language itself, such as `end`, are no names of boxes.
    format!("s_{}", step.id)
}

fn shape(step: &Step) -> String {
    let (id, name) = (node(step), &step.id);
    let text = match &step.kind {
        StepKind::Call(call) => format!("{name}: {}", call.tool),
        StepKind::Each(each) => format!("{name}: each {}", each.over.as_str()),
        StepKind::Signal(signal) => format!("{name}: signal {}", signal.name),
        kind => format!("{name}: {}", kind.as_str()),
    };
    let text = quoted(&text);
    match &step.kind {
        StepKind::Branch(_) | StepKind::Loop(_) => format!("{id}{{{text}}}"),
        StepKind::Ask(_) | StepKind::Approve(_) | StepKind::Signal(_) | StepKind::Sleep(_) => {
            format!("{id}([{text}])")
        }
        _ => format!("{id}[{text}]"),
    }
}

/// A text that cannot end its own quotes.
fn quoted(text: &str) -> String {
    let plain = text.replace('"', "'").replace(['\n', '\r'], " ");
    format!("\"{}\"", plain.replace('#', "#35;").replace('<', "#lt;").replace('>', "#gt;"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn f019_a_graph_shows_every_step_and_the_ways_between_them() {
        let document = json!({"name": "g", "output": {}, "steps": [
            {"id": "end", "call": {"tool": "wharf/echo"}},
            {"id": "which", "branch": {"cases": [{"when": "inputs.a == \"b\"",
                "step": {"id": "stop", "return": {}}}], "else": {"id": "wait",
                "sleep": {"for": "1s"}}}},
            {"id": "last", "call": {"tool": "wharf/echo"}}]});
        let graph = Document::read(&document).expect("reads").mermaid();
        for line in [
            "begin --> s_end",
            "s_end[\"end: wharf/echo\"]",
            "s_which{\"which: branch\"}",
            "s_which -->|\"inputs.a == 'b'\"| s_stop",
            "s_which -->|\"else\"| s_wait",
            "s_wait --> s_last",
            "s_last --> over",
        ] {
            assert!(graph.contains(line), "{line} in\n{graph}");
        }
        assert!(!graph.contains("s_stop --> "), "nothing follows a return\n{graph}");
    }
}
