//! What a folder or a file has to be added: one tool that a manifest names, or every tool of a
//! handler.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wharf_domain::Provider;
use wharf_domain::provider::{MadeEnvironment, ProviderKind, Serving};
use wharf_hosting::{HostedKind as _, ReadFolder, ReadManifest, blocking};
use wharf_ports::Steps;
use wharf_ports::providers::NewFolder;
use wharf_vocab::{Code, Fault};

use crate::describe::{DescribeError, describe};
use crate::environment::{self, Needs};
use crate::manifest::{self, FILE_NAME, ManifestSource};
use crate::runtime::Runtime;
use crate::tools::ToolServers;

/// The namespace of tools that nobody gave one.
const NAMESPACE: &str = "local";
/// The handlers of a folder that has no manifest, the first that is there.
const HANDLERS: [&str; 5] =
    ["handler.py", "handler.ts", "handler.mts", "handler.js", "handler.mjs"];

/// Reads what is to be added, and asks its handler for what stands in no manifest.
pub(crate) async fn read(servers: &Arc<ToolServers>, new: NewFolder) -> Result<ReadFolder, Fault> {
    let looking = Arc::clone(servers);
    let steps = new.steps.clone();
    let source = blocking(move || source(&looking, &new)).await?;
    let folder = source.folder.clone();
    let Some(file) = source.handler()? else {
        let manifests = source.tools(&[])?;
        return settled(servers, folder, manifests);
    };
    let made = made(servers, &source, &steps).await?;
    let described = match describe(servers, &folder, &file, made.as_ref()).await {
        Ok(described) => described,
        Err(DescribeError::Handler(fault)) if needs_its_handler(&source) => return Err(fault),
        // It may need what is given to it only once it is approved.
        Err(DescribeError::Handler(fault)) => {
            tracing::info!(%file, "a handler cannot be imported without permissions: {fault}");
            Vec::new()
        }
        Err(DescribeError::Untried(fault)) if !source.has_reference() => return Err(fault),
        Err(DescribeError::Untried(fault)) => {
            tracing::warn!(%file, "a handler was not looked at: {fault}");
            Vec::new()
        }
    };
    let mut manifests = source.tools(&described)?;
    for read in &mut manifests {
        if let ProviderKind::ToolServer(server) = &mut read.manifest.kind
            && let Some(environment) = &mut server.environment
        {
            environment.made.clone_from(&made);
        }
    }
    settled(servers, folder, manifests)
}

/// The environment that a handler asks for: as it was made for a tool of the same manifest, or a
/// new one.
async fn made(
    servers: &Arc<ToolServers>,
    source: &ManifestSource,
    steps: &Steps,
) -> Result<Option<MadeEnvironment>, Fault> {
    let Some(wanted) = source.environment()? else { return Ok(None) };
    let known = servers.host.options().handle.providers().list().into_iter();
    let known =
        known.filter(|known| servers.owns(known) && Path::new(&known.folder) == source.folder);
    let before = known.filter_map(|known| {
        let made = environment::made_of(&known)?.clone();
        let again = manifest::read_again(&source.folder, &known).ok()?;
        (again.hash == known.manifest_hash && wanted.wheels.is_none()).then_some((known.id, made))
    });
    if let Some((id, made)) = before.last() {
        let needs = Needs { id: &id, folder: &source.folder, wanted: &wanted, steps };
        environment::restore(servers, needs, &made).await?;
        return Ok(Some(made));
    }
    let id = source.first_id()?;
    let needs = Needs { id: &id, folder: &source.folder, wanted: &wanted, steps };
    environment::make(servers, needs).await.map(Some)
}

/// Whether a handler that cannot be imported is of no use, with or without an approval.
fn needs_its_handler(source: &ManifestSource) -> bool {
    let asks = source
        .tools(&[])
        .map(|tools| tools.iter().any(|tool| !tool.manifest.permissions.is_empty()));
    !source.has_reference() || !asks.unwrap_or(false)
}

fn settled(
    servers: &ToolServers,
    folder: PathBuf,
    manifests: Vec<ReadManifest>,
) -> Result<ReadFolder, Fault> {
    manifests.iter().try_for_each(|read| servers.check(read))?;
    Ok(ReadFolder { folder, manifests, hints: Vec::new() })
}

