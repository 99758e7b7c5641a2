//! What models cost. The table is what providers publish for everybody, with the month in which it
//! was read; the owner's own prices come first.

use std::borrow::Cow;
use std::collections::BTreeMap;

use wharf_vocab::Micro;

use crate::answer::TokenUsage;

/// What the tokens of a model cost, in millionths of a dollar for a million tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    input: u64,
    output: u64,
    /// Input that the provider knew from before; like other input when absent.
    cached_input: Option<u64>,
    /// Input that the provider remembers from now on; like other input when absent.
    cache_write: Option<u64>,
    /// From how many input tokens on everything costs how often as much.
    long: Option<(u64, u64)>,
    as_of: Cow<'static, str>,
}

/// A price is no amount of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfitPrice;

/// Dollars beyond which a price for a million tokens is a mistake.
const DOLLARS_MAX: f64 = 100_000.0;
const MILLION: u128 = 1_000_000;

impl Price {
    /// A price in dollars for a million tokens.
    pub fn dollars(
        input: f64,
        output: f64,
        cached_input: Option<f64>,
        as_of: Option<String>,
    ) -> Result<Self, UnfitPrice> {
        let micro = |dollars: f64| {
            let fits = dollars.is_finite() && (0.0..=DOLLARS_MAX).contains(&dollars);
            // It is within the bounds, so nothing of it is lost but what is below a millionth.
            fits.then(|| (dollars * 1e6).round() as u64).ok_or(UnfitPrice)
        };
        Ok(Self {
            input: micro(input)?,
            output: micro(output)?,
            cached_input: cached_input.map(micro).transpose()?,
            cache_write: None,
            long: None,
            as_of: as_of.map_or(Cow::Borrowed("wharf.toml"), Cow::Owned),
        })
    }

    /// A price of the table, in thousandths of a dollar for a million tokens.
    const fn listed(as_of: &'static str, input: u64, output: u64) -> Self {
        Self {
            input: input * 1000,
            output: output * 1000,
            cached_input: None,
            cache_write: None,
            long: None,
            as_of: Cow::Borrowed(as_of),
        }
    }

    const fn cached(mut self, read: u64) -> Self {
        self.cached_input = Some(read * 1000);
        self
    }

    /// What Anthropic takes for its cache: a quarter more to write, and this to read.
    const fn cache(mut self, read: u64) -> Self {
        self.cache_write = Some(self.input / 4 * 5);
        self.cached(read)
    }

    const fn long(mut self, above: u64, times: u64) -> Self {
        self.long = Some((above, times));
        self
    }

    /// What tokens cost, rounded up.
    pub(crate) fn of(&self, usage: &TokenUsage) -> Micro {
        let plain = usage
            .input_tokens
            .saturating_sub(usage.cached_tokens)
            .saturating_sub(usage.cache_write_tokens);
        let parts = [
            (plain, self.input),
            (usage.cached_tokens, self.cached_input.unwrap_or(self.input)),
            (usage.cache_write_tokens, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        let sum: u128 = parts.iter().map(|(n, each)| u128::from(*n) * u128::from(*each)).sum();
        let times = self.long.filter(|(above, _)| usage.input_tokens > *above);
        let sum = sum * u128::from(times.map_or(1, |(_, times)| times));
        Micro::try_from(sum.div_ceil(MILLION)).unwrap_or(Micro::MAX)
    }

    /// Input, output and known input in dollars for a million tokens.
    pub(crate) fn in_dollars(&self) -> (f64, f64, Option<f64>) {
        let dollars = |micro: u64| micro as f64 / 1e6;
        (dollars(self.input), dollars(self.output), self.cached_input.map(dollars))
    }

    pub(crate) fn as_of(&self) -> &str {
        &self.as_of
    }
}

/// The prices of models: those of the owner, by `provider/model` or `model`, and those of the
/// providers that are known from the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceTable {
    own: BTreeMap<String, Price>,
}

impl PriceTable {
    /// The table with the owner's prices.
    #[must_use]
    pub fn new(own: BTreeMap<String, Price>) -> Self {
        Self { own }
    }

    /// The price of a provider's model. A dated version costs what its model costs.
    pub(crate) fn of(&self, provider: &str, model: &str) -> Option<Price> {
        let full = format!("{provider}/{model}");
        if let Some(price) = self.own.get(&full).or_else(|| self.own.get(model)) {
            return Some(price.clone());
        }
        let listed = listed().filter(|(known, name, _)| *known == provider && is(model, name));
        listed.max_by_key(|(_, name, _)| name.len()).map(|(_, _, price)| price)
    }

