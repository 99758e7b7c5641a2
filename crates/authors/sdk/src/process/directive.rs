//! Asking for an approval by failing.

use serde::Serialize;
use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault};

/// What a tool fails with that wants an approval before it acts. The proposal says what exactly
/// it would do and has to be a JSON object; the core shows it to a person, and calls the tool
/// again with the same input and key once it is approved. [`AgentCx::approval`](super::AgentCx::approval)
/// then names the approval.
///
/// ```
/// use serde_json::json;
/// use wharf_sdk::process::{AgentCx, directive_required};
/// use wharf_sdk::Fault;
///
/// async fn send(letters: u32, cx: &AgentCx) -> Result<(), Fault> {
///     if letters > 10 && cx.approval().is_none() {
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
