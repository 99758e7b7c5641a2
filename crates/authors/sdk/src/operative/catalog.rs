//! Which tool a request is for.

use std::sync::Arc;

use serde_json::Value;
use wharf_protocol::tool::ToolRequest;
use wharf_wire::tool_v1::{Kind, OfferedTool, method};

use crate::Place;
use crate::calls::exposed::ErasedTool;
use crate::calls::wire::Wire;

/// The tool of a place that a request is for, and the input that it has for it. `returns` says
/// whether what the scope passes on would only come back to the peer.
pub(super) fn find(
    place: &Place,
    returns: bool,
    incoming: &mut ToolRequest,
) -> Option<Arc<ErasedTool>> {
    let found = {
        let tables = place.0.tables.read();
        let is_here = |tool: &ErasedTool| !(returns && tables.is_passed_on(tool.definition().name));
        let of = |wire| tables.exposed.iter().find(|tool| tool.wire == wire && is_here(tool));
        let named = |name: &str| {
            let is_named = |tool: &ErasedTool| {
                tool.wire == Wire::Tool && tool.definition().name == name && is_here(tool)
            };
            tables.exposed.iter().find(|tool| is_named(tool))
        };
        let found = match (incoming.kind, incoming.method.as_str()) {
            (Kind::Notify, _) => of(Wire::Notify),
            (Kind::Elicit, method::SAMPLE) => of(Wire::Sample),
            (Kind::Elicit, name) => {
                named(name).or_else(|| of(Wire::Elicit).filter(|_| asks(incoming)))
            }
        };
        Arc::clone(found?)
    };
    if found.wire == Wire::Elicit
        && let Value::Object(question) = &mut incoming.payload
    {
        // The caller's own word for the question stands where the method does.
        question.insert("type".to_owned(), Value::String(incoming.method.clone()));
    }
    Some(found)
}

/// Whether a request looks like a question, for methods that are no tools.
fn asks(incoming: &ToolRequest) -> bool {
    incoming.payload.get("message").is_some_and(Value::is_string)
}

/// The tools of a place as they are offered to a core. What it would only call back is not.
pub(super) fn offer(place: &Place) -> Vec<OfferedTool> {
    let offered = |tool: &Arc<ErasedTool>| {
        let tool = tool.definition();
        OfferedTool {
            name: tool.name.to_owned(),
            description: tool.description.to_owned(),
            input: tool.input.clone(),
            output: Some(tool.output.clone()),
            progress: tool.progress.clone(),
        }
    };
    place.0.served().iter().map(offered).collect()
}
