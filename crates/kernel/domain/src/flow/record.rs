//! The record of a flow: the versions of its document.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_vocab::limits::FLOW_VERSIONS_MAX;
use wharf_vocab::{Code, Digest, Durability, Fault, FlowId, Timestamp, ToolId};

use super::{Document, FlowFinding, StepKind};
use crate::{AuditEvent, AuditRecord, CallerRef, ToolDef};

/// What the names of flows begin with that were given with a request and not added.
const INLINE: &str = "inline-";
/// How much of the hash stands in such a name.
const INLINE_HASH_CHARS: usize = 16;

/// What is written about a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FlowEntry {
    /// A version was added.
    Added(FlowAdded),
    /// A version was removed.
    Removed(FlowRemoved),
}

/// A version was added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowAdded {
    /// Its number, from 1.
    pub version: u32,
    /// What it says.
    pub document: Arc<Document>,
    /// The definitions that its tools had, if it goes only with these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<ToolId, Digest>,
    /// By whom.
    pub by: CallerRef,
}

/// A version was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRemoved {
    /// Its number.
    pub version: u32,
    /// By whom.
    pub by: CallerRef,
}

/// What can be asked of a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowRecordInput {
    /// Add a version, unless the newest one says the same.
    Add {
        /// What it says.
        document: Arc<Document>,
        /// The definitions that its tools have, if it is to go only with these.
        pins: BTreeMap<ToolId, Digest>,
    },
    /// Remove a version; whether runs of it are open was looked at before.
    Remove {
        /// Its number.
        version: u32,
    },
}

/// A flow: the versions of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Its name.
    pub id: FlowId,
    /// Versions that are there, by their numbers.
    pub versions: BTreeMap<u32, FlowVersion>,
    /// The number of the newest version there ever was.
    pub last: u32,
}

/// One version.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowVersion {
    /// Its number.
    pub number: u32,
    /// What it says.
    pub document: Arc<Document>,
    /// The hash that stands for all of it.
    pub hash: Digest,
    /// The definitions that its tools had, if it goes only with these.
    pub pins: Arc<BTreeMap<ToolId, Digest>>,
    /// When it was added.
    pub added_at: Timestamp,
    /// By whom.
    pub by: CallerRef,
}

impl Flow {
    /// The name of a document that comes with a request and is not added for others.
    pub fn inline_id(document: &Document) -> FlowId {
        let hash = document.hash();
        let name = format!("{INLINE}{}", &hash.as_str()[..INLINE_HASH_CHARS]);
        FlowId::new(name).expect("a prefix and hexadecimal digits are a name")
    }

    /// Whether it came with a request: it is not listed, and goes with its last run.
    pub fn is_inline(&self) -> bool {
        is_inline(&self.id)
    }

    /// The newest version.
    pub fn newest(&self) -> Option<&FlowVersion> {
        self.versions.last_key_value().map(|(_, version)| version)
    }

    /// A version by its number, or the newest one.
    pub fn version(&self, number: Option<u32>) -> Option<&FlowVersion> {
        match number {
            Some(number) => self.versions.get(&number),
            None => self.newest(),
        }
    }

