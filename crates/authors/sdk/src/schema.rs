//! Schemas from types, and what does not fit them.
//!
//! A message about input names the place and the rule, never the value.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::Validator;
use parking_lot::RwLock;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault};

/// The schema of what a type reads.
pub(crate) fn of_input<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// The schema of what a type writes.
pub(crate) fn of_output<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// The schema of a type, and what checks values against it.
#[derive(Debug)]
pub(crate) struct CheckedSchema {
    pub(crate) schema: Value,
    /// Or why the schema cannot be used.
    pub(crate) validator: Result<Validator, String>,
}

impl CheckedSchema {
    pub(crate) fn of(schema: Value) -> Self {
        let validator = compile(&schema);
        Self { schema, validator }
    }

    /// Where a value does not fit, and why.
    pub(crate) fn misfit(&self, value: &Value) -> Option<(String, String)> {
        match &self.validator {
            Ok(validator) => validator.validate(value).err().map(|error| {
                // The error's own text can quote the value; the masked form never does.
                (error.instance_path().to_string(), format!("{}", error.masked()))
            }),
            Err(why) => Some((String::new(), why.clone())),
        }
    }

    /// Says where an input does not fit, if it does not.
    pub(crate) fn check_input(&self, input: &Value) -> Result<(), Fault> {
        match self.misfit(input) {
            None => Ok(()),
            Some((path, why)) => Err(unfit(&path, &format!(": {why}"))),
        }
    }

    /// Says where the output of a tool does not fit, if it does not.
    pub(crate) fn check_output(&self, tool: &str, output: &Value) -> Result<(), Fault> {
        match self.misfit(output) {
            None => Ok(()),
            Some((path, why)) => Err(unfit_output(tool, &path, &why)),
        }
    }
}

/// Compiles a schema.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::draft202012::new(schema).map_err(|error| format!("{}", error.masked()))
}

/// What is known of the types of this program. There are only so many, so nothing is forgotten.
static SHAPES: LazyLock<RwLock<Shapes>> = LazyLock::new(RwLock::default);

type Shapes = HashMap<(TypeId, Contract), Arc<CheckedSchema>>;

/// Which side of a type is meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Contract {
    Reads,
    Writes,
}

/// The shape of what a type reads.
pub(crate) fn read_by<T: JsonSchema + 'static>() -> Arc<CheckedSchema> {
    shape(TypeId::of::<T>(), Contract::Reads, of_input::<T>)
}

/// The shape of what a type writes.
pub(crate) fn written_by<T: JsonSchema + 'static>() -> Arc<CheckedSchema> {
    shape(TypeId::of::<T>(), Contract::Writes, of_output::<T>)
}

fn shape(of: TypeId, contract: Contract, schema: fn() -> Value) -> Arc<CheckedSchema> {
    let known = SHAPES.read().get(&(of, contract)).cloned();
    known.unwrap_or_else(|| {
        let shape = Arc::new(CheckedSchema::of(schema()));
        SHAPES.write().insert((of, contract), Arc::clone(&shape));
        shape
    })
}

/// A place in a value, as a JSON pointer.
pub(crate) fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter().map(|step| format!("/{step}")).collect()
}

pub(crate) fn unfit(path: &str, why: &str) -> Fault {
    let place = if path.is_empty() { "the top level" } else { path };
    let message = format!("The input does not fit the tool at {place}{why}.");
    Fault::new(Code::ToolInvalidInput, message).with("path", path).executed(Executed::No)
}

/// An output does not fit.
pub(crate) fn unfit_output(tool: &str, path: &str, why: &str) -> Fault {
    let place = if path.is_empty() { "the top level" } else { path };
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    let message = format!("The output of the tool {tool:?} does not fit at {place}{why}.");
    Fault::new(Code::ToolInvalidOutput, message).with("path", path).executed(Executed::Yes)
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;
    use crate::{Cx, Scope, Tool, Within as _};

    #[derive(Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
    struct Input {
        count: u8,
        #[serde(default)]
        name: Option<String>,
    }

    const SAME: Tool<Input, Input> = Tool::new("same", "Gives what it got.");

    async fn read(value: &Value) -> Result<Value, Fault> {
        let scope = Scope::root();
        scope.provide(&SAME, |input: Input, _cx: Cx| async move { Ok(input) }).expect("usable");
        scope.exposed()[0].call(scope.place(), value.clone(), None).await
    }

    #[tokio::test]
    async fn r088_what_does_not_fit_is_named_by_its_place_and_never_quoted() {
        assert_eq!(read(&json!({"count": 3})).await, Ok(json!({"count": 3, "name": null})));
        for (input, path) in [
            (json!({"count": "canary"}), "/count"),
            (json!({"count": 4711}), "/count"),
            (json!({"count": 1, "name": ["canary"]}), "/name"),
            (json!({"name": "canary"}), ""),
        ] {
            let fault = read(&input).await.expect_err("it does not fit");
            assert!(fault.is(Code::ToolInvalidInput));
            assert_eq!(fault.details.get("path"), Some(&json!(path)), "{input}");
            assert!(!fault.message.contains("canary"), "{}", fault.message);
            assert!(!fault.message.contains("4711"), "{}", fault.message);
        }
    }
}
