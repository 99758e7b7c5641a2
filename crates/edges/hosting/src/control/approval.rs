//! Approving providers and taking approvals back.

use std::collections::BTreeSet;
use std::sync::Arc;

use wharf_domain::permission::Permission;
use wharf_domain::provider::{Approval, OwnerTerms, ToolServer};
use wharf_domain::{Caller, Provider, ProviderInput};
use wharf_ports::providers::{Approve, ProviderView};
use wharf_vocab::{Code, Fault, ProviderId};

use super::{Control, stop_for};
use crate::host::SupervisorOrder;
use crate::tasks::blocking;
use crate::{fence, files, launch};

impl Control {
    pub(super) async fn approve_one(
        &self,
        caller: &Caller,
        id: &ProviderId,
        approve: Approve,
    ) -> Result<Provider, Fault> {
        let (known, host) = (self.known(id)?, self.kind.host());
        Arc::clone(&self.kind).prepare(known.clone()).await?;
        let (manifest, before) = (known.manifest, known.approval);
        let permissions = approve.permissions.unwrap_or_else(|| manifest.permissions.clone());
        let Approve { sandbox, isolation, limits, .. } = approve;
        let typed = OwnerTerms { sandbox, isolation, limits };
        let terms = host.options().usual().terms(&manifest, typed);
        let (ground, file) = (host.ground(&known.folder), self.kind.manifest_file());
        let (asked, recorded) = (permissions.clone(), known.manifest_hash);
        // What was looked at, or at least what everything here was read for.
        let manifest_hash = Some(approve.manifest_hash.unwrap_or_else(|| recorded.clone()));
        let files = blocking(move || {
            fence::check(&asked, &ground)?;
            if (file.read)(&ground.folder)?.hash != recorded {
                let message = "The manifest was changed since it was added; add it again first.";
                return Err(Fault::new(Code::AgentDrifted, message));
            }
            files::digests(file, &ground.folder, &manifest.entrypoint)
        });
        let input =
            ProviderInput::Approve { manifest_hash, permissions, files: files.await?, terms };
        let agent = self.change(caller, id, input).await?;
        host.quarantine(&agent);
        if needs_restart(before.as_ref(), agent.approval.as_ref()) {
            self.renew(&agent).await?;
        }
        Ok(agent)
    }

    /// Puts the tool of a server that was approved into the catalog and enables the server. The
    /// manifest that was approved is the tool's definition.
    pub(super) async fn enable(
        &self,
        caller: &Caller,
        id: &ProviderId,
        server: &ToolServer,
    ) -> Result<ProviderView, Fault> {
        let (host, tool) = (self.kind.host(), server.offered());
        let handle = &host.options().handle;
        let (core, tools) = (Caller::core(), vec![tool.tool.clone()]);
        let offer = ProviderInput::Offer { tools: vec![tool.clone()] };
        handle.providers().change(&core, id, offer).await?;
        let taken = ProviderInput::ApproveTools { tools };
        // What changed is set apart before it can be seen.
        host.quarantine(&handle.providers().change(&core, id, taken).await?);
        handle.providers().set_tools(id, vec![tool])?;
        self.start_one(caller, id).await
    }

    /// Refuses a start that cannot succeed, while there is somebody to tell.
    pub(super) async fn check_start(&self, agent: &Provider) -> Result<(), Fault> {
        launch::approved(&self.kind, &agent.id).await?;
        let host = self.kind.host();
        let ground = host.ground(&agent.folder);
        let given = agent.approval.iter().flat_map(|approval| approval.permissions.clone());
        let given: Vec<_> = given.collect();
        blocking(move || fence::check(&given, &ground)).await?;
        for permission in agent.permissions() {
            match permission {
                Permission::Secret(name) => drop(launch::secret(&*self.kind, &name).await?),
                Permission::SecretEnv { name, .. } => {
                    launch::env_value(&name, &launch::secret(&*self.kind, &name).await?)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Brings what runs under an approval that is no more to its end, and starts it anew.
    async fn renew(&self, agent: &Provider) -> Result<(), Fault> {
        if !agent.wanted {
            return Ok(());
        }
        self.order(&agent.id, stop_for("it was approved anew")).await?;
        self.order(&agent.id, SupervisorOrder::Start).await
    }

    pub(super) async fn revoke_one(
        &self,
        caller: &Caller,
        id: &ProviderId,
    ) -> Result<ProviderView, Fault> {
        let live = self.kind.host().live(id);
        // Blocked first: a call that comes while this is written down is refused already.
        if let Some(live) = &live {
            let message = format!("The approval of {id} was taken back.");
            live.pool().blocked = Some(Fault::new(Code::PermissionDenied, message));
        }
        let agent = match self.change(caller, id, ProviderInput::Revoke).await {
            Ok(agent) => agent,
            Err(fault) => {
                if let Some(live) = &live {
                    live.unblock();
                }
                return Err(fault);
            }
        };
        self.kind.host().quarantine(&agent);
        self.order(id, stop_for("its approval was taken back")).await?;
        Ok(self.view(agent))
    }
}

/// Whether what runs under one approval cannot go on under another: its fence is what it is.
/// Which tools it may call, and how often, is asked anew each time.
fn needs_restart(before: Option<&Approval>, now: Option<&Approval>) -> bool {
    fn fenced(approval: &Approval) -> impl PartialEq {
        let in_fence = |text: &&String| {
            let permission = Permission::parse(text);
            !matches!(permission, Ok(Permission::Invoke(_) | Permission::Unknown(_)))
        };
        let permissions: BTreeSet<_> = approval.permissions.iter().filter(in_fence).collect();
        let terms = &approval.terms;
        (permissions, terms.sandbox, terms.isolation, &terms.limits.usage, &approval.files)
    }
    match (before, now) {
        (Some(before), Some(now)) => fenced(before) != fenced(now),
        _ => true,
    }
}
