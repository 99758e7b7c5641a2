//! Whose certificate is taken for a core's: those that the caller named and the one of the home,
//! else those that the system vouches for.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use wharf_vocab::Code;

use crate::error::{Error, Result};

/// Whose certificate is taken for a core's.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Trust {
    /// Those that the system vouches for.
    #[default]
    System,
    /// These very ones, whatever name the core is called by, and those they vouch for.
    Only(Vec<CertificateDer<'static>>),
}

impl Trust {
    /// The certificates in a PEM file.
    pub(crate) fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
        let shown = path.display();
        let text = std::fs::read(path).map_err(|error| {
            Error::unreadable(format_args!("the certificates in {shown}"), &error)
        })?;
        let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        match found {
            Ok(found) if !found.is_empty() => Ok(found),
            _ => Err(Error::usage(format!("{shown} holds no certificate in the form of PEM"))),
        }
    }
}

/// A configuration that trusts these certificates, or nobody when there are none.
pub(crate) fn config(certificates: &[CertificateDer<'static>]) -> Result<ClientConfig> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(Code::CoreInternal, format!("cannot set up TLS: {error}"))
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    if roots.is_empty() {
        return Ok(builder.with_root_certificates(roots).with_no_client_auth());
    }
    let vouched =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| failed(&error))?;
    let verifier = CoreVerifier { known: certificates.to_vec(), vouched, provider };
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(builder.with_no_client_auth())
}

/// Takes a certificate that is known byte by byte under any name: whoever has its key is the core
/// that was meant. All others are checked as usual.
#[derive(Debug)]
struct CoreVerifier {
    known: Vec<CertificateDer<'static>>,
    vouched: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for CoreVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        if self.known.iter().any(|known| known == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        self.vouched.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What TLS has against a connection, if that is why it failed.
pub(crate) fn objection(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(found) = error.downcast_ref() {
        return Some(describe(found));
    }
    // What an I/O error wraps is not its source, but the same error once more.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    wrapped.and_then(|wrapped| objection(wrapped)).or_else(|| objection(error.source()?))
}

fn describe(error: &rustls::Error) -> String {
    let why = match error {
        rustls::Error::InvalidCertificate(why) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                return "has a certificate that is over; renew it".to_owned();
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "has a certificate for another name"
            }
            _ => "has a certificate that nobody vouches for",
        },
        rustls::Error::InvalidMessage(_) => {
            return "does not speak TLS; use http:// in the place of https://".to_owned();
        }
        error => return format!("cannot be spoken to over TLS: {error}"),
    };
    format!("{why}; name the right one with --ca FILE or WHARF_CA, or use --home")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn an_objection_is_found_however_deep_it_lies() {
        let unknown = || rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let deep = io::Error::other(io::Error::other(io::Error::other(unknown())));
        for error in [io::Error::other(unknown()), deep] {
            let said = objection(&error).expect("found");
            assert!(said.contains("nobody vouches for") && said.contains("--ca FILE"), "{said}");
        }
        assert_eq!(objection(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
        let name = rustls::Error::InvalidCertificate(CertificateError::NotValidForName);
        assert!(objection(&name).expect("found").contains("another name"));
    }
}
