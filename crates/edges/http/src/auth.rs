//! Who is calling: bearer tokens.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use wharf_domain::grant::console::fingerprint;
use wharf_domain::grant::{Bearer, OwnerKey};
use wharf_domain::{Caller, CallerKind};
use wharf_vocab::{Code, Digest, Fault};
use wharf_web::token;

/// Where clients of the operator protocol put the token that others send in `Authorization`.
const OTHER_PLACE: &str = "x-mse-access-token";

/// Puts a token that came in the other place where everybody looks for it. One in `Authorization`
/// wins; several in the other place count for nothing.
pub(crate) fn gather(headers: &mut HeaderMap) {
    let mut given = headers.get_all(OTHER_PLACE).iter();
    let token = match (given.next(), given.next()) {
        (Some(token), None) => Some([b"Bearer ", token.as_bytes()].concat()),
        _ => None,
    };
    headers.remove(OTHER_PLACE);
    if headers.contains_key(AUTHORIZATION) {
        return;
    }
    if let Some(mut token) = token.and_then(|token| HeaderValue::from_bytes(&token).ok()) {
        token.set_sensitive(true);
        headers.insert(AUTHORIZATION, token);
    }
}

/// The owner's token, known by its digest and by what it seals with only.
#[derive(Clone)]
pub struct OwnerToken {
    digest: Digest,
    key: OwnerKey,
}

impl OwnerToken {
    /// Remembers what is needed to recognise the token.
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self { digest: Digest::of(&[token.as_bytes()]), key: OwnerKey::new(token) }
    }

    /// Whether this is the token. How long it takes tells nothing about it.
    fn is(&self, token: &[u8]) -> bool {
        let given = Digest::of(&[token]);
        let pairs = given.as_str().bytes().zip(self.digest.as_str().bytes());
        let difference = pairs.fold(0, |difference, (a, b)| difference | (a ^ b));
        std::hint::black_box(difference) == 0
    }

    /// What tells this token from others, without it: sessions that were made with it, or with a
    /// token narrowed from it, end when it is replaced.
    pub(crate) fn fingerprint(&self) -> Digest {
        fingerprint("owner", self.digest.as_str().as_bytes())
    }

    /// The fingerprint, if a token is the owner's or was narrowed from it.
    pub(crate) fn sealed(&self, token: &str) -> Option<Digest> {
        let own = self.is(token.as_bytes()) || matches!(self.key.verify(token), Some(Ok(_)));
        own.then(|| self.fingerprint())
    }

    /// Who the request comes from: the owner, or whoever `grants` says a token stands for. Why a
    /// token is not good is nobody's business but its maker's.
    pub(crate) fn caller(
        &self,
        parts: &Parts,
        grants: impl FnOnce(&str) -> Result<Caller, Fault>,
    ) -> Result<Caller, Fault> {
        let mut given = parts.headers.get_all(AUTHORIZATION).iter();
        let token = match (given.next(), given.next()) {
            (Some(value), None) => bearer(value.as_bytes()),
            (None, _) => token::of_websocket(parts).map(str::as_bytes),
            (Some(_), Some(_)) => None,
        };
        let Some(token) = token else { return Err(required()) };
        let token = std::str::from_utf8(token).map_err(|_| invalid())?;
        self.bearer(token, grants)
    }

    /// Who bears a token: the owner, somebody with a part of the owner's rights, or whoever
    /// `grants` says.
    pub fn bearer(
        &self,
        token: &str,
        grants: impl FnOnce(&str) -> Result<Caller, Fault>,
    ) -> Result<Caller, Fault> {
        if self.is(token.as_bytes()) {
            return Ok(Caller::owner());
        }
        match self.key.verify(token) {
            Some(bearer) => bearer.ok().and_then(narrowed_owner).ok_or_else(invalid),
            None => grants(token).map_err(|_| invalid()),
        }
    }
}

/// Somebody with a part of the owner's rights, unless their time is over.
fn narrowed_owner(bearer: Bearer) -> Option<Caller> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    if bearer.rights.until.is_some_and(|until| u128::from(until.0) <= now) {
        return None;
    }
    let grant = bearer.chain.last()?.clone();
    Some(Caller {
        links: bearer.chain.into_iter().skip(1).collect(),
        root: Some(bearer.root),
        grant,
        person: false,
        kind: CallerKind::Client,
        account: None,
        rights: Arc::new(bearer.rights),
        stands_in: None,
        console: None,
    })
}

