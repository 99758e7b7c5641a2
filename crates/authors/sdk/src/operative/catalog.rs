//! Which tool a request is for.

use std::sync::Arc;

use serde_json::Value;
use wharf_protocol::tool::ToolRequest;
use wharf_wire::tool_v1::{Kind, OfferedTool, method};

use crate::Place;
use crate::calls::exposed::ErasedTool;
use crate::calls::wire::Wire;

/// The tools that are served.
pub(super) struct Catalog {
    place: Place,
    /// Whether what the scope passes on would only come back to the peer.
    returns: bool,
    entries: Vec<Arc<ErasedTool>>,
    /// How many tools the scope had when they were looked at.
    seen: usize,
}

impl Catalog {
    pub(super) fn new(place: Place, returns: bool) -> Self {
        Self { place, returns, entries: Vec::new(), seen: 0 }
    }

    /// The tool that a request is for, and the input that it has for it.
    pub(super) fn find(&mut self, incoming: &mut ToolRequest) -> Option<Arc<ErasedTool>> {
        self.look();
        let wire = |wire| move |entry: &&Arc<ErasedTool>| entry.wire == wire;
        let mut entries = self.entries.iter();
        let found = match (incoming.kind, incoming.method.as_str()) {
            (Kind::Notify, _) => entries.find(wire(Wire::Notify)),
            (Kind::Elicit, method::SAMPLE) => entries.find(wire(Wire::Sample)),
            (Kind::Elicit, name) => {
                let named = |entry: &&Arc<ErasedTool>| entry.definition().name == name;
                let tool = self.entries.iter().filter(wire(Wire::Tool)).find(named);
                tool.or_else(|| entries.find(wire(Wire::Elicit)).filter(|_| asks(incoming)))
            }
        };
        let found = found.cloned()?;
        if found.wire == Wire::Elicit
            && let Value::Object(question) = &mut incoming.payload
        {
            // The caller's own word for the question stands where the method does.
            question.insert("type".to_owned(), Value::String(incoming.method.clone()));
        }
        Some(found)
    }

    /// Takes up tools that were provided since it was looked last.
    fn look(&mut self) {
        let exposed = exposed(&self.place);
        if exposed.len() == self.seen {
            return;
        }
        self.seen = exposed.len();
        let returns = self.returns;
        let here = exposed
            .into_iter()
            .filter(|tool| !(returns && self.place.0.is_passed_on(tool.definition().name)));
        self.entries = here.collect();
    }
}

/// Whether a request looks like a question, for methods that are no tools.
fn asks(incoming: &ToolRequest) -> bool {
    incoming.payload.get("message").is_some_and(Value::is_string)
}

fn exposed(place: &Place) -> Vec<Arc<ErasedTool>> {
    let tables = place.0.tables.read();
    tables.exposed.clone()
}

/// The tools of a place as they are offered to a core. What it would only call back is not.
pub(super) fn offer(place: &Place) -> Vec<OfferedTool> {
    let exposed = exposed(place);
    let tools = exposed.iter().filter(|tool| tool.wire == Wire::Tool);
    let tools = tools.map(|tool| tool.definition());
    let tools = tools.filter(|tool| !place.0.is_passed_on(tool.name));
    let offered = tools.map(|tool| OfferedTool {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        input: tool.input.clone(),
        output: Some(tool.output.clone()),
        progress: tool.progress.clone(),
    });
    offered.collect()
}
