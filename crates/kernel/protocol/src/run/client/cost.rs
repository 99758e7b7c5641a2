//! What an attempt cost, as its server says.

use serde_json::Value;

/// A cost that was reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// So many micro-dollars.
    Micro(u64),
    /// Nothing was said, which counts as 0.
    Missing,
    /// It is not a whole number of micro-dollars that can be kept.
    Invalid,
}

/// Judges a cost. A whole number that is written with a point is one too.
#[must_use]
pub fn judge(said: Option<&Value>) -> Cost {
    let number = match said {
        None | Some(Value::Null) => return Cost::Missing,
        Some(Value::Number(number)) => number,
        Some(_) => return Cost::Invalid,
    };
    let whole = number.as_u64().or_else(|| number.as_f64().and_then(whole));
    whole.filter(|micro| *micro <= i64::MAX as u64).map_or(Cost::Invalid, Cost::Micro)
}

/// A float that is a whole number and not too large to be sure of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is whole, not negative and far smaller than what fits"
)]
fn whole(number: f64) -> Option<u64> {
    const SURE_MAX: f64 = 9_007_199_254_740_992.0;
    ((0.0..=SURE_MAX).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t011_only_whole_numbers_that_can_be_kept_are_a_cost() {
        for (said, cost) in [
            (json!(0), Cost::Micro(0)),
            (json!(75), Cost::Micro(75)),
            (json!(75.0), Cost::Micro(75)),
            (json!(-0.0), Cost::Micro(0)),
            (json!(2e6), Cost::Micro(2_000_000)),
            (json!(i64::MAX), Cost::Micro(i64::MAX as u64)),
            (json!(null), Cost::Missing),
            (json!(-1), Cost::Invalid),
            (json!(-1.0), Cost::Invalid),
            (json!(0.5), Cost::Invalid),
            (json!(1e300), Cost::Invalid),
            (json!(u64::MAX), Cost::Invalid),
            (json!(i64::MAX as u64 + 1), Cost::Invalid),
            (json!("75"), Cost::Invalid),
            (json!("NaN"), Cost::Invalid),
            (json!(true), Cost::Invalid),
            (json!([1]), Cost::Invalid),
        ] {
            assert_eq!(judge(Some(&said)), cost, "{said}");
        }
        assert_eq!(judge(None), Cost::Missing);
    }
}
