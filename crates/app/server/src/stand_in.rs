//! Stands in for the vault and the way out until a core has them: there are no secrets and no
//! hosts to reach.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use wharf_domain::grant::Keyring;
use wharf_domain::permission::HostPattern;
use wharf_engine::egress::{Egress, EgressDoor};
use wharf_engine::launcher::Secret;
use wharf_engine::vault::{KeptSecret, Vault};
use wharf_vocab::{AgentId, Code, Fault, SecretName};

#[derive(Debug)]
pub(crate) struct NoVault;

#[derive(Debug)]
pub(crate) struct NoEgress;

fn none<T: Send + 'static>() -> BoxFuture<'static, Result<T, Fault>> {
    async { Err(Fault::new(Code::SecretNotFound, "This core keeps no secrets.")) }.boxed()
}

impl Vault for NoVault {
    fn set(&self, _: SecretName, _: Secret) -> BoxFuture<'_, Result<(), Fault>> {
        none()
    }

    fn get(&self, _: SecretName) -> BoxFuture<'_, Result<Secret, Fault>> {
        none()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptSecret>, Fault>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn remove(&self, _: SecretName) -> BoxFuture<'_, Result<(), Fault>> {
        none()
    }

    fn keyring(&self) -> BoxFuture<'_, Result<Keyring, Fault>> {
        none()
    }

    fn rotate(&self, _: bool) -> BoxFuture<'_, Result<Keyring, Fault>> {
        none()
    }
}

impl Egress for NoEgress {
    fn open(
        &self,
        _: AgentId,
        _: PathBuf,
        _: Vec<HostPattern>,
    ) -> BoxFuture<'_, Result<Arc<dyn EgressDoor>, Fault>> {
        async { Err(Fault::new(Code::AgentStartFailed, "This core lets no agent out.")) }.boxed()
    }
}
