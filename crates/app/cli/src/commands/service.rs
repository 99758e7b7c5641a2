//! `wharf service`: lets systemd keep a core running, for this user or for the machine.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Subcommand;
use serde_json::json;
use wharf_vocab::Code;

use crate::commands::{CliError, Context, Exit, Result};
use crate::plain;

const SYSTEM_UNIT: &str = include_str!("../../../../../deploy/systemd/wharf.service");
const USER_UNIT: &str = include_str!("../../../../../deploy/systemd/user/wharf.service");
const SOCKET_UNIT: &str = include_str!("../../../../../deploy/systemd/wharf.socket");
/// The account of the machine's core, as `systemd-sysusers` makes it.
const ACCOUNT: &str = include_str!("../../../../../deploy/systemd/sysusers.conf");

/// What the units say where this installation differs.
const EXEC: &str = "ExecStart=/usr/bin/wharf up";
const LISTEN: &str = "ListenStream=127.0.0.1:7420";
const SYSTEM_FOLDER: &str = "/etc/systemd/system";
const SERVICE: &str = "wharf.service";
const SOCKET: &str = "wharf.socket";

/// What `wharf service` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf service install              keep a core of yours running
  wharf service install --socket     start it when somebody calls
  wharf service status
  wharf service uninstall            everything in the home stays")]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    command: ServiceCommand,
}

#[derive(Debug, Subcommand)]
enum ServiceCommand {
    /// Write the units, enable and start the service
    #[command(after_help = "\
Examples:
  wharf service install
  wharf service install --print                see what would be written
  wharf service install --socket --listen 127.0.0.1:7421
  wharf service install --system --print | sudo tee /etc/systemd/system/wharf.service

A service of a user ends with the last session, unless it may linger:
  loginctl enable-linger")]
    Install(InstallArgs),
    /// Show whether the service is installed and running, and whether its core answers
    #[command(after_help = "Examples:\n  wharf service status\n  wharf service status --json")]
    Status(ScopeArgs),
    /// Stop the service and remove its units; the home stays
    #[command(
        after_help = "Examples:\n  wharf service uninstall\n  sudo wharf service uninstall --system"
    )]
    Uninstall(ScopeArgs),
}

#[derive(Debug, Clone, Copy, clap::Args)]
struct ScopeArgs {
    /// The service of the machine instead of yours; installing it needs root
    #[arg(long)]
    system: bool,
}

#[derive(Debug, clap::Args)]
struct InstallArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Let systemd listen, and start the core when somebody calls
    #[arg(long)]
    socket: bool,
    /// Where to listen [default: as the home's wharf.toml says, else 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Only print the units
    #[arg(long)]
    print: bool,
    /// Only write the units; enable and start the service later
    #[arg(long, conflicts_with = "print")]
    no_start: bool,
}

/// Does what the subcommand says.
pub(crate) fn run(args: ServiceArgs, context: &Context) -> Result<Exit> {
    match args.command {
        ServiceCommand::Install(args) => install(&args, context),
        ServiceCommand::Status(scope) => status(ServiceScope::of(scope), context),
        ServiceCommand::Uninstall(scope) => uninstall(ServiceScope::of(scope), context),
    }
}

/// Whose service it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServiceScope {
    User,
    System,
}

impl ServiceScope {
    fn of(args: ScopeArgs) -> Self {
        if args.system { Self::System } else { Self::User }
    }

    /// Where its units lie.
    fn folder(self) -> Result<PathBuf> {
        if self == Self::System {
            return Ok(SYSTEM_FOLDER.into());
        }
        let var =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = var("XDG_CONFIG_HOME").or_else(|| Some(var("HOME")?.join(".config")));
        let config = config.ok_or_else(|| {
            CliError::usage("neither XDG_CONFIG_HOME nor HOME says where your units lie")
        })?;
        Ok(config.join("systemd/user"))
    }

