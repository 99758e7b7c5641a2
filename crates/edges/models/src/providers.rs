//! Who can be asked, and which of them a model's name means.

use std::collections::BTreeMap;
use std::net::IpAddr;

use reqwest::Url;
use wharf_vocab::{SecretName, Zone};

/// The language a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
}

impl Api {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// A server that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProvider {
    pub(crate) name: String,
    pub(crate) api: Api,
    pub(crate) base_url: Url,
    /// The secret with its key; it wants none when absent.
    pub(crate) key: Option<SecretName>,
    /// Models that are meant by their plain names; the first is its usual one.
    pub(crate) models: Vec<String>,
    /// The field that bounds an answer, where the provider calls it differently.
    pub(crate) max_tokens_field: String,
}

/// What is wrong with a provider: the key, and why, as the end of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfitProvider {
    /// The key of its table.
    pub key: &'static str,
    /// Why it cannot be used.
    pub why: &'static str,
}

const fn unfit(key: &'static str, why: &'static str) -> UnfitProvider {
    UnfitProvider { key, why }
}

/// What the newest models of OpenAI call the bound of an answer.
const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";
/// What all others call it.
const MAX_TOKENS: &str = "max_tokens";
/// The names that are known from the start.
const KNOWN: [(&str, Api, &str, &str, &[&str]); 2] = [
    (
        "openai",
        Api::OpenAi,
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        &["gpt-5.4-mini", "gpt-5.5", "gpt-5.4", "gpt-5.4-nano"],
    ),
    (
        "anthropic",
        Api::Anthropic,
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        &["claude-sonnet-5", "claude-opus-5-5", "claude-haiku-4-5"],
    ),
];
/// How names of models begin that belong to a provider known from the start.
const FAMILIES: [(&str, &str); 6] = [
    ("claude-", "anthropic"),
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
];
const NAME_BYTES_MAX: usize = 64;

impl ModelProvider {
    /// A provider that is known from the start, if there is one of this name.
    #[must_use]
    pub fn known(name: &str) -> Option<Self> {
        let (name, api, base_url, key, models) = KNOWN.into_iter().find(|known| known.0 == name)?;
        let field = if api == Api::OpenAi { MAX_COMPLETION_TOKENS } else { MAX_TOKENS };
        Some(Self {
            name: name.to_owned(),
            api,
            base_url: Url::parse(base_url).ok()?,
            key: SecretName::new(key).ok(),
            models: models.iter().map(|&model| model.to_owned()).collect(),
            max_tokens_field: field.to_owned(),
        })
    }

    /// A provider of the owner's, without a key and without models.
    pub fn new(name: &str, api: Api, base_url: &str) -> Result<Self, UnfitProvider> {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_part) {
            let why = "its name has lower-case letters, digits, and -, _ or . between them";
            return Err(unfit("name", why));
        }
        Ok(Self {
            name: name.to_owned(),
            api,
            base_url: address(base_url)?,
            key: None,
            models: Vec::new(),
            max_tokens_field: MAX_TOKENS.to_owned(),
        })
    }

    /// The same at another address.
    pub fn at(self, base_url: &str) -> Result<Self, UnfitProvider> {
        Ok(Self { base_url: address(base_url)?, ..self })
    }

    /// The same with the secret that holds its key.
    #[must_use]
    pub fn with_key(self, key: SecretName) -> Self {
        Self { key: Some(key), ..self }
    }

    /// The same with models; the first is its usual one.
    #[must_use]
    pub fn with_models(self, models: Vec<String>) -> Self {
        Self { models, ..self }
    }

    /// The same with another name for the field that bounds an answer.
    #[must_use]
    pub fn with_max_tokens_field(self, field: String) -> Self {
        Self { max_tokens_field: field, ..self }
    }

    /// The same, if its key stays secret on its way.
    pub fn checked(self) -> Result<Self, UnfitProvider> {
        if self.key.is_some() && self.base_url.scheme() != "https" && !is_here(&self.base_url) {
            let why = "a key is sent by https:// only, or within this machine";
            return Err(unfit("base_url", why));
        }
        Ok(self)
    }

    /// An address below its own.
    pub(crate) fn url(&self, path: &str) -> Url {
        let mut url = self.base_url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{path}"));
        url
    }
}

fn address(text: &str) -> Result<Url, UnfitProvider> {
    let wrong = |why| unfit("base_url", why);
    let url = Url::parse(text).map_err(|_| wrong("it is no address"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("it must begin with https:// and name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it must not hold a name or a password; keep the key as a secret"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it must end with its path"));
    }
    Ok(url)
}

fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<IpAddr>().ok();
    address.map_or(host == "localhost", |address| Zone::of(address) == Zone::Loopback)
}

/// Everybody who can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProviders {
    all: BTreeMap<String, ModelProvider>,
    /// The order in which a call without a model looks for one: the owner's first.
    order: Vec<String>,
    default: Option<String>,
}

/// A provider and one of its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelChoice<'a> {
    pub(crate) provider: &'a ModelProvider,
    pub(crate) model: String,
}

impl Default for ModelProviders {
    fn default() -> Self {
        Self::new(Vec::new(), None)
    }
}

