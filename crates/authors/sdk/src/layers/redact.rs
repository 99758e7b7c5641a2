//! Texts that do not get through as they are.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault};

use crate::{Data, Layer, Next};

/// Changes texts on their way into a tool, out of it, or both.
///
/// It sees each text of the input and the output, however deep, but no name of a field. What
/// cannot be read any more after that is refused with `tool.internal`, never passed on as it was.
///
/// ```
/// use wharf_sdk::builtin::{self, Completion, SAMPLE, Said};
/// use wharf_sdk::layers::Redact;
/// use wharf_sdk::{Lane, Scope};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// let redact = Redact::input(|text| text.replace("Ada", "someone")).fields(["prompt"]);
/// scope.layer(Lane::Outer, &SAMPLE, redact);
/// # scope.provide(&SAMPLE, |prompt, _cx| async move {
/// #     let Said::Text(text) = prompt.prompt else { return Ok(Completion::default()) };
/// #     Ok(Completion { text, ..Completion::default() })
/// # })?;
/// assert_eq!(builtin::sample(&scope, "Write to Ada.").await?.text, "Write to someone.");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Redact {
    change: Arc<dyn Fn(&str) -> String + Send + Sync>,
    input: bool,
    output: bool,
    /// Only below these; everywhere when absent.
    fields: Option<Arc<[String]>>,
}

impl Redact {
    /// Changes texts of inputs and of outputs.
    #[must_use]
    pub fn both(change: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { change: Arc::new(change), input: true, output: true, fields: None }
    }

    /// Changes texts of inputs.
    #[must_use]
    pub fn input(change: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { output: false, ..Self::both(change) }
    }

    /// Changes texts of outputs.
    #[must_use]
    pub fn output(change: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { input: false, ..Self::both(change) }
    }

    /// Changes only texts in fields of these names, or below them.
    #[must_use]
    pub fn fields<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.fields = Some(names.into_iter().map(Into::into).collect());
        self
    }

    fn changed<T: Data>(&self, tool: &str, value: &T) -> Result<T, Fault> {
        let failed = || {
            let message = format!("What the tool {tool:?} takes or gives could not be redacted.");
            Fault::new(Code::ToolInternal, message).executed(Executed::Maybe)
        };
        let mut value = serde_json::to_value(value).map_err(|_| failed())?;
        self.walk(&mut value, self.fields.is_none());
        serde_json::from_value(value).map_err(|_| failed())
    }

    fn walk(&self, value: &mut Value, below: bool) {
        match value {
            Value::String(text) if below => *text = (self.change)(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, below)),
            Value::Object(object) => {
                for (name, value) in object {
                    let named = self.fields.as_deref().unwrap_or_default().contains(name);
                    self.walk(value, below || named);
                }
            }
            _ => {}
        }
    }
}

impl<I: Data, O: Data, P: Data> Layer<I, O, P> for Redact {
    fn call(&self, input: I, next: Next<I, O, P>) -> BoxFuture<'static, Result<O, Fault>> {
        let redact = self.clone();
        Box::pin(async move {
            let tool = next.tool();
            let input = if redact.input { redact.changed(tool, &input)? } else { input };
            let output = next.run(input).await?;
            if redact.output { redact.changed(tool, &output) } else { Ok(output) }
        })
    }
}

debug_only!(Redact: input, output);
