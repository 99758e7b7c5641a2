//! BLAKE3 hashes of what artifacts hold.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A BLAKE3 hash in lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct B3(String);

/// A text is no BLAKE3 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a BLAKE3 hash has 64 digits from 0 to 9 and a to f")]
pub struct B3Error;

impl B3 {
    /// Reads 64 lower-case hex digits.
    pub fn parse(text: impl Into<String>) -> Result<Self, B3Error> {
        let text = text.into();
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 64 && text.bytes().all(digit) { Ok(Self(text)) } else { Err(B3Error) }
    }

    /// The hash as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for B3 {
    type Error = B3Error;

    fn try_from(text: String) -> Result<Self, B3Error> {
        Self::parse(text)
    }
}

impl From<B3> for String {
    fn from(hash: B3) -> Self {
        hash.0
    }
}

impl fmt::Display for B3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sixty_four_lower_case_digits_are_a_hash() {
        let good = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(B3::parse(good).expect("a hash").as_str(), good);
        for bad in ["", "af13", &good.to_uppercase(), &format!("{good}0"), &good.replace('a', "g")]
        {
            assert_eq!(B3::parse(bad), Err(B3Error), "{bad}");
        }
    }
}
