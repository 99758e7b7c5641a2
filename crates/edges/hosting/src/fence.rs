//! From what the owner approved to the fence of a launch.
//!
//! A fence knows files and folders, not patterns. So a pattern that is a file or a whole folder
//! goes in as it is; any other is looked up when the launch begins, and what it fits then is
//! what the launch can reach. Links on the way are not followed: whoever can put a link where an
//! agent may read could otherwise move the fence.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use url::Url;
use wharf_domain::Provider;
use wharf_domain::permission::{HostPattern, PathGlob, Permission};
use wharf_engine::Reach;
use wharf_vocab::{Code, Fault, SandboxLevel, SecretName};

/// Files that patterns may fit together, and entries that are looked at for it.
const MATCHES_MAX: usize = 1_000;
const ENTRIES_MAX: usize = 50_000;

/// What permissions are judged against.
#[derive(Debug, Clone)]
pub(crate) struct PermissionContext {
    /// What `~` stands for.
    pub(crate) user_home: Option<PathBuf>,
    /// Folders that no agent ever sees.
    pub(crate) hidden: Vec<PathBuf>,
    /// The agent's own folder.
    pub(crate) folder: PathBuf,
}

/// What a launch is given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FenceGrants {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) secrets: Vec<SecretName>,
    /// Secrets by the variables of the environment that hold them.
    pub(crate) secret_env: BTreeMap<String, SecretName>,
    pub(crate) env: Vec<String>,
    /// What was approved and cannot be given, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// Refuses permissions that no approval can give. It blocks.
pub(crate) fn check(permissions: &[String], ground: &PermissionContext) -> Result<(), Fault> {
    let refused = |text: &str, why: &str| {
        let message = format!("The permission {text} cannot be approved: {why}.");
        Err(Fault::new(Code::RequestInvalid, message).with("permission", text))
    };
    let ground = ground.canonical();
    for text in permissions {
        // What cannot be read is refused elsewhere, with a better sentence.
        let Ok(permission) = Permission::parse(text) else { continue };
        let (Permission::Read(glob) | Permission::Write(glob)) = &permission else { continue };
        let Some(glob) = ground.at_home(glob) else {
            return refused(text, "this core does not know what ~ stands for");
        };
        let root = real(Path::new(glob.root().0));
        if ground.touches_hidden(&root, &glob) {
            return refused(text, "it would show what the core keeps for itself");
        }
        if matches!(permission, Permission::Write(_)) && ground.touches_own(&root, &glob) {
            return refused(text, "an agent may read its own folder but never write there");
        }
    }
    Ok(())
}

/// What a launch is given for these permissions. It blocks.
pub(crate) fn derive(permissions: &[Permission], ground: &PermissionContext) -> FenceGrants {
    let ground = ground.canonical();
    let mut given = FenceGrants::default();
    let mut finder = Finder::default();
    for permission in permissions {
        match permission {
            Permission::Read(glob) => {
                let found = finder.find(glob, &ground, false, &mut given.notes);
                given.read.extend(found);
            }
            Permission::Write(glob) => {
                let found = finder.find(glob, &ground, true, &mut given.notes);
                given.write.extend(found);
            }
            Permission::Egress(host) => given.hosts.push(host.clone()),
            Permission::Secret(name) => given.secrets.push(name.clone()),
            Permission::SecretEnv { name, variable } => {
                given.secret_env.insert(variable.clone(), name.clone());
            }
            Permission::Env(name) => given.env.push(name.clone()),
            // Asked for in calls, or nothing this core could give.
            Permission::Invoke(_) | Permission::Unknown(_) => {}
        }
    }
    for paths in [&mut given.read, &mut given.write] {
        paths.sort_unstable();
        paths.dedup();
    }
    given
}

impl PermissionContext {
    /// The same by its real paths. It blocks.
    pub(crate) fn canonical(&self) -> Self {
        Self {
            user_home: self.user_home.as_deref().map(real),
            hidden: self.hidden.iter().map(|path| real(path)).collect(),
            folder: real(&self.folder),
        }
    }

    /// The pattern from `/`; `None` if nobody knows what `~` is.
    fn at_home(&self, glob: &PathGlob) -> Option<PathGlob> {
        let home = self.user_home.as_deref().and_then(Path::to_str);
        let glob = home.map_or_else(|| glob.clone(), |home| glob.at_home(home));
        (!glob.to_string().starts_with('~')).then_some(glob)
    }

    /// Whether a pattern reaches into a hidden folder, or would show one from above.
    fn touches_hidden(&self, root: &Path, glob: &PathGlob) -> bool {
        self.hidden.iter().any(|hidden| touches(root, glob, hidden))
    }

    fn touches_own(&self, root: &Path, glob: &PathGlob) -> bool {
        touches(root, glob, &self.folder)
    }

    fn keeps_out(&self, path: &Path, write: bool) -> bool {
        let meets = |other: &PathBuf| path.starts_with(other) || other.starts_with(path);
        self.hidden.iter().any(meets) || write && meets(&self.folder)
    }
}

