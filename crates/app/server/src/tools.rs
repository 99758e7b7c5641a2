//! The edge that faces tool servers as a core sets it up: folders, the program that serves
//! handlers, where files are.

use std::path::PathBuf;
use std::time::Duration;

use wharf_engine::Handle;
use wharf_hosting::Control;
use wharf_run::{RunEdgeOptions, Storage};
use wharf_vocab::{Code, Fault};

use crate::Home;
use crate::agents::{Surroundings, hosting};
use crate::settings::Settings;
use crate::settings::artifacts::{Artifacts, Location};

/// Starts the edge; without a program this one serves handlers.
pub(crate) async fn start(
    home: &Home,
    settings: &Settings,
    handle: &Handle,
    around: Surroundings,
    program: Option<PathBuf>,
) -> Result<Control, Fault> {
    let origin = around.origin.clone();
    let hosting = hosting(home, settings, handle, "tools", around)?;
    let program = match program {
        Some(program) => program,
        None => std::env::current_exe().map_err(|error| {
            let message = format!("The program that serves handlers cannot be found: {error}.");
            Fault::new(Code::CoreInternal, message)
        })?,
    };
    wharf_run::start(RunEdgeOptions {
        hosting,
        program,
        container: settings.tools.container.clone(),
        storage: Storage { origin, is_public: is_public(&settings.artifacts) },
        environments: home.environments_folder(),
        search: wharf_hosting::packages::search_path(),
        idle: settings.tools.idle_s.map_or(RunEdgeOptions::IDLE, Duration::from_secs),
        healthy_within: RunEdgeOptions::HEALTHY_WITHIN,
    })
    .await
}

/// Whether other machines can use addresses of files.
fn is_public(artifacts: &Artifacts) -> bool {
    let near =
        matches!(&artifacts.place, Location::Files { listen, .. } if listen.ip().is_loopback());
    artifacts.public_url.is_some() || !near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t033_files_on_loopback_are_public_only_by_another_name() {
        let files = |listen: &str, public_url: Option<&str>| Artifacts {
            place: Location::Files { listen: listen.parse().expect("an address"), tls: None },
            public_url: public_url.map(str::to_owned),
            origins: Vec::new(),
        };
        assert!(!is_public(&files("127.0.0.1:0", None)));
        assert!(is_public(&files("127.0.0.1:0", Some("https://files.example.com"))));
        assert!(is_public(&files("192.0.2.1:9000", None)));
    }
}