    /// What is typed before the verbs of systemctl.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::User => &["--user"],
            Self::System => &[],
        }
    }

    fn systemctl(self, words: &[&str]) -> std::result::Result<String, String> {
        let mut command = Command::new("systemctl");
        let done = command.args(self.words()).args(words).output();
        let said = |bytes: &[u8]| plain::line(String::from_utf8_lossy(bytes).trim());
        match done {
            Ok(done) if done.status.success() => Ok(said(&done.stdout)),
            Ok(done) if done.stderr.is_empty() => Err(said(&done.stdout)),
            Ok(done) => Err(said(&done.stderr)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err("there is no systemctl on this machine".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// A unit: its name and what stands in it.
struct Unit {
    name: &'static str,
    text: String,
}

fn install(args: &InstallArgs, context: &Context) -> Result<Exit> {
    let scope = ServiceScope::of(args.scope);
    let units = units(args, context)?;
    if args.print {
        let text: Vec<_> =
            units.iter().map(|unit| format!("# {}\n{}", unit.name, unit.text)).collect();
        context.output.text(&text.join("\n"))?;
        return Ok(Exit::Done);
    }
    let folder = scope.folder()?;
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    for unit in &units {
        let path = folder.join(unit.name);
        fs::write(&path, &unit.text).map_err(|error| unwritable(&path, &error))?;
    }
    let [.., last] = units.as_slice() else { return Ok(Exit::Done) };
    let path = folder.join(SERVICE);
    let written = json!({"unit": path, "enabled": last.name, "started": !args.no_start});
    let shown = plain::line(&path.display().to_string());
    let words = scope.words().join(" ");
    let later = format!("systemctl {words} enable --now {}", last.name).replace("  ", " ");
    if args.no_start {
        let sentence = format!("written: {shown}; start it with: {later}");
        return context.output.done(&written, &sentence);
    }
    start(scope, last.name).map_err(|why| {
        let message =
            format!("the unit is in {shown}, but could not be started: {why}; later: {later}");
        CliError::failed(Code::ConfigInvalid, message)
    })?;
    let hint = match scope {
        ServiceScope::User => "; to keep it when you log out: loginctl enable-linger",
        ServiceScope::System => "",
    };
    let sentence = format!("{} is enabled and started, from {shown}{hint}", last.name);
    context.output.done(&written, &sentence)
}

/// The units as they are written: what is enabled comes last.
fn units(args: &InstallArgs, context: &Context) -> Result<Vec<Unit>> {
    let mut units = vec![Unit { name: SERVICE, text: service_unit(args, context)? }];
    if args.socket {
        let listen = match args.listen {
            Some(listen) => SOCKET_UNIT.replace(LISTEN, &format!("ListenStream={listen}")),
            None => SOCKET_UNIT.to_owned(),
        };
        units.push(Unit { name: SOCKET, text: listen });
    }
    Ok(units)
}

fn service_unit(args: &InstallArgs, context: &Context) -> Result<String> {
    let program = std::env::current_exe().map_err(|error| {
        CliError::failed(Code::CoreInternal, format!("this program cannot find itself: {error}"))
    })?;
    let mut exec = format!("ExecStart={} up", word(&program.display().to_string()));
    let text = match ServiceScope::of(args.scope) {
        ServiceScope::User => {
            let home = context.home()?;
            exec.push_str(&format!(" --home {}", word(&home.path().display().to_string())));
            USER_UNIT
        }
        // The machine's core has the home that systemd makes for it.
        ServiceScope::System => SYSTEM_UNIT,
    };
    if let Some(listen) = args.listen.filter(|_| !args.socket) {
        exec.push_str(&format!(" --listen {listen}"));
    }
    Ok(text.replace(EXEC, &exec))
}

/// A word of a command line, as units have them.
fn word(text: &str) -> String {
    let text = text.replace('%', "%%").replace('$', "$$");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%$".contains(letter);
    if text.chars().all(is_plain) {
        return text;
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

fn start(scope: ServiceScope, unit: &str) -> std::result::Result<(), String> {
    if scope == ServiceScope::System {
        let made = Command::new("systemd-sysusers").args(["--inline", ACCOUNT.trim()]).output();
        match made {
            Ok(made) if made.status.success() => {}
            Ok(made) => return Err(String::from_utf8_lossy(&made.stderr).trim().to_owned()),
            Err(error) => return Err(format!("systemd-sysusers: {error}")),
        }
    }
    scope.systemctl(&["daemon-reload"])?;
    scope.systemctl(&["enable", "--now", unit])?;
    Ok(())
}

fn status(scope: ServiceScope, context: &Context) -> Result<Exit> {
    let unit = scope.folder()?.join(SERVICE);
    let packaged = Path::new("/usr/lib/systemd/system").join(SERVICE);
    let installed = [unit, packaged].into_iter().find(|path| path.exists());
    let ask = |verb, name| scope.systemctl(&[verb, name]).unwrap_or_else(|said| said);
    let manager = installed.as_ref().map(|_| ask("is-active", SERVICE));
    let enabled = installed.as_ref().map(|_| ask("is-enabled", SERVICE));
    let home = context.home()?;
    let core = home.core().ok().flatten();
    let shown = json!({
        "unit": installed,
        "active": manager,
        "enabled": enabled,
        "home": home.path(),
        "core": core.as_ref().map(|core| &core.http),
    });
    if context.output.is_json() {
        context.output.json(&shown)?;
    } else {
        let unit = match &installed {
            Some(path) => path.display().to_string(),
            None => "not installed; install it with: wharf service install".to_owned(),
        };
        let mut text = format!("unit     {}\n", plain::line(&unit));
        if let (Some(active), Some(enabled)) = (manager, enabled) {
            text.push_str(&format!("systemd  {active}, {enabled}\n"));
        }
        let core = core.map_or_else(
            || format!("none is running for {}", home.path().display()),
            |core| format!("runs at {} (process {})", core.http, core.pid),
        );
        text.push_str(&format!("core     {}\n", plain::line(&core)));
        context.output.text(&text)?;
    }
    Ok(if installed.is_some() { Exit::Done } else { Exit::Failed })
}

fn uninstall(scope: ServiceScope, context: &Context) -> Result<Exit> {
    let folder = scope.folder()?;
    let mut removed = Vec::new();
    for name in [SOCKET, SERVICE] {
        let path = folder.join(name);
        if !path.exists() {
            continue;
        }
        // Where systemd does not run, nothing of it runs either.
        let _ = scope.systemctl(&["disable", "--now", name]);
        fs::remove_file(&path).map_err(|error| unwritable(&path, &error))?;
        removed.push(path);
    }
    if removed.is_empty() {
        let message = format!("no unit of Wharf is in {}", folder.display());
        return Err(CliError::usage(message));
    }
    let _ = scope.systemctl(&["daemon-reload"]);
    let home = context.home()?;
    let sentence = format!("the service is removed; everything in {} stays", home.path().display());
    context.output.done(&json!({"removed": removed}), &plain::line(&sentence))
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => "; run it as root, or see what it writes with --print",
        _ => "",
    };
    let message = format!("{} cannot be written: {error}{hint}", path.display());
    CliError::failed(Code::PermissionDenied, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_have_what_is_replaced_in_them() {
        for unit in [SYSTEM_UNIT, USER_UNIT] {
            assert_eq!(unit.matches(EXEC).count(), 1);
            assert!(unit.contains("Type=notify\n") && unit.contains("WatchdogSec="));
        }
        assert_eq!(SOCKET_UNIT.matches(LISTEN).count(), 1);
    }

    #[test]
    fn a_word_is_one_word_in_a_unit() {
        for (text, expect) in [
            ("/usr/bin/wharf", "/usr/bin/wharf"),
            ("/my home/w", "\"/my home/w\""),
            ("/50%/$x", "/50%%/$$x"),
            ("/a\"b\\c", "\"/a\\\"b\\\\c\""),
            ("/a\nExecStartPre=x", "\"/a\\nExecStartPre=x\""),
        ] {
            assert_eq!(word(text), expect);
        }
    }
}
