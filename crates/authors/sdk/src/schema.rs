//! Schemas from types, and what does not fit them.
//!
//! A message about input names the place and the rule, never the value.

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
