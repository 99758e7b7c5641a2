//! Calls that may not take longer than this.

use std::time::Duration;

use wharf_vocab::{Code, Executed, Fault};

use crate::{AnyLayer, Around};

/// Calls off what takes too long: the call fails with `tool.timeout`, and what is inside is
/// dropped.
///
/// ```
/// use wharf_sdk::layers::Timeout;
/// use wharf_sdk::{Lane, Scope, Tool};
///
/// const WAIT: Tool<(), ()> = Tool::new("wait", "Waits for ever.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&WAIT, |_, _cx| std::future::pending())?;
/// scope.layer(Lane::Outer, &WAIT, Timeout::after_millis(10));
/// assert_eq!(WAIT.call(&scope, ()).await.unwrap_err().code.as_str(), "tool.timeout");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Timeout {
    limit: Duration,
}

impl Timeout {
    /// Calls off what takes longer than this.
    #[must_use]
    pub fn after(limit: Duration) -> Self {
        Self { limit }
    }

    /// Calls off what takes longer than so many seconds.
    #[must_use]
    pub fn after_secs(seconds: u64) -> Self {
        Self::after(Duration::from_secs(seconds))
    }

    /// Calls off what takes longer than so many milliseconds.
    #[must_use]
    pub fn after_millis(milliseconds: u64) -> Self {
        Self::after(Duration::from_millis(milliseconds))
    }
}

impl AnyLayer for Timeout {
    fn around<T: Send + 'static>(
        &self,
        call: Around,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Fault>> + Send + 'static {
        let limit = self.limit;
        async move {
            let ended = tokio::time::timeout(limit, work).await;
            ended.unwrap_or_else(|_| Err(late(call.tool(), limit)))
        }
    }
}

fn late(tool: &str, limit: Duration) -> Fault {
    let message = format!("The tool {tool:?} took longer than {limit:?}.");
    Fault::new(Code::ToolTimeout, message).executed(Executed::Maybe)
}
