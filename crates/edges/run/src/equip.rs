//! What a launch of a tool server is given: its program, where it listens, its folder.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use wharf_domain::Agent;
use wharf_domain::agent::{Serving, ToolServer};
use wharf_domain::permission::Permission;
use wharf_engine::Reach;
use wharf_engine::launcher::{Inbound, LaunchSpec};
use wharf_hosting::{Places, Sockets};
use wharf_vocab::{Code, Fault, SandboxLevel};

use crate::folder;
use crate::link::Address;
use crate::options::Options;

/// Tells a program which storage it may reach.
const ORIGINS: &str = "WHARF_ALLOW_ORIGINS";
/// What stands for the port in a program's arguments.
const PORT: &str = "{port}";
/// What stands for the shared folder in a container's command.
const ARTIFACTS: &str = "{artifacts}";

/// Makes a launch one of a tool server; where it will listen.
pub(crate) fn equip(
    options: &Options,
    (agent, server): (&Agent, &ToolServer),
    places: &Places,
    spec: &mut LaunchSpec,
    sockets: &mut Sockets,
) -> Result<Address, Fault> {
    let artifacts = folder::path(places);
    let reach = reach(options, agent, server)?;
    if reach == Reach::Folder {
        spec.fence.artifacts = Some(artifacts.clone());
    }
    // What Python compiles would otherwise lie in the pinned folder, where it may.
    spec.env.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned());
    match &server.how {
        Serving::Handler { file, cold } => {
            let socket = own_socket(spec, sockets)?;
            // The same folder by its own name, since not every fence can show it as another.
            spec.private_dirs.push(artifacts.clone());
            spec.fence.read.push(options.program.clone());
            spec.program.clone_from(&options.program);
            spec.args = serve(options, agent, &spec.cwd.join(file), &socket, &artifacts);
            let timeout_ms = server.tool.timeout_ms.unwrap_or(ToolServer::TIMEOUT_MS);
            spec.args.extend(["--timeout".to_owned(), format!("{timeout_ms}ms")]);
            if *cold {
                spec.args.push("--cold".to_owned());
            }
            spec.args.extend(approved(agent, spec));
            Ok(Address::Unix(socket))
        }
        Serving::Program { argv } => {
            let (socket, port) = way_in(spec, sockets)?;
            if reach == Reach::Storage {
                spec.env.insert(ORIGINS.to_owned(), options.storage.origin.clone());
            }
            let word = |word: &String| word.replace(PORT, &port.to_string());
            spec.program = argv.first().map(word).unwrap_or_default().into();
            spec.args = argv.iter().skip(1).map(word).collect();
            Ok(Address::Unix(socket))
        }
        Serving::Image { image } => {
            let (socket, port) = way_in(spec, sockets)?;
            spec.private_dirs.push(artifacts.clone());
            let word = |word: &String| {
                word.replace(PORT, &port.to_string())
                    .replace("{image}", image)
                    .replace(ARTIFACTS, &artifacts.display().to_string())
            };
            let (program, args) = options.container.split_first().ok_or_else(no_container)?;
            spec.program = word(program).into();
            spec.args = args.iter().map(word).collect();
            Ok(Address::Unix(socket))
        }
        Serving::Remote { .. } => {
            Err(Fault::new(Code::CoreInternal, "A server elsewhere is not launched."))
        }
    }
}

/// How a launched server reaches the files of its runs.
pub(crate) fn reach(options: &Options, agent: &Agent, server: &ToolServer) -> Result<Reach, Fault> {
    let is_image = matches!(server.how, Serving::Image { .. });
    if is_image && options.container.iter().any(|word| word.contains(ARTIFACTS)) {
        return Ok(Reach::Folder);
    }
    let origin = &options.storage.origin;
    let reach = wharf_hosting::reach(agent, Some(origin));
    if reach == Reach::Storage && server.https_only && !is_encrypted(origin) {
        let message = format!(
            "The tool server {} fetches files only under https://, and this core's files are \
             under {origin}; fence it in more firmly or give [artifacts] a public_url.",
            agent.id
        );
        return Err(Fault::new(Code::AgentStartFailed, message));
    }
    Ok(reach)
}

pub(crate) fn is_encrypted(origin: &str) -> bool {
    origin.starts_with("https://")
}

pub(crate) fn no_container() -> Fault {
    let message = "This core runs no images: [tools] container in wharf.toml names no command.";
    Fault::new(Code::ToolManifestInvalid, message)
}

/// The arguments of the program that serves a handler.
fn serve(
    options: &Options,
    agent: &Agent,
    handler: &Path,
    socket: &Path,
    artifacts: &Path,
) -> Vec<String> {
    let listen = format!("unix:{}", socket.display());
    let mut args: Vec<String> = ["tool", "serve", "--handler"].map(str::to_owned).into();
    args.push(handler.display().to_string());
    args.extend(["--listen".to_owned(), listen]);
    args.extend(["--artifacts".to_owned(), artifacts.display().to_string()]);
    args.extend(["--digest".to_owned(), agent.manifest_hash.to_string()]);
    args.extend(["--allow-origin".to_owned(), options.storage.origin.clone()]);
    args
}

/// What a handler may see and reach beside the usual: variables by their names, and hosts by the
/// way out that a fence opens and names in the environment.
fn approved(agent: &Agent, spec: &LaunchSpec) -> Vec<String> {
    let mut args = Vec::new();
    let is_fenced = spec.fence.level > SandboxLevel::Basic;
    let permissions = agent.permissions();
    if is_fenced && permissions.iter().any(|one| matches!(one, Permission::Egress(_))) {
        args.extend(["--proxy", "env"].map(str::to_owned));
    }
    for permission in permissions {
        if let Permission::Env(name) = permission
            && spec.env.contains_key(&name)
        {
            args.extend(["--env".to_owned(), name]);
        }
    }
    args
}

/// A socket that the server itself makes, in a folder of its own.
fn own_socket(spec: &mut LaunchSpec, sockets: &mut Sockets) -> Result<PathBuf, Fault> {
    let folder = sockets.folder()?.join("d");
    spec.private_dirs.push(folder.clone());
    Ok(folder.join("s"))
}

/// A way to a port that the server listens on.
fn way_in(spec: &mut LaunchSpec, sockets: &mut Sockets) -> Result<(PathBuf, u16), Fault> {
    let socket = sockets.folder()?.join("i");
    let port = free_port().map_err(|error| sockets.unusable(&error))?;
    spec.env.insert("PORT".to_owned(), port.to_string());
    spec.fence.inbound = Some(Inbound { socket: socket.clone(), port });
    Ok((socket, port))
}

/// A port that is free now. Where the server has a network of its own any would do; where it has
/// not, another program could take it first, and the server fails to start and is started again.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
