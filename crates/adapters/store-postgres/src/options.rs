//! Which database, and how it is reached.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::tls::{TlsCheck, TlsConnector};

/// How long one attempt to connect may take, unless the address says otherwise.
const CONNECT: Duration = Duration::from_secs(5);
/// How long what was sent may remain unanswered by the other machine's network.
const UNANSWERED: Duration = Duration::from_secs(15);
/// When a connection that is silent is tried.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Lanes that a core writes on, unless it is told otherwise.
const LANES: usize = 2;
/// Most lanes a core can write on.
const LANES_MAX: usize = 16;

/// Which database, and how it is reached.
#[derive(Clone)]
pub struct PostgresOptions {
    pub(crate) config: Config,
    pub(crate) tls: TlsConnector,
    pub(crate) lanes: usize,
}

impl PostgresOptions {
    /// Reads an address such as `postgres://wharf@db.example.com/wharf?sslmode=verify-full`; `Err`
    /// says what is wrong with it, without quoting it. A password may stand in it, and `password`
    /// wins over that. `sslmode` means what it means to other clients; `sslrootcert` names a file
    /// with the certificates that vouch for the server's.
    pub fn parse(url: &str, password: Option<&str>) -> Result<Self, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("an address begins with postgres://".to_owned());
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(unescaped(value))),
                _ => rest.push(pair),
            }
        }
        let address = match rest.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", rest.join("&")),
        };
        let mut config: Config = address
            .parse()
            .map_err(|error: tokio_postgres::Error| format!("the address is wrong: {error}"))?;
        if config.get_dbname().is_none() {
            return Err("the address names no database".to_owned());
        }
        if config.get_hosts().is_empty() {
            return Err("the address names no host".to_owned());
        }
        let (ssl, check) = match (mode.unwrap_or("prefer"), &roots) {
            ("disable", _) => (SslMode::Disable, TlsCheck::Nothing),
            ("allow" | "prefer", _) => (SslMode::Prefer, TlsCheck::Nothing),
            ("require", None) => (SslMode::Require, TlsCheck::Nothing),
            ("require" | "verify-ca", _) => (SslMode::Require, TlsCheck::Issuer),
            ("verify-full", _) => (SslMode::Require, TlsCheck::IssuerAndName),
            _ => {
                let modes = "disable, prefer, require, verify-ca or verify-full";
                return Err(format!("sslmode is one of {modes}"));
            }
        };
        config.ssl_mode(ssl).keepalives_idle(KEEPALIVE);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNANSWERED);
        }
        if config.get_application_name().is_none() {
            config.application_name("wharf");
        }
        if let Some(password) = password {
            config.password(password);
        }
        let tls = TlsConnector::new(check, roots.as_deref())?;
        Ok(Self { config, tls, lanes: LANES })
    }

    /// The same with so many lanes to write on.
    #[must_use]
    pub fn with_lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes.clamp(1, LANES_MAX);
        self
    }

    /// Where it is, for messages: hosts and database, and nothing secret.
    #[must_use]
    pub fn place(&self) -> String {
        let host = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let hosts: Vec<String> = self.config.get_hosts().iter().map(host).collect();
        let port = self.config.get_ports().first().map_or(String::new(), |port| format!(":{port}"));
        format!("{}{port}/{}", hosts.join(","), self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions").field("place", &self.place()).finish_non_exhaustive()
    }
}

/// Two sets of options are the same if they lead to the same place in the same way.
impl PartialEq for PostgresOptions {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config && self.lanes == other.lanes && self.tls == other.tls
    }
}

impl Eq for PostgresOptions {}

/// A value of an address's query.
fn unescaped(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escaped = behind.get(..2).filter(|_| *first == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> SslMode {
        PostgresOptions::parse(url, None).expect("fits").config.get_ssl_mode()
    }

    #[test]
    fn s007_an_address_says_where_and_how_and_its_password_is_not_shown() {
        let url = "postgres://wharf:geheim@db.example.com:6432/wharf?application_name=x";
        let options = PostgresOptions::parse(url, Some("anders")).expect("fits");
        assert_eq!(options.place(), "db.example.com:6432/wharf");
        assert_eq!(options.config.get_password(), Some(&b"anders"[..]), "the one given wins");
        let shown = format!("{options:?}");
        assert!(!shown.contains("geheim") && !shown.contains("anders"), "{shown}");
        let socket = PostgresOptions::parse("postgres://u@%2Frun%2Fpg/w", None).expect("fits");
        assert_eq!(socket.place(), "/run/pg:5432/w");
    }

    #[test]
    fn s007_sslmode_means_what_it_means_elsewhere() {
        assert_eq!(mode("postgres://h/w"), SslMode::Prefer);
        assert_eq!(mode("postgres://h/w?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://h/w?sslmode=require"), SslMode::Require);
        assert_eq!(mode("postgres://h/w?sslmode=verify-full"), SslMode::Require);
        for (url, said) in [
            ("mysql://h/w", "begins with postgres://"),
            ("postgres://h/w?sslmode=maybe", "sslmode is one of"),
            ("postgres://h", "no database"),
            ("postgres://h/w?sslmode=verify-ca&sslrootcert=/none.pem", "/none.pem"),
            ("postgres://secret:pw@h/w?nonsense=1", "address is wrong"),
        ] {
            let error = PostgresOptions::parse(url, None).expect_err(url);
            assert!(error.contains(said) && !error.contains("pw"), "{url}: {error}");
        }
    }
}
