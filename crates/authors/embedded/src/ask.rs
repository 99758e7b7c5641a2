//! What runs wait for: questions and approvals.

use serde_json::Value;
use wharf_domain::{Caller, Resolution};
use wharf_sdk::Answer;
use wharf_vocab::{AskId, AskKind, Code, Fault, RunKey, ToolId};

use crate::Embedded;

/// Asks that are read in one go.
const PAGE: usize = 500;

/// Something that a run waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Its id.
    pub id: AskId,
    /// Whether it asks for information or for permission.
    pub kind: AskKind,
    /// The run that waits.
    pub run: RunKey,
    /// The tool of that run.
    pub tool: ToolId,
    /// What is asked, in one line.
    pub title: String,
    /// JSON Schema of the answer to a question.
    pub schema: Option<Value>,
    /// What else there is to know.
    pub detail: Option<Value>,
}

impl Ask {
    pub(crate) fn of(spec: &wharf_domain::AskSpec) -> Self {
        Self {
            id: spec.ask_id.clone(),
            kind: spec.kind,
            run: spec.run.clone(),
            tool: spec.tool.clone(),
            title: spec.title.clone(),
            schema: spec.schema.clone(),
            detail: spec.detail.clone(),
        }
    }
}

impl Embedded {
    /// Everything that runs wait for, oldest first.
    pub async fn inbox(&self) -> Result<Vec<Ask>, Fault> {
        let mut asks = Vec::new();
        let mut after = None;
        loop {
            let page = self.inner.handle.asks().inbox(after, PAGE).await?;
            asks.extend(page.iter().map(|view| Ask::of(&view.ask.spec)));
            let last = page.iter().filter_map(|view| view.position).next_back();
            match last {
                Some(last) if page.len() >= PAGE => after = Some(last),
                _ => return Ok(asks),
            }
        }
    }

    /// Answers a question. An accepted value has to fit the question's schema; the first valid
    /// answer stands.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), wharf_sdk::Fault> {
    /// use serde_json::json;
    /// use wharf_embedded::{Embedded, What};
    /// use wharf_sdk::Answer;
    ///
    /// let core = Embedded::in_memory().await?;
    /// let run = core.run("wharf/ask", json!({"question": "Which color?"})).start().await?;
    /// let mut watch = core.watch(&run).await?;
    /// while let Some(event) = watch.next().await {
    ///     if let What::Asked(ask) = event?.what {
    ///         assert_eq!(ask.title, "Which color?");
    ///         core.answer(&ask.id, Answer::Accepted(json!("green"))).await?;
    ///     }
    /// }
    /// assert_eq!(core.wait(&run).await?["answer"], "green");
    /// core.close().await
    /// # }
    /// ```
    pub async fn answer(&self, ask: &AskId, answer: Answer) -> Result<(), Fault> {
        let resolution = match answer {
            Answer::Accepted(value) => Resolution::Answered { value },
            Answer::Declined => Resolution::Declined,
            Answer::Cancelled => Resolution::Cancelled,
            Answer::OffScript(text) => Resolution::OffScript { text },
            Answer::Denied | Answer::Expired => {
                let message = "A question can be declined or cancelled, not denied.";
                return Err(Fault::new(Code::AskAnswerInvalid, message));
            }
        };
        self.resolve(ask, resolution).await
    }

    /// Gives the permission that a run waits for.
    pub async fn allow(&self, ask: &AskId) -> Result<(), Fault> {
        self.resolve(ask, Resolution::ALLOW).await
    }

    /// Does not give the permission that a run waits for, which ends it.
    pub async fn deny(&self, ask: &AskId, reason: impl Into<String>) -> Result<(), Fault> {
        self.resolve(ask, Resolution::Deny { reason: reason.into() }).await
    }

    async fn resolve(&self, ask: &AskId, resolution: Resolution) -> Result<(), Fault> {
        self.inner.handle.asks().resolve(&Caller::owner(), ask, resolution).await.map(drop)
    }
}
