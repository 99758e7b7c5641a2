//! TLS to the server, by rustls on `ring`, as `sslmode` and `sslrootcert` ask for it.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// What is checked of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsCheck {
    /// Nothing: what is said is encrypted, whoever listens.
    Nothing,
    /// Who vouches for it.
    Issuer,
    /// That, and whether it is for the host that was called.
    IssuerAndName,
}

/// Makes connections speak TLS.
#[derive(Clone)]
pub(crate) struct TlsConnector {
    check: TlsCheck,
    config: Arc<ClientConfig>,
}

impl TlsConnector {
    /// With these roots, or those of the machine.
    pub(crate) fn new(check: TlsCheck, roots: Option<&Path>) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let issuer: Option<Arc<dyn ServerCertVerifier>> = match (check, roots) {
            (TlsCheck::Nothing, _) => None,
            (_, Some(path)) => Some(verifier_of(path, &provider)?),
            (_, None) => {
                let verifier = Verifier::new(Arc::clone(&provider));
                let verifier = verifier.map_err(|error| {
                    format!("the certificates this machine trusts cannot be read: {error}")
                })?;
                Some(Arc::new(verifier))
            }
        };
        let any_name = check != TlsCheck::IssuerAndName;
        let verifier = ChosenVerifier { issuer, any_name, provider: Arc::clone(&provider) };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be used: {error}"))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self { check, config: Arc::new(config) })
    }
}

fn verifier_of(
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let unreadable = |error: &dyn fmt::Display| {
        format!("the certificates in {} cannot be read: {error}", path.display())
    };
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        let certificate = found.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    let builder =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let verifier = builder.build().map_err(|error| unreadable(&error))?;
    Ok(verifier)
}

impl PartialEq for TlsConnector {
    fn eq(&self, other: &Self) -> bool {
        self.check == other.check
    }
}

/// Checks as much of a certificate as `sslmode` asks for.
struct ChosenVerifier {
    issuer: Option<Arc<dyn ServerCertVerifier>>,
    any_name: bool,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for ChosenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChosenVerifier").field("any_name", &self.any_name).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for ChosenVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(issuer) = &self.issuer else { return Ok(ServerCertVerified::assertion()) };
        match issuer.verify_server_cert(certificate, between, name, ocsp, now) {
            // The name is looked at last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            answer => answer,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// One connection's handshake.
pub(crate) struct HostConnector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl MakeTlsConnect<Socket> for TlsConnector {
    type Stream = EncryptedStream;
    type TlsConnect = HostConnector;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<HostConnector> {
        // A Unix socket has no name, and its server never speaks TLS.
        let host = if host.is_empty() || host.starts_with('/') { "localhost" } else { host };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::other(format!("{host} is no name of a server")))?;
        Ok(HostConnector { config: Arc::clone(&self.config), name })
    }
}

impl TlsConnect<Socket> for HostConnector {
    type Stream = EncryptedStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<EncryptedStream>>;

    fn connect(self, stream: Socket) -> Self::Future {
        async move {
            let connector = tokio_rustls::TlsConnector::from(self.config);
            connector.connect(self.name, stream).await.map(EncryptedStream)
        }
        .boxed()
    }
}

/// A connection that is encrypted.
pub(crate) struct EncryptedStream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for EncryptedStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for EncryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
