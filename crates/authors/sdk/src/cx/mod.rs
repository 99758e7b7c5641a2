//! What a tool can reach while it works on a call.

mod call;
mod served;
mod steps;

pub use call::{CallBuilder, RunningCall};
pub use served::directive_required;
pub use steps::Each;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use wharf_vocab::{Code, Fault};

use crate::calls::job::Called;
use crate::calls::scope::{Place, Scope, Within};

/// A call that a tool works on: where it was made, and ways to say how it goes. Cheap to clone.
///
/// Other tools are called through it: `OTHER.call(&cx, input)`. They are found from where the
/// call was made, so they meet the implementations and layers of the caller's scope.
///
/// ```
/// use wharf_sdk::{Cx, Fault, Scope, Tool};
///
/// const LENGTH: Tool<String, usize> = Tool::new("length", "How long a text is.");
/// const LONGER: Tool<(String, String), String> = Tool::new("longer", "The longer text.");
///
/// async fn longer((a, b): (String, String), cx: Cx) -> Result<String, Fault> {
///     let length_of_a = LENGTH.call(&cx, a.clone()).await?;
///     let length_of_b = LENGTH.call(&cx, b.clone()).await?;
///     Ok(if length_of_a > length_of_b { a } else { b })
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&LENGTH, |text: String, _| async move { Ok(text.len()) })?;
/// scope.provide(&LONGER, longer)?;
/// let texts = ("port".to_owned(), "starboard".to_owned());
/// assert_eq!(LONGER.call(&scope, texts).await?, "starboard");
/// # Ok(()) }
/// ```
pub struct Cx<P = ()> {
    pub(crate) called: Arc<dyn Called<P>>,
}

impl<P> Cx<P> {
    /// The name of the tool that was called.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        self.called.state().tool
    }

    /// Says something on the way to the result. It waits while whoever listens is behind; when
    /// nobody listens it costs nothing.
    pub async fn progress(&self, piece: P) {
        let Some(queue) = self.called.state().queue.get() else { return };
        let mut piece = Some(piece);
        poll_fn(|cx| queue.poll_push(&mut piece, cx)).await;
    }

    /// Whether anybody listens to progress, for tools that would have to work for it.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.called.state().queue.get().is_some_and(|queue| queue.is_heard())
    }

    /// The configuration of the agent that the tool belongs to: of the nearest one whose
    /// configuration has this type.
    pub fn config<C: Send + Sync + 'static>(&self) -> Result<Arc<C>, Fault> {
        self.called.state().place.config().ok_or_else(|| {
            let message = format!(
                "The tool {:?} was called outside an agent with a configuration of the type {}.",
                self.tool(),
                std::any::type_name::<C>(),
            );
            Fault::new(Code::ConfigInvalid, message)
        })
    }

    /// A new scope below the one in which the tool was called. It is closed when it is dropped,
    /// so what is begun in it ends with the tool.
    ///
    /// ```
    /// use wharf_sdk::layers::Timeout;
    /// use wharf_sdk::{Cx, Fault, Lane, Scope, Tool};
    ///
    /// const SLOW: Tool<(), ()> = Tool::new("slow", "Takes its time.");
    /// const IMPATIENT: Tool<(), ()> = Tool::new("impatient", "Does not wait long.");
    ///
    /// async fn impatient(_: (), cx: Cx) -> Result<(), Fault> {
    ///     let scope = cx.scope();
    ///     scope.layer(Lane::Outer, &SLOW, Timeout::after_millis(10));
    ///     SLOW.call(&scope, ()).await
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let scope = Scope::root();
    /// scope.provide(&SLOW, |_, _| std::future::pending())?;
    /// scope.provide(&IMPATIENT, impatient)?;
    /// let fault = IMPATIENT.call(&scope, ()).await.unwrap_err();
    /// assert_eq!(fault.code.as_str(), "tool.timeout");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::below(&self.called.state().place)
    }

    /// Does this when the call is over, however it ends: also when it is called off. What was
    /// said last is done first. Closing the scope waits for it.
    ///
    /// It is done in a task of its own, on the runtime in which this was said. It must not wait
    /// for that scope to be closed, since closing waits for it.
    pub fn at_end(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.called.state().at_end(Box::pin(work));
    }
}

impl<P> Clone for Cx<P> {
    fn clone(&self) -> Self {
        Self { called: Arc::clone(&self.called) }
    }
}

impl<P> fmt::Debug for Cx<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("tool", &self.tool()).finish_non_exhaustive()
    }
}

impl<P> Within for Cx<P> {
    fn place(&self) -> Place {
        Place(Arc::clone(&self.called.state().place))
    }
}