/// The token in a request's headers.
pub(crate) fn sent(headers: &HeaderMap) -> Option<&str> {
    let token = bearer(headers.get(AUTHORIZATION)?.as_bytes())?;
    std::str::from_utf8(token).ok()
}

impl std::fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnerToken(…)")
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

fn required() -> Fault {
    let message = "Send a token in the Authorization header: Bearer <token>.";
    Fault::new(Code::AuthRequired, message)
}

fn invalid() -> Fault {
    let message = "This token is not valid here; it may be expired or revoked.";
    Fault::new(Code::AuthInvalid, message)
}

#[cfg(test)]
mod tests {
    use wharf_domain::grant::Narrowing;
    use wharf_vocab::{GrantId, Timestamp, Verb};

    use super::*;

    const OWNERS: &str = "0123456789abcdef0123456789abcdef";

    #[track_caller]
    fn check(values: &[&str], expect: Result<(), Code>) {
        let (mut parts, ()) = axum::http::Request::new(()).into_parts();
        for value in values {
            parts.headers.append(AUTHORIZATION, value.parse().expect("a header"));
        }
        let nobody = |_: &str| Err(Fault::new(Code::GrantNotFound, "There is no grant."));
        let found = OwnerToken::new("s3cret").caller(&parts, nobody);
        match expect {
            Ok(()) => assert_eq!(found, Ok(Caller::owner()), "{values:?}"),
            Err(code) => assert!(found.is_err_and(|fault| fault.is(code)), "{values:?}"),
        }
    }

    #[test]
    fn only_the_whole_token_in_its_place_is_taken() {
        check(&["Bearer s3cret"], Ok(()));
        check(&["bearer  s3cret "], Ok(()));
        for missing in [&[][..], &["s3cret"], &["Basic s3cret"], &["Bearer "], &["Bearer"]] {
            check(missing, Err(Code::AuthRequired));
        }
        check(&["Bearer s3cret", "Bearer s3cret"], Err(Code::AuthRequired));
        for wrong in ["Bearer s3cre", "Bearer s3crets", "Bearer S3CRET", "Bearer x"] {
            check(&[wrong], Err(Code::AuthInvalid));
        }
    }

    #[test]
    fn a_token_in_the_other_place_is_taken_unless_there_is_one_in_its_own() {
        let gathered = |given: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.append(*name, value.parse().expect("a header"));
            }
            gather(&mut headers);
            assert!(!headers.contains_key(OTHER_PLACE));
            sent(&headers).map(str::to_owned)
        };
        assert_eq!(gathered(&[(OTHER_PLACE, "t")]).as_deref(), Some("t"));
        let both = [(OTHER_PLACE, "t"), ("authorization", "Bearer own")];
        assert_eq!(gathered(&both).as_deref(), Some("own"));
        assert_eq!(gathered(&[(OTHER_PLACE, "t"), (OTHER_PLACE, "u")]), None);
        assert_eq!(gathered(&[]), None);
    }

    #[test]
    fn m014_a_narrowed_owner_is_no_person_and_has_less_rights() {
        let owner = OwnerToken::new(OWNERS);
        let nobody = |_: &str| Err(Fault::new(Code::GrantNotFound, "There is no grant."));
        let narrow = |until| {
            let verbs = Some([Verb::Run].into());
            let by = Narrowing { verbs, until, ..Narrowing::default() };
            OwnerKey::new(OWNERS).narrow(&GrantId::new("mcp").expect("an id"), &by).expect("made")
        };
        let caller = owner.bearer(narrow(None).expose(), nobody).expect("good");
        assert_eq!((caller.grant.as_str(), caller.person), ("owner.mcp", false));
        assert_eq!(caller.root.as_ref().map(GrantId::as_str), Some("owner"));
        assert!(caller.rights.check_verb(Verb::Run).is_ok());
        assert!(caller.rights.check_verb(Verb::Approve).is_err());
        let over = narrow(Some(Timestamp(1)));
        assert!(owner.bearer(over.expose(), nobody).is_err_and(|it| it.is(Code::AuthInvalid)));
        let other = OwnerToken::new("another-token-of-another-owner");
        assert!(other.bearer(narrow(None).expose(), nobody).is_err());
    }

    #[test]
    fn a_token_is_not_shown() {
        assert!(!format!("{:?}", OwnerToken::new("s3cret")).contains("s3cret"));
    }
}
