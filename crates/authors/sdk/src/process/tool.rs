//! A tool: what the core is told about it, and the function behind it with its types erased.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_vocab::{Fault, Object};
use wharf_wire::agent_v1::ToolDefinition;

use crate::name::is_name;
use crate::process::{AgentCx, Error};
use crate::schema::{self, output_of};

pub(super) type Work = BoxFuture<'static, Result<Object, Fault>>;
pub(super) type Handler = dyn Fn(&Validator, Object, AgentCx) -> Result<Work, Fault> + Send + Sync;

/// A tool before its agent is built.
pub(crate) struct Draft {
    pub(crate) side_effects: Option<bool>,
    pub(crate) requires_directive: Option<bool>,
    pub(crate) tags: Option<Vec<String>>,
    /// Whether it can pretend.
    pub(crate) mock: bool,
    /// Whether it says that it never costs anything.
    pub(crate) free: bool,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Value,
    pub(super) output_schema: Value,
    pub(super) handler: Arc<Handler>,
}

/// A tool that can be called.
#[derive(Clone)]
pub(crate) struct Tool {
    input: Arc<Validator>,
    handler: Arc<Handler>,
}

impl Draft {
    pub(crate) fn new<I, O, F, Fut>(name: String, description: String, handler: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + Send + 'static,
        F: Fn(I, AgentCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Fault>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let erased = move |input_schema: &Validator, input: Object, cx: AgentCx| {
            let input: I = schema::read(input_schema, input)?;
            let handler = Arc::clone(&handler);
            let work: Work = Box::pin(async move { output_of(&handler(input, cx).await?) });
            Ok(work)
        };
        Self {
            side_effects: None,
            requires_directive: None,
            tags: None,
            mock: false,
            free: false,
            name,
            description,
            input_schema: schema::of_input::<I>(),
            output_schema: schema::of_output::<O>(),
            handler: Arc::new(erased),
        }
    }

    /// Checks the tool and makes it callable under the agent's id.
    pub(crate) fn build(self, agent_id: &str) -> Result<(ToolDefinition, Tool), Error> {
        if !is_name(&self.name, 128) {
            return Err(Error::ToolName { name: self.name });
        }
        let unusable = |what, why| Error::Schema { name: self.name.clone(), what, why };
        let input = schema::compile(&self.input_schema).map_err(|why| unusable("input", why))?;
        let has_output = self.output_schema.get("type").is_none_or(|name| name != "null");
        if has_output {
            schema::compile(&self.output_schema).map_err(|why| unusable("output", why))?;
        }
        let told = [("mock", self.mock), ("free", self.free)];
        let told = told.iter().filter(|(_, is_said)| *is_said).map(|(word, _)| *word);
        let capabilities = ["streaming", "cancellation"].into_iter().chain(told);
        let capabilities = capabilities.map(str::to_owned).collect();
        let definition = ToolDefinition {
            tool_id: format!("{agent_id}/{}", self.name),
            name: self.name,
            description: self.description,
            input_schema: self.input_schema,
            output_schema: has_output.then_some(self.output_schema),
            capabilities: Some(capabilities),
            side_effects: self.side_effects,
            requires_directive: self.requires_directive,
            tags: self.tags,
        };
        Ok((definition, Tool { input: Arc::new(input), handler: self.handler }))
    }
}

impl Tool {
    /// Checks the input and executes the tool. What is wrong with the input is said before the
    /// handler has seen anything of it.
    pub(crate) async fn execute(&self, input: Object, cx: AgentCx) -> Result<Object, Fault> {
        (self.handler)(&self.input, input, cx)?.await
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").finish_non_exhaustive()
    }
}