impl ModelProviders {
    /// The owner's providers beside those that are known from the start, and the model that is
    /// meant when none is named.
    #[must_use]
    pub fn new(own: Vec<ModelProvider>, default: Option<String>) -> Self {
        let mut order: Vec<String> = own.iter().map(|provider| provider.name.clone()).collect();
        let known: Vec<ModelProvider> =
            KNOWN.iter().filter_map(|known| ModelProvider::known(known.0)).collect();
        for provider in &known {
            if !order.contains(&provider.name) {
                order.push(provider.name.clone());
            }
        }
        let all = known.into_iter().chain(own).map(|it| (it.name.clone(), it)).collect();
        Self { all, order, default }
    }

    /// Who a default names, if anybody.
    #[must_use]
    pub fn knows(&self, model: &str) -> bool {
        self.named(model).is_some()
    }

    /// Who is meant: one for a model that is named, else whoever may have a key, in order.
    /// Nobody for a model that nobody has.
    pub(crate) fn meant(&self, model: Option<&str>) -> Vec<ModelChoice<'_>> {
        match model.or(self.default.as_deref()) {
            Some(model) => self.named(model).into_iter().collect(),
            None => self.usual(),
        }
    }

    /// The default, as it was set.
    pub(crate) fn default_model(&self) -> Option<&str> {
        self.default.as_deref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ModelProvider> {
        self.order.iter().filter_map(|name| self.all.get(name))
    }

    fn usual(&self) -> Vec<ModelChoice<'_>> {
        let choices = self.iter().map(|provider| (provider, provider.models.first().cloned()));
        choices
            .filter_map(|(provider, model)| model.map(|model| ModelChoice { provider, model }))
            .collect()
    }

    fn named(&self, model: &str) -> Option<ModelChoice<'_>> {
        let choice =
            |provider, model: &str| Some(ModelChoice { provider, model: model.to_owned() });
        if let Some(provider) = self.iter().find(|it| it.models.iter().any(|own| own == model)) {
            return choice(provider, model);
        }
        if let Some((name, rest)) = model.split_once('/')
            && !rest.is_empty()
            && let Some(provider) = self.all.get(name)
        {
            return choice(provider, rest);
        }
        let family = FAMILIES.iter().find(|(begins, _)| model.starts_with(begins));
        choice(self.all.get(family?.1)?, model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> ModelProvider {
        let made = ModelProvider::new("local", Api::OpenAi, "http://127.0.0.1:11434/v1/");
        made.expect("fits").with_models(vec!["llama3.2".to_owned(), "org/big".to_owned()])
    }

    #[test]
    fn a_name_means_one_provider() {
        let all = ModelProviders::new(vec![local()], None);
        let means = |model: &str| {
            let found = all.meant(Some(model));
            found.first().map(|it| format!("{} {}", it.provider.name, it.model))
        };
        for (model, meant) in [
            ("llama3.2", "local llama3.2"),
            ("org/big", "local org/big"),
            ("local/other", "local other"),
            ("local/org/other", "local org/other"),
            ("gpt-9", "openai gpt-9"),
            ("o3-mini", "openai o3-mini"),
            ("claude-next", "anthropic claude-next"),
            ("anthropic/x", "anthropic x"),
        ] {
            assert_eq!(means(model).as_deref(), Some(meant), "{model}");
        }
        for nobody in ["mistral", "nobody/x", "local/", ""] {
            assert_eq!(means(nobody), None, "{nobody}");
        }
    }

    #[test]
    fn without_a_name_the_default_counts_and_else_the_owners_come_first() {
        let all = ModelProviders::new(vec![local()], None);
        let names: Vec<_> = all.meant(None).iter().map(|it| it.model.clone()).collect();
        assert_eq!(names, ["llama3.2", "gpt-5.4-mini", "claude-sonnet-5"]);
        let set = ModelProviders::new(vec![local()], Some("claude-opus-5-5".to_owned()));
        let names: Vec<_> = set.meant(None).iter().map(|it| it.model.clone()).collect();
        assert_eq!(names, ["claude-opus-5-5"]);
        assert!(set.knows("local/x") && !set.knows("mistral"));
    }

    #[test]
    fn a_key_does_not_travel_in_the_open() {
        let key = || SecretName::new("K").expect("valid");
        let at = |url: &str| ModelProvider::new("p", Api::OpenAi, url);
        for good in
            ["https://a.example/v1", "http://127.0.0.1:1/v1", "http://[::1]/", "http://localhost:1"]
        {
            assert!(at(good).expect(good).with_key(key()).checked().is_ok(), "{good}");
        }
        for open in ["http://a.example/v1", "http://10.0.0.5:11434"] {
            assert!(at(open).expect(open).with_key(key()).checked().is_err(), "{open}");
            assert!(at(open).expect(open).checked().is_ok(), "without a key there is no secret");
        }
        for wrong in ["a.example", "ftp://a", "https://u:p@a", "https://a/?k=1", "https://a/#x"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            local().url("chat/completions").as_str(),
            "http://127.0.0.1:11434/v1/chat/completions"
        );
    }
}
