//! `[models]`: which tool completes prompts.

use serde::Deserialize;
use wharf_vocab::{Code, Fault, ToolId};

/// Which tool completes prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Models {
    /// The tool, when not the usual one.
    pub(crate) tool: Option<ToolId>,
}

/// The table as it stands in `wharf.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    tool: Option<String>,
}

impl File {
    pub(super) fn read(self) -> Result<Models, Fault> {
        let tool = self.tool.map(ToolId::new).transpose().map_err(|_| {
            let message = "The key models.tool in wharf.toml cannot be used: it names a tool such \
                           as llm/litellm@1.";
            Fault::new(Code::ConfigInvalid, message)
        })?;
        Ok(Models { tool })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k019_the_model_tool_can_be_named_and_a_wrong_name_is_refused() {
        let read = |text: &str| toml::from_str::<File>(text).expect("TOML").read();
        assert_eq!(read("").expect("fits"), Models { tool: None });
        let named = read("tool = \"llm/other@2\"").expect("fits");
        assert_eq!(named.tool.as_ref().map(ToolId::as_str), Some("llm/other@2"));
        let fault = read("tool = \"other\"").expect_err("refused");
        assert!(fault.message.contains("models.tool"), "{fault}");
    }
}
