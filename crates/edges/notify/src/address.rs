//! Where letters may go: names are resolved here, every address is judged, and the connection is
//! made to an address that was judged. Nothing can change in between.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolving};
use wharf_web::outbound::allows;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long a receiver may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Finds the addresses of a name.
pub(crate) type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Makes clients that reach only what they may.
#[derive(Clone)]
pub(crate) struct Outbound {
    public: Client,
    anywhere: Client,
}

/// Resolves names and judges every address.
struct JudgedNames {
    lookup: Lookup,
    allow_private: bool,
}

impl reqwest::dns::Resolve for JudgedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, allow_private) = (Arc::clone(&self.lookup), self.allow_private);
        Box::pin(async move {
            let found = lookup(name.as_str().to_owned()).await?;
            // All of them are good or the name is not: which one is taken is not ours to say.
            if found.is_empty() || !found.iter().all(|address| allows(*address, allow_private)) {
                return Err(io::Error::from(io::ErrorKind::PermissionDenied).into());
            }
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

impl Outbound {
    /// Resolves names as the operating system does.
    pub(crate) fn system() -> Option<Self> {
        let lookup: Lookup = Arc::new(|name| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        });
        Self::with_lookup(&lookup)
    }

    pub(crate) fn with_lookup(lookup: &Lookup) -> Option<Self> {
        // Whoever comes second finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = |allow_private: bool| {
            let names = JudgedNames { lookup: Arc::clone(lookup), allow_private };
            Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .referer(false)
                .connect_timeout(CONNECT_MAX)
                .timeout(ANSWER_MAX)
                .pool_max_idle_per_host(1)
                .user_agent(concat!("wharf/", env!("CARGO_PKG_VERSION")))
                .dns_resolver(Arc::new(names))
                .build()
        };
        match (client(false), client(true)) {
            (Ok(public), Ok(anywhere)) => Some(Self { public, anywhere }),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "no HTTP client");
                None
            }
        }
    }

    pub(crate) fn client(&self, allow_private: bool) -> &Client {
        if allow_private { &self.anywhere } else { &self.public }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn f037_a_name_that_leads_inside_is_not_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let port = listener.local_addr().expect("bound").port();
        let lookup: Lookup =
            Arc::new(|_| Box::pin(async { Ok(vec!["127.0.0.1".parse().expect("an address")]) }));
        let outbound = Outbound::with_lookup(&lookup).expect("clients");
        let url = format!("http://hooks.example:{port}/");
        outbound.client(false).post(&url).send().await.expect_err("not reached");
        let accepted =
            tokio::time::timeout(Duration::from_millis(100), listener.accept()).await.is_ok();
        assert!(!accepted, "somebody connected");
        let sending = tokio::spawn(outbound.client(true).post(&url).send());
        listener.accept().await.expect("connected");
        sending.abort();
    }
}