    /// All prices by the names of their models.
    pub(crate) fn all(&self) -> BTreeMap<String, Price> {
        let listed = listed().map(|(provider, name, price)| (format!("{provider}/{name}"), price));
        let own = self.own.iter().map(|(name, price)| (name.clone(), price.clone()));
        listed.chain(own).collect()
    }
}

fn is(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    rest.is_empty() || rest == "-latest" || rest.starts_with("-20")
}

const OPENAI: &str = "2026-06";
const ANTHROPIC: &str = "2026-10";

fn listed() -> impl Iterator<Item = (&'static str, &'static str, Price)> {
    let openai = |name, input, cached, output| {
        ("openai", name, Price::listed(OPENAI, input, output).cached(cached))
    };
    let pro = |name, input, output| ("openai", name, Price::listed(OPENAI, input, output));
    let anthropic = |name, input, cached, output| {
        ("anthropic", name, Price::listed(ANTHROPIC, input, output).cache(cached))
    };
    let (provider, name, price) = anthropic("claude-haiku-5-5", 100, 10, 500);
    [
        openai("gpt-5.5", 5_000, 500, 30_000),
        pro("gpt-5.5-pro", 30_000, 180_000),
        openai("gpt-5.4", 2_500, 250, 15_000),
        openai("gpt-5.4-mini", 750, 75, 4_500),
        openai("gpt-5.4-nano", 200, 20, 1_250),
        pro("gpt-5.4-pro", 30_000, 180_000),
        openai("gpt-5.2", 1_750, 175, 14_000),
        pro("gpt-5.2-pro", 21_000, 168_000),
        openai("gpt-5.1", 1_250, 125, 10_000),
        openai("gpt-5", 1_250, 125, 10_000),
        openai("gpt-5-mini", 250, 25, 2_000),
        openai("gpt-5-nano", 50, 5, 400),
        openai("gpt-4.1", 2_000, 500, 8_000),
        openai("gpt-4.1-mini", 400, 100, 1_600),
        openai("gpt-4.1-nano", 100, 25, 400),
        openai("gpt-4o", 2_500, 1_250, 10_000),
        openai("gpt-4o-mini", 150, 75, 600),
        anthropic("claude-fable-5", 10_000, 1_000, 50_000),
        anthropic("claude-fable-5-1", 10_000, 250, 50_000),
        anthropic("claude-opus-5-5", 4_000, 200, 20_000),
        anthropic("claude-opus-5", 5_000, 500, 25_000),
        anthropic("claude-opus-4-8", 5_000, 500, 25_000),
        anthropic("claude-opus-4-7", 5_000, 500, 25_000),
        anthropic("claude-opus-4-6", 5_000, 500, 25_000),
        anthropic("claude-opus-4-5", 5_000, 500, 25_000),
        anthropic("claude-opus-4-1", 15_000, 1_500, 75_000),
        anthropic("claude-sonnet-5-5", 2_000, 100, 10_000),
        anthropic("claude-sonnet-5", 2_000, 200, 10_000),
        anthropic("claude-sonnet-4-6", 3_000, 300, 15_000),
        anthropic("claude-sonnet-4-5", 3_000, 300, 15_000),
        (provider, name, price.long(100_000, 5)),
        anthropic("claude-haiku-4-5", 1_000, 100, 5_000),
    ]
    .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cached: u64, output: u64) -> TokenUsage {
        TokenUsage { cached_tokens: cached, ..TokenUsage::new(input, output) }
    }

    #[test]
    fn prices_are_found_by_model_and_by_its_dated_version() {
        let table = PriceTable::default();
        let cost = |provider: &str, model: &str| {
            table.of(provider, model).map(|price| price.of(&usage(1_000_000, 0, 0)))
        };
        assert_eq!(cost("openai", "gpt-4o"), Some(2_500_000));
        assert_eq!(cost("openai", "gpt-4o-2024-08-06"), Some(2_500_000));
        assert_eq!(cost("openai", "gpt-4o-mini"), Some(150_000));
        assert_eq!(cost("anthropic", "claude-haiku-4-5-20251001"), Some(1_000_000));
        assert_eq!(cost("openai", "gpt-4o-audio"), None, "another model is not guessed");
        assert_eq!(cost("elsewhere", "gpt-4o"), None, "others have prices of their own");
    }

    #[test]
    fn what_the_owner_says_comes_first() {
        let price = Price::dollars(1.5, 2.0, Some(0.5), None).expect("a price");
        let own = [("gpt-4o".to_owned(), price.clone()), ("local/x".to_owned(), price)];
        let table = PriceTable::new(own.into_iter().collect());
        let found = table.of("openai", "gpt-4o").expect("there");
        assert_eq!(found.of(&usage(1_000_000, 400_000, 1_000_000)), 900_000 + 200_000 + 2_000_000);
        assert_eq!(found.as_of(), "wharf.toml");
        assert!(table.of("local", "x").is_some() && table.of("other", "x").is_none());
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(Price::dollars(wrong, 1.0, None, None), Err(UnfitPrice));
        }
    }

    #[test]
    fn a_part_of_a_millionth_counts_whole_and_long_prompts_cost_more() {
        let haiku = PriceTable::default().of("anthropic", "claude-haiku-5-5").expect("there");
        assert_eq!(haiku.of(&usage(1, 0, 0)), 1);
        assert_eq!(haiku.of(&usage(100_000, 0, 0)), 10_000);
        assert_eq!(haiku.of(&usage(200_000, 0, 0)), 100_000);
        let written = TokenUsage { cache_write_tokens: 1_000_000, ..TokenUsage::new(1_000_000, 0) };
        let sonnet = PriceTable::default().of("anthropic", "claude-sonnet-5").expect("there");
        assert_eq!(sonnet.of(&written), 2_500_000);
    }
}
