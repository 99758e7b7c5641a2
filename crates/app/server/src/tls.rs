//! The core's certificate: what its listener encrypts with, and what clients of the home know it by.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::task::AbortHandle;
use wharf_tls::{Acceptor, CertFiles, Certificate};
use wharf_vocab::{Code, Fault};

use crate::fault::sentence;
use crate::{Home, files};

/// How many letters a line of PEM has.
const LINE: usize = 64;

/// Reads the certificate that the configuration names.
pub(crate) fn open(named: Option<CertFiles>) -> Result<Option<Acceptor>, Fault> {
    named.map(Acceptor::open).transpose().map_err(|error| {
        Fault::new(Code::ConfigInvalid, sentence(&format!("TLS cannot be spoken: {error}")))
    })
}

/// The certificate of a core that is up: clients of the home find it there, and when its files
/// change, the new one is there before it is in use. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Renewal(Option<AbortHandle>);

impl Renewal {
    /// Shows clients the certificate, and follows its files.
    pub(crate) fn begin(home: &Home, tls: Option<&Acceptor>) -> Result<Self, Fault> {
        let unwritable = |error| home.unwritable(&error);
        let Some(tls) = tls.cloned() else {
            // What an earlier core spoke is of no use to anybody.
            files::remove(&home.certificate_file()).map_err(unwritable)?;
            return Ok(Self(None));
        };
        let shown = files::replace(&home.certificate_file(), pem(&tls.certificate()).as_bytes());
        shown.map_err(unwritable)?;
        let home = home.clone();
        let following = tokio::spawn(async move {
            let before = |new: &Certificate| {
                let shown = files::replace(
                    &home.certificate_file(),
                    [pem(new), pem(&tls.certificate())].concat().as_bytes(),
                );
                if let Err(error) = shown {
                    tracing::warn!(%error, "run/core.pem could not be written");
                }
            };
            tls.follow(before).await;
        });
        Ok(Self(Some(following.abort_handle())))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        if let Some(following) = &self.0 {
            following.abort();
        }
    }
}

/// The certificate itself, without those that vouch for it.
fn pem(certificate: &Certificate) -> String {
    let Some(own) = certificate.chain().first() else { return String::new() };
    let letters = STANDARD.encode(own);
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = letters.as_str();
    while !rest.is_empty() {
        let (line, left) = rest.split_at(rest.len().min(LINE));
        text.push_str(line);
        text.push('\n');
        rest = left;
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}
