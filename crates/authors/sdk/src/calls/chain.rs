//! What a call goes through: layers in their order, then whoever executes the tool.

use std::sync::Arc;

use futures::future::BoxFuture;
use wharf_vocab::{Code, Executed, Fault};

use super::layer::{Layer, Next};
use super::remote::Remote;
use super::tool::Function;
use crate::{Cx, Data};

/// An implementation that a scope was given.
pub(crate) type Handler<I, O, P> =
    dyn Fn(I, Cx<P>) -> BoxFuture<'static, Result<O, Fault>> + Send + Sync;

/// Layers in the order in which a call meets them.
pub(crate) type Layers<I, O, P> = Vec<Arc<dyn Layer<I, O, P>>>;

/// Whoever executes a tool.
pub(crate) enum Callee<I, O, P> {
    /// The definition itself.
    Own(Function<I, O, P>),
    /// An implementation of a scope.
    Local(Arc<Handler<I, O, P>>),
    /// Somebody elsewhere.
    Remote(Arc<Remote>),
    /// Nobody, and why.
    Nobody(Fault),
}

/// Layers in the order in which a call meets them, and what is behind them.
pub(crate) struct Chain<I, O, P> {
    pub(crate) layers: Layers<I, O, P>,
    pub(crate) core: Callee<I, O, P>,
}

impl<I: Data, O: Data, P: Data> Chain<I, O, P> {
    /// Goes on at a layer; behind the last one is whoever executes the tool.
    pub(crate) fn run(
        chain: &Arc<Self>,
        at: usize,
        input: I,
        cx: Cx<P>,
    ) -> BoxFuture<'static, Result<O, Fault>> {
        if let Some(layer) = chain.layers.get(at) {
            let next = Next { chain: Arc::clone(chain), at: at + 1, cx };
            return layer.call(input, next);
        }
        match &chain.core {
            Callee::Own(function) => function(input, cx),
            Callee::Local(handler) => handler(input, cx),
            Callee::Remote(remote) => remote.call(input, cx),
            Callee::Nobody(fault) => Box::pin(std::future::ready(Err(fault.clone()))),
        }
    }
}

/// Nobody executes a tool where it was called.
pub(crate) fn nobody(tool: &str) -> Fault {
    let message = format!(
        "The tool {tool:?} has no implementation here, and there is no transport to one elsewhere."
    );
    Fault::new(Code::ToolUnavailable, message).executed(Executed::No)
}

/// A tool's name is none.
pub(crate) fn bad_name(error: &crate::Error) -> Fault {
    Fault::new(Code::ToolNotFound, format!("The tool cannot be called: {error}."))
        .executed(Executed::No)
}

/// A tool of the same name but of other types is provided where it was called.
pub(crate) fn other_types(tool: &str) -> Fault {
    let message = format!(
        "The tool {tool:?} was given an implementation or a layer for other types than it was called with."
    );
    Fault::new(Code::ToolConflict, message).executed(Executed::No)
}
