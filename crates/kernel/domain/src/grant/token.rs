//! Tokens: a grant as text that only this core can make and anybody can narrow.
//!
//! A token is a chain of blocks: the first says what the grant gives, each later one what is taken
//! away. The seal of the first is made with the core's key, the seal of each later one with the
//! seal before it, so that a bearer can add blocks but cannot take any off.

use std::collections::BTreeMap;
use std::fmt;

use wharf_vocab::GrantId;

use super::{Grant, Narrowing, Rights};

/// Longest text of a token.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Most blocks of a token.
pub const BLOCKS_MAX: usize = 8;

/// The keys tokens are sealed with: one that seals now, and older ones that are still good.
#[derive(Clone, PartialEq, Eq)]
pub struct Keyring {
    /// The name of the key that seals now.
    pub current: String,
    /// All keys by their names.
    pub keys: BTreeMap<String, [u8; 32]>,
}

impl Keyring {
    /// No key at all: no token is good.
    #[must_use]
    pub fn none() -> Self {
        Self { current: String::new(), keys: BTreeMap::new() }
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("current", &self.current).finish_non_exhaustive()
    }
}

/// A token. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The text, for the one answer that hands it out.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Who bears a token whose seals are right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// The grant it began as.
    pub root: GrantId,
    /// The grant and every narrowing of it, in order.
    pub chain: Vec<GrantId>,
    /// What is left of its rights.
    pub rights: Rights,
    /// Whether the bearer is a person; a narrowed token's never is.
    pub person: bool,
    /// Whether the grant it began as is a person's.
    pub root_person: bool,
}

/// Why a text is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is not of the right form.
    #[error("this is not a token")]
    Malformed,
    /// Its seal is wrong, or its key is gone.
    #[error("the token's seal is not valid")]
    Seal,
    /// It has too many blocks.
    #[error("the token has been narrowed too often")]
    TooLong,
}

/// Makes the token of a grant.
#[must_use]
pub fn mint(keyring: &Keyring, grant: &Grant) -> Token {
    let _ = keyring;
    Token(format!("whf1.{}", grant.id))
}

/// Checks a token's seals and says who bears it.
pub fn verify(keyring: &Keyring, text: &str) -> Result<Bearer, TokenError> {
    let _ = (keyring, text);
    Err(TokenError::Malformed)
}

/// Narrows a token. `id` names the narrowed one.
pub fn narrow(text: &str, id: &GrantId, by: &Narrowing) -> Result<Token, TokenError> {
    let _ = (text, id, by);
    Err(TokenError::Malformed)
}
