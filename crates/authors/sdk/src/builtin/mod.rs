//! Tools that every scope knows: asking for input, telling, and completions by a model.
//!
//! They are ordinary tools: they can be provided, wrapped by layers and served like any other.
//! Where nobody provides them, they go to the transport.
//!
//! ```
//! use wharf_sdk::Scope;
//! use wharf_sdk::builtin::{self, Completion, SAMPLE, Said};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scope = Scope::root();
//! // A model of our own, which only repeats.
//! scope.provide(&SAMPLE, |prompt, _cx| async move {
//!     let Said::Text(text) = prompt.prompt else { return Ok(Completion::default()) };
//!     Ok(Completion { text, ..Completion::default() })
//! })?;
//! // Nothing that looks like a card number reaches it.
//! scope.around(&SAMPLE, |mut prompt, next| async move {
//!     if let Said::Text(text) = &mut prompt.prompt {
//!         *text = text.replace(|c: char| c.is_ascii_digit(), "•");
//!     }
//!     next.run(prompt).await
//! });
//! assert_eq!(builtin::sample(&scope, "Card 4711").await?.text, "Card ••••");
//! # Ok(()) }
//! ```

mod values;

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_vocab::{Code, Fault};

use crate::calls::wire::Wire;
use crate::{Cx, Tool, Within, schema};

pub use values::{Answer, Completion, Level, Message, Notice, Prompt, Question, Said};

/// Asks for input. Every way in which whoever is asked may react is an output.
pub const ELICIT: Tool<Question, Answer> =
    Tool::speaking("wharf:elicit", "Asks for structured input.", Wire::Elicit);

/// Tells something, without waiting for more than that it arrived.
pub const NOTIFY: Tool<Notice, ()> =
    Tool::speaking("wharf:notify", "Tells something.", Wire::Notify);

/// Has a model complete a text.
pub const SAMPLE: Tool<Prompt, Completion> =
    Tool::speaking("wharf:sample", "Has a model complete a text.", Wire::Sample);

/// Asks for a value of a type. Only trouble on the way is an error; an answer that does not fit
/// the type is one, too.
///
/// ```
/// use wharf_sdk::Scope;
/// use wharf_sdk::builtin::{self, Answer, ELICIT};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&ELICIT, |_question, _cx| async move { Ok(Answer::Accepted(7.into())) })?;
/// assert_eq!(builtin::ask::<u8>(&scope, "How many?").await?, Answer::Accepted(7));
/// assert!(builtin::ask::<String>(&scope, "Who?").await.is_err());
/// # Ok(()) }
/// ```
pub async fn ask<T: DeserializeOwned + JsonSchema + 'static>(
    within: &impl Within,
    message: impl Into<String>,
) -> Result<Answer<T>, Fault> {
    ask_typed(within, Question::form(message, Value::Null)).await
}

/// Asks a question and reads the answer as a value of a type, whose schema the question is given.
async fn ask_typed<T: DeserializeOwned + JsonSchema + 'static>(
    within: &impl Within,
    mut question: Question,
) -> Result<Answer<T>, Fault> {
    let shape = schema::read_by::<T>();
    question.schema = shape.schema.clone();
    let answer = match ELICIT.call(within, question).await {
        Err(fault) if fault.is(Code::AskExpired) => Answer::Expired,
        answer => answer?,
    };
    Ok(match answer {
        Answer::Accepted(value) => {
            if let Some((path, _)) = shape.misfit(&value) {
                return Err(unfit(&path));
            }
            let read = serde_path_to_error::deserialize(value);
            Answer::Accepted(read.map_err(|error| unfit(&schema::pointer(error.path())))?)
        }
        Answer::Declined => Answer::Declined,
        Answer::Cancelled => Answer::Cancelled,
        Answer::Denied => Answer::Denied,
        Answer::OffScript(text) => Answer::OffScript(text),
        Answer::Expired => Answer::Expired,
    })
}

fn unfit(path: &str) -> Fault {
    let place = if path.is_empty() { "the top level" } else { path };
    let message = format!("The answer does not fit the question at {place}.");
    Fault::new(Code::AskAnswerInvalid, message).with("path", path)
}

/// Asks for a yes or a no. The question's `meta` tells more about what it is about.
pub(crate) async fn confirm(
    within: &impl Within,
    message: String,
    meta: serde_json::Map<String, Value>,
) -> Result<Answer<bool>, Fault> {
    ask_typed(within, Question { meta, ..Question::confirmation(message, Value::Null) }).await
}

/// Tells something.
pub async fn notify(within: &impl Within, notice: impl Into<Notice>) -> Result<(), Fault> {
    NOTIFY.call(within, notice.into()).await
}

/// Has a model complete a text.
pub async fn sample(within: &impl Within, prompt: impl Into<String>) -> Result<Completion, Fault> {
    SAMPLE.call(within, Prompt::new(prompt)).await
}

impl<P> Cx<P> {
    /// Asks a person or whoever looks after the run, and waits for the answer; the time of a
    /// served call stands still meanwhile. The type says which answers fit.
    ///
    /// ```
    /// use serde::Deserialize;
    /// use wharf_sdk::{Answer, Cx, Fault, JsonSchema};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Confirm { ok: bool }
    ///
    /// async fn may_i(cx: &Cx) -> Result<bool, Fault> {
    ///     Ok(match cx.ask::<Confirm>("Shall I go on?").await? {
    ///         Answer::Accepted(confirm) => confirm.ok,
    ///         Answer::OffScript(text) => text == "yes",
    ///         _ => false,
    ///     })
    /// }
    /// ```
    pub async fn ask<T: DeserializeOwned + JsonSchema + 'static>(
        &self,
        message: impl Into<String>,
    ) -> Result<Answer<T>, Fault> {
        ask(self, message).await
    }

    /// The same, with an answer that is waited for only so long.
    pub async fn ask_within<T: DeserializeOwned + JsonSchema + 'static>(
        &self,
        message: impl Into<String>,
        time: Duration,
    ) -> Result<Answer<T>, Fault> {
        ask_typed(self, Question::form(message, Value::Null).within(time)).await
    }

    /// Tells people something, beside the call's output.
    ///
    /// ```
    /// use wharf_sdk::builtin::{Level, Notice};
    /// use wharf_sdk::{Cx, Fault};
    ///
    /// async fn tell(cx: &Cx) -> Result<(), Fault> {
    ///     cx.notify("Half of it is done.").await?;
    ///     cx.notify(Notice::new("The disk is nearly full.").level(Level::Warning)).await
    /// }
    /// ```
    pub async fn notify(&self, notice: impl Into<Notice>) -> Result<(), Fault> {
        notify(self, notice).await
    }

    /// Has a model complete a text.
    pub async fn sample(&self, prompt: impl Into<String>) -> Result<Completion, Fault> {
        sample(self, prompt).await
    }
}
