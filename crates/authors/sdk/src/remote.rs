//! A tool that is executed elsewhere.

use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use jsonschema::Validator;
use serde::Serialize;
use serde_json::Value;
use wharf_protocol::tool::Answer;
use wharf_vocab::{Code, Executed, Fault};

use crate::exposed::compile;
use crate::schema;
use crate::tables::unusable;
use crate::transport::{Exchange, Outgoing, Transport};
use crate::wire::Wire;
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
    output: Validator,
}

impl<O: Data, P: Data> Remote<O, P> {
    pub(crate) fn new(
        tool: &'static str,
        wire: Wire,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, Fault> {
        let output = compile(&schema::of_input::<O>()).map_err(|_| unusable(tool, "output"))?;
        let shared = Arc::new(Shared { tool, wire, transport, output });
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
            let exchange = shared.transport.request(Outgoing { kind, method, payload, heard });
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
        let fault = |path: &str, why: &str| {
            let place = if path.is_empty() { "the top level" } else { path };
            let message =
                format!("The output of the tool {:?} does not fit at {place}{why}.", self.tool);
            Fault::new(Code::ToolInvalidOutput, message).with("path", path).executed(Executed::Yes)
        };
        if let Err(error) = self.output.validate(&output) {
            let path = error.instance_path().to_string();
            return Err(fault(&path, &format!(": {}", error.masked())));
        }
        serde_path_to_error::deserialize(output).map_err(|error| {
            let path: String = error.path().iter().map(|step| format!("/{step}")).collect();
            fault(&path, "")
        })
    }
}

/// Waits for the answer and passes on what comes before it. `None` if the connection was lost.
async fn answered<P: Data>(exchange: Exchange, cx: &Cx<P>) -> Option<Answer> {
    let Exchange { mut progress, mut answer, guard } = exchange;
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

fn not_json(tool: &str) -> Fault {
    let message = format!("The input of the tool {tool:?} cannot be written as JSON.");
    Fault::new(Code::ToolInvalidInput, message).executed(Executed::No)
}

fn lost(tool: &str) -> Fault {
    let message = format!("The connection ended before the tool {tool:?} answered.");
    Fault::new(Code::TransportLost, message).executed(Executed::Maybe)
}
