//! What a launch needs around it: folders, environment, secrets, a way out, a fence.

use std::collections::BTreeMap;
use std::sync::Arc;

use wharf_domain::{Caller, Provider, ProviderInput};
use wharf_ports::launcher::EgressDoor;
use wharf_ports::launcher::{Fence, LaunchSpec, LogSpec};
use wharf_ports::logins::is_login_secret;
use wharf_ports::vault::Secret;
use wharf_vocab::{Code, Fault, LaunchId, ProviderId, SandboxLevel, SecretName};

use crate::fence::{self, FenceGrants};
use crate::kind::{HostedKind, LaunchGuard, Process};
use crate::live::Live;
use crate::options::HostingOptions;
use crate::places::Places;
use crate::sockets::Sockets;
use crate::tasks::blocking;
use crate::{files, throttle};

/// A process that was started, and what must stay as long as it lives.
pub(crate) struct RunningProcess {
    pub(crate) process: Process,
    /// What was approved and could not be given, one sentence each.
    pub(crate) notes: Vec<String>,
    pub(crate) around: LaunchScope,
}

/// What is made for one launch alone; it goes with it. The way out closes and listeners end
/// before their folder goes.
pub(crate) struct LaunchScope {
    _door: Option<Arc<dyn EgressDoor>>,
    _kept: LaunchGuard,
    _sockets: Sockets,
}

/// Starts a launch of a provider, if its files are still those that were approved.
pub(crate) async fn start(
    kind: &Arc<dyn HostedKind>,
    live: &Arc<Live>,
    id: &ProviderId,
    launch: &LaunchId,
) -> Result<RunningProcess, Fault> {
    let agent = approved(kind, id).await?;
    let options = kind.host().options();
    let mut sockets = Sockets::new(options, kind.word(), launch);
    let places =
        live.settle(launch, |isolation| Places::new(&options.folder, id, launch, isolation));
    let (launch, live) = (launch.clone(), Arc::clone(live));
    if !kind.has_process(&agent) {
        let around = LaunchScope { _door: None, _kept: None, _sockets: sockets };
        let process = Process { agent, launch, launched: None, places, live };
        return Ok(RunningProcess { process, notes: Vec::new(), around });
    }
    let (ground, permissions) = (kind.host().ground(&agent.folder), agent.permissions());
    let (inspecting, looked_at) = (Arc::clone(kind), agent.clone());
    let looked = blocking(move || {
        inspecting.inspect(&looked_at)?;
        let given = fence::derive(&permissions, &ground);
        Ok((given, ground.canonical().hidden))
    });
    let (mut given, hidden) = match looked.await {
        Err(fault) if fault.is(Code::AgentDrifted) => {
            return Err(record_drift(kind, id, vec![fault.message]).await);
        }
        looked => looked?,
    };
    if agent.approval.as_ref().is_some_and(|approval| !files::is_whole(approval)) {
        let note = "only the files that its command names are pinned: its folder is too large";
        given.notes.push(note.to_owned());
    }
    let entrypoint = &agent.manifest.entrypoint;
    let log = LogSpec::at(&places.log);
    let mut spec = LaunchSpec::new(launch.clone(), &entrypoint.program, &agent.folder, log);
    spec.provider = Some(agent.id.clone());
    spec.args.clone_from(&entrypoint.args);
    spec.stop_grace = options.stop_grace;
    spec.env = environment(&places, &given);
    spec.private_dirs = vec![places.home.clone(), places.tmp.clone(), places.data.clone()];
    spec.given_dirs = vec![places.given.clone()];
    spec.fence = fence(options, &agent, &given);
    spec.fence.hidden = hidden;
    let kept = Arc::clone(kind).equip(&agent, &places, &mut spec, &mut sockets)?;
    give_secrets(&**kind, &given, &mut spec).await?;
    let door = open_door(options, &agent, &given, &mut spec, &mut sockets).await?;
    let launched = options.launcher.launch(spec).await?;
    live.launched(&launched, &given.notes);
    let around = LaunchScope { _door: door, _kept: kept, _sockets: sockets };
    let process = Process { agent, launch, launched: Some(launched), places, live };
    Ok(RunningProcess { process, notes: given.notes, around })
}

/// The provider, if it is approved and its files are those that were approved. Files that are not
/// are written down.
pub(crate) async fn approved(
    kind: &Arc<dyn HostedKind>,
    id: &ProviderId,
) -> Result<Provider, Fault> {
    let agent = kind.host().options().handle.providers().get(id)?;
    if !agent.is_approved() && agent.drift.is_empty() {
        let message = format!("The {} {id} is not approved.", kind.word());
        return Err(Fault::new(Code::AgentNotApproved, message));
    }
    if !agent.drift.is_empty() {
        return Err(kind.of().drifted(id, &agent.drift));
    }
    let (look, file) = (agent.clone(), kind.manifest_file());
    let difference = blocking(move || Ok(files::differences(file, &look))).await?;
    if difference.is_empty() {
        return Ok(agent);
    }
    Err(record_drift(kind, id, difference).await)
}