/// Finds the manifest, or the handler that has none. It blocks.
fn source(servers: &ToolServers, new: &NewFolder) -> Result<ManifestSource, Fault> {
    let path = std::fs::canonicalize(&new.path)
        .map_err(|_| invalid(format!("There is no folder and no file {}.", new.path.display())))?;
    let (folder, file) = match path.is_dir() {
        true => (path.clone(), None),
        false => {
            let folder = path.parent().map_or_else(|| path.clone(), Path::to_path_buf);
            (folder, path.file_name().and_then(OsStr::to_str).map(str::to_owned))
        }
    };
    if folder.join(FILE_NAME).exists() {
        let source = ManifestSource::of_folder(&folder)?;
        // A file beside a manifest of another one stands for itself.
        if file.is_none() || file == source.handler()? {
            if new.namespace.is_some() {
                let message = "The manifest says the tool's name; change it there.";
                return Err(Fault::new(Code::RequestInvalid, message).with("field", "namespace"));
            }
            return Ok(source);
        }
    }
    let file = match file {
        Some(file) if Runtime::of(&file).is_some() => file,
        Some(file) => {
            let message = format!(
                "{file} is no file of Python, TypeScript or JavaScript; other programs need a \
                 {FILE_NAME}, see wharf new tool."
            );
            return Err(invalid(message));
        }
        None => handler_in(&folder)?,
    };
    check_folder(servers, &folder, &file)?;
    let namespace = new.namespace.as_deref().unwrap_or(NAMESPACE);
    Ok(ManifestSource::of_file(&folder, &file, namespace))
}

fn handler_in(folder: &Path) -> Result<String, Fault> {
    let mut there = HANDLERS.iter().filter(|name| folder.join(name).is_file());
    match (there.next(), there.next()) {
        (Some(one), None) => Ok((*one).to_owned()),
        (Some(one), Some(other)) => {
            let path = folder.display();
            Err(invalid(format!("{path} has a {one} and a {other}; name the file.")))
        }
        (None, _) => {
            let path = folder.display();
            let names = "handler.py, handler.ts or handler.js";
            let other = other_handler(folder).map_or_else(String::new, |name| {
                format!("; name a file of it, such as {path}/{name}")
            });
            Err(invalid(format!("{path} has neither a {FILE_NAME} nor a {names}{other}.")))
        }
    }
}

/// A file that could be a handler by its name, the first by the alphabet.
fn other_handler(folder: &Path) -> Option<String> {
    let names = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| !name.starts_with('.') && Runtime::of(name).is_some()).min()
}

/// A tool may read the folder of its handler. Whoever names a file alone may not think of that.
fn check_folder(servers: &ToolServers, folder: &Path, file: &str) -> Result<(), Fault> {
    let home = servers.options.hosting.user_home.as_deref();
    let home = home.map(|home| std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()));
    if home.is_none_or(|home| !home.starts_with(folder)) {
        return Ok(());
    }
    let message = format!(
        "{file} lies in {}, and a tool may read all that lies beside its handler; put it into a \
         folder of its own.",
        folder.display()
    );
    Err(invalid(message))
}

/// Whether a known tool was one of those of the file that is added, and is none any more.
pub(crate) fn is_dropped(known: &Provider, read: &ReadFolder) -> bool {
    let shared = |known: &Provider| {
        let server = known.manifest.tool_server().filter(|server| server.source.is_shared())?;
        match &server.how {
            Serving::Handler { file, .. } => Some((file.clone(), namespace(known.id.as_str()))),
            _ => None,
        }
    };
    let is_of_file = |read: &ReadManifest, file: &str, space: &str| {
        let server = read.manifest.tool_server().filter(|server| server.source.is_shared());
        server.is_some_and(
            |server| matches!(&server.how, Serving::Handler { file: other, .. } if other == file),
        ) && namespace(read.id.as_str()) == space
    };
    let Some((file, space)) = shared(known) else { return false };
    Path::new(&known.folder) == read.folder
        && read.manifests.iter().any(|one| is_of_file(one, &file, &space))
        && read.manifests.iter().all(|one| one.id != known.id)
}

fn namespace(id: &str) -> String {
    id.split_once('/').map_or(id, |(namespace, _)| namespace).to_owned()
}

fn invalid(message: String) -> Fault {
    Fault::new(Code::ToolManifestInvalid, message)
}
