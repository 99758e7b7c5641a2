//! A vault in memory, and ways out that are only counted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use wharf_domain::grant::Keyring;
use wharf_domain::permission::HostPattern;
use wharf_ports::launcher::{Egress, EgressDoor};
use wharf_ports::vault::{KeptSecret, Secret, Vault};
use wharf_vocab::{Code, Fault, ProviderId, SecretName};

/// Secrets in memory.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<BTreeMap<SecretName, Secret>>);

impl Vault for Kept {
    fn set(&self, name: SecretName, secret: Secret) -> BoxFuture<'_, Result<(), Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, secret);
        async { Ok(()) }.boxed()
    }

    fn get(&self, name: SecretName) -> BoxFuture<'_, Result<Secret, Fault>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        let missing = || Fault::new(Code::SecretNotFound, format!("There is no secret {name}."));
        let found = found.ok_or_else(missing);
        async { found }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptSecret>, Fault>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn remove(&self, name: SecretName) -> BoxFuture<'_, Result<(), Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        async { Ok(()) }.boxed()
    }

    fn keyring(&self) -> BoxFuture<'_, Result<Keyring, Fault>> {
        self.rotate(false)
    }

    fn rotate(&self, _drop_old: bool) -> BoxFuture<'_, Result<Keyring, Fault>> {
        async { Err(Fault::new(Code::CoreInternal, "No test asks for keys here.")) }.boxed()
    }
}

/// Remembers who was let out where to.
#[derive(Debug, Default)]
pub(crate) struct Doors(Mutex<Vec<Vec<String>>>);

impl Doors {
    /// The hosts of each way out that was opened.
    pub(crate) fn opened(&self) -> Vec<Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Egress for Doors {
    fn open(
        &self,
        _agent: ProviderId,
        _socket: PathBuf,
        allowed: Vec<HostPattern>,
    ) -> BoxFuture<'_, Result<Arc<dyn EgressDoor>, Fault>> {
        let hosts = allowed.iter().map(ToString::to_string).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hosts);
        async { Ok(Arc::new(OpenDoor) as Arc<dyn EgressDoor>) }.boxed()
    }
}

struct OpenDoor;

impl EgressDoor for OpenDoor {
    fn bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}