/// Writes down that a provider's files are not those that were approved.
pub(crate) async fn record_drift(
    kind: &Arc<dyn HostedKind>,
    id: &ProviderId,
    difference: Vec<String>,
) -> Fault {
    let fault = kind.of().drifted(id, &difference);
    let input = ProviderInput::Drift { difference };
    let handle = &kind.host().options().handle;
    if let Err(fault) = handle.providers().change(&Caller::core(), id, input).await {
        tracing::warn!(provider = %id, code = %fault.code, "a provider's drift was not recorded");
    }
    fault
}

/// Where launches look for programs.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Exactly this, and nothing of the core's own environment but what was approved by name.
pub(crate) fn environment(places: &Places, given: &FenceGrants) -> BTreeMap<String, String> {
    let zone = std::env::var("TZ").unwrap_or_else(|_| "UTC".to_owned());
    let fixed = [
        ("PATH", PATH.to_owned()),
        ("HOME", places.home.display().to_string()),
        ("TMPDIR", places.tmp.display().to_string()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TZ", zone),
    ];
    let approved = given.env.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        (!name.starts_with("OPENSENTIENCE_")).then(|| (name.clone(), value))
    });
    // What is fixed comes last, so that nothing approved takes its place.
    approved.chain(fixed.map(|(name, value)| (name.to_owned(), value))).collect()
}

fn fence(options: &HostingOptions, agent: &Provider, given: &FenceGrants) -> Fence {
    let terms = agent.approval.as_ref().map(|approval| &approval.terms);
    let level = terms.map_or(SandboxLevel::Standard, |terms| terms.sandbox);
    let mut fence = Fence::default();
    fence.level = level;
    fence.minimum = options.sandbox_min.unwrap_or(level);
    fence.read.clone_from(&given.read);
    fence.write.clone_from(&given.write);
    fence.usage = throttle::limits(agent, &options.limits).usage;
    fence
}

/// A secret that a provider is to get, which from now on is cut out of what providers write; one
/// that is not there is named.
pub async fn secret(kind: &dyn HostedKind, name: &SecretName) -> Result<Secret, Fault> {
    if is_login_secret(name) {
        let message = format!("The secret {name} is the core's own and is given to nobody.");
        return Err(Fault::new(Code::SecretNotFound, message).with("secret", name.as_str()));
    }
    let options = kind.host().options();
    let found = options.vault.get(name.clone()).await.map_err(|fault| {
        if fault.is(Code::SecretNotFound) {
            let word = kind.word();
            let message = format!(
                "The secret {name}, which the {word} uses, is not set; set it with \
                 `wharf secret set {name}`."
            );
            return Fault::new(Code::SecretNotFound, message).with("secret", name.as_str());
        }
        fault
    })?;
    if let Ok(text) = std::str::from_utf8(found.expose()) {
        options.handle.trust().know_secret(text);
    }
    Ok(found)
}

/// Takes approved secrets out of the vault. One that is not there fails the start.
async fn give_secrets(
    kind: &dyn HostedKind,
    given: &FenceGrants,
    spec: &mut LaunchSpec,
) -> Result<(), Fault> {
    for name in &given.secrets {
        let secret = secret(kind, name).await?;
        if let Ok(text) = std::str::from_utf8(secret.expose()) {
            cut_out(text, spec);
        }
        spec.secret_files.insert(name.clone(), secret);
    }
    for (variable, name) in &given.secret_env {
        let secret = secret(kind, name).await?;
        let text = env_value(name, &secret)?;
        cut_out(text, spec);
        spec.env.insert(variable.clone(), text.to_owned());
    }
    Ok(())
}

/// Lets a secret be cut out of what a launch writes: each line of it, since logs are written line
/// by line.
fn cut_out(text: &str, spec: &mut LaunchSpec) {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    spec.secrets.extend(lines.map(str::to_owned));
}

/// A secret as the value of a variable of an environment.
pub(crate) fn env_value<'a>(name: &SecretName, secret: &'a Secret) -> Result<&'a str, Fault> {
    let text = std::str::from_utf8(secret.expose()).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| {
        let message = format!("The secret {name} is not text, so no variable can hold it.");
        Fault::new(Code::RequestInvalid, message).with("secret", name.as_str())
    })
}

/// Opens the way out to approved hosts, which is there as long as the launch.
async fn open_door(
    options: &HostingOptions,
    agent: &Provider,
    given: &FenceGrants,
    spec: &mut LaunchSpec,
    sockets: &mut Sockets,
) -> Result<Option<Arc<dyn EgressDoor>>, Fault> {
    if given.hosts.is_empty() {
        return Ok(None);
    }
    let socket = sockets.folder()?.join("e");
    let door = options.egress.open(agent.id.clone(), socket.clone(), given.hosts.clone()).await?;
    spec.fence.egress = Some(socket);
    Ok(Some(door))
}