    /// Decides about an input; `flow` is `None` while it does not exist. No change means that
    /// everything is as it should be.
    pub fn decide(
        flow: Option<&Self>,
        id: &FlowId,
        input: &FlowRecordInput,
        by: &CallerRef,
    ) -> Result<Option<(FlowEntry, AuditRecord)>, Fault> {
        match input {
            FlowRecordInput::Add { document, pins } => {
                let hash = document.hash();
                let same = |known: &FlowVersion| known.hash == hash && *known.pins == *pins;
                if flow.and_then(Self::newest).is_some_and(same) {
                    return Ok(None);
                }
                if flow.is_some_and(|flow| flow.versions.len() >= FLOW_VERSIONS_MAX) {
                    let message = format!(
                        "The flow {id} has {FLOW_VERSIONS_MAX} versions; remove some of them first."
                    );
                    return Err(Fault::new(Code::FlowLimit, message));
                }
                // One that came with a request and went with its last run comes back as it was.
                let again = flow.is_some_and(|flow| flow.is_inline() && flow.versions.is_empty());
                let version = if again { 1 } else { flow.map_or(0, |flow| flow.last) + 1 };
                let record = audit(AuditEvent::FLOW_ADDED, id, version, by)
                    .fact("hash", hash.as_str())
                    .fact("unsafe_retries", unsafe_retries(document) as u64);
                let (document, pins) = (Arc::clone(document), pins.clone());
                let added = FlowAdded { version, document, pins, by: by.clone() };
                Ok(Some((FlowEntry::Added(added), record)))
            }
            FlowRecordInput::Remove { version } => {
                let known = flow.is_some_and(|flow| flow.versions.contains_key(version));
                if !known {
                    return Err(no_flow(id, Some(*version)));
                }
                let record = audit(AuditEvent::FLOW_REMOVED, id, *version, by);
                let removed = FlowRemoved { version: *version, by: by.clone() };
                Ok(Some((FlowEntry::Removed(removed), record)))
            }
        }
    }

    /// The flow after an entry; `None` if the entry cannot follow.
    pub fn apply(
        flow: Option<Self>,
        id: &FlowId,
        at: Timestamp,
        entry: &FlowEntry,
    ) -> Option<Self> {
        match (flow, entry) {
            (flow, FlowEntry::Added(added)) => {
                let empty = || Self { id: id.clone(), versions: BTreeMap::new(), last: 0 };
                let mut flow = flow.unwrap_or_else(empty);
                flow.last = flow.last.max(added.version);
                flow.versions.insert(
                    added.version,
                    FlowVersion {
                        number: added.version,
                        hash: added.document.hash(),
                        document: Arc::clone(&added.document),
                        pins: Arc::new(added.pins.clone()),
                        added_at: at,
                        by: added.by.clone(),
                    },
                );
                Some(flow)
            }
            (Some(mut flow), FlowEntry::Removed(removed)) => {
                flow.versions.remove(&removed.version)?;
                Some(flow)
            }
            (None, FlowEntry::Removed(_)) => None,
        }
    }
}

impl FlowVersion {
    /// The tool that this version is, under its own number.
    pub fn tool(&self, id: &FlowId) -> ToolDef {
        let tool = format!("{}/{id}@{}", Document::NAMESPACE, self.number);
        let tool = ToolId::new(tool).expect("a flow's name and a number make a tool's id");
        let document = &self.document;
        let mut def = ToolDef::new(tool, document.description.clone(), document.input_schema());
        def.output_schema.clone_from(&document.output_schema);
        // A flow itself does nothing to the world; its steps are asked about one by one.
        def.side_effects = Some(document.calls_anything());
        def.durability = Durability::Journal;
        def.mock = true;
        def.free = true;
        def.tags = vec!["flow".to_owned()];
        def
    }
}

impl Document {
    /// Whether it runs any tool.
    pub fn calls_anything(&self) -> bool {
        let mut calls = false;
        self.visit(&mut |_, step| calls |= matches!(step.kind, StepKind::Call(_)));
        calls
    }

    /// The tools that it runs.
    pub fn tools(&self) -> Vec<ToolId> {
        let mut tools = Vec::new();
        self.visit(&mut |_, step| {
            if let StepKind::Call(call) = &step.kind {
                tools.push(call.tool.clone());
                tools.extend(call.compensate.iter().map(|undo| undo.tool.clone()));
            }
        });
        tools.sort_unstable();
        tools.dedup();
        tools
    }
}

/// Whether a name is one that a document gets that comes with a request.
pub fn is_inline(id: &FlowId) -> bool {
    id.as_str().starts_with(INLINE)
}

/// There is no such flow, or no such version of it.
pub fn no_flow(id: &FlowId, version: Option<u32>) -> Fault {
    let message = match version {
        Some(version) => format!("There is no version {version} of a flow {id}."),
        None => format!("There is no flow {id}."),
    };
    Fault::new(Code::FlowNotFound, message)
}

