//! Amounts of money as people read them.

use wharf_vocab::Micro;

/// An amount in dollars with as many places as it needs, at least two.
pub(crate) fn dollars(micro: Micro) -> String {
    let mut text = format!("${}.{:06}", micro / 1_000_000, micro % 1_000_000);
    for _ in 0..4 {
        if text.ends_with('0') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_every_place_that_says_something() {
        for (micro, expect) in [
            (0, "$0.00"),
            (1, "$0.000001"),
            (1_200_000, "$1.20"),
            (1_234_500, "$1.2345"),
            (10_000_000, "$10.00"),
        ] {
            assert_eq!(dollars(micro), expect);
        }
    }
}
