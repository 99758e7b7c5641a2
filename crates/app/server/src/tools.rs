//! The edge that faces tool servers as a core sets it up: folders, the program that serves
//! handlers, where files are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wharf_egress::EgressProxy;
use wharf_engine::Handle;
use wharf_ports::launcher::{Launcher, RestartPolicy};
use wharf_ports::vault::Vault;
use wharf_run::{Options, RunEdge, Storage};
use wharf_vocab::{Code, Fault, limits};

use crate::agents::user_home;
use crate::settings::Settings;
use crate::settings::artifacts::{Artifacts, Place};
use crate::{Home, files};

/// What tool servers share with agents.
pub(crate) struct Shared {
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) vault: Arc<dyn Vault>,
    /// Where addresses of files lead.
    pub(crate) origin: String,
    /// The program that serves handlers; this one when absent.
    pub(crate) program: Option<PathBuf>,
}

pub(crate) async fn start(
    home: &Home,
    settings: &Settings,
    handle: &Handle,
    shared: Shared,
) -> Result<RunEdge, Fault> {
    let Shared { launcher, vault, origin, program } = shared;
    let unwritable = |error: std::io::Error| home.unwritable(&error);
    files::make_private_folder(&home.path().join("tools")).map_err(unwritable)?;
    // A fence follows no links, so servers are told of places as they are without any.
    let real_home = home.path().canonicalize().map_err(unwritable)?;
    let program = match program {
        Some(program) => program,
        None => std::env::current_exe().map_err(|error| {
            let message = format!("The program that serves handlers cannot be found: {error}.");
            Fault::new(Code::CoreInternal, message)
        })?,
    };
    RunEdge::start(Options {
        hosting: wharf_hosting::Options {
            handle: handle.clone(),
            launcher,
            folder: real_home.join("tools"),
            sockets_dir: Some(real_home.join("run").join("t")),
            restart: RestartPolicy::default(),
            stop_grace: Duration::from_millis(limits::STOP_GRACE_MS),
            connect_within: Options::HEALTHY_WITHIN,
            vault,
            egress: Arc::new(EgressProxy::with_storage(handle.clone(), &origin)),
            user_home: user_home(),
            hidden: vec![real_home],
            sandbox: settings.sandbox,
            sandbox_min: settings.sandbox_min,
            limits: settings.agent_limits.clone(),
        },
        program,
        container: settings.tools.container.clone(),
        storage: Storage { origin, is_public: is_public(&settings.artifacts) },
        idle: settings.tools.idle_s.map_or(Options::IDLE, Duration::from_secs),
        healthy_within: Options::HEALTHY_WITHIN,
    })
    .await
}

/// Whether other machines can use addresses of files.
fn is_public(artifacts: &Artifacts) -> bool {
    let near = matches!(&artifacts.place, Place::Files { listen, .. } if listen.ip().is_loopback());
    artifacts.public_url.is_some() || !near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t033_files_on_loopback_are_public_only_by_another_name() {
        let files = |listen: &str, public_url: Option<&str>| Artifacts {
            place: Place::Files { listen: listen.parse().expect("an address"), tls: None },
            public_url: public_url.map(str::to_owned),
            origins: Vec::new(),
        };
        assert!(!is_public(&files("127.0.0.1:0", None)));
        assert!(is_public(&files("127.0.0.1:0", Some("https://files.example.com"))));
        assert!(is_public(&files("192.0.2.1:9000", None)));
    }
}
