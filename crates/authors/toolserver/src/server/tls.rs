//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::{Error, Tls};

/// Reads the files.
pub(super) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Error> {
    let unfit = |path: &Path, why: &dyn std::fmt::Display| Error::File {
        path: path.to_owned(),
        why: why.to_string(),
    };
    let certs = CertificateDer::pem_file_iter(&tls.cert).and_then(Iterator::collect);
    let certs: Vec<_> = certs.map_err(|error| unfit(&tls.cert, &error))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key);
    let key = key.map_err(|error| unfit(&tls.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certs, key));
    let mut config = config.map_err(|error| unfit(&tls.cert, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
