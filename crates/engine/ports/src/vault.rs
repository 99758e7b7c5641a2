//! The vault: secrets by name, and the keys tokens are sealed with.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use wharf_domain::grant::Keyring;
use wharf_vocab::{Fault, SecretName, Timestamp};

/// Keeps secrets. What it holds is shown to nobody but the launch it is for.
pub trait Vault: Send + Sync + 'static {
    /// Keeps a secret under a name, in place of an older one.
    fn set(&self, name: SecretName, secret: Secret) -> BoxFuture<'_, Result<(), Fault>>;

    /// A secret; an error if there is none of this name.
    fn get(&self, name: SecretName) -> BoxFuture<'_, Result<Secret, Fault>>;

    /// The names there are, in order.
    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptSecret>, Fault>>;

    /// Forgets a secret; an error if there is none of this name.
    fn remove(&self, name: SecretName) -> BoxFuture<'_, Result<(), Fault>>;

    /// The keys tokens are sealed with; they are made the first time.
    fn keyring(&self) -> BoxFuture<'_, Result<Keyring, Fault>>;

    /// Makes a new key that seals from now on. Older ones stay good, unless they are dropped:
    /// then every token there is becomes worthless.
    fn rotate(&self, drop_old: bool) -> BoxFuture<'_, Result<Keyring, Fault>>;
}

/// A secret's name and when it was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSecret {
    /// The name.
    pub name: SecretName,
    /// When it was set.
    pub set_at: Timestamp,
}

/// A secret's text. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// Takes a secret's bytes.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes, for the one place that hands them over.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
