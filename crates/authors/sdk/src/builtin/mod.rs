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

use serde_json::Value;
use wharf_vocab::{Code, Fault};

use crate::wire::Wire;
use crate::{Cx, Tool, Within, schema};

pub use values::{Completion, Elicited, Level, Message, Notice, Prompt, Question, Reply, Said};

/// Asks for input. Every way in which whoever is asked may react is an output.
pub const ELICIT: Tool<Question, Reply> =
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
/// use wharf_sdk::builtin::{self, ELICIT, Elicited, Reply};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&ELICIT, |_question, _cx| async move { Ok(Reply::Accepted(7.into())) })?;
/// assert_eq!(builtin::elicit::<u8>(&scope, "How many?").await?, Elicited::Accepted(7));
/// assert!(builtin::elicit::<String>(&scope, "Who?").await.is_err());
/// # Ok(()) }
/// ```
pub async fn elicit<T: crate::Data>(
    within: &impl Within,
    message: impl Into<String>,
) -> Result<Elicited<T>, Fault> {
    ask(within, Question::form(message, Value::Null)).await
}

/// Asks a question and reads the answer as a value of a type, whose schema the question is given.
async fn ask<T: crate::Data>(
    within: &impl Within,
    mut question: Question,
) -> Result<Elicited<T>, Fault> {
    let shape = schema::read_by::<T>();
    question.schema = shape.schema.clone();
    Ok(match ELICIT.call(within, question).await? {
        Reply::Accepted(value) => {
            if let Some((path, _)) = shape.misfit(&value) {
                return Err(unfit(&path));
            }
            let read = serde_path_to_error::deserialize(value);
            Elicited::Accepted(read.map_err(|error| unfit(&schema::pointer(error.path())))?)
        }
        Reply::Declined => Elicited::Declined,
        Reply::Cancelled => Elicited::Cancelled,
        Reply::Denied => Elicited::Denied,
        Reply::OffScript(text) => Elicited::OffScript(text),
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
) -> Result<Elicited<bool>, Fault> {
    ask(within, Question { meta, ..Question::confirmation(message, Value::Null) }).await
}

/// Tells something.
pub async fn notify(within: &impl Within, message: impl Into<String>) -> Result<(), Fault> {
    NOTIFY.call(within, Notice::new(message)).await
}

/// Has a model complete a text.
pub async fn sample(within: &impl Within, prompt: impl Into<String>) -> Result<Completion, Fault> {
    SAMPLE.call(within, Prompt::new(prompt)).await
}

impl<P> Cx<P> {
    /// Asks for a value of a type; see [`elicit`].
    pub async fn elicit<T: crate::Data>(
        &self,
        message: impl Into<String>,
    ) -> Result<Elicited<T>, Fault> {
        elicit(self, message).await
    }

    /// Tells something.
    pub async fn notify(&self, message: impl Into<String>) -> Result<(), Fault> {
        notify(self, message).await
    }

    /// Has a model complete a text.
    pub async fn sample(&self, prompt: impl Into<String>) -> Result<Completion, Fault> {
        sample(self, prompt).await
    }
}
