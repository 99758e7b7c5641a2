//! A tool with its types erased, as those see it who bring JSON.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::tool_v1::method;

use super::scope::Place;
use super::tool::Terms;
use super::wire::Wire;
use crate::error::Error;
use crate::schema::{self, CheckedSchema};
use crate::{Data, Tool};

/// What is told of a tool: its name, its description and its schemas.
///
/// ```
/// use wharf_sdk::{Agent, Scope, Tool};
///
/// const LENGTH: Tool<String, usize> = Tool::new("length", "How long a text is.");
/// const TEXTS: Agent = Agent::new("texts", "Knows texts.");
///
/// # fn main() -> Result<(), wharf_sdk::Error> {
/// let root = Scope::root();
/// let texts = TEXTS
///     .activate(&root, ())
///     .tool(&LENGTH, |text: String, _cx| async move { Ok(text.len()) })
///     .build()?;
/// let tools = texts.tools();
/// let definition = tools[0].definition();
/// assert_eq!(definition.name, "length");
/// assert_eq!(definition.input["type"], "string");
/// assert_eq!(definition.progress, None);
/// # Ok(()) }
/// ```
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
    /// What else is said of it.
    pub terms: Terms,
}

type ExposedFn = dyn Fn(Place, Value, Option<mpsc::Sender<Value>>) -> BoxFuture<'static, Result<Value, Fault>>
    + Send
    + Sync;

/// A tool that can be called with JSON.
pub struct ErasedTool {
    definition: Definition,
    pub(crate) wire: Wire,
    input: Arc<CheckedSchema>,
    output: Arc<CheckedSchema>,
    run: Arc<ExposedFn>,
}

impl ErasedTool {
    /// Checks the definition and makes it callable with JSON.
    pub(crate) fn of<I: Data, O: Data, P: Data, S>(tool: &Tool<I, O, P, S>) -> Result<Self, Error> {
        check_name(tool.name(), tool.wire)?;
        let (input, output) = (schema::read_by::<I>(), schema::written_by::<O>());
        let progress = schema::written_by::<P>();
        for (what, shape) in [("input", &input), ("output", &output), ("progress", &progress)] {
            if let Err(why) = &shape.validator {
                let (name, why) = (tool.name().to_owned(), why.clone());
                return Err(Error::Schema { name, what, why });
            }
        }
        let says_nothing = progress.schema.get("type").is_some_and(|kind| kind == "null");
        let definition = Definition {
            name: tool.name(),
            description: tool.description(),
            input: input.schema.clone(),
            output: output.schema.clone(),
            progress: (!says_nothing).then(|| progress.schema.clone()),
            terms: *tool.terms(),
        };
        let typed = tool.erased();
        let run: Arc<ExposedFn> = Arc::new(move |place, input, told| {
            let input: I = match serde_path_to_error::deserialize(input) {
                Ok(input) => input,
                Err(error) => {
                    let unfit = schema::unfit(&schema::pointer(error.path()), "");
                    return Box::pin(std::future::ready(Err(unfit)));
                }
            };
            Box::pin(listened(typed.call(&place, input), told))
        });
        Ok(Self { definition, wire: tool.wire, input, output, run })
    }

    /// What is told of the tool.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Checks the input, calls the tool in a place, passes on what it says on the way, checks its
    /// output and gives it. Layers of the place stand around it.
    ///
    /// ```
    /// use wharf_sdk::{Agent, Cx, Fault, Scope, Tool, Within};
    ///
    /// const SQUARE: Tool<u8, u16> = Tool::new("square", "A number times itself.");
    /// const MATHS: Agent = Agent::new("maths", "Knows numbers.");
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let root = Scope::root();
    /// let maths = MATHS
    ///     .activate(&root, ())
    ///     .tool(&SQUARE, |n: u8, _cx| async move { Ok(u16::from(n) * u16::from(n)) })
    ///     .build()?;
    /// let square = &maths.tools()[0];
    /// assert_eq!(square.call(maths.place(), 12.into(), None).await?, 144);
    /// let fault = square.call(maths.place(), "twelve".into(), None).await.unwrap_err();
    /// assert_eq!(fault.code.as_str(), "tool.invalid_input");
    /// # Ok(()) }
    /// ```
    pub async fn call(
        &self,
        place: Place,
        input: Value,
        told: Option<mpsc::Sender<Value>>,
    ) -> Result<Value, Fault> {
        self.input.check_input(&input)?;
        let output = (self.run)(place, input, told).await?;
        self.output.check_output(self.definition.name, &output)?;
        Ok(output)
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

pub(crate) fn check_name(name: &str, wire: Wire) -> Result<(), Error> {
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

/// Whether a text is made of the letters that ids and names allow.
pub(crate) fn is_name(text: &str, bytes_max: usize) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    (1..=bytes_max).contains(&text.len()) && text.bytes().all(is_letter)
}

debug_only!(ErasedTool: definition);
