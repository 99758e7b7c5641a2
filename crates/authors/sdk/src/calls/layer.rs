//! Layers: what stands around a call.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::chain::Chain;
use crate::{Cx, Fault};

/// Something that stands around calls of a tool. It may change the input and the output, answer
/// by itself, call what comes next any number of times, and see what goes wrong.
///
/// Most layers are closures, given to [`Scope::around`](crate::Scope::around); the ready-made ones
/// are in [`layers`](crate::layers). What does not care for types is rather an
/// [`AnyLayer`](crate::AnyLayer).
///
/// ```
/// use futures::future::BoxFuture;
/// use wharf_sdk::{Data, Fault, Lane, Layer, Next, Scope, Tool, boxed};
///
/// /// Lets nothing but short texts through.
/// struct AtMost(usize);
///
/// impl<O: Data, P: Data> Layer<String, O, P> for AtMost {
///     fn call(
///         &self,
///         input: String,
///         next: Next<String, O, P>,
///     ) -> BoxFuture<'static, Result<O, Fault>> {
///         next.run(input.chars().take(self.0).collect())
///     }
/// }
///
/// const SHOUT: Tool<String, String> = Tool::new("shout", "Says it loudly.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&SHOUT, |text: String, _cx| async move { Ok(text.to_uppercase()) })?;
/// scope.layer(Lane::Outer, &SHOUT, AtMost(4));
/// assert_eq!(SHOUT.call(&scope, "land ahoy".to_owned()).await?, "LAND");
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand around a tool that takes `{I}`, gives `{O}` and says `{P}`",
    label = "not a layer for this tool",
    note = "a closure `|input, next| async move {{ … }}` is given to `scope.around(&TOOL, …)`",
    note = "ready-made layers may want more of the types: `Retry` clones inputs, `Cache` outputs"
)]
pub trait Layer<I, O, P>: Send + Sync + 'static {
    /// Handles a call.
    fn call(&self, input: I, next: Next<I, O, P>) -> BoxFuture<'static, Result<O, Fault>>;
}

/// Where a layer stands.
///
/// A call meets the outer lane of the parent, the outer lane of the child, the inner lane of the
/// child, the inner lane of the parent, and then whoever executes the tool.
///
/// ```
/// use wharf_sdk::layers::{Cache, Timeout};
/// use wharf_sdk::{Lane, Scope, Tool};
///
/// const FETCH: Tool<String, String> = Tool::new("fetch", "Fetches a page.");
///
/// let scope = Scope::root();
/// scope.layer(Lane::Outer, &FETCH, Cache::new());
/// // Next to whoever executes it, whatever a child adds.
/// scope.layer(Lane::Inner, &FETCH, Timeout::after_secs(5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lane {
    /// Around everything of the scopes below: parents outside children, first come outermost.
    #[default]
    Outer,
    /// Next to the implementation: children outside parents.
    Inner,
}

/// What comes after a layer: further layers, then whoever executes the tool. Cheap to clone.
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
    ///
    /// ```
    /// use wharf_sdk::{Scope, Tool};
    ///
    /// const GUESS: Tool<u8, u8> = Tool::new("guess", "Guesses a number.");
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let scope = Scope::root();
    /// scope.provide(&GUESS, |n, _cx| async move { Ok(n + 1) })?;
    /// // The better of two.
    /// scope.around(&GUESS, |n, next| async move {
    ///     Ok(next.run(n).await?.max(next.run(10 * n).await?))
    /// });
    /// assert_eq!(GUESS.call(&scope, 4).await?, 41);
    /// # Ok(()) }
    /// ```
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

debug_only!(Next<I, O, P>: at);

/// A function or closure that is a layer: it takes the input and what comes [`Next`], and its
/// future gives the output. Nothing else is one.
pub trait LayerFn<I, O, P>:
    Fn(I, Next<I, O, P>) -> <Self as LayerFn<I, O, P>>::Work + Send + Sync + 'static
{
    /// What it returns.
    type Work: Future<Output = Result<O, Fault>> + Send + 'static;
}

impl<I, O, P, F, Fut> LayerFn<I, O, P> for F
where
    F: Fn(I, Next<I, O, P>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, Fault>> + Send + 'static,
{
    type Work = Fut;
}

/// A closure as a layer.
pub(crate) struct FromFn<F>(pub(crate) F);

impl<I, O, P, F: LayerFn<I, O, P>> Layer<I, O, P> for FromFn<F> {
    fn call(&self, input: I, next: Next<I, O, P>) -> BoxFuture<'static, Result<O, Fault>> {
        Box::pin((self.0)(input, next))
    }
}
