//! Triggers and receivers, which are made and removed together with their secrets.
//!
//! Each is done to its end, even if whoever asked for it leaves meanwhile: neither a secret without
//! a use nor a use without its secret stays behind.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use tokio::sync::Mutex;
use wharf_domain::notify::ReceiverSpec;
use wharf_domain::{Caller, Receiver, Trigger};
use wharf_engine::Handle;
use wharf_ports::vault::{Secret, Vault};
use wharf_vocab::{Code, Fault, NotifyFormat, SecretName};
use wharf_web::outbound;
use wharf_wire::rest_v1 as wire;

use crate::trigger::test_call;
use crate::{new_trigger, receiver, trigger};

/// How many bytes a secret has that the core makes.
const SECRET_BYTES: usize = 32;

/// Whoever makes and removes secrets; a core without a vault takes none.
pub type SecretVault = Option<Arc<dyn Vault>>;

fn kept(vault: &SecretVault) -> Result<Arc<dyn Vault>, Fault> {
    let none = || Fault::new(Code::SecretNotFound, "This core has no secrets and takes none.");
    vault.clone().ok_or_else(none)
}

/// Bytes that nobody can guess.
fn bytes() -> Result<[u8; SECRET_BYTES], Fault> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|_| failed())?;
    Ok(bytes)
}

/// A text that nobody can guess, without letters that must be encoded.
pub fn random() -> Result<String, Fault> {
    Ok(URL_SAFE_NO_PAD.encode(bytes()?))
}

fn failed() -> Fault {
    Fault::new(Code::CoreInternal, "The core could not do this; its log says more.")
}

/// Held while a thing and its secrets are made or removed: two that have one name would take each
/// other's secrets away.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Does work to its end, even if whoever asked for it leaves meanwhile, and nothing else of this
/// kind beside it.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    let alone = async {
        let _turn = ONE_AT_A_TIME.lock().await;
        work.await
    };
    tokio::spawn(alone).await.unwrap_or_else(|_| Err(failed()))
}

/// Makes a trigger, with the secret of its hook if it has one. The answer alone shows a secret
/// that the core made.
pub async fn create_trigger(
    handle: &Handle,
    vault: &SecretVault,
    caller: &Caller,
    request: wire::CreateTrigger,
) -> Result<wire::Trigger, Fault> {
    let given = request.secret.clone();
    let (id, spec) = new_trigger(request, random()?)?;
    let Some(hook) = spec.hook().cloned() else {
        let added = handle.triggers().add(caller, id, spec).await?;
        return Ok(trigger(&added));
    };
    let made = random()?;
    let shown = given.is_none().then(|| made.clone());
    let secret = Secret::new(given.unwrap_or(made).into_bytes());
    let (handle, caller, vault) = (handle.clone(), caller.clone(), kept(vault)?);
    let work = async move {
        if handle.triggers().get(&id).is_ok() {
            let message = format!("There is a trigger {id} already; remove it first.");
            return Err(Fault::new(Code::TriggerExists, message));
        }
        vault.set(hook.secret.clone(), secret).await?;
        let added = handle.triggers().add(&caller, id, spec).await;
        if added.is_err() {
            // Nobody uses what is left.
            let _ = vault.remove(hook.secret).await;
        }
        added
    };
    let added = to_its_end(work).await?;
    Ok(wire::Trigger { secret: shown, ..trigger(&added) })
}

/// Calls a trigger's hook without a proof, or says what the inputs of its run would be.
pub async fn test_trigger(
    handle: &Handle,
    caller: &Caller,
    trigger: &Trigger,
    request: &wire::TestTrigger,
) -> Result<wire::TestedTrigger, Fault> {
    if trigger.spec.hook().is_none() {
        let message = "Only a hook can be called; this trigger starts on what happens inside.";
        return Err(Fault::invalid("trigger", message));
    }
    let call = test_call(request);
    let inputs = handle.triggers().inputs(trigger, call.clone()).await?;
    if request.dry_run.unwrap_or(false) {
        return Ok(wire::TestedTrigger { inputs, run_id: None });
    }
    let key = handle.triggers().test(caller, &trigger.id, call).await?;
    Ok(wire::TestedTrigger { inputs, run_id: Some(key.run) })
}

/// Removes a trigger and the secret of its hook.
pub async fn remove_trigger(
    handle: &Handle,
    vault: &SecretVault,
    caller: &Caller,
    trigger: Trigger,
) -> Result<(), Fault> {
    let (handle, caller, vault) = (handle.clone(), caller.clone(), vault.clone());
    let work = async move {
        handle.triggers().remove(&caller, &trigger.id).await?;
        if let (Some(hook), Some(vault)) = (trigger.spec.hook(), vault) {
            // Whoever removed it by hand was here before.
            let _ = vault.remove(hook.secret.clone()).await;
        }
        Ok(())
    };
    to_its_end(work).await
}

/// Makes a receiver, with its address and the key that it checks signatures with, which the answer
/// alone shows.
pub async fn create_receiver(
    handle: &Handle,
    vault: &SecretVault,
    caller: &Caller,
    request: wire::CreateReceiver,
) -> Result<wire::Receiver, Fault> {
    let allow_private = request.allow_private.unwrap_or(false);
    outbound::read(&request.url, allow_private)?;
    if let Some(world) = &request.world {
        handle.worlds().get(world).await?;
    }
    let secret = |what: &str| {
        SecretName::new(format!("notify.{}.{what}", request.name))
            .map_err(|_| Fault::invalid("name", "The field `name` does not fit; it is too long."))
    };
    let spec = ReceiverSpec {
        on: request.on.into_iter().collect(),
        world: request.world,
        statuses: request.statuses.unwrap_or_default().into_iter().collect(),
        when: request.when,
        include: request.include.unwrap_or_default().into_iter().collect(),
        format: request.format.unwrap_or(NotifyFormat::Json),
        allow_private,
        url: secret("url")?,
        key: secret("key")?,
    };
    let key = format!("{}{}", outbound::KEY_PREFIX, STANDARD.encode(bytes()?));
    let signing_key = Some(key.clone());
    let (handle, caller, vault) = (handle.clone(), caller.clone(), kept(vault)?);
    let work = async move {
        if handle.receivers().get(&request.name).is_ok() {
            let message = format!("There is a receiver {} already; remove it first.", request.name);
            return Err(Fault::new(Code::ReceiverExists, message));
        }
        let secrets = [spec.url.clone(), spec.key.clone()];
        let add = async {
            vault.set(spec.url.clone(), Secret::new(request.url.into_bytes())).await?;
            vault.set(spec.key.clone(), Secret::new(key.into_bytes())).await?;
            handle.receivers().add(&caller, request.name, spec).await
        };
        let added = add.await;
        if added.is_err() {
            for secret in secrets {
                // Nobody uses what is left.
                let _ = vault.remove(secret).await;
            }
        }
        added
    };
    let added = to_its_end(work).await?;
    Ok(wire::Receiver { signing_key, ..receiver(&added) })
}

/// Removes a receiver, its address and its key.
pub async fn remove_receiver(
    handle: &Handle,
    vault: &SecretVault,
    caller: &Caller,
    receiver: Receiver,
) -> Result<(), Fault> {
    let (handle, caller, vault) = (handle.clone(), caller.clone(), kept(vault)?);
    let work = async move {
        handle.receivers().remove(&caller, &receiver.id).await?;
        for secret in [receiver.spec.url, receiver.spec.key] {
            // Whoever removed it by hand was here before.
            let _ = vault.remove(secret).await;
        }
        Ok(())
    };
    to_its_end(work).await
}
