//! A tool of the catalog as a client sees it.

use serde::Deserialize as _;
use serde_json::{Value, json};
use wharf_domain::ToolDef;
use wharf_engine::CatalogTool;
use wharf_vocab::Object;
use wharf_wire::mcp_v1::{
    McpEra, McpOpen, McpRevision, McpTool, McpToolAnnotations, McpToolExecution, McpToolTasks, key,
};

use super::door::McpContext;
use crate::blocks::{WRAPPED, is_of_server};

/// A tool under the name that the client knows it by.
pub(crate) fn tool(cx: &McpContext, name: String, tool: &CatalogTool) -> McpOpen<McpTool> {
    let def = &tool.def;
    let approval = cx.shared.handle.runs().needs_approval(&cx.caller, tool, &cx.door.world);
    let told = McpTool {
        name,
        title: def.mcp.as_ref().and_then(|origin| origin.title.clone()),
        description: Some(def.description.clone()).filter(|text| !text.is_empty()),
        input_schema: input_schema(def),
        output_schema: output_schema(def, cx.revision),
        annotations: annotations(def),
        execution: execution(cx.revision),
        icons: None,
        meta: Some(wharf_meta(def, approval)),
    };
    told.into()
}

/// The schema of a tool's arguments: its server's own, if it is an MCP server's.
pub(crate) fn input_schema(def: &ToolDef) -> Object {
    let own = def.mcp.as_ref().and_then(|origin| origin.input_schema.as_ref());
    of_objects(own.unwrap_or(&def.input_schema))
}

/// A schema that says that its values are objects, which all of them are.
fn of_objects(schema: &Value) -> Object {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| "object".into());
    schema
}

/// The schema of what a client gets as structured content.
fn output_schema(def: &ToolDef, revision: McpRevision) -> Option<Object> {
    if is_of_server(def) {
        let own = def.mcp.as_ref()?.output_schema.as_ref()?;
        return Some(match revision.era() {
            McpEra::Modern => own.as_object().cloned().unwrap_or_default(),
            McpEra::Legacy if says_object(own) => of_objects(own),
            McpEra::Legacy => wrapped(own),
        });
    }
    let schema = def.output_schema.as_ref()?;
    let is_wrapped = schema.get(WRAPPED) == Some(&Value::Bool(true));
    let inner = schema.get("properties").and_then(|properties| properties.get("value"));
    match (revision.era(), inner.filter(|_| is_wrapped)) {
        (McpEra::Modern, Some(inner)) => Some(inner.as_object().cloned().unwrap_or_default()),
        _ => Some(of_objects(schema)),
    }
}

/// Whether the values of a schema are objects. One that does not say so may have others.
fn says_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// The schema of values that travel in an object, for clients that know no others.
fn wrapped(schema: &Value) -> Object {
    let mut outer = Object::new();
    outer.insert("type".to_owned(), "object".into());
    outer.insert("properties".to_owned(), json!({ "value": schema }));
    outer.insert("required".to_owned(), json!(["value"]));
    outer.insert(WRAPPED.to_owned(), true.into());
    outer
}

/// What a server says of its tool, or what is known of any other.
fn annotations(def: &ToolDef) -> Option<McpOpen<McpToolAnnotations>> {
    if let Some(origin) = &def.mcp {
        return McpOpen::deserialize(origin.annotations.as_ref()?).ok();
    }
    let known = McpToolAnnotations {
        read_only_hint: Some(def.side_effects == Some(false)),
        idempotent_hint: Some(def.idempotency),
        ..McpToolAnnotations::default()
    };
    Some(known.into())
}

/// Every call can be a task: it is a run in any case.
fn execution(revision: McpRevision) -> Option<McpOpen<McpToolExecution>> {
    let execution = McpToolExecution { task_support: Some(McpToolTasks::Optional) };
    revision.has_core_tasks().then(|| execution.into())
}

fn wharf_meta(def: &ToolDef, approval: bool) -> Object {
    let mut told = Object::new();
    told.insert("id".to_owned(), def.tool.as_str().into());
    told.insert("approval".to_owned(), approval.into());
    let price = if def.free { Some(0) } else { def.max_cost_micro };
    told.extend(price.map(|price| ("max_cost_micro".to_owned(), price.into())));
    let mut meta = Object::new();
    meta.insert(key::WHARF_TOOL.to_owned(), told.into());
    meta
}

#[cfg(test)]
mod tests {
    use wharf_domain::provider::McpOrigin;
    use wharf_vocab::ToolId;

    use super::*;

    const LEGACY: McpRevision = McpRevision::V2025_06_18;
    const MODERN: McpRevision = McpRevision::V2026_07_28;

    fn def(output_schema: Value) -> ToolDef {
        let id = ToolId::new("dev.x/tool").expect("an id");
        ToolDef { output_schema: Some(output_schema), ..ToolDef::new(id, "does", json!({})) }
    }

    fn shown(def: &ToolDef, revision: McpRevision) -> Value {
        output_schema(def, revision).map_or(Value::Null, Value::Object)
    }

    #[test]
    fn m017_values_that_are_no_objects_are_wrapped_for_legacy_clients() {
        let number = json!({"type": "number"});
        let outer = Value::Object(wrapped(&number));
        let native = def(outer.clone());
        assert_eq!(shown(&native, LEGACY), outer);
        assert_eq!(shown(&native, MODERN), number);
        let mut served = def(json!({crate::blocks::MCP_OUTPUTS: true}));
        assert_eq!(shown(&served, LEGACY), Value::Null, "what its server does not say nobody says");
        let origin = |schema: &Value| McpOrigin {
            output_schema: Some(schema.clone()),
            ..McpOrigin::default()
        };
        served.mcp = Some(Box::new(origin(&number)));
        assert_eq!(shown(&served, LEGACY), outer);
        assert_eq!(shown(&served, MODERN), number);
        let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        served.mcp = Some(Box::new(origin(&object)));
        assert_eq!(shown(&served, LEGACY), object);
        let untyped = def(json!({"properties": {"a": {}}}));
        assert_eq!(shown(&untyped, LEGACY)["type"], "object", "outputs are objects");
    }

    #[test]
    fn m017_annotations_say_what_is_known_and_a_servers_own_pass_through() {
        let mut native = def(json!({}));
        native.side_effects = Some(false);
        native.idempotency = true;
        let told = annotations(&native).expect("annotations");
        assert_eq!((told.read_only_hint, told.idempotent_hint), (Some(true), Some(true)));
        let own = json!({"title": "T", "destructiveHint": true, "x-other": 1});
        let origin = McpOrigin { annotations: Some(own.clone()), ..McpOrigin::default() };
        native.mcp = Some(Box::new(origin));
        let told = annotations(&native).expect("annotations");
        assert_eq!(Value::Object(told.to_object()), own);
        native.mcp = Some(Box::default());
        assert_eq!(annotations(&native), None);
    }
}
