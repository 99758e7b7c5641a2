//! `[models]`: which tool completes prompts, which providers of models there are, what they cost.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use wharf_models::{Api, ModelOptions, ModelProvider, ModelProviders, Price, PriceTable};
use wharf_vocab::{Code, Fault, SecretName, ToolId};

/// The largest answer that can be asked for by default.
const MAX_TOKENS_MAX: u64 = 1_000_000;
/// A provider that says nothing for longer will not.
const SILENCE_S_MAX: u64 = 3600;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Models {
    tool: Option<String>,
    default: Option<String>,
    max_tokens: Option<u64>,
    silence_s: Option<u64>,
    providers: BTreeMap<String, ProviderTable>,
    prices: BTreeMap<String, PriceRow>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ProviderTable {
    kind: Option<Kind>,
    base_url: Option<String>,
    key: Option<String>,
    models: Option<Vec<String>>,
    max_tokens_field: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Openai,
    Anthropic,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceRow {
    input: f64,
    output: f64,
    cached_input: Option<f64>,
    as_of: Option<String>,
}

impl Models {
    /// The tool that completes prompts, when not the usual one. Who sets up models means the
    /// core's own.
    pub(super) fn tool(&self) -> Result<Option<ToolId>, Fault> {
        let own = self.default.is_some() || !self.providers.is_empty();
        let named = self.tool.as_deref().or(own.then_some(wharf_models::CHAT));
        named
            .map(ToolId::new)
            .transpose()
            .map_err(|_| wrong("tool", "it names a tool such as llm/chat@1"))
    }

    /// Which models can be asked, and what they cost.
    pub(super) fn options(self) -> Result<ModelOptions, Fault> {
        let max_tokens = self.max_tokens.unwrap_or(wharf_models::MAX_TOKENS);
        if !(1..=MAX_TOKENS_MAX).contains(&max_tokens) {
            return Err(wrong("max_tokens", &format!("it must be 1 to {MAX_TOKENS_MAX}")));
        }
        let silence = self.silence_s.map_or(wharf_models::SILENCE, Duration::from_secs);
        if !(1..=SILENCE_S_MAX).contains(&silence.as_secs()) {
            return Err(wrong("silence_s", &format!("it must be 1 to {SILENCE_S_MAX}")));
        }
        let mut own = Vec::new();
        for (name, table) in self.providers {
            own.push(table.provider(&name)?);
        }
        let providers = ModelProviders::new(own, self.default.clone());
        if self.default.is_some_and(|default| !providers.knows(&default)) {
            return Err(wrong("default", "it names a model as PROVIDER/MODEL"));
        }
        let mut prices = BTreeMap::new();
        for (model, row) in self.prices {
            let PriceRow { input, output, cached_input, as_of } = row;
            let price = Price::dollars(input, output, cached_input, as_of).map_err(|_| {
                let why = "a price is dollars for a million tokens, such as 0.15";
                wrong(&format!("prices.{model:?}"), why)
            })?;
            prices.insert(model, price);
        }
        Ok(ModelOptions { providers, prices: PriceTable::new(prices), max_tokens, silence })
    }
}

impl ProviderTable {
    fn provider(self, name: &str) -> Result<ModelProvider, Fault> {
        let wrong = |key: &str, why: &str| wrong(&format!("providers.{name}.{key}"), why);
        let unfit = |flaw: wharf_models::UnfitProvider| wrong(flaw.key, flaw.why);
        let api = self.kind.map(|kind| match kind {
            Kind::Openai => Api::OpenAi,
            Kind::Anthropic => Api::Anthropic,
        });
        let mut provider = match (ModelProvider::known(name), api, &self.base_url) {
            (Some(known), None, None) => known,
            (Some(known), None, Some(url)) => known.at(url).map_err(unfit)?,
            (Some(_), Some(_), _) => {
                let why = "a provider of this name is known; give yours another name";
                return Err(wrong("kind", why));
            }
            (None, Some(api), Some(url)) => ModelProvider::new(name, api, url).map_err(unfit)?,
            (None, None, _) => return Err(wrong("kind", "it must be openai or anthropic")),
            (None, Some(_), None) => {
                return Err(wrong("base_url", "it is needed, such as http://127.0.0.1:11434/v1"));
            }
        };
        if let Some(key) = self.key {
            let named = SecretName::new(key)
                .map_err(|_| wrong("key", "it names a secret such as GROQ_API_KEY"))?;
            provider = provider.with_key(named);
        }
        if let Some(models) = self.models {
            provider = provider.with_models(models);
        }
        if let Some(field) = self.max_tokens_field {
            provider = provider.with_max_tokens_field(field);
        }
        provider.checked().map_err(unfit)
    }
}

fn wrong(key: &str, why: &str) -> Fault {
    let message = format!("The key models.{key} in wharf.toml cannot be used: {why}.");
    Fault::new(Code::ConfigInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Models {
        toml::from_str(text).expect("TOML")
    }

    #[test]
    fn k019_the_model_tool_can_be_named_and_a_wrong_name_is_refused() {
        assert_eq!(read("").tool().expect("fits"), None);
        let named = read("tool = \"llm/other@2\"").tool().expect("fits");
        assert_eq!(named.as_ref().map(ToolId::as_str), Some("llm/other@2"));
        let own = read("default = \"gpt-5.4\"").tool().expect("fits");
        assert_eq!(own.as_ref().map(ToolId::as_str), Some("llm/chat@1"));
        let fault = read("tool = \"other\"").tool().expect_err("refused");
        assert!(fault.message.contains("models.tool"), "{fault}");
    }

    #[test]
    fn providers_and_prices_are_taken_as_they_stand() {
        let text = "default = \"local/llama3.2\"\nmax_tokens = 512\nsilence_s = 30\n\
                    [providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:11434/v1\"\n\
                    models = [\"llama3.2\"]\n[providers.openai]\nbase_url = \"https://proxy.example/v1\"\n\
                    [prices.\"llama3.2\"]\ninput = 0\noutput = 0.0\nas_of = \"2026-11\"\n";
        let options = read(text).options().expect("fits");
        assert_eq!((options.max_tokens, options.silence), (512, Duration::from_secs(30)));
        assert!(options.providers.knows("llama3.2") && !options.providers.knows("mistral"));
        assert_ne!(options.prices, PriceTable::default());
        assert_eq!(read("").options().expect("fits"), ModelOptions::default());
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (text, key) in [
            ("max_tokens = 0", "models.max_tokens"),
            ("silence_s = 0", "models.silence_s"),
            ("default = \"mistral\"", "models.default"),
            ("[providers.x]\nbase_url = \"https://x.example\"", "models.providers.x.kind"),
            ("[providers.x]\nkind = \"openai\"", "models.providers.x.base_url"),
            (
                "[providers.x]\nkind = \"openai\"\nbase_url = \"http://x.example\"\nkey = \"K\"",
                "models.providers.x.base_url",
            ),
            ("[providers.openai]\nkind = \"openai\"", "models.providers.openai.kind"),
            ("[prices.x]\ninput = -1\noutput = 1", "models.prices.\"x\""),
        ] {
            let fault = read(text).options().expect_err(text);
            assert!(fault.is(Code::ConfigInvalid) && fault.message.contains(key), "{fault}");
        }
    }
}
