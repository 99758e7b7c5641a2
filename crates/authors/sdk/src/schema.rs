//! Schemas from types, and what does not fit them.
//!
//! A message about input names the place and the rule, never the value.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

use jsonschema::Validator;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault, Object};

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
pub(crate) struct Shape {
    pub(crate) schema: Value,
    /// Or why the schema cannot be used.
    pub(crate) validator: Result<Validator, String>,
}

impl Shape {
    fn of(schema: Value) -> Self {
        let validator = crate::exposed::compile(&schema);
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
}

/// What is known of the types of this program. There are only so many, so nothing is forgotten.
static SHAPES: LazyLock<RwLock<Shapes>> = LazyLock::new(RwLock::default);

type Shapes = HashMap<(TypeId, Contract), Arc<Shape>>;

/// Which side of a type is meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Contract {
    Reads,
    Writes,
}

/// The shape of what a type reads.
pub(crate) fn read_by<T: JsonSchema + 'static>() -> Arc<Shape> {
    shape(TypeId::of::<T>(), Contract::Reads, of_input::<T>)
}

/// The shape of what a type writes.
pub(crate) fn written_by<T: JsonSchema + 'static>() -> Arc<Shape> {
    shape(TypeId::of::<T>(), Contract::Writes, of_output::<T>)
}

fn shape(of: TypeId, contract: Contract, schema: fn() -> Value) -> Arc<Shape> {
    let known = crate::life::read(&SHAPES).get(&(of, contract)).cloned();
    known.unwrap_or_else(|| {
        let shape = Arc::new(Shape::of(schema()));
        crate::life::write(&SHAPES).insert((of, contract), Arc::clone(&shape));
        shape
    })
}

/// A place in a value, as a JSON pointer.
pub(crate) fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter().map(|step| format!("/{step}")).collect()
}

/// Compiles the schema of something that has to be an object.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    let names_object = match schema.get("type") {
        None => schema.is_object(),
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if !names_object {
        return Err("it must be a JSON object, so use a struct with named fields".to_owned());
    }
    jsonschema::draft202012::new(schema).map_err(|error| format!("{}", error.masked()))
}

/// Makes a typed input of an object, or says where it does not fit.
pub(crate) fn read<T: DeserializeOwned>(schema: &Validator, input: Object) -> Result<T, Fault> {
    let input = Value::Object(input);
    check(schema, &input)?;
    serde_path_to_error::deserialize(&input).map_err(|error| {
        let path: String = error.path().iter().map(|step| format!("/{step}")).collect();
        unfit(&path, "")
    })
}

/// An output as the object it has to be.
pub(crate) fn output_of(output: &impl Serialize) -> Result<Object, Fault> {
    match serde_json::to_value(output) {
        Ok(Value::Object(output)) => Ok(output),
        Ok(Value::Null) => Ok(Object::new()),
        _ => {
            let message = "The tool gave an output that is not a JSON object.";
            Err(Fault::new(Code::ToolInvalidOutput, message).executed(Executed::Yes))
        }
    }
}

/// Says where an input does not fit, if it does not.
pub(crate) fn check(schema: &Validator, input: &Value) -> Result<(), Fault> {
    schema.validate(input).map_err(|error| {
        let path = error.instance_path().to_string();
        // The error's own text can quote the value; the masked form never does.
        unfit(&path, &format!(": {}", error.masked()))
    })
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
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Input {
        count: u8,
        #[serde(default)]
        name: Option<String>,
    }

    fn read_input(value: &Value) -> Result<Input, Fault> {
        let schema = compile(&of_input::<Input>()).expect("a usable schema");
        read(&schema, value.as_object().expect("an object").clone())
    }

    #[test]
    fn r088_what_does_not_fit_is_named_by_its_place_and_never_quoted() {
        assert_eq!(read_input(&json!({"count": 3})), Ok(Input { count: 3, name: None }));
        for (input, path) in [
            (json!({"count": "canary"}), "/count"),
            (json!({"count": 4711}), "/count"),
            (json!({"count": 1, "name": ["canary"]}), "/name"),
            (json!({"name": "canary"}), ""),
        ] {
            let fault = read_input(&input).expect_err("it does not fit");
            assert!(fault.is(Code::ToolInvalidInput));
            assert_eq!(fault.details.get("path"), Some(&json!(path)), "{input}");
            assert!(!fault.message.contains("canary"), "{}", fault.message);
            assert!(!fault.message.contains("4711"), "{}", fault.message);
        }
    }

    #[test]
    fn only_objects_can_be_inputs() {
        assert!(compile(&of_input::<Vec<String>>()).is_err());
        assert!(compile(&of_input::<u8>()).is_err());
        assert!(compile(&of_input::<Input>()).is_ok());
    }
}
