//! What a server's process is started with: standard streams that lead to the core, variables of
//! its environment, and its program.
//!
//! Folders, fence, secrets and the way out are the same for all that is launched and come from
//! [`wharf_hosting`].

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wharf_domain::Provider;
use wharf_domain::permission::Permission;
use wharf_domain::provider::McpDetails;
use wharf_hosting::PATH;
use wharf_ports::launcher::LaunchSpec;
use wharf_vocab::{Code, Fault};

use super::install;
use super::link::stdio;

/// Makes a launch one of an MCP server; the core's end of its standard streams.
pub(crate) fn equip(
    agent: &Provider,
    details: &McpDetails,
    search: &[PathBuf],
    spec: &mut LaunchSpec,
) -> Result<UnixStream, Fault> {
    let (ours, theirs) = stdio::pair().map_err(|error| {
        tracing::warn!(provider = %agent.id, %error, "no socket for a server's standard streams");
        Fault::new(Code::AgentStartFailed, "No socket can be made for its standard streams.")
    })?;
    spec.stdio = Some(Arc::new(theirs));
    if let Some(package) = &details.package {
        install::equip(package, search, spec)?;
    }
    search_beside(spec);
    let mut set = |name: &str, value: &str| {
        // What the launch has for itself stays.
        spec.env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    };
    details.env.iter().for_each(|(name, value)| set(name, value));
    // What Python compiles would otherwise lie in a pinned folder, and a line that waits for more
    // of its kind would never arrive.
    set("PYTHONDONTWRITEBYTECODE", "1");
    set("PYTHONUNBUFFERED", "1");
    if agent.permissions().iter().any(|one| matches!(one, Permission::Egress(_))) {
        // The way out is a proxy, which Node asks for only if it is told to.
        set("NODE_USE_ENV_PROXY", "1");
    }
    Ok(ours)
}

/// Lets what is installed beside the program be found by its name: the `node` of a script that is
/// beside it.
fn search_beside(spec: &mut LaunchSpec) {
    let Some(folder) = spec.program.parent().filter(|folder| folder.is_absolute()) else { return };
    let path = spec.env.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
    let is_there = std::env::split_paths(&*path).any(|known| known == folder);
    let folder = folder.display().to_string();
    if !is_there && !folder.contains(':') && Path::new(&folder) != Path::new("/") {
        *path = format!("{folder}:{path}");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use wharf_domain::{Caller, ProviderInput};
    use wharf_ports::launcher::LogSpec;
    use wharf_vocab::{LaunchId, Timestamp};

    use super::super::manifest;
    use super::*;

    fn provider(text: &str) -> Provider {
        let read = manifest::parse(text.as_bytes()).expect("valid");
        let add = ProviderInput::Add {
            folder: "/srv/every".to_owned(),
            manifest_hash: read.hash,
            manifest: read.manifest,
        };
        let owner = Caller::owner().to_ref();
        let decided = Provider::decide(None, &read.id, &add, &owner).expect("legal");
        let (entry, _) = decided.expect("something new");
        Provider::apply(None, &read.id, Timestamp(1), &entry).expect("added")
    }

    fn equipped(text: &str) -> (LaunchSpec, UnixStream) {
        let agent = provider(text);
        let entry = &agent.manifest.entrypoint;
        let id = LaunchId::new("l1").expect("valid");
        let mut spec = LaunchSpec::new(id, &entry.program, &agent.folder, LogSpec::at("/srv/log"));
        spec.env.insert("PATH".to_owned(), PATH.to_owned());
        spec.env.insert("TMPDIR".to_owned(), "/srv/tmp".to_owned());
        let details = agent.manifest.mcp().expect("one");
        let ours = equip(&agent, details, &[], &mut spec).expect("equipped");
        (spec, ours)
    }

    #[test]
    fn m045_a_launch_has_a_socket_for_its_streams_and_no_more_variables_than_were_said() {
        let (spec, mut ours) = equipped(
            "name = 'every'\ncommand = ['/opt/node/bin/node', '/srv/x.js']\n[env]\nMODE = 'quiet'",
        );
        let names: Vec<_> = spec.env.keys().map(String::as_str).collect();
        let more = ["MODE", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "TMPDIR"];
        assert_eq!(names, more);
        assert_eq!(spec.env["MODE"], "quiet");
        assert_eq!(spec.env["PATH"], format!("/opt/node/bin:{PATH}"));
        let theirs = spec.stdio.expect("a socket").try_clone().expect("cloned");
        UnixStream::from(theirs).write_all(b"{}").expect("written");
        ours.set_nonblocking(false).expect("set");
        let mut heard = [0; 2];
        ours.read_exact(&mut heard).expect("read");
        assert_eq!(&heard, b"{}");
    }

    #[test]
    fn m045_the_way_out_is_told_to_those_that_have_one() {
        let name = "name = 'every'\ncommand = ['node']\n";
        let (spec, _ours) = equipped(name);
        assert!(!spec.env.contains_key("NODE_USE_ENV_PROXY"));
        assert_eq!(spec.env["PATH"], PATH, "a name has no folder");
    }
}
