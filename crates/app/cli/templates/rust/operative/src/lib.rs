//! The operative's tools.

pub mod find;

use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wharf_sdk::{Cx, Error, Fault, FaultCode, Scope, Tool};

/// What is to be said.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Words {
    /// The text.
    pub text: String,
}

/// What was said.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// The text.
    pub said: String,
    /// How often something was said so far.
    pub times: u32,
}

/// The tool. Its types are those of its input, its output and its progress.
pub const SAY: Tool<Words, Said, String> =
    Tool::new("say", "Says something where this program runs.");

static TIMES: AtomicU32 = AtomicU32::new(0);

async fn say(words: Words, cx: Cx<String>) -> Result<Said, Fault> {
    let text = words.text;
    if text.trim().is_empty() {
        let code = FaultCode::Provider("{{code}}.nothing".to_owned());
        return Err(Fault::with_code(code, "There is nothing to say.", false));
    }
    cx.progress("clearing the throat".to_owned()).await;
    println!("{{id}} says: {text}");
    let times = TIMES.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(Said { said: text, times })
}

/// A scope with all tools of the operative.
pub fn tools() -> Result<Scope, Error> {
    let scope = Scope::root();
    scope.provide(&SAY, say)?;
    Ok(scope)
}

#[cfg(test)]
mod tests {
    use wharf_sdk::{operative, transport::memory};

    use super::*;

    fn words(text: &str) -> Words {
        let text = text.to_owned();
        Words { text }
    }

    #[tokio::test]
    async fn what_is_to_be_said_is_said_and_counted_also_over_a_connection() {
        let scope = tools().expect("tools");
        let mut call = SAY.call(&scope, words("hello"));
        let status = call.progress().await;
        assert_eq!(status.as_deref(), Some("clearing the throat"));
        let first = call.await.expect("said");
        assert_eq!((first.said.as_str(), first.times), ("hello", 1));

        let (here, there) = memory::pair();
        let serving = operative::serve(&scope, &there);
        let elsewhere = Scope::root().with_transport(here);
        let second = SAY.call(&elsewhere, words("again")).await.expect("said");
        assert_eq!((second.said.as_str(), second.times), ("again", 2));
        serving.stop().await;
    }

    #[tokio::test]
    async fn nothing_is_not_said() {
        let scope = tools().expect("tools");
        let fault = SAY.call(&scope, words(" ")).await.expect_err("refused");
        assert_eq!(fault.code.as_str(), "{{code}}.nothing");
    }
}
