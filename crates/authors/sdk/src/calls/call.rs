//! A call that can be awaited, listened to, and dropped.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::task::coop::poll_proceed;
use wharf_vocab::{Fault, Micro};

use super::chain::Chain;
use super::job::{Called, Job, Stoppable, Work};
use super::progress::Queue;
use super::scope::Place;
use crate::{Cx, Data, Tool};

/// A call of a tool. Awaiting it gives the output; [`progress`](Call::progress) gives what comes
/// on the way; dropping it calls it off.
///
/// Nothing happens before one of the first two. A call goes on where it is awaited, not in a task
/// of its own, so `tokio::time::timeout` around it calls it off when the time is over.
///
/// ```
/// use wharf_sdk::{Cx, Fault, Scope, Tool};
///
/// const COUNT: Tool<u32, u32, u32> = Tool::new("count", "Counts, and says how far it is.");
///
/// async fn count(to: u32, cx: Cx<u32>) -> Result<u32, Fault> {
///     for n in 1..=to {
///         cx.progress(n).await;
///     }
///     Ok(to)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&COUNT, count)?;
/// let mut call = COUNT.call(&scope, 3);
/// let mut said = Vec::new();
/// while let Some(n) = call.progress().await {
///     said.push(n);
/// }
/// assert_eq!(said, [1, 2, 3]);
/// assert_eq!(call.await?, 3);
/// # Ok(()) }
/// ```
#[must_use = "nothing is called before the call is awaited or its progress is read"]
pub struct Call<O: Send + 'static, P: Send + Sync + 'static> {
    job: Arc<Job<O, P>>,
    stage: CallStage<O>,
    listening: bool,
}

enum CallStage<O> {
    Fresh(Work<O>),
    Running,
    Done(Result<O, Fault>),
    Taken,
}

impl<O: Data, P: Data> Call<O, P> {
    pub(crate) fn new<I: Data>(place: Place, tool: Tool<I, O, P>, input: I) -> Self {
        let job = Arc::new(Job::new(tool.name(), place.0));
        let called: Arc<dyn Called<P>> = Arc::clone(&job) as _;
        let work = Box::pin(async move {
            let chain = called.state().place.chain(&tool);
            Chain::run(&chain, 0, input, Cx { called }).await
        });
        Self { job, stage: CallStage::Fresh(work), listening: false }
    }
}

impl<O: Send + 'static, P: Send + Sync + 'static> Call<O, P> {
    /// The next piece of progress; `None` once the tool has ended. Then await the call. To be
    /// heard from the beginning, listen before anything else: a call that was awaited first says
    /// nothing.
    pub async fn progress(&mut self) -> Option<P> {
        poll_fn(|cx| self.poll_progress(cx)).await
    }

    /// What the call has cost so far, in millionths of a dollar: what its tool says by
    /// [`cost`](Cx::cost) here, or where it is executed. To read it behind the result,
    /// await the call by reference.
    ///
    /// ```
    /// use wharf_sdk::{Cx, Fault, Scope, Tool, operative, transport::memory};
    ///
    /// const SEARCH: Tool<String, usize> = Tool::new("search", "Searches.");
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (here, there) = memory::pair();
    /// let elsewhere = Scope::root();
    /// elsewhere.provide(&SEARCH, |words: String, cx: Cx| async move {
    ///     cx.cost(25);
    ///     Ok::<_, Fault>(words.len())
    /// })?;
    /// let serving = operative::serve(&elsewhere, &there);
    ///
    /// let caller = Scope::root().with_transport(here);
    /// let mut call = SEARCH.call(&caller, "ships".to_owned());
    /// assert_eq!((&mut call).await?, 5);
    /// assert_eq!(call.cost(), 25);
    /// # serving.stop().await;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn cost(&self) -> Micro {
        self.job.state.cost()
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<Option<P>> {
        let turn = ready!(poll_proceed(cx));
        if matches!(self.stage, CallStage::Fresh(_)) {
            self.job.state.queue.get_or_init(Queue::new);
            self.listening = true;
        }
        let heard = self.poll_heard(cx);
        if heard.is_ready() {
            turn.made_progress();
        }
        heard
    }

    fn poll_heard(&mut self, cx: &mut Context<'_>) -> Poll<Option<P>> {
        let job = Arc::clone(&self.job);
        let Some(queue) = job.state.queue.get().filter(|_| self.listening) else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(piece) = queue.poll_pop(cx) {
            return Poll::Ready(Some(piece));
        }
        let over = self.drive(cx);
        match queue.poll_pop(cx) {
            Poll::Ready(piece) => Poll::Ready(Some(piece)),
            Poll::Pending if over => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Lets the tool go on; `true` once it has ended.
    fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        if let CallStage::Fresh(_) = self.stage
            && let CallStage::Fresh(work) = std::mem::replace(&mut self.stage, CallStage::Running)
        {
            self.job.begin(work);
        }
        if !matches!(self.stage, CallStage::Running) {
            return true;
        }
        let Poll::Ready(result) = self.job.poll(cx) else { return false };
        self.stage = CallStage::Done(result);
        true
    }

    /// Whoever awaits does not listen any more.
    fn ignore(&mut self) {
        if std::mem::take(&mut self.listening)
            && let Some(queue) = self.job.state.queue.get()
        {
            queue.ignore();
        }
    }
}

impl<O: Send + 'static, P: Send + Sync + 'static> Future for Call<O, P> {
    type Output = Result<O, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // A long row of calls that never have to wait lets others have their turn, too.
        let turn = ready!(poll_proceed(cx));
        this.ignore();
        if !this.drive(cx) {
            return Poll::Pending;
        }
        turn.made_progress();
        match std::mem::replace(&mut this.stage, CallStage::Taken) {
            CallStage::Done(result) => Poll::Ready(result),
            _ => panic!("a call was awaited after it had given its result"),
        }
    }
}

impl<O: Send + 'static, P: Send + Sync + 'static> Unpin for Call<O, P> {}

impl<O: Send + 'static, P: Send + Sync + 'static> Drop for Call<O, P> {
    fn drop(&mut self) {
        self.ignore();
        if let CallStage::Running = self.stage {
            self.job.halt();
        }
    }
}

impl<O: Send + 'static, P: Send + Sync + 'static> fmt::Debug for Call<O, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}
