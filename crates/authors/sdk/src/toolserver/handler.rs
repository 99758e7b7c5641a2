//! The author's function with its types erased, as the server calls it.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use wharf_toolserver::{Call, Done, Failure, Handler, Reporter};
use wharf_wire::run_v1::code;

use super::hydrate::hydrate;
use super::{Error, ToolCx};
use crate::schema::{self, output_of};
use crate::{Fault, Object};

pub(super) type Work = BoxFuture<'static, Result<Object, Fault>>;
pub(super) type Erased = dyn Fn(&Validator, Object, ToolCx) -> Result<Work, Fault> + Send + Sync;

/// A handler before it is served.
pub(super) struct Draft {
    pub(super) input_schema: Value,
    pub(super) output_schema: Value,
    pub(super) erased: Arc<Erased>,
}

impl Draft {
    pub(super) fn new<I, O, F, Fut>(handler: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + Send + 'static,
        F: Fn(I, ToolCx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, Fault>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let erased = move |input_schema: &Validator, input: Object, cx: ToolCx| {
            let input: I = schema::read(input_schema, input)?;
            let handler = Arc::clone(&handler);
            let work: Work = Box::pin(async move { output_of(&handler(input, cx).await?) });
            Ok(work)
        };
        Self {
            input_schema: schema::of_input::<I>(),
            output_schema: schema::of_output::<O>(),
            erased: Arc::new(erased),
        }
    }

    /// Checks the schemas and makes it callable; runs are executed on these threads.
    pub(super) fn build(
        self,
        workers: Handle,
        digest: String,
        is_free: bool,
    ) -> Result<Typed, Error> {
        let unfit = |what, why| Error::Schema { what, why };
        let input = schema::compile(&self.input_schema).map_err(|why| unfit("input", why))?;
        if self.output_schema.get("type").is_none_or(|kind| kind != "null") {
            schema::compile(&self.output_schema).map_err(|why| unfit("output", why))?;
        }
        let tool = Tool { input, input_schema: self.input_schema, erased: self.erased };
        Ok(Typed { tool: Arc::new(tool), workers, digest, is_free })
    }
}

/// A handler that can be served.
pub(super) struct Typed {
    tool: Arc<Tool>,
    workers: Handle,
    digest: String,
    is_free: bool,
}

struct Tool {
    input: Validator,
    input_schema: Value,
    erased: Arc<Erased>,
}

impl Tool {
    async fn execute(&self, cx: ToolCx) -> Result<Object, Failure> {
        let inputs = hydrate(&self.input_schema, &cx).await?;
        // What does not fit is said before the handler has seen anything of it.
        let work = (self.erased)(&self.input, inputs, cx);
        let work = work.map_err(|fault| Failure::new(code::INPUTS, fault.message))?;
        work.await.map_err(|fault| Failure::new(fault.code.as_str(), fault.message))
    }
}

impl Handler for Typed {
    fn run(&self, call: Call, report: Reporter) -> BoxFuture<'static, Done> {
        let cx = ToolCx::new(call, report);
        let (tool, cx_of_work) = (Arc::clone(&self.tool), cx.clone());
        let work = self.workers.spawn(async move { tool.execute(cx_of_work).await });
        // Whoever stops waiting stops the work.
        let work = AbortOnDropHandle::new(work);
        let free = self.is_free.then_some(0);
        Box::pin(async move {
            let result = work.await.unwrap_or_else(|_| {
                let message = "The tool failed in a way its author did not foresee.";
                Err(Failure::new(code::HANDLER, message))
            });
            Done { result, cost: cx.cost_said().or(free).map(|micro| json!(micro)) }
        })
    }

    fn digest(&self) -> String {
        self.digest.clone()
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").finish_non_exhaustive()
    }
}

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").field("digest", &self.digest).finish_non_exhaustive()
    }
}
