//! Why there is no connection.

use std::io;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is none that can be connected to.
    #[error("{address:?} cannot be connected to: {why}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nobody answered at the address.
    #[error("failed to connect to {address}")]
    Connect {
        /// The address.
        address: String,
        /// What went wrong.
        source: io::Error,
    },
    /// It took too long.
    #[error("{address} did not answer in time")]
    Timeout {
        /// The address.
        address: String,
    },
    /// Somebody answered and does not want to be connected to.
    #[error("the connection was refused with status {status}: {message}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// What was said about it.
        message: String,
    },
    /// Somebody answered who does not speak the protocol.
    #[error("whoever answered does not speak the protocol: {why}")]
    Protocol {
        /// What is wrong.
        why: String,
    },
    /// A socket could not be listened on.
    #[error("failed to listen")]
    Listen(#[source] io::Error),
    /// What was offered was not taken.
    #[error("the tools were not taken: {message} ({code})")]
    Offer {
        /// The error's code.
        code: String,
        /// What is wrong.
        message: String,
    },
    /// What would be offered cannot be put together.
    #[error(transparent)]
    Build(#[from] crate::Error),
    /// The connection ended before it could be used.
    #[error("the connection ended before it could be used")]
    Lost,
}

impl Error {
    /// Whether trying again later may help. A refusal does not go away by itself, unless whoever
    /// refused is busy or about to stop.
    ///
    /// ```
    /// use wharf_sdk::transport::Error;
    ///
    /// assert!(Error::Lost.is_passing());
    /// assert!(!Error::Refused { status: 401, message: String::new() }.is_passing());
    /// ```
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 409 | 425 | 429 | 500..),
            Self::Connect { .. } | Self::Timeout { .. } | Self::Lost => true,
            _ => false,
        }
    }
}

/// What a refusal says: the message of the error it carries, else the text itself, shortened.
#[cfg(any(feature = "ws", feature = "sse"))]
pub(super) fn told(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = json.as_ref().and_then(|json| json.pointer("/error/message"));
    match message.and_then(serde_json::Value::as_str) {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).chars().take(200).collect(),
    }
}
