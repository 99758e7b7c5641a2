//! Layers that stand around tools of any types.

use std::any::Any;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use wharf_vocab::{Code, Fault};

use super::layer::{Layer, Next};
use super::scope::{Place, Within};
use crate::{Cx, Data};

/// A layer that does not care what a tool takes and gives, so that it can stand around one tool,
/// several, or all: [`Scope::around_all`](crate::Scope::around_all).
///
/// `work` is the rest of the call. It begins when it is awaited, and may not be awaited at all.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use wharf_sdk::{AnyLayer, Around, Fault, Scope, Tool};
///
/// /// Counts what goes wrong.
/// #[derive(Clone, Default)]
/// struct CountFaults(Arc<AtomicU64>);
///
/// impl AnyLayer for CountFaults {
///     fn around<T: Send + 'static>(
///         &self,
///         _call: Around,
///         work: impl Future<Output = Result<T, Fault>> + Send + 'static,
///     ) -> impl Future<Output = Result<T, Fault>> + Send + 'static {
///         let count = Arc::clone(&self.0);
///         async move {
///             let result = work.await;
///             count.fetch_add(result.is_err().into(), Ordering::Relaxed);
///             result
///         }
///     }
/// }
///
/// const NOBODY: Tool<(), ()> = Tool::new("nobody", "Has no implementation.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let faults = CountFaults::default();
/// let scope = Scope::root();
/// scope.around_all(faults.clone());
/// assert!(NOBODY.call(&scope, ()).await.is_err());
/// assert_eq!(faults.0.load(Ordering::Relaxed), 1);
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand around tools of any types",
    label = "not a layer for all tools",
    note = "`Timeout`, `RateLimit`, `Concurrency`, `Trace` and `Approve` can; put others around one tool with `scope.layer(…)`"
)]
pub trait AnyLayer: Send + Sync + 'static {
    /// Handles a call.
    fn around<T: Send + 'static>(
        &self,
        call: Around,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Fault>> + Send + 'static;

    /// Whether it wants to see inputs, as JSON. They are written out only then.
    fn sees_input(&self) -> bool {
        false
    }
}

/// The call that a layer of any types stands around. Built-ins and other tools can be called
/// from it.
#[derive(Debug, Clone)]
pub struct Around {
    tool: &'static str,
    place: Place,
    input: Option<Value>,
}

impl Around {
    fn of<I: Data, P>(cx: &Cx<P>, input: Option<&I>) -> Self {
        let input = input.map(|input| serde_json::to_value(input).unwrap_or_default());
        Self { tool: cx.tool(), place: cx.place(), input }
    }

    /// The name of the tool.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        self.tool
    }

    /// The name of the agent that makes the call, if one does.
    #[must_use]
    pub fn agent(&self) -> Option<&'static str> {
        self.place.0.lineage().find_map(|scope| scope.agent).map(|agent| agent.name)
    }

    /// The input, if the layer wanted to see it.
    #[must_use]
    pub fn input(&self) -> Option<&Value> {
        self.input.as_ref()
    }
}

impl Within for Around {
    fn place(&self) -> Place {
        self.place.clone()
    }
}

impl<I: Data, O: Data, P: Data, L: AnyLayer> Layer<I, O, P> for L {
    fn call(&self, input: I, next: Next<I, O, P>) -> BoxFuture<'static, Result<O, Fault>> {
        let call = Around::of(next.cx(), self.sees_input().then_some(&input));
        Box::pin(self.around(call, async move { next.run(input).await }))
    }
}

type ErasedOutput = Result<Box<dyn Any + Send>, Fault>;

/// What a layer of any types does with a call.
type Wrap = dyn Fn(Around, BoxFuture<'static, ErasedOutput>) -> BoxFuture<'static, ErasedOutput>
    + Send
    + Sync;

/// One layer that stands around many tools.
#[derive(Clone)]
pub(crate) struct SharedLayer {
    around: Arc<Wrap>,
    sees_input: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl SharedLayer {
    pub(crate) fn new(layer: impl AnyLayer) -> Self {
        let layer = Arc::new(layer);
        let seeing = Arc::clone(&layer);
        Self {
            around: Arc::new(move |call, work| Box::pin(layer.around(call, work))),
            sees_input: Arc::new(move || seeing.sees_input()),
        }
    }
}

impl<I: Data, O: Data, P: Data> Layer<I, O, P> for SharedLayer {
    fn call(&self, input: I, next: Next<I, O, P>) -> BoxFuture<'static, Result<O, Fault>> {
        let call = Around::of(next.cx(), (self.sees_input)().then_some(&input));
        let work = async move {
            let output = next.run(input).await?;
            Ok(Box::new(output) as Box<dyn Any + Send>)
        };
        let work = (self.around)(call, Box::pin(work));
        Box::pin(async move {
            let output = work.await?.downcast();
            output.map(|output| *output).map_err(|_| {
                let message = "A layer gave the output of another call.";
                Fault::new(Code::ToolInternal, message)
            })
        })
    }
}
