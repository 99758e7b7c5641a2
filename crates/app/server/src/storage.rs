//! The artifact store as a core sets it up: files of the home behind an S3 endpoint, or an S3.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use wharf_artifacts::{
    Credentials, Endpoint, EndpointOptions, FileObjects, RunningEndpoint, S3Objects, S3Options,
    Style,
};
use wharf_ports::{AddressGate, ObjectStore};
use wharf_tls::CertFiles;
use wharf_vocab::{Code, Fault};

use crate::settings::artifacts::{Artifacts, Location, S3};
use crate::{Home, secrets};

/// The artifact store of a core that is up.
pub(crate) struct Storage {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// Has its address, but answers nobody yet.
    bound: Option<Endpoint>,
    serving: Option<RunningEndpoint>,
}

impl Storage {
    pub(crate) async fn open(home: &Home, artifacts: &Artifacts) -> Result<Self, Fault> {
        match &artifacts.place {
            Location::Files { listen, tls } => {
                embedded(home, artifacts, *listen, tls.clone()).await
            }
            Location::S3(s3) => remote(s3, artifacts.public_url.clone()),
        }
    }

    /// Answers from now on whoever comes with an address. Those who came before were kept waiting:
    /// nobody could say yet which addresses are still good for writing.
    pub(crate) fn serve(&mut self, gate: Arc<dyn AddressGate>) {
        if let Some(endpoint) = self.bound.take() {
            endpoint.set_gate(gate);
            self.serving = Some(endpoint.serve());
        }
    }

    /// Where tools on this machine find it.
    pub(crate) fn origin(&self) -> String {
        self.objects.origin()
    }

    pub(crate) async fn stop(self) {
        if let Some(serving) = self.serving {
            serving.stop().await;
        }
    }
}

/// Files of the home. The port is picked once and kept: addresses that tools hold stay good
/// across a restart.
async fn embedded(
    home: &Home,
    artifacts: &Artifacts,
    listen: SocketAddr,
    tls: Option<CertFiles>,
) -> Result<Storage, Fault> {
    let folder = home.objects_folder();
    let opened = tokio::task::spawn_blocking(move || FileObjects::open(folder)).await;
    let files = opened
        .map_err(|_| Fault::new(Code::CoreInternal, "The artifact store could not be opened."))?
        .map_err(|error| home.unwritable(&error))?;
    let port = kept_port(home, listen)?;
    let addr = port.unwrap_or(listen);
    let (key_id, secret) = secrets::storage_key(home)?;
    let options = EndpointOptions {
        public_url: artifacts.public_url.clone(),
        tls,
        ..EndpointOptions::new(addr, Credentials { key_id, secret })
    };
    let bound = Endpoint::bind(files, options).await;
    let endpoint = bound.map_err(|error| cannot_listen(addr, port.is_some(), &error))?;
    if listen.port() == 0 && port.is_none() {
        let text = format!("{}\n", endpoint.addr().port());
        crate::files::replace(&home.storage_port_file(), text.as_bytes())
            .map_err(|error| home.unwritable(&error))?;
    }
    let objects: Arc<dyn ObjectStore> = endpoint.objects();
    Ok(Storage { objects, bound: Some(endpoint), serving: None })
}

fn kept_port(home: &Home, listen: SocketAddr) -> Result<Option<SocketAddr>, Fault> {
    if listen.port() != 0 {
        return Ok(None);
    }
    let read =
        crate::files::read(&home.storage_port_file()).map_err(|error| home.unwritable(&error))?;
    let text = read.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let port = text.and_then(|text| text.parse().ok()).filter(|port| *port != 0);
    Ok(port.map(|port| SocketAddr::new(listen.ip(), port)))
}

fn cannot_listen(addr: SocketAddr, kept: bool, error: &io::Error) -> Fault {
    let message = if kept && error.kind() == io::ErrorKind::AddrInUse {
        format!(
            "The artifact store used port {} before and something else uses it now; stop that, or \
             remove run/storage.port to pick another, which ends addresses that are out.",
            addr.port()
        )
    } else {
        format!("The artifact store cannot listen on {addr}: {error}.")
    };
    Fault::new(Code::ConfigInvalid, message)
}

/// An S3. One that is away for the moment does not keep a core from starting.
fn remote(s3: &S3, public_url: Option<String>) -> Result<Storage, Fault> {
    let objects = open_s3(s3, public_url)?;
    let checked = Arc::clone(&objects);
    tokio::spawn(async move {
        match checked.check().await {
            Ok(()) => tracing::info!("the artifact store answers"),
            Err(error) => tracing::warn!(%error, "the artifact store cannot be used now"),
        }
    });
    Ok(Storage { objects, bound: None, serving: None })
}

/// The S3 that the configuration names; nothing is asked of it.
pub(crate) fn open_s3(s3: &S3, public_url: Option<String>) -> Result<Arc<S3Objects>, Fault> {
    let S3 { endpoint, bucket, key_id, secret, .. } = s3.clone();
    let options = S3Options {
        region: s3.region.clone(),
        style: if s3.virtual_host { Style::VirtualHost } else { Style::Path },
        session_token: s3.session_token.clone(),
        ca_file: s3.ca_file.clone(),
        prefix: s3.prefix.clone(),
        public_url,
        ..S3Options::new(endpoint, bucket, key_id, secret)
    };
    S3Objects::open(&options).map_err(|error| {
        Fault::new(Code::ConfigInvalid, format!("[artifacts] cannot be used: {error}."))
    })
}
