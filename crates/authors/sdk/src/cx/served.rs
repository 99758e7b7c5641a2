//! What a tool can do because somebody serves it. In a call that nobody serves, text goes nowhere.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault, Micro, Mode};
use wharf_wire::agent_v1::{Chunk, TextChannel};

use super::Cx;
use crate::host::{CallInfo, HostHandle, canceled};

impl<P> Cx<P> {
    pub(crate) fn hosted(&self) -> Option<Arc<HostHandle>> {
        self.called.state().place.config()
    }

    /// What is known of the call beside its input: ids, keys, who calls.
    #[must_use]
    pub fn info(&self) -> Arc<CallInfo> {
        self.hosted().map(|host| host.0.info()).unwrap_or_default()
    }

    /// Whether the call is real. In mode `mock` a tool makes something up and acts on nothing.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.info().mode
    }

    /// Whether the call only pretends: the tool then makes something up and acts on nothing.
    #[must_use]
    pub fn is_mock(&self) -> bool {
        self.mode() == Mode::Mock
    }

    /// Adds text to the call's standard output. Text beyond what a call may stream is dropped,
    /// and a last status says so.
    ///
    /// ```
    /// use std::time::Duration;
    /// use wharf_sdk::{Cx, Fault};
    ///
    /// async fn count(to: u32, cx: Cx) -> Result<(), Fault> {
    ///     for n in 1..=to {
    ///         cx.text(format!("{n}\n")).await?;
    ///         cx.status("counting", f64::from(n) / f64::from(to)).await?;
    ///         cx.sleep(Duration::from_millis(100)).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn text(&self, text: impl Into<String>) -> Result<(), Fault> {
        self.stream(Chunk::Text { channel: TextChannel::Stdout, text: text.into() }).await
    }

    /// Adds text to the call's standard error.
    pub async fn stderr(&self, text: impl Into<String>) -> Result<(), Fault> {
        self.stream(Chunk::Text { channel: TextChannel::Stderr, text: text.into() }).await
    }

    /// Adds text to the call's log.
    pub async fn log(&self, text: impl Into<String>) -> Result<(), Fault> {
        self.stream(Chunk::Text { channel: TextChannel::Log, text: text.into() }).await
    }

    /// Says what the tool is doing and, if it is known, how far it is: from 0 to 1.
    pub async fn status(
        &self,
        text: impl Into<String>,
        fraction: impl Into<Option<f64>>,
    ) -> Result<(), Fault> {
        let fraction = fraction.into().filter(|f| f.is_finite()).map(|f| f.clamp(0.0, 1.0));
        self.stream(Chunk::Status { text: text.into(), fraction }).await
    }

    /// Shows a result that is not final; it has to be a JSON object. The final one is complete by
    /// itself.
    pub async fn partial(&self, value: &impl Serialize) -> Result<(), Fault> {
        let Ok(Value::Object(json)) = serde_json::to_value(value) else {
            let message = "A partial result has to be a JSON object.";
            return Err(Fault::new(Code::ToolInternal, message));
        };
        self.stream(Chunk::Partial { json }).await
    }

    async fn stream(&self, chunk: Chunk) -> Result<(), Fault> {
        match self.hosted() {
            Some(host) => host.0.stream(chunk).await,
            None => Ok(()),
        }
    }

    /// Adds to what the call costs, in millionths of a dollar. Whoever serves the tool passes it
    /// on at once, so that a budget can stop the call; whoever calls it sees it by
    /// [`Call::cost`](crate::Call::cost). What other tools cost that are called through this is
    /// counted with them, not with this call.
    ///
    /// ```
    /// use wharf_sdk::{Cx, Fault};
    ///
    /// async fn search(words: Vec<String>, cx: Cx) -> Result<usize, Fault> {
    ///     cx.cost(25);
    ///     Ok(words.len())
    /// }
    /// ```
    pub fn cost(&self, micro: Micro) {
        self.called.state().spend(micro);
        if let Some(host) = self.hosted() {
            host.0.spend(micro);
        }
    }

    /// Adds a figure to the call's result, such as a count of tokens. It may hold no secret.
    pub fn metric(&self, name: impl Into<String>, value: impl Into<Value>) {
        if let Some(host) = self.hosted() {
            host.0.metric(name.into(), value.into());
        }
    }

    /// Waits until the call is canceled. A call that is canceled is dropped where it waits; one
    /// that has asked, by this or the methods below, is given time to end by itself.
    pub async fn cancelled(&self) {
        match self.hosted().as_ref().and_then(|host| host.0.cancel()) {
            Some(cancel) => cancel.heed().cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Whether the call is canceled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let host = self.hosted();
        let cancel = host.as_ref().and_then(|host| host.0.cancel());
        cancel.is_some_and(|cancel| cancel.heed().is_cancelled())
    }

    /// Does something until the call is canceled, then drops it and gives `tool.canceled`.
    ///
    /// ```
    /// # use wharf_sdk::{Cx, Fault};
    /// async fn slow() -> u32 { 42 }
    ///
    /// async fn work(cx: &Cx) -> Result<u32, Fault> {
    ///     cx.until_cancelled(slow()).await
    /// }
    /// ```
    pub async fn until_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(canceled()),
            done = work => Ok(done),
        }
    }

    /// Sleeps, or gives `tool.canceled` as soon as the call is canceled.
    pub async fn sleep(&self, time: Duration) -> Result<(), Fault> {
        self.until_cancelled(tokio::time::sleep(time)).await
    }
}

/// What a tool fails with that wants an approval before it acts. The proposal says what exactly
/// it would do and has to be a JSON object; the core shows it to a person, and calls the tool
/// again with the same input and key once it is approved. [`CallInfo::approval`] then names the
/// approval.
///
/// ```
/// use serde_json::json;
/// use wharf_sdk::{Cx, Fault, directive_required};
///
/// async fn send(letters: u32, cx: &Cx) -> Result<(), Fault> {
///     if letters > 10 && cx.info().approval.is_none() {
///         let title = format!("Send {letters} letters");
///         return Err(directive_required(title, &json!({"letters": letters})));
///     }
///     Ok(())
/// }
/// ```
#[must_use]
pub fn directive_required(title: impl Into<String>, proposal: &impl Serialize) -> Fault {
    let Ok(Value::Object(proposal)) = serde_json::to_value(proposal) else {
        return Fault::new(Code::ToolInternal, "A proposal has to be a JSON object.");
    };
    Fault::new(Code::ToolDirectiveRequired, "The tool acts only once this is approved.")
        .with("title", title.into())
        .with("proposal", proposal)
        .executed(Executed::No)
}
