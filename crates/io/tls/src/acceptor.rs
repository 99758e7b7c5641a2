//! Encrypts connections with the certificate as it is now.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;

use crate::certificate::Stamps;
use crate::{CertFiles, Certificate, Error};

pub use tokio_rustls::server::TlsStream;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Encrypts connections with the certificate as it is now. Clones share it.
#[derive(Debug, Clone)]
pub struct Acceptor {
    files: CertFiles,
    /// The files as they were before they were read first.
    opened: Stamps,
    current: Arc<RwLock<Arc<Certificate>>>,
}

impl Acceptor {
    /// Reads the files.
    pub fn open(files: CertFiles) -> Result<Self, Error> {
        let opened = files.stamps();
        let current = Arc::new(files.read()?);
        Ok(Self { files, opened, current: Arc::new(RwLock::new(current)) })
    }

    /// The certificate as it is now.
    #[must_use]
    pub fn certificate(&self) -> Arc<Certificate> {
        Arc::clone(&self.current.read())
    }

    /// Encrypts a connection, within this time.
    pub async fn accept<S>(&self, stream: S, at_most: Duration) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.certificate().config));
        timeout(at_most, acceptor.accept(stream)).await.unwrap_or_else(|_| {
            Err(io::Error::new(ErrorKind::TimedOut, "the peer was too slow with TLS"))
        })
    }

    /// Looks at the files for as long as it is polled and takes on what is new; `before` sees it
    /// first. Connections that are open stay as they are. What cannot be used is told to the log,
    /// once, and what was in use stays in use.
    pub async fn follow(&self, before: impl Fn(&Certificate)) {
        self.follow_every(LOOK, before).await;
    }

    /// The same, looking so often.
    pub async fn follow_every(&self, period: Duration, before: impl Fn(&Certificate)) {
        let mut seen = self.opened;
        let mut looks = interval(period);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let files = self.files.clone();
            let look = tokio::task::spawn_blocking(move || {
                // Stamps first: what is written while it is read is looked at again.
                let stamps = files.stamps();
                (stamps != seen).then(|| (stamps, files.read()))
            });
            let Ok(Some((stamps, read))) = look.await else { continue };
            seen = stamps;
            match read {
                Ok(new) if new.chain() == self.certificate().chain() => {}
                Ok(new) => {
                    before(&new);
                    tracing::info!(until = %new.until(), "a new certificate is in use");
                    *self.current.write() = Arc::new(new);
                }
                Err(error) => {
                    tracing::warn!(%error, "the new certificate is not used; the old one stays");
                }
            }
        }
    }
}
