//! Tools as operatives describe them, checked before they stand in the catalog.

use std::collections::BTreeSet;

use serde_json::Value;
use wharf_domain::{Caller, ToolDef};
use wharf_engine::check_schema;
use wharf_protocol::tool::value;
use wharf_vocab::limits::OFFER_BYTES_MAX;
use wharf_vocab::{Code, Fault, ProviderId, ToolId};
use wharf_wire::tool_v1::{OfferedTool, method};

/// Tools of one operative.
const TOOLS_MAX: usize = 256;
/// Longest description.
const DESCRIPTION_BYTES_MAX: usize = 4 * 1024;
/// How long an attempt may take unless the caller wants less; there may be a person at the page.
const TIMEOUT_MS: u64 = 10 * 60 * 1000;
/// By which a tool's input schema says that the tool does not act on the world.
const HARMLESS: &str = "x-wharf-side-effects";

/// The definitions of tools that are offered under a name, or what is wrong with them.
pub(crate) fn definitions(
    provider: &ProviderId,
    caller: &Caller,
    offered: &[OfferedTool],
) -> Result<Vec<ToolDef>, Fault> {
    if offered.len() > TOOLS_MAX {
        let message = format!("An operative offers {TOOLS_MAX} tools at most.");
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    let mut seen = BTreeSet::new();
    for tool in offered {
        if !seen.insert(tool.name.as_str()) {
            let message = format!("Two tools have the name {}.", shown(&tool.name));
            return Err(Fault::new(Code::ToolConflict, message));
        }
    }
    let defs: Result<Vec<ToolDef>, Fault> =
        offered.iter().map(|tool| definition(provider, caller, tool)).collect();
    let defs = defs?;
    // All of it is written down whenever some of it changes.
    if serde_json::to_string(&defs).is_ok_and(|text| text.len() > OFFER_BYTES_MAX) {
        let message = format!("An offer has {OFFER_BYTES_MAX} bytes at most.");
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    Ok(defs)
}

/// Tools of which only the names are known.
pub(crate) fn untyped(names: &[String]) -> Vec<OfferedTool> {
    let named = names.iter().filter(|name| !name.is_empty()).map(|name| OfferedTool {
        name: name.clone(),
        description: String::new(),
        input: Value::Null,
        output: None,
        progress: None,
    });
    named.collect()
}

fn definition(
    provider: &ProviderId,
    caller: &Caller,
    offered: &OfferedTool,
) -> Result<ToolDef, Fault> {
    let OfferedTool { name, description, input, output, .. } = offered;
    if method::RESERVED.contains(&name.as_str()) {
        let message = format!("{name} has a meaning of its own and cannot be the name of a tool.");
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    let wrong = || {
        let name = shown(name);
        let message = format!(
            "{name} cannot be the name of a tool: it has letters, digits, dots, dashes and underscores."
        );
        Fault::new(Code::RequestInvalid, message)
    };
    let id = ToolId::new(format!("{provider}/{name}")).map_err(|_| wrong())?;
    if id.is_reference() {
        return Err(wrong());
    }
    caller.rights.check_tool(&id)?;
    if description.len() > DESCRIPTION_BYTES_MAX {
        let message =
            format!("The description of {id} is longer than {DESCRIPTION_BYTES_MAX} bytes.");
        return Err(Fault::new(Code::RequestInvalid, message));
    }
    let mut def = ToolDef::new(id, description.clone(), schema(name, "input", input)?);
    def.output_schema = Some(match output {
        Some(output) => schema(name, "output", output)?,
        None => value::kept(&Value::Null),
    });
    def.side_effects = input.get(HARMLESS).and_then(Value::as_bool);
    def.timeout_ms = Some(TIMEOUT_MS);
    Ok(def)
}

/// A schema as the catalog keeps it.
fn schema(name: &str, which: &str, given: &Value) -> Result<Value, Fault> {
    let wrong = |code| {
        let what = match code {
            Code::ToolSchemaTooLarge => "is too large or asks too much",
            _ => "is no JSON Schema, or refers to something outside of itself",
        };
        Fault::new(code, format!("The {which} schema of {name} {what}."))
    };
    if !matches!(given, Value::Null | Value::Bool(_) | Value::Object(_)) {
        return Err(wrong(Code::ToolSchemaInvalid));
    }
    if !given.is_null() {
        check_schema(given).map_err(wrong)?;
    }
    let kept = value::kept(given);
    check_schema(&kept).map_err(wrong)?;
    Ok(kept)
}

fn shown(name: &str) -> String {
    format!("{:?}", wharf_vocab::shown(name, 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wharf_domain::grant::Rights;
    use wharf_domain::permission::ToolPattern;

    fn tool(name: &str, input: Value) -> OfferedTool {
        let description = "Does it.".to_owned();
        OfferedTool { name: name.to_owned(), description, input, output: None, progress: None }
    }

    fn checked(tools: &[OfferedTool]) -> Result<Vec<ToolDef>, Fault> {
        let list = vec![ToolPattern::parse("browser/get-*").expect("valid")];
        let rights = Rights { tools: vec![list], ..Rights::all() };
        let provider = ProviderId::new("browser").expect("valid");
        definitions(&provider, &Caller::token("t", rights), tools)
    }

    #[test]
    fn k032_what_is_wrong_with_an_offer_is_named() {
        let plain = json!({"type": "object"});
        for (tools, code) in [
            (vec![tool("get-a", plain.clone()), tool("get-a", plain.clone())], Code::ToolConflict),
            (vec![tool("form", plain.clone())], Code::RequestInvalid),
            (vec![tool("notification", plain.clone())], Code::RequestInvalid),
            (vec![tool("get a", plain.clone())], Code::RequestInvalid),
            (vec![tool("get-a@1", plain.clone())], Code::RequestInvalid),
            (vec![tool("", plain.clone())], Code::RequestInvalid),
            (vec![tool("set-a", plain.clone())], Code::PermissionDenied),
            (vec![tool("get-a", json!("string"))], Code::ToolSchemaInvalid),
            (vec![tool("get-a", json!({"type": "strin"}))], Code::ToolSchemaInvalid),
            (
                vec![tool("get-a", json!({"description": "x".repeat(70_000)}))],
                Code::ToolSchemaTooLarge,
            ),
            (
                (0..257).map(|n| tool(&format!("get-{n}"), plain.clone())).collect(),
                Code::RequestInvalid,
            ),
        ] {
            let fault = checked(&tools).expect_err("refused");
            assert!(fault.is(code), "{fault}");
        }
    }

    #[test]
    fn k032_a_tool_acts_unless_its_schema_says_that_it_does_not() {
        let defs = checked(&[
            tool("get-a", json!({"type": "object"})),
            tool("get-b", json!({"type": "object", "x-wharf-side-effects": false})),
        ]);
        let defs = defs.expect("fits");
        assert_eq!((defs[0].side_effects, defs[1].side_effects), (None, Some(false)));
    }
}
