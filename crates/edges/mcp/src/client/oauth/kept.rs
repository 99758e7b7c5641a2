//! What logins brought, in the vault: one secret for each server and issuer.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_ports::logins::LOGIN_SECRETS;
use wharf_ports::vault::{Secret, Vault};
use wharf_vocab::limits::ID_BYTES_MAX;
use wharf_vocab::{Code, Fault, ProviderId, SecretName, Timestamp};

use super::identity::ClientIdentity;

/// Characters of the part of a name that stands for an issuer.
const ISSUER_CHARS: usize = 16;

/// What a login brought.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptLogin {
    /// Who gave it.
    pub(super) issuer: String,
    /// Where it may go: scheme, host and port of one server.
    pub(super) origin: String,
    /// The server, as its document names it.
    pub(super) resource: String,
    /// Where it is renewed.
    pub(super) token_endpoint: String,
    /// Who the core is there.
    pub(super) client: ClientIdentity,
    /// What goes with requests.
    pub(super) access: String,
    /// What gets the next one.
    pub(super) refresh: Option<String>,
    /// When it is over, if that was said.
    pub(super) expires_at: Option<Timestamp>,
    /// What it is good for, as far as that is known.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

impl fmt::Debug for KeptLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptLogin").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// The logins of one server in the vault.
#[derive(Clone)]
pub(super) struct LoginShelf {
    vault: Arc<dyn Vault>,
    provider: ProviderId,
}

impl LoginShelf {
    pub(super) fn new(vault: Arc<dyn Vault>, provider: ProviderId) -> Self {
        Self { vault, provider }
    }

    /// Keeps a login, in place of the one of the same issuer.
    pub(super) async fn keep(&self, login: &KeptLogin) -> Result<SecretName, Fault> {
        let name = self.name(&login.issuer)?;
        let text = serde_json::to_vec(login)
            .map_err(|_| Fault::new(Code::CoreInternal, "A login cannot be written."))?;
        self.vault.set(name.clone(), Secret::new(text)).await?;
        Ok(name)
    }

    /// The login of an issuer, for this origin.
    pub(super) async fn of_issuer(
        &self,
        issuer: &str,
        origin: &str,
    ) -> Result<Option<KeptLogin>, Fault> {
        let name = self.name(issuer)?;
        let found = self.read(name).await?;
        Ok(found.filter(|login| login.issuer == issuer && login.origin == origin))
    }

    /// The newest login for this origin.
    pub(super) async fn newest(&self, origin: &str) -> Result<Option<KeptLogin>, Fault> {
        let mut kept = self.names().await?;
        kept.sort_by_key(|(_, set_at)| std::cmp::Reverse(*set_at));
        for (name, _) in kept {
            let found = self.read(name).await?;
            if let Some(login) = found.filter(|login| login.origin == origin) {
                return Ok(Some(login));
            }
        }
        Ok(None)
    }

    /// Forgets all of them, and gives their names.
    pub(super) async fn forget(&self) -> Result<Vec<SecretName>, Fault> {
        let mut gone = Vec::new();
        for (name, _) in self.names().await? {
            match self.vault.remove(name.clone()).await {
                Ok(()) => gone.push(name),
                Err(fault) if fault.is(Code::SecretNotFound) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(gone)
    }

    async fn read(&self, name: SecretName) -> Result<Option<KeptLogin>, Fault> {
        match self.vault.get(name).await {
            // One that cannot be read is none: a person logs in again.
            Ok(secret) => Ok(serde_json::from_slice(secret.expose()).ok()),
            Err(fault) if fault.is(Code::SecretNotFound) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    async fn names(&self) -> Result<Vec<(SecretName, Timestamp)>, Fault> {
        let start = self.start();
        let own = |name: &SecretName| {
            let issuer = name.as_str().strip_prefix(&start);
            issuer.is_some_and(|it| {
                it.len() == ISSUER_CHARS && it.bytes().all(|b| b.is_ascii_hexdigit())
            })
        };
        let kept = self.vault.list().await?.into_iter();
        Ok(kept.filter(|kept| own(&kept.name)).map(|kept| (kept.name, kept.set_at)).collect())
    }

    /// How the names of this server's logins begin.
    fn start(&self) -> String {
        let provider = self.provider.as_str();
        if LOGIN_SECRETS.len() + provider.len() + 1 + ISSUER_CHARS <= ID_BYTES_MAX {
            return format!("{LOGIN_SECRETS}{provider}.");
        }
        format!("{LOGIN_SECRETS}{}.", blake3::hash(provider.as_bytes()).to_hex())
    }

    fn name(&self, issuer: &str) -> Result<SecretName, Fault> {
        let hash = blake3::hash(issuer.as_bytes()).to_hex();
        let name = SecretName::new(format!("{}{}", self.start(), &hash[..ISSUER_CHARS]));
        name.map_err(|_| Fault::new(Code::CoreInternal, "A login cannot be named."))
    }
}
