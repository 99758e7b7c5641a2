//! Whether a text is a semantic version.

/// `MAJOR.MINOR.PATCH[-pre-release][+build]`, without leading zeros in numbers.
pub(super) fn is_semver(text: &str) -> bool {
    let (rest, build) = split(text, '+');
    let (core, pre) = split(rest, '-');
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|part| is_number(part))
        && pre.is_none_or(|pre| pre.split('.').all(|part| is_word(part) && !is_padded(part)))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && !is_padded(part)
}

fn is_padded(part: &str) -> bool {
    part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit())
}

fn is_word(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers_and_optional_tails() {
        for good in ["0.1.0", "1.0.0-alpha.1", "1.2.3+build.01", "1.0.0-a-b+x-y", "10.20.30"] {
            assert!(is_semver(good), "{good}");
        }
        for bad in ["", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.x", "v1.0.0", "1.0.0-", "1.0.0-01"] {
            assert!(!is_semver(bad), "{bad}");
        }
    }
}
