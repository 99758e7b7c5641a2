//! What a run cost, in micro-dollars: millionths of a dollar, always whole numbers.
//!
//! Floating point never touches money here. What does not come out even is rounded up, so that a
//! run never reports less than it cost.

use std::time::Duration;

use crate::Micro;

/// Prices are for so many tokens.
const TOKENS_PER_PRICE: u128 = 1_000_000;
/// A dollar.
const MICRO_PER_DOLLAR: u128 = 1_000_000;

/// What a million tokens cost, in micro-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// Those that go in.
    pub prompt: Micro,
    /// Those that come out.
    pub completion: Micro,
}

impl Prices {
    /// Prices as they stand in price lists: dollars for a million tokens, such as `"0.15"`.
    /// `None` if one of them is no amount of money.
    ///
    /// ```
    /// use wharf_sdk::toolserver::cost::{Prices, per_token};
    ///
    /// let prices = Prices::dollars("0.15", "0.60").unwrap();
    /// assert_eq!(per_token(1_000, 500, prices), 450);
    /// ```
    #[must_use]
    pub fn dollars(prompt: &str, completion: &str) -> Option<Self> {
        Some(Self { prompt: micro(prompt)?, completion: micro(completion)? })
    }
}

/// Dollars, such as `"0.04"`, as micro-dollars, rounded up. `None` if it is no amount of money.
#[must_use]
pub fn micro(dollars: &str) -> Option<Micro> {
    let (whole, part) = dollars.split_once('.').unwrap_or((dollars, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(part) {
        return None;
    }
    let (kept, rest) = part.split_at(part.len().min(6));
    let fraction: u128 = format!("{kept:0<6}").parse().ok()?;
    let up = u128::from(rest.bytes().any(|digit| digit != b'0'));
    let whole = whole.parse::<u128>().ok()?.checked_mul(MICRO_PER_DOLLAR)?;
    Micro::try_from(whole.checked_add(fraction + up)?).ok()
}

/// What these tokens cost together; rounded up once, for the sum.
#[must_use]
pub fn per_token(prompt_tokens: u64, completion_tokens: u64, prices: Prices) -> Micro {
    let prompt = u128::from(prompt_tokens) * u128::from(prices.prompt);
    let completion = u128::from(completion_tokens) * u128::from(prices.completion);
    whole(prompt.saturating_add(completion).div_ceil(TOKENS_PER_PRICE))
}

/// What this time costs, at this many micro-dollars a second.
#[must_use]
pub fn per_second(time: Duration, price: Micro) -> Micro {
    let total = time.as_nanos().saturating_mul(u128::from(price));
    whole(total.div_ceil(1_000_000_000))
}

fn whole(amount: u128) -> Micro {
    Micro::try_from(amount).unwrap_or(Micro::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t011_money_is_exact_and_rounded_up() {
        for (dollars, expected) in [
            ("1", Some(1_000_000)),
            ("0.15", Some(150_000)),
            ("0.0000001", Some(1)),
            ("0.0000010", Some(1)),
            ("12.345678", Some(12_345_678)),
            ("12.3456781", Some(12_345_679)),
            ("0", Some(0)),
            ("18446744073709.551615", Some(u64::MAX)),
            ("18446744073709.551616", None),
            ("", None),
            (".5", None),
            ("1.", None),
            ("-1", None),
            ("1e3", None),
            ("1.5.2", None),
        ] {
            assert_eq!(micro(dollars), expected, "{dollars:?}");
        }
        let prices = Prices { prompt: 150_000, completion: 600_000 };
        assert_eq!(per_token(1, 0, prices), 1);
        assert_eq!(per_token(1_000, 1_000, prices), 750);
        assert_eq!(
            per_token(u64::MAX, u64::MAX, Prices { prompt: u64::MAX, completion: 1 }),
            u64::MAX
        );
        assert_eq!(per_second(Duration::from_millis(1_500), 100), 150);
        assert_eq!(per_second(Duration::from_nanos(1), 1), 1);
        assert_eq!(per_second(Duration::ZERO, 1), 0);
    }
}
