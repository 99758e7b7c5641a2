//! The run protocol: a connection carries one run, and a run may outlive its connections.

pub mod client;
pub mod server;

use serde_json::Value;
use wharf_vocab::Micro;

/// Why a reported cost is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// It is not a number.
    #[error("The reported cost is not a number.")]
    NotANumber,
    /// It is below zero.
    #[error("The reported cost is negative.")]
    Negative,
    /// It is not a whole number of micro-dollars.
    #[error("The reported cost is not a whole number of micro-dollars.")]
    Fractional,
    /// It is larger than any cost.
    #[error("The reported cost is too large.")]
    TooLarge,
}

/// Micro-dollars, from whatever was reported. A whole number written as `75.0` counts.
pub fn judge_cost(reported: &Value) -> Result<Micro, CostError> {
    let Value::Number(number) = reported else { return Err(CostError::NotANumber) };
    if let Some(cost) = number.as_u64() {
        return i64::try_from(cost).map(|_| cost).map_err(|_| CostError::TooLarge);
    }
    let Some(cost) = number.as_f64().filter(|cost| cost.is_finite()) else {
        return Err(CostError::NotANumber);
    };
    // From 2^63 on a number does not fit into 64 bits with a sign, which is what others store.
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    match cost {
        cost if cost < 0.0 => Err(CostError::Negative),
        cost if cost >= TOO_LARGE => Err(CostError::TooLarge),
        cost if cost.fract() != 0.0 => Err(CostError::Fractional),
        cost => Ok(cost as Micro),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t011_a_cost_is_a_whole_number_of_micro_dollars() {
        for (reported, cost) in [
            (json!(0), Ok(0)),
            (json!(75), Ok(75)),
            (json!(75.0), Ok(75)),
            (json!(-0.0), Ok(0)),
            (json!(i64::MAX), Ok(9_223_372_036_854_775_807)),
            (json!(u64::MAX), Err(CostError::TooLarge)),
            (json!(1e19), Err(CostError::TooLarge)),
            (json!(1e300), Err(CostError::TooLarge)),
            (json!(-1), Err(CostError::Negative)),
            (json!(-0.5), Err(CostError::Negative)),
            (json!(0.5), Err(CostError::Fractional)),
            (json!(75.000_1), Err(CostError::Fractional)),
            (json!("75"), Err(CostError::NotANumber)),
            (json!(true), Err(CostError::NotANumber)),
            (json!(null), Err(CostError::NotANumber)),
            (json!([75]), Err(CostError::NotANumber)),
        ] {
            assert_eq!(judge_cost(&reported), cost, "{reported}");
        }
    }
}
