//! What a launch of a tool server is given: its program, where it listens, its folder.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::net::UnixListener;
use wharf_domain::Provider;
use wharf_domain::permission::Permission;
use wharf_domain::provider::{Serving, ToolServer};
use wharf_engine::Reach;
use wharf_hosting::{Places, Sockets, bind_unix, random_hex};
use wharf_ports::launcher::{Inbound, LaunchSpec};
use wharf_ports::vault::Secret;
use wharf_vocab::{Code, Fault, Retain, SandboxLevel};
use wharf_wire::run_v1::{Handover, ToolName};

use crate::RunEdgeOptions;
use crate::environment;
use crate::folder;
use crate::link::ServerAddress;
use crate::runtime::{self, Runtime};
use crate::tools::LaunchRoute;

/// Tells a program which storage it may reach.
const ORIGINS: &str = "WHARF_ALLOW_ORIGINS";
/// What stands for the port in a program's arguments.
const PORT: &str = "{port}";
/// What stands for the shared folder in a container's command.
const ARTIFACTS: &str = "{artifacts}";
/// How much chance is in the secret of a launch.
const SECRET_BYTES: usize = 32;

/// Makes a launch one of a tool server; the way there.
pub(crate) fn equip(
    options: &RunEdgeOptions,
    (agent, server): (&Provider, &ToolServer),
    places: &Places,
    spec: &mut LaunchSpec,
    sockets: &mut Sockets,
) -> Result<LaunchRoute, Fault> {
    let artifacts = folder::path(places);
    let reach = reach(options, agent, server)?;
    if reach == Reach::Folder {
        spec.fence.artifacts = Some(artifacts.clone());
    }
    // What Python compiles would otherwise lie in the pinned folder, where it may.
    spec.env.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned());
    match &server.how {
        Serving::Handler { .. } => {
            let way = handed_over(server, spec, sockets)?;
            equip_handler(options, (agent, server), places, spec)?;
            Ok(way)
        }
        Serving::Program { argv } => {
            let (socket, port) = way_in(spec, sockets)?;
            if reach == Reach::Storage {
                spec.env.insert(ORIGINS.to_owned(), options.storage.origin.clone());
            }
            let word = |word: &String| word.replace(PORT, &port.to_string());
            spec.program = argv.first().map(word).unwrap_or_default().into();
            spec.args = argv.iter().skip(1).map(word).collect();
            Ok(LaunchRoute { address: ServerAddress::Unix(socket), secret: None })
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
            Ok(LaunchRoute { address: ServerAddress::Unix(socket), secret: None })
        }
        Serving::Remote { .. } => {
            Err(Fault::new(Code::CoreInternal, "A server elsewhere is not launched."))
        }
    }
}

/// Makes a launch one of the tool server in this program, with a handler.
fn equip_handler(
    options: &RunEdgeOptions,
    (agent, server): (&Provider, &ToolServer),
    places: &Places,
    spec: &mut LaunchSpec,
) -> Result<(), Fault> {
    let Serving::Handler { file, cold, function } = &server.how else { return Ok(()) };
    let artifacts = folder::path(places);
    // The same folder by its own name, since not every fence can show it as another.
    spec.private_dirs.push(artifacts.clone());
    // Where runs have their own folders, out of each other's sight.
    let runs = places.own("runs");
    spec.private_dirs.push(runs.clone());
    spec.fence.read.push(options.program.clone());
    spec.program.clone_from(&options.program);
    spec.args = serve(options, agent, &spec.cwd.join(file), &artifacts);
    spec.args.extend(["--scratch".to_owned(), runs.display().to_string()]);
    spec.args.push("--keep-apart".to_owned());
    let timeout_ms = server.tool.timeout_ms.unwrap_or(ToolServer::TIMEOUT_MS);
    spec.args.extend(["--timeout".to_owned(), format!("{timeout_ms}ms")]);
    if let Some(function) = function {
        spec.args.extend(["--function".to_owned(), function.clone()]);
    }
    if *cold {
        spec.args.push("--cold".to_owned());
    }
    if Runtime::of(file) == Some(Runtime::Node) {
        let node = runtime::node(options, spec)?;
        spec.args.extend(["--node".to_owned(), node]);
    } else {
        spec.starts.extend(runtime::python());
    }
    if let Some(made) = environment::made_of(agent) {
        let python = environment::equip(&options.environments, made, spec);
        spec.args.extend(["--python".to_owned(), python.display().to_string()]);
    }
    spec.args.extend(approved(agent, spec));
    Ok(())
}

/// How a launched server reaches the files of its runs.
pub(crate) fn reach(
    options: &RunEdgeOptions,
    agent: &Provider,
    server: &ToolServer,
) -> Result<Reach, Fault> {
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
    options: &RunEdgeOptions,
    agent: &Provider,
    handler: &Path,
    artifacts: &Path,
) -> Vec<String> {
    let mut args: Vec<String> = ["tool", "serve", "--handler"].map(str::to_owned).into();
    args.push(handler.display().to_string());
    args.extend(["--listen", "fd:3"].map(str::to_owned));
    args.extend(["--artifacts".to_owned(), artifacts.display().to_string()]);
    args.extend(["--digest".to_owned(), agent.manifest_hash.to_string()]);
    args.extend(["--allow-origin".to_owned(), options.storage.origin.clone()]);
    let server = agent.manifest.tool_server();
    if server.is_some_and(|server| server.offered().retain == Retain::Digest) {
        args.extend(["--log", SPEECHLESS].map(str::to_owned));
    }
    args
}

/// What a server logs of whose runs no values are kept: its own errors, and nothing that a handler
/// said.
const SPEECHLESS: &str = "error,wharf_toolserver::traceback=off";

/// What a handler may see and reach beside the usual: variables by their names, and hosts by the
/// way out that a fence opens and names in the environment.
fn approved(agent: &Provider, spec: &LaunchSpec) -> Vec<String> {
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

/// A socket that the core makes and hands to its own program, with a secret and the tool's name,
/// over a connection that the program inherits.
fn handed_over(
    server: &ToolServer,
    spec: &mut LaunchSpec,
    sockets: &mut Sockets,
) -> Result<LaunchRoute, Fault> {
    let socket = sockets.folder()?.join("i");
    let secret = random_hex(SECRET_BYTES)?;
    let handover = Handover { secret: secret.clone(), tool: tool_name(server) };
    let sent = bind_unix(&socket).and_then(|listener| hand(&handover, &listener));
    spec.connection = Some(Arc::new(sent.map_err(|error| sockets.unusable(&error))?));
    spec.secrets.push(secret.clone());
    Ok(LaunchRoute {
        address: ServerAddress::Unix(socket),
        secret: Some(Secret::new(secret.into_bytes())),
    })
}

/// The tool of a server as it is named on the wire.
pub(crate) fn tool_name(server: &ToolServer) -> ToolName {
    let tool = server.offered();
    ToolName { reference: tool.tool.to_string(), digest: Some(tool.hash().to_string()) }
}

/// Puts a handover on a connection, where it waits for its reader; the reader's end.
fn hand(handover: &Handover, listener: &UnixListener) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let text = serde_json::to_vec(handover)?;
    let socket = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&socket));
    let sent = sendmsg(&ours, &[IoSlice::new(&text)], &mut ancillary, SendFlags::NOSIGNAL)?;
    if sent == text.len() { Ok(theirs.into()) } else { Err(io::ErrorKind::WriteZero.into()) }
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
