//! How names become addresses.

use std::fmt;
use std::io;
use std::net::IpAddr;

use futures::FutureExt;
use futures::future::BoxFuture;

/// Finds the addresses of a name.
pub(crate) trait Resolve: Send + Sync + fmt::Debug + 'static {
    /// The addresses of a name, best first.
    fn resolve(&self, name: String) -> BoxFuture<'_, io::Result<Vec<IpAddr>>>;
}

/// What the operating system knows.
#[derive(Debug)]
pub(crate) struct System;

impl Resolve for System {
    fn resolve(&self, name: String) -> BoxFuture<'_, io::Result<Vec<IpAddr>>> {
        async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}
