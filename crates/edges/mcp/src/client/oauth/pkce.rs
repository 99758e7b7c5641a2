//! PKCE (S256): the proof that whoever brings a code also asked for it, and the chance it needs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SecureRandom as _;

use super::LoginFailure;

/// 256 bits that nobody can guess, as a text for addresses.
pub(super) fn nonce() -> Result<String, LoginFailure> {
    let mut bytes = [0; 32];
    let filled = ring::rand::SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| LoginFailure::new("there is no randomness here"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// What is shown of a verifier before it is told.
pub(super) fn challenge_of(verifier: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m071_the_challenge_is_the_one_of_rfc_7636() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge_of(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, two) = (nonce().expect("one"), nonce().expect("two"));
        assert_eq!(one.len(), 43);
        assert_ne!(one, two);
    }
}
