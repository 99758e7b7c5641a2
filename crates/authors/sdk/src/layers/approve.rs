//! Calls that somebody has to approve.

use std::sync::Arc;

use serde_json::Map;
use wharf_vocab::{Code, Executed, Fault};

use crate::builtin::{self, Answer};
use crate::{AnyLayer, Around};

/// Asks for a yes before a call goes on.
///
/// The question is a confirmation, which goes wherever [`ELICIT`](crate::builtin::ELICIT) goes; the
/// names of the tool and of the agent and the input are in its `meta`. Without a yes the call is
/// not made: it fails with `tool.declined` after a no or any other answer, with
/// `permission.denied` if the question was not allowed, and with `tool.canceled` if it was called
/// off. If nobody can be asked, it fails as the question did.
///
/// ```
/// use wharf_sdk::builtin::{Answer, ELICIT};
/// use wharf_sdk::layers::Approve;
/// use wharf_sdk::{Lane, Scope, Tool};
///
/// const PAY: Tool<u32, ()> = Tool::new("pay", "Pays a bill.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&PAY, |_sum, _cx| async move { Ok(()) })?;
/// scope.layer(Lane::Outer, &PAY, Approve::new().asking(|call| {
///     format!("Pay {}?", call.input().cloned().unwrap_or_default())
/// }));
/// // Whoever is asked pays small bills only.
/// scope.provide(&ELICIT, |question, _cx| async move {
///     Ok(Answer::Accepted((question.message == "Pay 5?").into()))
/// })?;
/// assert!(PAY.call(&scope, 5).await.is_ok());
/// assert_eq!(PAY.call(&scope, 500).await.unwrap_err().code.as_str(), "tool.declined");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Approve {
    question: Arc<dyn Fn(&Around) -> String + Send + Sync>,
    shows_input: bool,
}

impl Default for Approve {
    fn default() -> Self {
        Self::new()
    }
}

impl Approve {
    /// Asks whether the tool may be called, and shows its input.
    #[must_use]
    pub fn new() -> Self {
        let question = |call: &Around| format!("May the tool {:?} be called?", call.tool());
        Self { question: Arc::new(question), shows_input: true }
    }

    /// Asks in other words.
    #[must_use]
    pub fn asking(mut self, question: impl Fn(&Around) -> String + Send + Sync + 'static) -> Self {
        self.question = Arc::new(question);
        self
    }

    /// Does not show the input.
    #[must_use]
    pub fn without_input(mut self) -> Self {
        self.shows_input = false;
        self
    }
}

impl AnyLayer for Approve {
    fn around<T: Send + 'static>(
        &self,
        call: Around,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Fault>> + Send + 'static {
        let question = (self.question)(&call);
        async move {
            approved(&call, question).await?;
            work.await
        }
    }

    fn sees_input(&self) -> bool {
        self.shows_input
    }
}

async fn approved(call: &Around, question: String) -> Result<(), Fault> {
    let mut meta = Map::new();
    meta.insert("tool".to_owned(), call.tool().into());
    meta.extend(call.agent().map(|agent| ("agent".to_owned(), agent.into())));
    meta.extend(call.input().map(|input| ("input".to_owned(), input.clone())));
    let (code, how) = match builtin::confirm(call, question, meta).await? {
        Answer::Accepted(true) => return Ok(()),
        Answer::Accepted(false) | Answer::Declined | Answer::OffScript(_) => {
            (Code::ToolDeclined, "declined")
        }
        Answer::Denied => (Code::PermissionDenied, "denied"),
        Answer::Cancelled | Answer::Expired => (Code::ToolCanceled, "called off"),
    };
    let message = format!("The call of the tool {:?} was {how} before it was made.", call.tool());
    Err(Fault::new(code, message).executed(Executed::No))
}

debug_only!(Approve: shows_input);
