//! Egress: how a launched process without a network reaches the hosts it was approved for.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use wharf_domain::permission::HostPattern;
use wharf_vocab::{Fault, ProviderId};

/// Opens ways out.
pub trait Egress: Send + Sync + 'static {
    /// Opens a proxy for an agent on a Unix socket at this path. It lets through what one of the
    /// patterns fits, refuses the rest with a clear error and audits it.
    fn open(
        &self,
        agent: ProviderId,
        socket: PathBuf,
        allowed: Vec<HostPattern>,
    ) -> BoxFuture<'_, Result<Arc<dyn EgressDoor>, Fault>>;
}

/// A way out; dropping the last reference closes it and every connection through it.
pub trait EgressDoor: Send + Sync + 'static {
    /// How many bytes went out and came in through it.
    fn bytes(&self) -> (u64, u64);
}
