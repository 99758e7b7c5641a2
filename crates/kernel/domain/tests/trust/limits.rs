//! The stricter of two limits is stricter in every respect.

use proptest::prelude::*;
use wharf_domain::provider::{ProviderLimits, Rate, Usage};

fn rated(count: u32, per_ms: u64) -> ProviderLimits {
    ProviderLimits { rate: Some(Rate { count, per_ms }), ..ProviderLimits::default() }
}

#[test]
fn the_stricter_limit_wins_in_every_respect() {
    let manifest = ProviderLimits {
        calls_max: Some(3),
        call_ms: Some(15_000),
        usage: Usage { memory_bytes: Some(100), ..Usage::default() },
        ..rated(60, 60_000)
    };
    let owner = ProviderLimits {
        calls_max: Some(5),
        call_ms: Some(1_000),
        output_bytes: Some(7),
        usage: Usage { memory_bytes: Some(50), processes: Some(9), ..Usage::default() },
        ..rated(5, 1_000)
    };
    let both = ProviderLimits {
        calls_max: Some(3),
        call_ms: Some(1_000),
        output_bytes: Some(7),
        usage: Usage { memory_bytes: Some(50), processes: Some(9), ..Usage::default() },
        ..rated(5, 5_000)
    };
    assert_eq!(manifest.stricter(&owner), both);
    assert_eq!(owner.stricter(&manifest), both);
    assert_eq!(both.stricter(&ProviderLimits::default()), both);
    assert_eq!(both.stricter(&both), both);
    assert_eq!(rated(0, 10).stricter(&rated(5, 100)).rate, Some(Rate { count: 0, per_ms: 100 }));
}

/// The most that gets through in some time: full bursts, as close together as the rate lets them.
fn most(rate: Rate, in_ms: u64) -> u64 {
    u64::from(rate.count) * in_ms.div_ceil(rate.per_ms)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_rate_is_exceeded(counts in (1_u32..50, 1_u32..50), times in (1_u64..5_000, 1_u64..5_000)) {
        let one = Rate { count: counts.0, per_ms: times.0 };
        let two = Rate { count: counts.1, per_ms: times.1 };
        let both = rated(one.count, one.per_ms).stricter(&rated(two.count, two.per_ms));
        let both = both.rate.expect("rated");
        for rate in [one, two] {
            prop_assert!(most(both, rate.per_ms) <= u64::from(rate.count), "{:?} {:?}", both, rate);
        }
    }
}
