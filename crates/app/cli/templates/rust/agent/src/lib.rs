//! The agent's tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wharf_sdk::{Cx, Error, Fault, FaultCode, Scope, Tool};

/// Whom to greet.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Greet {
    /// The name.
    pub name: String,
}

/// How somebody is greeted.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Greeting {
    /// The words.
    pub text: String,
}

/// The tool. Its types are those of its input, its output and its progress.
pub const GREET: Tool<Greet, Greeting, String> =
    Tool::new("greet", "Greets somebody by name.").side_effects(false);

async fn greet(input: Greet, cx: Cx<String>) -> Result<Greeting, Fault> {
    let name = input.name.trim();
    if name.is_empty() {
        let code = FaultCode::Provider("{{code}}.no_name".to_owned());
        return Err(Fault::with_code(code, "There is nobody to greet.", false));
    }
    cx.progress("thinking of something nice".to_owned()).await;
    let text = format!("Hello, {name}!");
    Ok(Greeting { text })
}

/// A scope with all tools of the agent.
pub fn tools() -> Result<Scope, Error> {
    let scope = Scope::root();
    scope.provide(&GREET, greet)?;
    Ok(scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whom(name: &str) -> Greet {
        let name = name.to_owned();
        Greet { name }
    }

    #[tokio::test]
    async fn somebody_is_greeted_by_name() {
        let scope = tools().expect("tools");
        let mut call = GREET.call(&scope, whom("Ada"));
        let status = call.progress().await;
        assert_eq!(status.as_deref(), Some("thinking of something nice"));
        assert_eq!(call.await.expect("a greeting").text, "Hello, Ada!");
    }

    #[tokio::test]
    async fn nobody_is_not_greeted() {
        let scope = tools().expect("tools");
        let fault = GREET.call(&scope, whom(" ")).await.expect_err("refused");
        assert_eq!(fault.code.as_str(), "{{code}}.no_name");
    }

    #[test]
    fn the_manifest_names_this_agents_program() {
        let manifest = include_str!("../opensentience.agent.json");
        assert!(manifest.contains(concat!("\"version\": \"", env!("CARGO_PKG_VERSION"), "\"")));
        assert!(manifest.contains(concat!("\"target/debug/", env!("CARGO_PKG_NAME"), "\"")));
    }
}
