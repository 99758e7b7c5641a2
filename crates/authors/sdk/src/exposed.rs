//! A tool with its types erased, as those see it who bring JSON.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use jsonschema::Validator;
use serde_json::Value;
use tokio::sync::mpsc;
use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::tool_v1::method;

use crate::error::Error;
use crate::name::is_name;
use crate::schema;
use crate::scope::Place;
use crate::wire::Wire;
use crate::{Data, Tool};

/// What is told of a tool: its name, its description and its schemas.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// JSON Schema of its input.
    pub input: Value,
    /// JSON Schema of its output.
    pub output: Value,
    /// JSON Schema of its progress, if it says anything on the way.
    pub progress: Option<Value>,
}

type Run = dyn Fn(Place, Value, Option<mpsc::Sender<Value>>) -> BoxFuture<'static, Result<Value, Fault>>
    + Send
    + Sync;

/// A tool that can be called with JSON.
pub struct Exposed {
    definition: Definition,
    pub(crate) wire: Wire,
    input: Validator,
    run: Arc<Run>,
}

impl Exposed {
    /// Checks the definition and makes it callable with JSON.
    pub(crate) fn of<I: Data, O: Data, P: Data, S>(tool: &Tool<I, O, P, S>) -> Result<Self, Error> {
        let target = tool.target();
        check_name(target.name, target.wire)?;
        let definition = Definition {
            name: tool.name(),
            description: tool.description(),
            input: schema::of_input::<I>(),
            output: schema::of_output::<O>(),
            progress: Some(schema::of_output::<P>())
                .filter(|schema| schema.get("type").is_none_or(|kind| kind != "null")),
        };
        let unusable =
            |what, why: String| Error::Schema { name: tool.name().to_owned(), what, why };
        let input = compile(&definition.input).map_err(|why| unusable("input", why))?;
        compile(&definition.output).map_err(|why| unusable("output", why))?;
        let typed = Tool::<I, O, P, S>::clone(tool).erased();
        let run: Arc<Run> = Arc::new(move |place, input, told| {
            let input: I = match serde_path_to_error::deserialize(input) {
                Ok(input) => input,
                Err(error) => {
                    let path: String = error.path().iter().map(|step| format!("/{step}")).collect();
                    return Box::pin(std::future::ready(Err(schema::unfit(&path, ""))));
                }
            };
            Box::pin(listened(typed.call(&place, input), told))
        });
        Ok(Self { definition, wire: target.wire, input, run })
    }

    /// What is told of the tool.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Checks the input, calls the tool in a place, passes on what it says on the way, and gives
    /// its output. Layers of the place stand around it.
    pub async fn call(
        &self,
        place: Place,
        input: Value,
        told: Option<mpsc::Sender<Value>>,
    ) -> Result<Value, Fault> {
        schema::check(&self.input, &input)?;
        (self.run)(place, input, told).await
    }
}

/// Waits for a call and passes its progress on.
async fn listened<O: Data, P: Data>(
    mut call: crate::Call<O, P>,
    told: Option<mpsc::Sender<Value>>,
) -> Result<Value, Fault> {
    if let Some(told) = told {
        while let Some(piece) = call.progress().await {
            let piece = serde_json::to_value(piece).unwrap_or_default();
            if told.send(piece).await.is_err() {
                break;
            }
        }
    }
    let output = call.await?;
    serde_json::to_value(output).map_err(|_| {
        let message = "The tool gave an output that is not JSON.";
        Fault::new(Code::ToolInvalidOutput, message).executed(Executed::Yes)
    })
}

fn check_name(name: &str, wire: Wire) -> Result<(), Error> {
    if wire != Wire::Tool {
        return Ok(());
    }
    if !is_name(name, 128) {
        return Err(Error::ToolName { name: name.to_owned() });
    }
    if method::RESERVED.contains(&name) {
        return Err(Error::ReservedName { name: name.to_owned() });
    }
    Ok(())
}

pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::draft202012::new(schema).map_err(|error| format!("{}", error.masked()))
}

impl fmt::Debug for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exposed").field("name", &self.definition.name).finish_non_exhaustive()
    }
}
