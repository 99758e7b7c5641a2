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
        let looked_at = known.clone();
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
            if (file.read_again)(&ground.folder, &looked_at)?.hash != recorded {
                let message = "The manifest was changed since it was added; add it again first.";
                return Err(Fault::new(Code::AgentDrifted, message));
            }
            files::digests(file, &ground.folder, &manifest.entrypoint)
        });
        let input =
            ProviderInput::Approve { manifest_hash, permissions, files: files.await?, terms };
        let mut agent = self.change(caller, id, input).await?;
        host.quarantine(&agent);
        let superseded = host.live(id).and_then(|live| live.pool().superseded.take());
        if superseded.is_some() {
            // It ran when its new manifest came, so it runs by that one now.
            agent = self.change(caller, id, ProviderInput::Want).await?;
        }
        let before = before.or(superseded);
        let succession = Succession::between(before.as_ref(), agent.approval.as_ref());
        self.renew(&agent, succession).await?;
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

    /// Sees to it that no new call meets an approval that is no more.
    async fn renew(&self, agent: &Provider, succession: Succession) -> Result<(), Fault> {
        if !agent.wanted {
            return Ok(());
        }
        match succession {
            Succession::GoesOn => Ok(()),
            Succession::Replaced => self.order(&agent.id, SupervisorOrder::Replace).await,
            Succession::Ended => {
                self.order(&agent.id, stop_for("it was approved anew")).await?;
                self.order(&agent.id, SupervisorOrder::Start).await
            }
        }
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

/// What becomes of processes when another approval takes the place of theirs. Their fence is what
/// it is; which tools they may call, and how often, is asked anew each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Succession {
    /// They go on: what fences them in is the same.
    GoesOn,
    /// They end the calls that are under way, and others take the new ones.
    Replaced,
    /// They end at once: something that they have was taken away.
    Ended,
}

impl Succession {
    fn between(before: Option<&Approval>, now: Option<&Approval>) -> Self {
        let (Some(before), Some(now)) = (before, now) else { return Self::Ended };
        let (had, has) = (fenced(before), fenced(now));
        let (were, are) = (&before.terms, &now.terms);
        let same_terms = were.isolation == are.isolation && were.limits.usage == are.limits.usage;
        if has.is_superset(&had) && are.sandbox <= were.sandbox && same_terms {
            let same_files = before.manifest_hash == now.manifest_hash && before.files == now.files;
            let same = same_files && had == has && are.sandbox == were.sandbox;
            return if same { Self::GoesOn } else { Self::Replaced };
        }
        Self::Ended
    }
}

/// The permissions that a fence is made of.
fn fenced(approval: &Approval) -> BTreeSet<&String> {
    let in_fence = |text: &&String| {
        let permission = Permission::parse(text);
        !matches!(permission, Ok(Permission::Invoke(_) | Permission::Unknown(_)))
    };
    approval.permissions.iter().filter(in_fence).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wharf_domain::provider::Terms;
    use wharf_vocab::{Digest, SandboxLevel};

    use super::*;

    fn approval(permissions: &[&str], sandbox: SandboxLevel, file: &str) -> Approval {
        Approval {
            manifest_hash: Digest::of(&[b"manifest"]),
            permissions: permissions.iter().map(|text| (*text).to_owned()).collect(),
            permissions_hash: None,
            files: BTreeMap::from([("handler.py".to_owned(), Digest::of(&[file.as_bytes()]))]),
            terms: Terms { sandbox, ..Terms::default() },
        }
    }

    #[test]
    fn calls_end_where_they_are_unless_something_was_taken_away() {
        use SandboxLevel::{Standard, Strict};
        const HOST: &str = "network:egress:example.dev";
        let before = approval(&[HOST], Standard, "one");
        let after = |now: &Approval| Succession::between(Some(&before), Some(now));
        assert_eq!(after(&before), Succession::GoesOn);
        assert_eq!(
            after(&approval(&[HOST, "tool:invoke:a/b"], Standard, "one")),
            Succession::GoesOn
        );
        assert_eq!(after(&approval(&[HOST], Standard, "two")), Succession::Replaced);
        assert_eq!(
            after(&approval(&[HOST, "env:read:LANG"], Standard, "one")),
            Succession::Replaced
        );
        assert_eq!(after(&approval(&[], Standard, "two")), Succession::Ended);
        assert_eq!(after(&approval(&[HOST], Strict, "two")), Succession::Ended);
        assert_eq!(Succession::between(None, Some(&before)), Succession::Ended);
    }
}
