//! Short words for what happens, for the trace.

use wharf_engine::shard::Input;
use wharf_ports::{Batch, Body};

pub(in super::super) fn brief(input: &Input) -> String {
    match input {
        Input::Create(create) => {
            format!("create {} {} {:?}", create.key, create.spec.tool, create.spec.durability)
        }
        Input::Run { key, input, .. } => format!("{key} {input:?}"),
        Input::Progress { key, attempt_id, pieces } => {
            let weight: u64 = pieces.iter().map(wharf_domain::Progress::weight).sum();
            format!("{key} progress of {attempt_id}, {weight} bytes")
        }
        other => format!("{other:?}"),
    }
}

pub(in super::super) fn brief_batch(batch: &Batch) -> String {
    let mut text = format!("{}@{} #{}", batch.shard, batch.epoch, batch.no);
    for append in &batch.appends {
        let kind = append.stream.kind().as_str();
        let what = match &append.body {
            Body::Entries(entries) => {
                let names: Vec<_> = entries.iter().map(name).collect();
                names.join("+")
            }
            Body::Progress(pieces) => format!("{} pieces of progress", pieces.len()),
        };
        text.push_str(&format!(" [{kind} {} {}: {what}]", append.stream.key(), append.expected));
    }
    for op in &batch.ledger {
        text.push_str(&format!(" {op:?}"));
    }
    text
}

/// The name of an entry's variant.
fn name(entry: &wharf_domain::Entry) -> String {
    let text = format!("{entry:?}");
    text.split(['(', ' ']).filter(|part| !part.is_empty()).nth(1).unwrap_or("").to_owned()
}
