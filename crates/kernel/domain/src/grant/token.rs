//! Tokens: a grant as text that only this core can make and anybody can narrow.
//!
//! A token is a chain of blocks: the first says what the grant gives, each later one what is taken
//! away. The seal of the first is made with the core's key, the seal of each later one with the
//! seal before it, so that a bearer can add blocks but cannot take any off: the token shows only
//! the last seal, and nobody gets from a seal back to the one before it.
//!
//! As text it is `whf1.<key>.<block>….<seal>`: the name of the key, then each block and the last
//! seal in base64url without padding. A block is JSON in the one form in which this module writes
//! it; any other form of the same is refused, so that a grant has one token and no twins.
//!
//! Bearers choose the names of their narrowings, so each is told with the name it was narrowed
//! from in front (`g-1.laptop.ci`): nobody can pass for a grant that is not their own.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use wharf_vocab::GrantId;

use super::{Grant, Narrowing, Rights};

/// Longest text of a token.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Most blocks of a token.
pub const BLOCKS_MAX: usize = 8;
/// Longest name of a key.
pub const KEY_NAME_BYTES_MAX: usize = 64;

const FORM: &str = "whf1";
const SEAL_BYTES: usize = 32;
/// What is sealed begins with what it is, so that no block passes for one of another kind.
const ROOT: &[u8] = b"wharf.token.root.1\0";
const NARROWED: &[u8] = b"wharf.token.narrowed.1\0";

/// The keys tokens are sealed with: one that seals now, and older ones that are still good.
///
/// A key's name is made of letters, digits, `-` and `_`. A token is good for as long as the key
/// it was sealed with is in here.
#[derive(Clone, PartialEq, Eq)]
pub struct Keyring {
    /// The name of the key that seals now.
    pub current: String,
    /// All keys by their names.
    pub keys: BTreeMap<String, [u8; 32]>,
}

impl Keyring {
    /// No key at all: no token is good.
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

/// What the first block says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RootBlock {
    id: GrantId,
    person: bool,
    rights: Rights,
}

/// What each later block says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NarrowedBlock {
    id: GrantId,
    narrowing: Narrowing,
}

/// Makes the token of a grant. Without a key that seals now it is one that is never good.
pub fn mint(keyring: &Keyring, grant: &Grant) -> Token {
    rooted(keyring, &grant.id, grant.person, grant.rights.clone())
}

/// Makes a token with one block.
pub(super) fn rooted(keyring: &Keyring, id: &GrantId, person: bool, rights: Rights) -> Token {
    let kid = keyring.current.as_str();
    let Some(key) = keyring.keys.get(kid).filter(|_| is_key_name(kid)) else {
        return Token(format!("{FORM}.unsealed"));
    };
    let block = to_block(&RootBlock { id: id.clone(), person, rights });
    let seal = seal(root_mac(key, kid, &block));
    Token(format!("{FORM}.{kid}.{}.{}", encode(&block), encode(&seal)))
}

/// Whether a text looks like a token that was sealed with the key of this name.
pub(super) fn is_of_key(text: &str, name: &str) -> bool {
    key_name(text) == Some(name)
}

/// The name of the key that a text says it was sealed with, if it looks like a token.
pub(super) fn key_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(FORM).and_then(|rest| rest.strip_prefix('.'))?;
    rest.split_once('.').map(|(kid, _)| kid)
}

/// Checks a token's seals and says who bears it. Whether the grant is known, in time and not
/// revoked is for the caller to check.
pub fn verify(keyring: &Keyring, text: &str) -> Result<Bearer, TokenError> {
    let parts = TokenParts::read(text)?;
    let key = keyring.keys.get(parts.kid).ok_or(TokenError::Seal)?;
    let mut mac = root_mac(key, parts.kid, &parts.blocks[0]);
    for block in &parts.blocks[1..] {
        mac = narrowed_mac(&seal(mac), block);
    }
    mac.verify_slice(&parts.seal).map_err(|_| TokenError::Seal)?;
    parts.bearer()
}

