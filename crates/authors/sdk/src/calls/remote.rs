//! A tool that is executed elsewhere.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use wharf_protocol::tool::ToolAnswer;
use wharf_vocab::{Code, Executed, Fault};

use super::progress::passing_on;
use super::reached::CoreTool;
use super::wire::Wire;
use crate::schema::{self, CheckedSchema};
use crate::transport::{Exchange, Outgoing, Transport};
use crate::{Cx, Data, Tool};

/// A tool that is executed elsewhere, with what its outputs are checked against.
pub(crate) struct Remote {
    tool: &'static str,
    wire: Wire,
    transport: Arc<dyn Transport>,
    output: Arc<CheckedSchema>,
    /// The tool of the core that the definition stands for.
    at: Option<Arc<CoreTool>>,
}

impl Remote {
    pub(crate) fn new<I: Data, O: Data, P: Data>(
        tool: &Tool<I, O, P>,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, Fault> {
        let output = schema::read_by::<O>();
        if output.validator.is_err() {
            return Err(unusable(tool.name()));
        }
        let at = tool.terms().at.map(CoreTool::typed::<I, O, P>).map(Arc::new);
        Ok(Self { tool: tool.name(), wire: tool.wire, transport, output, at })
    }

    /// Makes the call over the transport.
    pub(crate) fn call<O: Data, P: Data>(
        self: &Arc<Self>,
        input: impl Serialize,
        cx: Cx<P>,
    ) -> BoxFuture<'static, Result<O, Fault>> {
        let remote = Arc::clone(self);
        let input = serde_json::to_value(input);
        Box::pin(async move {
            let Ok(input) = input else { return Err(not_json(remote.tool)) };
            let (kind, method, payload) = remote.wire.request(remote.tool, input);
            let heard = cx.is_heard();
            let at = remote.at.clone();
            let exchange = remote.transport.request(Outgoing { kind, method, payload, heard, at });
            cx.called.state().spent_elsewhere(exchange.cost.clone());
            let answer = answered(exchange, &cx).await.ok_or_else(|| lost(remote.tool))?;
            let output = remote.wire.output(answer)?;
            remote.output.check_output(remote.tool, &output)?;
            serde_path_to_error::deserialize(output).map_err(|error| {
                schema::unfit_output(remote.tool, &schema::pointer(error.path()), "")
            })
        })
    }
}

/// Waits for the answer and passes on what comes before it. `None` if the connection was lost.
async fn answered<P: Data>(exchange: Exchange, cx: &Cx<P>) -> Option<ToolAnswer> {
    let Exchange { mut progress, answer, guard: _guard, cost: _ } = exchange;
    let answer = passing_on(answer, &mut progress, |piece| say(piece, cx)).await;
    answer.ok().filter(|answer| *answer != ToolAnswer::Lost)
}

/// Passes a piece of progress on. One that is not what the definition says is nobody's.
async fn say<P: Data>(piece: Value, cx: &Cx<P>) {
    if let Ok(piece) = serde_json::from_value(piece) {
        cx.progress(piece).await;
    }
}

fn unusable(tool: &str) -> Fault {
    let message = format!("The schema of the output of the tool {tool:?} cannot be used.");
    Fault::new(Code::ToolSchemaInvalid, message).executed(Executed::No)
}

fn not_json(tool: &str) -> Fault {
    let message = format!("The input of the tool {tool:?} cannot be written as JSON.");
    Fault::new(Code::ToolInvalidInput, message).executed(Executed::No)
}

fn lost(tool: &str) -> Fault {
    let message = format!("The connection ended before the tool {tool:?} answered.");
    Fault::new(Code::TransportLost, message).executed(Executed::Maybe)
}
