//! A vault in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use wharf_domain::grant::Keyring;
use wharf_ports::vault::{KeptSecret, Secret, Vault};
use wharf_vocab::{Code, Fault, SecretName, Timestamp};

#[derive(Debug)]
pub(crate) struct MemoryVault {
    secrets: Mutex<BTreeMap<SecretName, Secret>>,
    keyring: Mutex<Keyring>,
}

impl MemoryVault {
    pub(crate) fn new() -> Arc<Self> {
        let keys = BTreeMap::from([("k1".to_owned(), [1; 32])]);
        let keyring = Keyring { current: "k1".to_owned(), keys };
        Arc::new(Self { secrets: Mutex::default(), keyring: Mutex::new(keyring) })
    }

    pub(crate) fn ring(&self) -> Keyring {
        self.keyring.lock().expect("not poisoned").clone()
    }
}

fn none(name: &SecretName) -> Fault {
    Fault::new(Code::SecretNotFound, format!("There is no secret {name}."))
}

impl Vault for MemoryVault {
    fn set(&self, name: SecretName, secret: Secret) -> BoxFuture<'_, Result<(), Fault>> {
        self.secrets.lock().expect("not poisoned").insert(name, secret);
        async { Ok(()) }.boxed()
    }

    fn get(&self, name: SecretName) -> BoxFuture<'_, Result<Secret, Fault>> {
        let found = self.secrets.lock().expect("not poisoned").get(&name).cloned();
        async move { found.ok_or_else(|| none(&name)) }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptSecret>, Fault>> {
        let secrets = self.secrets.lock().expect("not poisoned");
        let kept = |name: &SecretName| KeptSecret { name: name.clone(), set_at: Timestamp(0) };
        let kept = secrets.keys().map(kept).collect();
        async move { Ok(kept) }.boxed()
    }

    fn remove(&self, name: SecretName) -> BoxFuture<'_, Result<(), Fault>> {
        let found = self.secrets.lock().expect("not poisoned").remove(&name);
        async move { found.map(drop).ok_or_else(|| none(&name)) }.boxed()
    }

    fn keyring(&self) -> BoxFuture<'_, Result<Keyring, Fault>> {
        let ring = self.ring();
        async move { Ok(ring) }.boxed()
    }

    fn rotate(&self, drop_old: bool) -> BoxFuture<'_, Result<Keyring, Fault>> {
        let mut ring = self.keyring.lock().expect("not poisoned");
        let number = u8::try_from(ring.keys.len()).expect("few") + 1;
        if drop_old {
            ring.keys.clear();
        }
        ring.current = format!("k{number}");
        let current = ring.current.clone();
        ring.keys.insert(current, [number; 32]);
        let ring = ring.clone();
        async move { Ok(ring) }.boxed()
    }
}
