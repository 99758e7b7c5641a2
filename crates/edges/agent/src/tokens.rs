//! Session tokens: 256 bits from the operating system, good for one hello of one launch.
//!
//! Only digests are kept. The table is looked up by digest, so how long a look-up takes says
//! nothing about the token itself.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use wharf_hosting::random_hex;
use wharf_vocab::{Digest, Fault, LaunchId, ProviderId};
use wharf_wire::agent_v1::SessionToken;

const TOKEN_BYTES: usize = 32;

/// Tokens that have been issued and not used.
#[derive(Debug, Default)]
pub(crate) struct SessionTokens(Mutex<HashMap<Digest, IssuedToken>>);

#[derive(Debug)]
struct IssuedToken {
    agent: ProviderId,
    launch: LaunchId,
    until: Instant,
}

/// Why a token does not let its bearer in. Only the audit is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadToken {
    Unknown,
    Expired,
    OtherAgent,
}

impl BadToken {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "token unknown or used before",
            Self::Expired => "token expired",
            Self::OtherAgent => "token of another agent",
        }
    }
}

impl SessionTokens {
    /// A fresh token for a launch.
    pub(crate) fn issue(
        &self,
        agent: &ProviderId,
        launch: &LaunchId,
        life: Duration,
    ) -> Result<String, Fault> {
        let token = random_hex(TOKEN_BYTES)?;
        let issued = IssuedToken {
            agent: agent.clone(),
            launch: launch.clone(),
            until: Instant::now() + life,
        };
        self.0.lock().insert(digest(&token), issued);
        Ok(token)
    }

    /// The launch a token was made for. It stays good.
    pub(crate) fn find(&self, token: &SessionToken, agent_id: &str) -> Result<LaunchId, BadToken> {
        match self.0.lock().get(&digest(token.expose())) {
            Some(issued) if issued.agent.as_str() != agent_id => Err(BadToken::OtherAgent),
            Some(issued) if issued.until < Instant::now() => Err(BadToken::Expired),
            Some(issued) => Ok(issued.launch.clone()),
            None => Err(BadToken::Unknown),
        }
    }

    /// Takes a token, which is spent whatever comes of it once it was found.
    pub(crate) fn redeem(
        &self,
        token: &SessionToken,
        agent_id: &str,
    ) -> Result<LaunchId, BadToken> {
        let found = self.find(token, agent_id);
        if found != Err(BadToken::OtherAgent) {
            self.0.lock().remove(&digest(token.expose())).ok_or(BadToken::Unknown)?;
        }
        found
    }

    /// Makes a launch's token worthless.
    pub(crate) fn revoke(&self, launch: &LaunchId) {
        self.0.lock().retain(|_, issued| issued.launch != *launch);
    }
}

fn digest(token: &str) -> Digest {
    Digest::of(&[token.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str) -> ProviderId {
        ProviderId::new(id).expect("valid")
    }

    fn launch(id: &str) -> LaunchId {
        LaunchId::new(id).expect("valid")
    }

    #[test]
    fn r051_tokens_have_256_bits_and_never_repeat() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100_000 {
            let token = random_hex(TOKEN_BYTES).expect("random");
            assert_eq!(token.len(), 64);
            assert!(seen.insert(token));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r048_r049_a_token_is_good_once_for_its_agent_and_not_for_long() {
        let tokens = SessionTokens::default();
        let life = Duration::from_secs(60);
        let issue = |name: &str| {
            SessionToken::new(tokens.issue(&agent("a"), &launch(name), life).expect("issued"))
        };
        let token = issue("l1");
        assert_eq!(tokens.redeem(&token, "b"), Err(BadToken::OtherAgent));
        assert_eq!(tokens.find(&token, "b"), Err(BadToken::OtherAgent));
        assert_eq!(tokens.find(&token, "a"), Ok(launch("l1")));
        assert_eq!(tokens.redeem(&token, "a"), Ok(launch("l1")));
        assert_eq!(tokens.redeem(&token, "a"), Err(BadToken::Unknown));
        let late = issue("l2");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(tokens.find(&late, "a"), Err(BadToken::Expired));
        assert_eq!(tokens.redeem(&late, "a"), Err(BadToken::Expired));
        let revoked = issue("l3");
        tokens.revoke(&launch("l3"));
        assert_eq!(tokens.redeem(&revoked, "a"), Err(BadToken::Unknown));
    }
}