/// Whether what a pattern fits lies in a folder, or the folder in what it fits.
fn touches(root: &Path, glob: &PathGlob, folder: &Path) -> bool {
    let is_single = glob.root().1 && !glob.is_tree();
    let inside = root.starts_with(folder);
    let above = folder.starts_with(root);
    // A pattern such as /home/*/x.md begins above many folders; it counts if it fits the folder
    // itself or some parent of it.
    let fits_from_above = || folder.ancestors().filter_map(Path::to_str).any(|p| glob.matches(p));
    inside || above && !is_single && (glob.is_tree() || fits_from_above())
}

/// The real path of what there is of a path; the rest is left as it is written. It blocks.
#[must_use]
pub fn real(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(canonical) = std::fs::canonicalize(ancestor) {
            return path.strip_prefix(ancestor).map_or(canonical.clone(), |rest| {
                if rest.as_os_str().is_empty() { canonical } else { canonical.join(rest) }
            });
        }
    }
    path.to_owned()
}

/// Looks patterns up, within bounds that hold for all of them together.
#[derive(Debug, Default)]
struct Finder {
    matches: usize,
    entries: usize,
}

impl Finder {
    fn find(
        &mut self,
        glob: &PathGlob,
        ground: &PermissionContext,
        write: bool,
        notes: &mut Vec<String>,
    ) -> Vec<PathBuf> {
        let Some(glob) = ground.at_home(glob) else {
            notes.push(format!("{glob} gives nothing, because nobody says what ~ stands for"));
            return Vec::new();
        };
        let (root, is_whole) = glob.root();
        let root = Path::new(root);
        match std::fs::canonicalize(root) {
            Ok(canonical) if canonical == root => {}
            Ok(_) => {
                notes.push(format!("{glob} gives nothing, because a link lies on its way"));
                return Vec::new();
            }
            Err(_) => {
                notes.push(format!("{glob} gives nothing, because it does not exist"));
                return Vec::new();
            }
        }
        let found = match (is_whole, glob.is_tree()) {
            (true, true) => vec![root.to_owned()],
            (true, false) if root.is_dir() => {
                notes.push(format!("{glob} is a folder; what is in it needs {glob}/**"));
                Vec::new()
            }
            (true, false) => vec![root.to_owned()],
            (false, _) => self.look_up(&glob, root, notes),
        };
        let kept: Vec<_> =
            found.iter().filter(|path| !ground.keeps_out(path, write)).cloned().collect();
        if kept.len() < found.len() {
            notes.push(format!("{glob} does not reach what no agent may reach"));
        }
        kept
    }

    /// The files a pattern fits now, and the folders if it ends with everything below them.
    fn look_up(&mut self, glob: &PathGlob, root: &Path, notes: &mut Vec<String>) -> Vec<PathBuf> {
        let text = glob.to_string();
        let whole_folders = text.strip_suffix("/**");
        let wanted = whole_folders.and_then(|text| PathGlob::parse(text).ok());
        let pattern = wanted.as_ref().unwrap_or(glob);
        let deep = pattern.to_string().contains("**");
        let depth_max = if deep { usize::MAX } else { segments(&pattern.to_string()) };
        let mut found = Vec::new();
        let mut open = vec![root.to_owned()];
        while let Some(folder) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                self.entries += 1;
                if self.entries > ENTRIES_MAX || self.matches >= MATCHES_MAX {
                    notes.push(format!("{glob} fits more than can be given; the rest is left out"));
                    return found;
                }
                let path = entry.path();
                // The type is the entry's own, so links are neither given nor followed.
                let Ok(kind) = entry.file_type() else { continue };
                let fits = path.to_str().is_some_and(|path| pattern.matches(path));
                if fits && (kind.is_file() || kind.is_dir() && whole_folders.is_some()) {
                    self.matches += 1;
                    found.push(path);
                } else if kind.is_dir() && segments(&path.to_string_lossy()) < depth_max {
                    open.push(path);
                }
            }
        }
        found
    }
}

fn segments(path: &str) -> usize {
    path.split('/').filter(|segment| !segment.is_empty()).count()
}

/// How a provider reaches the files of its calls: by addresses if nothing keeps it from the
/// network or its permissions cover where they lead, else as files.
#[must_use]
pub fn reach(agent: &Provider, origin: Option<&str>) -> Reach {
    let level = agent.approval.as_ref().map(|approval| approval.terms.sandbox);
    if level.is_some_and(|level| level <= SandboxLevel::Basic) {
        return Reach::Storage;
    }
    let Some((host, port)) = origin.and_then(host_and_port) else { return Reach::Folder };
    // Only a permission that names the address itself leads to this machine and its networks.
    let literal = host == "localhost" || bare(&host).parse::<IpAddr>().is_ok();
    let covers = |permission: &Permission| match permission {
        Permission::Egress(hosts) => hosts.matches(&host, port) && (!literal || hosts.is_literal()),
        _ => false,
    };
    if agent.permissions().iter().any(covers) { Reach::Storage } else { Reach::Folder }
}

/// The host and port of an origin.
fn host_and_port(origin: &str) -> Option<(String, u16)> {
    let url = Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests;