/// The document is not taken, for these reasons.
pub fn not_taken(findings: &[FlowFinding]) -> Fault {
    let errors: Vec<&FlowFinding> = findings.iter().filter(|found| found.is_error()).collect();
    let first = errors.first().map_or_else(String::new, ToString::to_string);
    let message = match errors.len() {
        0 | 1 => format!("The document is not taken: {first}"),
        count => format!("The document is not taken, for {count} reasons. The first: {first}"),
    };
    let findings = serde_json::to_value(findings).unwrap_or_default();
    Fault::new(Code::FlowInvalid, message).with("findings", findings)
}

/// How many calls may be tried again although the last try may have acted.
fn unsafe_retries(document: &Document) -> usize {
    let mut count = 0;
    document.visit(&mut |_, step| {
        if let StepKind::Call(call) = &step.kind {
            count += usize::from(call.retry.as_ref().is_some_and(|retry| retry.is_unsafe));
        }
    });
    count
}

fn audit(event: AuditEvent, id: &FlowId, version: u32, by: &CallerRef) -> AuditRecord {
    AuditRecord::new(event, &by.grant, id).fact("version", u64::from(version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Caller;
    use serde_json::json;

    fn document(text: &str) -> Arc<Document> {
        let form = json!({"name": "f", "output": {},
            "steps": [{"id": "a", "call": {"tool": "wharf/echo", "inputs": {"text": text}}}]});
        Arc::new(Document::read(&form).expect("reads"))
    }

    fn id() -> FlowId {
        FlowId::new("f").expect("valid")
    }

    fn by() -> CallerRef {
        Caller::owner().to_ref()
    }

    fn step(flow: Option<Flow>, input: &FlowRecordInput) -> Result<Option<Flow>, Fault> {
        let decided = Flow::decide(flow.as_ref(), &id(), input, &by())?;
        Ok(match decided {
            Some((entry, _)) => Flow::apply(flow, &id(), Timestamp(1), &entry),
            None => flow,
        })
    }

    fn add(text: &str) -> FlowRecordInput {
        FlowRecordInput::Add { document: document(text), pins: BTreeMap::new() }
    }

    #[test]
    fn f002_an_equal_document_makes_no_new_version() {
        let flow = step(None, &add("a")).expect("added");
        let flow = step(flow, &add("a")).expect("nothing to do");
        assert_eq!(flow.as_ref().expect("there").last, 1);
        let flow = step(flow, &add("b")).expect("added").expect("there");
        assert_eq!(flow.newest().expect("a version").number, 2);
        assert_eq!(flow.version(Some(1)).expect("there").document, document("a"));
    }

    #[test]
    fn f002_numbers_of_removed_versions_are_not_used_again() {
        let flow = step(None, &add("a")).expect("added");
        let flow = step(flow, &add("b")).expect("added");
        let flow = step(flow, &FlowRecordInput::Remove { version: 2 }).expect("removed");
        assert_eq!(flow.as_ref().and_then(Flow::newest).expect("one is left").number, 1);
        let fault = step(flow.clone(), &FlowRecordInput::Remove { version: 2 });
        assert!(fault.expect_err("gone").is(Code::FlowNotFound));
        let flow = step(flow, &add("b")).expect("added").expect("there");
        assert_eq!(flow.newest().expect("a version").number, 3);
    }

    #[test]
    fn f001_a_version_is_a_tool_of_the_namespace_of_flows() {
        let flow = step(None, &add("a")).expect("added").expect("there");
        let tool = flow.newest().expect("a version").tool(&flow.id);
        assert_eq!(tool.tool.as_str(), "flow/f@1");
        assert_eq!(tool.tool.provider().as_str(), "flow");
        assert_eq!(tool.durability, Durability::Journal);
    }

    #[test]
    fn f019_an_inline_document_is_named_by_its_hash() {
        let name = Flow::inline_id(&document("a"));
        assert!(name.as_str().starts_with("inline-") && name.as_str().len() == 23, "{name}");
        assert_eq!(name, Flow::inline_id(&document("a")));
        assert_ne!(name, Flow::inline_id(&document("b")));
        assert!(is_inline(&name) && !is_inline(&id()));
    }
}
