//! From names to addresses that may be connected to, and to no others.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolving};
use wharf_vocab::Zone;

use super::{Resolve, TransferTrouble};

/// What the operating system knows.
#[derive(Debug)]
pub(super) struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

/// A name leads to where nothing may be reached.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to an address that may not be reached")]
pub(super) struct ForbiddenName;

/// Resolves names and checks every address. The HTTP client connects to what comes from here,
/// so nothing can change between check and connection.
#[derive(Debug, Clone)]
pub(super) struct Names {
    names: Arc<dyn Resolve>,
    /// Whether private addresses are good.
    private: bool,
    /// Whether somebody else checks, at the way out of a fence.
    is_checked_elsewhere: bool,
}

impl Names {
    pub(super) fn new(names: Arc<dyn Resolve>, private: bool, is_checked_elsewhere: bool) -> Self {
        Self { names, private, is_checked_elsewhere }
    }

    /// Says before anything is sent whether a name leads somewhere that may be reached.
    pub(super) async fn check(&self, name: &str) -> Result<(), TransferTrouble> {
        if self.is_checked_elsewhere {
            return Ok(());
        }
        match self.addresses(name.to_owned()).await {
            Ok(_) => Ok(()),
            Err(error) if is_forbidden(&error) => Err(FORBIDDEN),
            Err(_) => Err(TransferTrouble::passing("the name of its storage is not known")),
        }
    }

    /// The addresses of a name: all of them are good, or it is refused.
    async fn addresses(&self, name: String) -> io::Result<Vec<IpAddr>> {
        let is_here = is_localhost(&name);
        let found = self.names.resolve(name).await?;
        let is_good = |address: &IpAddr| match Zone::of(*address) {
            Zone::Public => !is_here,
            Zone::Private => self.private && !is_here,
            Zone::Loopback => is_here,
            Zone::Never => false,
        };
        if !self.is_checked_elsewhere && !found.iter().all(is_good) {
            return Err(io::Error::other(ForbiddenName));
        }
        if found.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(found)
    }
}

/// What the caller is told of a name that leads astray.
pub(super) const FORBIDDEN: TransferTrouble =
    TransferTrouble::egress("its host lies where this server may not reach");

impl reqwest::dns::Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let found = names.addresses(name.as_str().to_owned()).await?;
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

/// Whether a name always means this machine.
pub(super) fn is_localhost(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether an error comes from a name that leads astray.
pub(super) fn is_forbidden(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<ForbiddenName>() {
            return true;
        }
        // An I/O error gives the source of what it wraps, and not what it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if wrapped.is_some_and(|wrapped| wrapped.is::<ForbiddenName>()) {
            return true;
        }
        next = error.source();
    }
    false
}
