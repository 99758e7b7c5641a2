//! `llm/models@1`: which providers, models and prices are known, and whose keys are there.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_domain::ToolDef;
use wharf_engine::in_process::{InProcess, ToolOutput, schema_of};
use wharf_vocab::{Code, Fault, ToolId};

use crate::chat::Models;
use crate::{MODELS, NamedProvider};

/// Nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoInput {}

/// What is known of models.
#[derive(Serialize, JsonSchema)]
struct KnownModels {
    /// The model that is meant when none is named; the first provider with a key when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    /// Who can be asked, in the order in which a call without a model looks for a key.
    providers: Vec<KnownProvider>,
    /// What models cost.
    prices: Vec<KnownPrice>,
}

#[derive(Serialize, JsonSchema)]
struct KnownProvider {
    /// Its name, which stands before a model as PROVIDER/MODEL.
    name: String,
    /// `openai` or `anthropic`: the API that it speaks.
    kind: &'static str,
    /// Where it is.
    base_url: String,
    /// The secret with its key; it wants none when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Whether it can be asked: its key is kept here, or it wants none.
    ready: bool,
    /// Models that are meant by their plain names; the first is its usual one.
    models: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct KnownPrice {
    /// The model.
    model: String,
    /// Dollars for a million tokens that are read.
    input: f64,
    /// Dollars for a million tokens that are written.
    output: f64,
    /// Dollars for a million tokens that are read and were known from before.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_input: Option<f64>,
    /// When the price was read, or where it was set.
    as_of: String,
}

pub(crate) fn provider(models: &Arc<Models>) -> Result<NamedProvider, Fault> {
    let named = |error| Fault::new(Code::CoreInternal, format!("A built-in tool: {error}."));
    let tool = ToolId::new(MODELS).map_err(named)?;
    let description = "Says which model providers, models and prices are known, and whose keys \
                       are there.";
    let def = ToolDef {
        output_schema: Some(schema_of::<KnownModels>()),
        side_effects: Some(false),
        mock: true,
        free: true,
        tags: vec!["model".to_owned()],
        ..ToolDef::new(tool.clone(), description, schema_of::<NoInput>())
    };
    let models = Arc::clone(models);
    let provider = InProcess::new(MODELS).map_err(named)?.object_tool(def, move |_, _| {
        let models = Arc::clone(&models);
        async move {
            let known = known(&models).await;
            match serde_json::to_value(&known) {
                Ok(Value::Object(outputs)) => Ok(ToolOutput { outputs, cost_micro: 0 }),
                _ => Err(Fault::new(Code::ToolInternal, "The tool's output is not JSON.")),
            }
        }
    });
    Ok((tool.provider(), provider))
}

async fn known(models: &Models) -> KnownModels {
    let mut providers = Vec::new();
    for provider in models.options.providers.iter() {
        providers.push(KnownProvider {
            name: provider.name.clone(),
            kind: provider.api.as_str(),
            base_url: provider.base_url.to_string(),
            key: provider.key.as_ref().map(ToString::to_string),
            ready: models.has_key(provider.key.as_ref()).await,
            models: provider.models.clone(),
        });
    }
    let price = |(model, price): (String, crate::Price)| {
        let (input, output, cached_input) = price.in_dollars();
        KnownPrice { model, input, output, cached_input, as_of: price.as_of().to_owned() }
    };
    KnownModels {
        default: models.options.providers.default_model().map(str::to_owned),
        providers,
        prices: models.options.prices.all().into_iter().map(price).collect(),
    }
}
