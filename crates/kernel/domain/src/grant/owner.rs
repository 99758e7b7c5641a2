//! Narrowing the owner's token, which is no grant of its own: it is the key that the first block
//! of such a token is sealed with.
//!
//! A program that acts for the owner and needs less than everything, such as the bridge of an MCP
//! client, narrows the token without asking anybody. What comes of it looks and works like any
//! narrowed token (`whf1.owner.…`), is no person's, and is good for as long as the owner's token.

use std::fmt;

use sha2::{Digest as _, Sha256};
use wharf_vocab::GrantId;

use super::token::{self, Bearer, Keyring, Token, TokenError};
use super::{Narrowing, Rights};

/// The name of the key in such tokens. No key of a keyring has it.
const KEY_NAME: &str = "owner";
/// The grant that such tokens begin with.
const ROOT: &str = "owner";
/// What is hashed begins with what it is for.
const PREFIX: &[u8] = b"wharf.token.owner.1\0";
/// A text that is shorter is no owner's token.
const TOKEN_BYTES_MIN: usize = 16;

/// What the owner's token seals with. The token cannot be told from it.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnerKey(Keyring);

impl OwnerKey {
    /// The key of the owner's token.
    pub fn new(token: &str) -> Self {
        let key = Sha256::new().chain_update(PREFIX).chain_update(token).finalize().into();
        let keys = [(KEY_NAME.to_owned(), key)].into();
        Self(Keyring { current: KEY_NAME.to_owned(), keys })
    }

    /// Whether a text can be the owner's token.
    pub fn fits(token: &str) -> bool {
        token.len() >= TOKEN_BYTES_MIN
            && token.bytes().all(|byte| byte.is_ascii_graphic())
            && !token.contains('.')
    }

    /// A token with fewer rights than the owner's.
    pub fn narrow(&self, id: &GrantId, by: &Narrowing) -> Result<Token, TokenError> {
        let root = GrantId::new(ROOT).map_err(|_| TokenError::Malformed)?;
        let whole = token::rooted(&self.0, &root, true, Rights::all());
        token::narrow(whole.expose(), id, by)
    }

    /// Who bears a token that was made from the owner's; `None` if it is of another kind. The
    /// whole of the owner's rights is only in the owner's own token.
    pub fn verify(&self, text: &str) -> Option<Result<Bearer, TokenError>> {
        if !token::is_of_key(text, KEY_NAME) {
            return None;
        }
        let bearer = token::verify(&self.0, text);
        Some(bearer.and_then(|bearer| match bearer.chain.len() {
            0 | 1 => Err(TokenError::Malformed),
            _ => Ok(bearer),
        }))
    }
}

impl fmt::Debug for OwnerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use wharf_vocab::Verb;

    use super::*;

    const OWNERS: &str = "0123456789abcdef0123456789abcdef";

    fn narrowed() -> Token {
        let verbs = [Verb::Run, Verb::Read].into();
        let by = Narrowing { verbs: Some(verbs), ..Narrowing::default() };
        let id = GrantId::new("mcp").expect("an id");
        OwnerKey::new(OWNERS).narrow(&id, &by).expect("narrowed")
    }

    #[test]
    fn m014_the_owners_token_is_narrowed_without_a_core() {
        let bearer = OwnerKey::new(OWNERS).verify(narrowed().expose()).expect("its kind");
        let bearer = bearer.expect("good");
        assert!(!bearer.person && bearer.root_person);
        let chain: Vec<_> = bearer.chain.iter().map(GrantId::as_str).collect();
        assert_eq!(chain, ["owner", "owner.mcp"]);
        assert_eq!(bearer.rights.verbs, [Verb::Run, Verb::Read].into());
        assert_eq!(narrowed(), narrowed(), "the same each time");
        assert!(!narrowed().expose().contains(OWNERS));
    }

    #[test]
    fn m014_only_the_owners_token_makes_one_and_never_the_whole() {
        let key = OwnerKey::new(OWNERS);
        let other = OwnerKey::new("another-token-of-another-owner");
        assert_eq!(other.verify(narrowed().expose()), Some(Err(TokenError::Seal)));
        let root = GrantId::new(ROOT).expect("an id");
        let whole = token::rooted(&key.0, &root, true, Rights::all());
        assert_eq!(key.verify(whole.expose()), Some(Err(TokenError::Malformed)));
        for others in ["whf1.k1.e30.AAAA", OWNERS, "", "whf1.owner"] {
            assert_eq!(key.verify(others), None, "{others}");
        }
        assert!(OwnerKey::fits(OWNERS) && !OwnerKey::fits("c4nary"));
        assert!(!OwnerKey::fits(narrowed().expose()));
        assert!(!format!("{key:?}").contains("0123"));
    }
}
