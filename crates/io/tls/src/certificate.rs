//! A certificate with its key, checked before it is used.

use std::fmt::Display;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use webpki::EndEntityCert;

use crate::{Error, validity};

/// The PEM files of a certificate chain and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertFiles {
    /// The certificate and those that vouch for it.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// What changes when one of both files is replaced or written; `None` for one that cannot be
/// looked at.
pub(crate) type Stamps = [Option<(u64, u64, i64, i64)>; 2];

/// A certificate that can be used now, with its key.
#[derive(Debug)]
pub struct Certificate {
    pub(crate) config: Arc<ServerConfig>,
    chain: Vec<CertificateDer<'static>>,
    names: Vec<String>,
    until: Timestamp,
}

impl CertFiles {
    /// Reads and checks both files.
    pub fn read(&self) -> Result<Certificate, Error> {
        let chain = self.read_chain()?;
        let key = self.read_key()?;
        let leaf = chain.first().ok_or_else(|| Error::NoCertificate(self.cert.clone()))?;
        let unusable = |why: &str| Error::Unusable { path: self.cert.clone(), why: why.to_owned() };
        let (from, until) = validity::of(leaf).ok_or_else(|| unusable("it is no certificate"))?;
        let now = Timestamp::now();
        if now < from {
            return Err(Error::NotYet { path: self.cert.clone(), from });
        }
        if until < now {
            return Err(Error::Expired { path: self.cert.clone(), until });
        }
        let parsed = EndEntityCert::try_from(leaf).map_err(|error| unusable(&error.to_string()))?;
        let names = parsed.valid_dns_names().map(str::to_ascii_lowercase).collect();
        let config = self.config(chain.clone(), key)?;
        Ok(Certificate { config, chain, names, until })
    }

    pub(crate) fn stamps(&self) -> Stamps {
        [&self.cert, &self.key].map(|path| {
            let facts = fs::metadata(path).ok()?;
            Some((facts.ino(), facts.len(), facts.mtime(), facts.mtime_nsec()))
        })
    }

    fn read_chain(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        let text = read(&self.cert)?;
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        found.map_err(|error| unusable(&self.cert, &error))
    }

    fn read_key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        let text = read(&self.key)?;
        if fs::metadata(&self.key).is_ok_and(|facts| facts.mode() & 0o004 != 0) {
            let path = self.key.display();
            tracing::warn!(%path, "every account of this machine can read the key of TLS");
        }
        PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
            pem::Error::NoItemsFound => Error::NoKey(self.key.clone()),
            // What is wrong is not quoted: it may be a part of the key.
            _ => unusable(&self.key, &"it is no whole PEM file"),
        })
    }

    fn config(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Arc<ServerConfig>, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                Error::OtherKey { cert: self.cert.clone(), key: self.key.clone() }
            }
            // What is wrong with a certificate was said before; the key is what is left.
            error => unusable(&self.key, &error),
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl Certificate {
    /// The certificate and those that vouch for it, as they are sent.
    #[must_use]
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The names that it is for, without those with a star.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| !name.contains('*'))
    }

    /// Until when it is good.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Whether a client that calls the server by this name or address would take it.
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let name = match address {
            Ok(address) => ServerName::from(address),
            Err(_) => match ServerName::try_from(host.to_owned()) {
                Ok(name) => name,
                Err(_) => return false,
            },
        };
        let leaf = self.chain.first().and_then(|leaf| EndEntityCert::try_from(leaf).ok());
        leaf.is_some_and(|leaf| leaf.verify_is_valid_for_subject_name(&name).is_ok())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Unreadable { path: path.to_owned(), source })
}

fn unusable(path: &Path, why: &dyn Display) -> Error {
    Error::Unusable { path: path.to_owned(), why: why.to_string() }
}