/// Narrows a token. `id` names the narrowed one among those narrowed from the same token; it has
/// no dots, and is best kept short.
pub fn narrow(text: &str, id: &GrantId, by: &Narrowing) -> Result<Token, TokenError> {
    let mut parts = TokenParts::read(text)?;
    let block = to_block(&NarrowedBlock { id: id.clone(), narrowing: by.clone() });
    let sealed = seal(narrowed_mac(&parts.seal, &block));
    let added = encode(&block);
    parts.blocks.push(block);
    if parts.blocks.len() > BLOCKS_MAX {
        return Err(TokenError::TooLong);
    }
    parts.bearer()?;
    let (front, _) = text.rsplit_once('.').ok_or(TokenError::Malformed)?;
    let token = format!("{front}.{added}.{}", encode(&sealed));
    if token.len() > TOKEN_BYTES_MAX {
        return Err(TokenError::TooLong);
    }
    Ok(Token(token))
}

/// A token taken apart. Nothing has been checked but its form.
struct TokenParts<'a> {
    kid: &'a str,
    /// At least one.
    blocks: Vec<Vec<u8>>,
    seal: [u8; SEAL_BYTES],
}

impl<'a> TokenParts<'a> {
    /// Bounds come first: nothing is decoded of a text that is too long or has too many parts.
    fn read(text: &'a str) -> Result<Self, TokenError> {
        const FRAME_PARTS: usize = 3;
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Malformed);
        }
        let parts: Vec<&str> = text.splitn(BLOCKS_MAX + FRAME_PARTS + 1, '.').collect();
        let [form, kid, blocks @ .., seal] = parts.as_slice() else {
            return Err(TokenError::Malformed);
        };
        if *form != FORM || !is_key_name(kid) || blocks.is_empty() {
            return Err(TokenError::Malformed);
        }
        if blocks.len() > BLOCKS_MAX {
            return Err(TokenError::TooLong);
        }
        let seal = decode(seal)?.try_into().map_err(|_| TokenError::Malformed)?;
        let blocks = blocks.iter().map(|block| decode(block)).collect::<Result<_, _>>()?;
        Ok(Self { kid, blocks, seal })
    }

    /// Who bears the token, if its seal is right.
    fn bearer(&self) -> Result<Bearer, TokenError> {
        let root: RootBlock = from_block(&self.blocks[0])?;
        let mut chain = vec![root.id.clone()];
        let mut rights = root.rights;
        let mut above = root.id.clone();
        for block in &self.blocks[1..] {
            let NarrowedBlock { id, narrowing } = from_block(block)?;
            if id.as_str().contains('.') {
                return Err(TokenError::Malformed);
            }
            above = GrantId::new(format!("{above}.{id}")).map_err(|_| TokenError::TooLong)?;
            chain.push(above.clone());
            rights = rights.narrowed(&narrowing);
        }
        let person = root.person && chain.len() == 1;
        Ok(Bearer { root: root.id, chain, rights, person, root_person: root.person })
    }
}

pub(super) fn is_key_name(text: &str) -> bool {
    (1..=KEY_NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn to_block(content: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(content).expect("ids, words and numbers are always JSON")
}

/// Reads a block and refuses it unless it is written just as [`to_block`] writes it: then it has
/// no field twice, none that is unknown, and nothing before, between or after them.
fn from_block<T: Serialize + DeserializeOwned>(block: &[u8]) -> Result<T, TokenError> {
    let content: T = serde_json::from_slice(block).map_err(|_| TokenError::Malformed)?;
    if to_block(&content) == block { Ok(content) } else { Err(TokenError::Malformed) }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The engine refuses padding, foreign characters and bits left over at the end.
fn decode(text: &str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed)
}

fn root_mac(key: &[u8; 32], kid: &str, block: &[u8]) -> Hmac<Sha256> {
    let mut mac = keyed(key);
    mac.update(ROOT);
    mac.update(&(kid.len() as u64).to_be_bytes());
    mac.update(kid.as_bytes());
    mac.update(block);
    mac
}

fn narrowed_mac(above: &[u8; SEAL_BYTES], block: &[u8]) -> Hmac<Sha256> {
    let mut mac = keyed(above);
    mac.update(NARROWED);
    mac.update(block);
    mac
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes a key of any length")
}

fn seal(mac: Hmac<Sha256>) -> [u8; SEAL_BYTES] {
    mac.finalize().into_bytes().into()
}
