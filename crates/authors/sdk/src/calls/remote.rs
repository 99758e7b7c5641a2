//! A tool that is executed elsewhere.

use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use wharf_protocol::tool::Answer;
use wharf_vocab::{Code, Executed, Fault};

use super::reached::CoreTool;
use super::wire::Wire;
use crate::schema::{self, Shape};
use crate::transport::{Exchange, Outgoing, Transport};
use crate::{Cx, Data};

/// A tool that is executed elsewhere, with what its outputs are checked against.
pub(crate) struct Remote<O, P> {
    shared: Arc<Shared>,
    types: PhantomData<fn() -> (O, P)>,
}

struct Shared {
    tool: &'static str,
    wire: Wire,
    transport: Arc<dyn Transport>,
    output: Arc<Shape>,
    /// The tool of the core that the definition stands for.
    at: Option<Arc<CoreTool>>,
}

impl<O: Data, P: Data> Remote<O, P> {
    pub(crate) fn new(
        tool: &'static str,
        wire: Wire,
        transport: Arc<dyn Transport>,
        at: Option<CoreTool>,
    ) -> Result<Self, Fault> {
        let output = schema::read_by::<O>();
        if output.validator.is_err() {
            return Err(unusable(tool));
        }
        let at = at.map(Arc::new);
        let shared = Arc::new(Shared { tool, wire, transport, output, at });
        Ok(Self { shared, types: PhantomData })
    }

    /// Makes the call over the transport.
    pub(crate) fn call(
        &self,
        input: impl Serialize,
        cx: Cx<P>,
    ) -> BoxFuture<'static, Result<O, Fault>> {
        let shared = Arc::clone(&self.shared);
        let input = serde_json::to_value(input);
        Box::pin(async move {
            let Ok(input) = input else { return Err(not_json(shared.tool)) };
            let (kind, method, payload) = shared.wire.request(shared.tool, input);
            let heard = cx.is_heard();
            let at = shared.at.clone();
            let exchange = shared.transport.request(Outgoing { kind, method, payload, heard, at });
            cx.called.state().spent_elsewhere(exchange.cost.clone());
            let answer = answered(exchange, &cx).await;
            let output = match answer {
                Some(answer) => shared.wire.output(answer)?,
                None => return Err(lost(shared.tool)),
            };
            shared.read(output)
        })
    }
}

impl Shared {
    /// Checks an output and makes it what it is for its caller.
    fn read<O: Data>(&self, output: Value) -> Result<O, Fault> {
        self.output.check_output(self.tool, &output)?;
        serde_path_to_error::deserialize(output)
            .map_err(|error| schema::unfit_output(self.tool, &schema::pointer(error.path()), ""))
    }
}

/// Waits for the answer and passes on what comes before it. `None` if the connection was lost.
async fn answered<P: Data>(exchange: Exchange, cx: &Cx<P>) -> Option<Answer> {
    let Exchange { mut progress, mut answer, guard, cost: _ } = exchange;
    let _guard = guard;
    let answer = loop {
        tokio::select! {
            biased;
            // Progress comes before the response also when both are there.
            Some(piece) = progress.recv() => say(piece, cx).await,
            answer = &mut answer => break answer.ok(),
        }
    };
    while let Ok(piece) = progress.try_recv() {
        say(piece, cx).await;
    }
    answer.filter(|answer| *answer != Answer::Lost)
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
