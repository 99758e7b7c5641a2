//! Layers: what stands around a call.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::chain::Chain;
use crate::{Cx, Fault};

/// Something that stands around calls of a tool. It may change the input and the output, answer
/// by itself, call what comes next any number of times, and see what goes wrong.
///
/// Most layers are closures, given to [`Scope::around`](crate::Scope::around); the ready-made ones
/// are in [`layers`](crate::layers).
pub trait Layer<I, O, P>: Send + Sync + 'static {
    /// Handles a call.
    fn call(&self, input: I, next: Next<I, O, P>) -> BoxFuture<'static, Result<O, Fault>>;
}

/// Where a layer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lane {
    /// Around everything of the scopes below: parents outside children, first come outermost.
    #[default]
    Outer,
    /// Next to the implementation: children outside parents.
    Inner,
}

/// What comes after a layer: further layers, then whoever executes the tool.
pub struct Next<I, O, P> {
    pub(crate) chain: Arc<Chain<I, O, P>>,
    pub(crate) at: usize,
    pub(crate) cx: Cx<P>,
}

impl<I, O, P> Next<I, O, P>
where
    I: crate::Data,
    O: crate::Data,
    P: crate::Data,
{
    /// Goes on with this input. It may be called any number of times, also never.
    pub fn run(&self, input: I) -> BoxFuture<'static, Result<O, Fault>> {
        Chain::run(&self.chain, self.at, input, self.cx.clone())
    }

    /// The call that the layer stands around: its scope, its progress, its built-ins.
    #[must_use]
    pub fn cx(&self) -> &Cx<P> {
        &self.cx
    }

    /// The name of the tool.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        self.cx.tool()
    }
}

impl<I, O, P> Clone for Next<I, O, P> {
    fn clone(&self) -> Self {
        Self { chain: Arc::clone(&self.chain), at: self.at, cx: self.cx.clone() }
    }
}

impl<I, O, P> std::fmt::Debug for Next<I, O, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next").field("at", &self.at).finish_non_exhaustive()
    }
}

/// A closure as a layer.
pub(crate) struct FromFn<F>(pub(crate) F);

impl<I, O, P, F, Fut> Layer<I, O, P> for FromFn<F>
where
    I: 'static,
    O: 'static,
    P: 'static,
    F: Fn(I, Next<I, O, P>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, Fault>> + Send + 'static,
{
    fn call(&self, input: I, next: Next<I, O, P>) -> BoxFuture<'static, Result<O, Fault>> {
        Box::pin((self.0)(input, next))
    }
}
