//! What can be asked of an agent, and what follows.

use std::collections::BTreeMap;

use wharf_vocab::limits::OFFERS_KEPT_BYTES_MAX;
use wharf_vocab::{Code, Digest, Fault, ProviderId, ToolId};

use super::{
    Manifest, Provider, ProviderAdded, ProviderApproved, ProviderDrifted, ProviderEntry,
    ProviderKind, ProviderRemoved, ProviderRevoked, ProviderStopped, ProviderType, ProviderWanted,
    RESERVED_IDS, Terms, ToolsApproved, ToolsOffered,
};
use crate::permission::{Permission, permissions_hash};
use crate::{AuditEvent, AuditRecord, CallerRef, ProviderEvent, Severity, Subject, ToolDef};

/// What can be asked of an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum ProviderInput {
    /// Take up its manifest.
    Add {
        /// The folder it lies in.
        folder: String,
        /// Hash of its bytes.
        manifest_hash: Digest,
        /// What it says.
        manifest: Manifest,
    },
    /// Approve the manifest with these permissions.
    Approve {
        /// Hash of the manifest that was looked at; the one that is known now when absent.
        manifest_hash: Option<Digest>,
        /// The permissions that are given; each must lie within one that the manifest asks for.
        permissions: Vec<String>,
        /// Digests of the files that the entrypoint names.
        files: BTreeMap<String, Digest>,
        /// How it is to run.
        terms: Terms,
    },
    /// Take the approval back.
    Revoke,
    /// Its files are not the ones that were approved.
    Drift {
        /// What differs, one line each.
        difference: Vec<String>,
    },
    /// Take on these tools as they are offered now; all that changed when empty.
    ApproveTools {
        /// Which.
        tools: Vec<ToolId>,
    },
    /// Let it run from now on.
    Want,
    /// Let it run no more.
    Stop {
        /// Why, when it is not the owner's wish.
        reason: Option<String>,
    },
    /// Take up the tools it offers.
    Offer {
        /// All of them.
        tools: Vec<ToolDef>,
    },
    /// Forget it.
    Remove,
}

impl Provider {
    /// Decides about an input; `agent` is `None` while it is not known. No entry means that
    /// nothing changes.
    pub fn decide(
        agent: Option<&Self>,
        id: &ProviderId,
        input: &ProviderInput,
        by: &CallerRef,
    ) -> Result<Option<(ProviderEntry, AuditRecord)>, Fault> {
        let agent = agent.filter(|agent| !agent.removed);
        let record = |of: ProviderType, event: ProviderEvent| {
            AuditRecord::new(AuditEvent::of(of, event), &by.grant, Subject::provider(of, id))
        };
        if let ProviderInput::Add { folder, manifest_hash, manifest } = input {
            check_id(id)?;
            check_kind(agent, manifest)?;
            return Ok(add(agent, folder, manifest_hash, manifest, by).map(|(event, entry)| {
                let record = record(manifest.kind.of(), event);
                (entry, record.fact("manifest", manifest_hash.as_str()))
            }));
        }
        let agent = agent.ok_or_else(|| unknown(id))?;
        let record = |event| record(agent.manifest.kind.of(), event);
        let by = by.clone();
        Ok(match input {
            ProviderInput::Add { .. } => None,
            ProviderInput::Approve { manifest_hash, permissions, files, terms } => {
                check_looked_at(agent, manifest_hash.as_ref())?;
                check_permissions(agent, permissions)?;
                let record = record(ProviderEvent::Enabled)
                    .fact("permissions", permissions.len())
                    .fact("sandbox", terms.sandbox.as_str());
                let entry = approved(agent, permissions.clone(), files.clone(), terms.clone(), by);
                Some((ProviderEntry::Approved(entry), record))
            }
            ProviderInput::Revoke if agent.approval.is_none() => None,
            ProviderInput::Revoke => {
                let entry = ProviderEntry::Revoked(ProviderRevoked { by });
                Some((entry, record(ProviderEvent::PermissionsRevoked)))
            }
            ProviderInput::Drift { difference } if !drifts(agent, difference) => None,
            ProviderInput::Drift { difference } => {
                let entry = ProviderDrifted { difference: difference.clone() };
                let record = record(ProviderEvent::ManifestDriftDetected)
                    .severity(Severity::Security)
                    .fact("differences", difference.len());
                Some((ProviderEntry::Drifted(entry), record))
            }
            ProviderInput::ApproveTools { tools } => {
                approve_tools(agent, tools, by)?.map(|entry| {
                    (ProviderEntry::ToolsApproved(entry), record(ProviderEvent::ToolsApproved))
                })
            }
            ProviderInput::Want if !agent.drift.is_empty() => return Err(drifted(agent)),
            ProviderInput::Want if !agent.is_approved() => return Err(not_approved(id)),
            ProviderInput::Want if agent.wanted => None,
            ProviderInput::Want => Some((
                ProviderEntry::Wanted(ProviderWanted { by }),
                record(ProviderEvent::RunRequested),
            )),
            ProviderInput::Stop { .. } if !agent.wanted => None,
            ProviderInput::Stop { reason } => {
                let entry = ProviderStopped { reason: reason.clone(), by };
                Some((ProviderEntry::Stopped(entry), record(ProviderEvent::RunStopRequested)))
            }
            ProviderInput::Offer { tools } => offer(agent, tools, &record)?,
            ProviderInput::Remove if agent.wanted => {
                let message = format!("The agent {id} is running; stop it first.");
                return Err(Fault::new(Code::AgentRunning, message));
            }
            ProviderInput::Remove => Some((
                ProviderEntry::Removed(ProviderRemoved { by }),
                record(ProviderEvent::Removed),
            )),
        })
    }
}

/// The core's own names are not for agents.
fn check_id(id: &ProviderId) -> Result<(), Fault> {
    if !RESERVED_IDS.contains(&id.as_str()) {
        return Ok(());
    }
    let message =
        format!("The manifest's field id cannot be used: {id} is a name of the core itself.");
    Err(Fault::new(Code::AgentManifestInvalid, message).with("field", "id"))
}

/// A name is not taken over by a provider of another kind: rights that were given to the one
/// would count for the other.
fn check_kind(agent: Option<&Provider>, manifest: &Manifest) -> Result<(), Fault> {
    let of = manifest.kind.of();
    let Some(known) = agent.filter(|known| known.manifest.kind.of() != of) else {
        return Ok(());
    };
    let what = match known.manifest.kind {
        ProviderKind::Agent(_) => "an agent; remove it",
        ProviderKind::ToolServer(_) => "a tool server; remove it",
        ProviderKind::Mcp(_) => "an MCP server; remove it",
        ProviderKind::Operative => "an operative; forget it",
    };
    let message = format!("{} is the name of {what} first.", known.id);
    Err(Fault::new(Code::ToolConflict, message))
}

/// What is approved must be what was looked at: whoever can write to the folder could have it added
/// again in between.
fn check_looked_at(agent: &Provider, manifest_hash: Option<&Digest>) -> Result<(), Fault> {
    if manifest_hash.is_none_or(|hash| *hash == agent.manifest_hash) {
        return Ok(());
    }
    let message = format!(
        "The agent {} was added again since you looked; look at what it asks for now.",
        agent.id
    );
    Err(Fault::new(Code::AgentDrifted, message))
}

/// Each permission must be readable and lie within one that the manifest asks for.
fn check_permissions(agent: &Provider, permissions: &[String]) -> Result<(), Fault> {
    let asked: Vec<_> =
        agent.manifest.permissions.iter().filter_map(|p| Permission::parse(p).ok()).collect();
    for text in permissions {
        let permission = Permission::parse(text).map_err(|error| {
            let message = format!("The permission {text:?} {error}.");
            Fault::new(Code::RequestInvalid, message).with("permission", text.as_str())
        })?;
        if !asked.iter().any(|wide| wide.covers(&permission)) {
            let message = format!("The manifest of {} does not ask for {text}.", agent.id);
            return Err(Fault::new(Code::RequestInvalid, message).with("permission", text.as_str()));
        }
    }
    Ok(())
}

/// The approval of a provider as its manifest is now.
fn approved(
    agent: &Provider,
    permissions: Vec<String>,
    files: BTreeMap<String, Digest>,
    terms: Terms,
    by: CallerRef,
) -> ProviderApproved {
    ProviderApproved {
        manifest_hash: agent.manifest_hash.clone(),
        permissions,
        permissions_hash: Some(permissions_hash(&agent.manifest.permissions)),
        files,
        terms,
        keeps_pins: true,
        by,
    }
}

/// Only a new approval ends a drift, and only what was approved can drift.
fn drifts(agent: &Provider, difference: &[String]) -> bool {
    agent.approval.is_some() && !difference.is_empty() && agent.drift != difference
}

/// Tools that were offered before under an approval are offered again to be pinned under another.
fn offer(
    agent: &Provider,
    tools: &[ToolDef],
    record: &impl Fn(ProviderEvent) -> AuditRecord,
) -> Result<Option<(ProviderEntry, AuditRecord)>, Fault> {
    if agent.tools == tools && (agent.is_pinned() || !agent.is_approved()) {
        return Ok(None);
    }
    let otherwise = agent.pinned_otherwise(tools);
    let earlier = agent.earlier.iter().flat_map(|earlier| &earlier.pinned);
    let bytes: u64 = tools.iter().chain(&otherwise).chain(earlier).map(ToolDef::weight).sum();
    if bytes > OFFERS_KEPT_BYTES_MAX {
        // What was taken on is never forgotten, or a changed tool could pass for a new one.
        let message = format!(
            "The tools of {} and those it offered before take more than {OFFERS_KEPT_BYTES_MAX} bytes.",
            agent.id
        );
        return Err(Fault { retryable: false, ..Fault::new(Code::ToolLimit, message) });
    }
    let changed = tools.iter().filter(|def| agent.is_changed(def)).count();
    let mut record = record(ProviderEvent::ToolsRegistered).fact("tools", tools.len());
    if changed > 0 {
        record = record.severity(Severity::Security).fact("quarantined", changed);
    }
    let is_new = |def: &&ToolDef| agent.is_closed() && !agent.pinned.contains_key(&def.tool);
    let untaken = tools.iter().filter(is_new).map(|def| def.tool.clone()).collect();
    let offered = ToolsOffered {
        tools: tools.to_vec(),
        otherwise: Some(otherwise),
        earlier: agent.earlier.clone(),
        closed: agent.is_closed(),
        untaken,
        replaced: None,
    };
    Ok(Some((ProviderEntry::ToolsOffered(offered), record)))
}

fn approve_tools(
    agent: &Provider,
    tools: &[ToolId],
    by: CallerRef,
) -> Result<Option<ToolsApproved>, Fault> {
    let changed: Vec<ToolId> = agent.quarantined().map(|def| def.tool.clone()).collect();
    let offered = |tool: &&ToolId| !agent.tools.iter().any(|def| def.tool == **tool);
    if let Some(unknown) = tools.iter().find(offered) {
        let message = format!("The agent {} does not offer {unknown}.", agent.id);
        return Err(Fault::new(Code::ToolNotFound, message));
    }
    let wanted = |tool: &ToolId| tools.is_empty() || tools.contains(tool);
    let taken: Vec<_> = changed.into_iter().filter(wanted).collect();
    Ok((!taken.is_empty()).then_some(ToolsApproved { tools: taken, by }))
}

fn add(
    agent: Option<&Provider>,
    folder: &str,
    manifest_hash: &Digest,
    manifest: &Manifest,
    by: &CallerRef,
) -> Option<(ProviderEvent, ProviderEntry)> {
    let same = |agent: &&Provider| agent.folder == folder && agent.manifest_hash == *manifest_hash;
    let event = match agent {
        Some(_) if agent.filter(same).is_some() => return None,
        Some(_) => ProviderEvent::Updated,
        None => ProviderEvent::Discovered,
    };
    let entry = ProviderAdded {
        folder: folder.to_owned(),
        manifest_hash: manifest_hash.clone(),
        manifest: manifest.clone(),
        by: by.clone(),
    };
    Some((event, ProviderEntry::Added(entry)))
}

fn unknown(id: &ProviderId) -> Fault {
    Fault::new(Code::AgentNotFound, format!("There is no agent {id}."))
}

fn drifted(agent: &Provider) -> Fault {
    agent.manifest.kind.of().drifted(&agent.id, &agent.drift)
}

fn not_approved(id: &ProviderId) -> Fault {
    let message = format!("The agent {id} is not approved; look at it and approve it first.");
    Fault::new(Code::AgentNotApproved, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Caller;
    use crate::provider::{AgentDetails, Entrypoint, McpDetails, McpServing, ProviderLimits};
    use wharf_vocab::Timestamp;

    fn add(version: &str) -> ProviderInput {
        let manifest = Manifest {
            name: "Hello".into(),
            version: version.into(),
            description: String::new(),
            entrypoint: Entrypoint { program: "./hello".into(), args: vec![] },
            permissions: vec!["network:egress:example.dev".into()],
            limits: ProviderLimits::default(),
            isolation: None,
            kind: ProviderKind::Agent(AgentDetails::default()),
        };
        let manifest_hash = Digest::of(&[version.as_bytes()]);
        ProviderInput::Add { folder: "hello".into(), manifest_hash, manifest }
    }

    /// Applies inputs one after the other; an error ends the test.
    fn after(inputs: &[ProviderInput]) -> Option<Provider> {
        let mut agent = None;
        for input in inputs {
            agent = step(agent, input).expect("legal");
        }
        agent
    }

    fn step(agent: Option<Provider>, input: &ProviderInput) -> Result<Option<Provider>, Fault> {
        let id = ProviderId::new("dev.example.hello").expect("valid");
        let decided = Provider::decide(agent.as_ref(), &id, input, &Caller::owner().to_ref())?;
        Ok(match decided {
            Some((entry, _)) => Provider::apply(agent, &id, Timestamp(1), &entry),
            None => agent,
        })
    }

    fn approve() -> ProviderInput {
        let permissions = vec!["network:egress:example.dev".into()];
        let (files, terms) = (BTreeMap::new(), Terms::default());
        ProviderInput::Approve { manifest_hash: None, permissions, files, terms }
    }

    #[test]
    fn an_approval_counts_only_for_the_manifest_that_was_looked_at() {
        let looked_at = |version: &str| match approve() {
            ProviderInput::Approve { permissions, files, terms, .. } => {
                let manifest_hash = Some(Digest::of(&[version.as_bytes()]));
                ProviderInput::Approve { manifest_hash, permissions, files, terms }
            }
            other => other,
        };
        let fault = step(after(&[add("1"), add("2")]), &looked_at("1")).expect_err("another one");
        assert!(fault.is(Code::AgentDrifted), "{fault}");
        assert!(fault.message.contains("added again since you looked"), "{fault}");
        let approved = after(&[add("1"), add("2"), looked_at("2")]).expect("known");
        assert!(approved.is_approved());
    }

    #[test]
    fn an_agent_runs_only_with_an_approval_of_the_manifest_it_has() {
        let fault = step(after(&[add("1")]), &ProviderInput::Want).expect_err("not approved");
        assert!(fault.is(Code::AgentNotApproved));
        let wanted = after(&[add("1"), approve(), ProviderInput::Want]).expect("known");
        assert!(wanted.wanted);
        let changed = after(&[add("1"), approve(), add("2")]);
        let fault = step(changed, &ProviderInput::Want).expect_err("another manifest");
        assert!(fault.is(Code::AgentNotApproved));
    }

    #[test]
    fn no_agent_takes_a_name_of_the_core() {
        let by = Caller::owner().to_ref();
        for id in RESERVED_IDS {
            let id = ProviderId::new(id).expect("valid");
            let fault = Provider::decide(None, &id, &add("1"), &by).expect_err("reserved");
            assert!(fault.is(Code::AgentManifestInvalid), "{fault}");
            assert_eq!(fault.details["field"], "id");
        }
        for id in ["wharf.tools", "dev.wharf", "cores"] {
            let id = ProviderId::new(id).expect("valid");
            Provider::decide(None, &id, &add("1"), &by).expect("free");
        }
    }

    #[test]
    fn k032_an_operatives_name_is_no_agents_and_the_other_way_round() {
        let operative = |input: ProviderInput| match input {
            ProviderInput::Add { folder, manifest_hash, manifest } => {
                let manifest = Manifest { kind: ProviderKind::Operative, ..manifest };
                ProviderInput::Add { folder, manifest_hash, manifest }
            }
            other => other,
        };
        let fault = step(after(&[operative(add("1"))]), &add("2")).expect_err("an operative's");
        assert!(fault.is(Code::ToolConflict) && fault.message.contains("operative"), "{fault}");
        let fault = step(after(&[add("1")]), &operative(add("2"))).expect_err("an agent's");
        assert!(fault.is(Code::ToolConflict) && fault.message.contains("an agent"), "{fault}");
        after(&[add("1"), ProviderInput::Remove, operative(add("2"))]).expect("the name is free");
    }

    /// The same as an MCP server.
    fn as_mcp(input: ProviderInput, accept_new: bool) -> ProviderInput {
        match input {
            ProviderInput::Add { folder, manifest_hash, manifest } => {
                let details = McpDetails { accept_new, ..McpDetails::new(McpServing::Command) };
                let manifest = Manifest { kind: ProviderKind::Mcp(Box::new(details)), ..manifest };
                ProviderInput::Add { folder, manifest_hash, manifest }
            }
            other => other,
        }
    }

    #[test]
    fn m043_a_name_stays_with_its_kind() {
        let server = |input| as_mcp(input, false);
        let fault = step(after(&[server(add("1"))]), &add("2")).expect_err("a server's");
        assert!(fault.is(Code::ToolConflict) && fault.message.contains("MCP server"), "{fault}");
        let fault = step(after(&[add("1")]), &server(add("2"))).expect_err("an agent's");
        assert!(fault.is(Code::ToolConflict) && fault.message.contains("an agent"), "{fault}");
        after(&[server(add("1")), server(add("2"))]).expect("a new manifest of the same kind");
    }

    #[test]
    fn only_what_the_manifest_asks_for_can_be_approved() {
        let permissions = vec!["filesystem:read:/**".into()];
        let (files, terms) = (BTreeMap::new(), Terms::default());
        let more = ProviderInput::Approve { manifest_hash: None, permissions, files, terms };
        let fault = step(after(&[add("1")]), &more).expect_err("not asked for");
        assert!(fault.is(Code::RequestInvalid));
    }

    #[test]
    fn a_running_agent_cannot_be_removed_and_a_removed_one_is_unknown() {
        let running = after(&[add("1"), approve(), ProviderInput::Want]);
        let fault = step(running.clone(), &ProviderInput::Remove).expect_err("running");
        assert!(fault.is(Code::AgentRunning));
        let stopped = step(running, &ProviderInput::Stop { reason: None }).expect("legal");
        let removed = step(stopped, &ProviderInput::Remove).expect("legal");
        let fault = step(removed.clone(), &ProviderInput::Want).expect_err("gone");
        assert!(fault.is(Code::AgentNotFound));
        let back = step(removed, &add("1")).expect("legal").expect("known");
        assert!(!back.is_approved() && back.tools.is_empty());
    }

    #[test]
    fn the_same_again_changes_nothing() {
        let id = ProviderId::new("dev.example.hello").expect("valid");
        let by = Caller::owner().to_ref();
        let agent = after(&[add("1"), approve(), ProviderInput::Want]);
        for input in [add("1"), ProviderInput::Want, ProviderInput::Offer { tools: vec![] }] {
            let decided = Provider::decide(agent.as_ref(), &id, &input, &by).expect("legal");
            assert_eq!(decided, None, "{input:?}");
        }
    }

    fn offer(names: &[(&str, &str)]) -> ProviderInput {
        let def = |(name, description): &(&str, &str)| {
            let id = ToolId::new(format!("dev.example.hello/{name}")).expect("valid");
            ToolDef::new(id, *description, serde_json::json!({"type": "object"}))
        };
        ProviderInput::Offer { tools: names.iter().map(def).collect() }
    }

    #[test]
    fn an_agent_read_back_from_its_newest_offer_is_the_one_that_was_there() {
        let agent = read_back(add("1"), 7);
        assert_eq!(agent.pinned.len(), 4, "what was taken on is not forgotten");
        let server = read_back(as_mcp(add("1"), false), 7);
        assert_eq!(server.pinned.len(), 2, "what came later was never taken on");
    }

    /// Steps a provider through its life and reads it back after every step.
    fn read_back(added: ProviderInput, replaced: usize) -> Provider {
        let id = ProviderId::new("dev.example.hello").expect("valid");
        let by = Caller::owner().to_ref();
        let inputs = [
            added,
            offer(&[("a", "before it was approved")]),
            approve(),
            offer(&[("a", "one"), ("b", "one")]),
            offer(&[("a", "two"), ("b", "one")]),
            ProviderInput::ApproveTools { tools: vec![] },
            offer(&[("a", "three"), ("c", "one")]),
            ProviderInput::Drift { difference: vec!["a file".into()] },
            offer(&[("a", "four"), ("d", "one")]),
            approve(),
            offer(&[("a", "five"), ("d", "one")]),
            ProviderInput::Want,
            ProviderInput::Revoke,
            offer(&[("a", "six")]),
            approve(),
            offer(&[("a", "seven")]),
        ];
        let (mut agent, mut entries) = (None, Vec::<ProviderEntry>::new());
        for input in &inputs {
            let decided = Provider::decide(agent.as_ref(), &id, input, &by).expect("legal");
            let Some((entry, _)) = decided else { continue };
            agent = Provider::apply(agent, &id, Timestamp(1), &entry);
            if entry.replaces_earlier() {
                for earlier in &mut entries {
                    if let Some(kept) = earlier.replaced() {
                        *earlier = kept;
                    }
                }
            }
            entries.push(entry);
            let read = entries
                .iter()
                .fold(None, |agent, entry| Provider::apply(agent, &id, Timestamp(1), entry));
            assert_eq!(read, agent, "{input:?}");
        }
        assert_eq!(entries.iter().filter(|entry| entry.is_replaced()).count(), replaced);
        let agent = agent.expect("known");
        assert!(agent.quarantined().next().is_some());
        agent
    }

    /// The names of the tools that wait for somebody to take them on.
    fn waiting(agent: &Option<Provider>) -> Vec<String> {
        let waiting = agent.iter().flat_map(|agent| agent.quarantined());
        waiting.map(|def| def.tool.to_string()).collect()
    }

    #[test]
    fn m055_a_tool_that_is_new_since_the_approval_waits() {
        let server = || as_mcp(add("1"), false);
        let (a, ab) = ([("a", "one")], [("a", "one"), ("b", "one")]);
        let b = "dev.example.hello/b";
        let begun = [server(), approve(), offer(&a)];
        assert!(waiting(&after(&begun)).is_empty(), "the first offer is taken on");
        let then = |more: &[ProviderInput]| waiting(&after(&[&begun[..], more].concat()));
        assert_eq!(then(&[offer(&ab)]), [b]);
        assert_eq!(then(&[offer(&ab), offer(&a), offer(&ab)]), [b], "also when it comes back");
        assert_eq!(then(&[offer(&ab), approve()]), [b], "approved again");
        assert_eq!(then(&[offer(&ab), ProviderInput::Revoke, approve()]), [b]);
        assert_eq!(then(&[ProviderInput::Revoke, approve(), offer(&ab)]), [b]);
        assert_eq!(then(&[ProviderInput::Revoke, offer(&ab), approve()]), [b]);
        let drift = ProviderInput::Drift { difference: vec!["a file".into()] };
        assert_eq!(then(&[drift, offer(&ab), approve(), offer(&ab)]), [b], "offered in a drift");
        assert_eq!(then(&[offer(&[("b", "one")])]), [b], "a renamed one");
        let taken = ProviderInput::ApproveTools { tools: Vec::new() };
        assert!(then(&[offer(&ab), taken.clone()]).is_empty());
        assert!(then(&[offer(&ab), taken, offer(&a), offer(&ab)]).is_empty(), "taken on for good");
        let other = as_mcp(add("2"), false);
        assert!(then(&[other, approve(), offer(&ab)]).is_empty(), "another manifest");
        let nothing = [server(), approve(), offer(&[]), offer(&a)];
        assert_eq!(waiting(&after(&nothing)).len(), 1, "to offer nothing is to offer");
    }

    #[test]
    fn m055_new_tools_of_a_trusted_server_are_taken_on() {
        let begun = [as_mcp(add("1"), true), approve(), offer(&[("a", "one")])];
        let agent = after(&[&begun[..], &[offer(&[("a", "one"), ("b", "one")])]].concat());
        assert!(waiting(&agent).is_empty());
        let agent = step(agent, &offer(&[("a", "two"), ("b", "one")])).expect("legal");
        assert_eq!(waiting(&agent), ["dev.example.hello/a"], "a changed one waits all the same");
    }

    #[test]
    fn m055_the_same_offer_again_is_not_written_again() {
        let id = ProviderId::new("dev.example.hello").expect("valid");
        let by = Caller::owner().to_ref();
        let offers = offer(&[("a", "one"), ("b", "one")]);
        let begun = [as_mcp(add("1"), false), approve(), offer(&[("a", "one")]), offers.clone()];
        let decided = Provider::decide(after(&begun).as_ref(), &id, &offers, &by);
        assert_eq!(decided.expect("legal"), None);
    }

    #[test]
    fn what_an_agent_has_ever_offered_is_bounded() {
        let mut agent = after(&[add("1"), approve()]);
        let large = "x".repeat(900_000);
        let refused = (0..100).find_map(|n| {
            let name = format!("t{n}");
            match step(agent.clone(), &offer(&[(&name, &large)])) {
                Ok(next) => {
                    agent = next;
                    None
                }
                Err(fault) => Some((n, fault)),
            }
        });
        let (n, fault) = refused.expect("it ends");
        assert!(fault.is(Code::ToolLimit) && !fault.retryable && n > 10, "{n}: {fault}");
    }

    fn offers(description: &str) -> ProviderInput {
        offer(&[("echo", description)])
    }

    fn set_apart(inputs: &[ProviderInput]) -> usize {
        after(inputs).expect("known").quarantined().count()
    }

    #[test]
    fn a_new_approval_of_the_same_manifest_keeps_what_was_taken_on() {
        let changed = [add("1"), approve(), offers("kind"), offers("hostile")];
        assert_eq!(set_apart(&changed), 1);
        let then = |more: &[ProviderInput]| set_apart(&[&changed[..], more].concat());
        assert_eq!(then(&[approve()]), 1, "approved again");
        assert_eq!(then(&[ProviderInput::Revoke, approve()]), 1, "revoked and approved again");
        assert_eq!(then(&[ProviderInput::Revoke, approve(), offers("hostile")]), 1);
        assert_eq!(then(&[add("2"), add("1"), approve()]), 1, "added again");
        assert_eq!(then(&[ProviderInput::Revoke, add("2"), add("1"), approve()]), 1);
        let explicit = ProviderInput::ApproveTools { tools: Vec::new() };
        assert_eq!(then(&[approve(), explicit.clone()]), 0, "only this releases it");
        assert_eq!(then(&[explicit, ProviderInput::Revoke, approve()]), 0);
        assert_eq!(then(&[add("2"), approve(), offers("hostile")]), 0, "another manifest");
        let removed = [ProviderInput::Remove, add("1"), approve(), offers("hostile")];
        assert_eq!(then(&removed), 0, "what was forgotten");
    }

    #[test]
    fn approvals_of_older_cores_took_on_what_was_offered() {
        let agent = after(&[add("1"), approve(), offers("kind"), offers("hostile")]);
        let id = ProviderId::new("dev.example.hello").expect("valid");
        let by = Caller::owner().to_ref();
        let decided = Provider::decide(agent.as_ref(), &id, &approve(), &by).expect("legal");
        let Some((ProviderEntry::Approved(mut approved), _)) = decided else { panic!("approved") };
        approved.keeps_pins = false;
        let entry = ProviderEntry::Approved(approved);
        let agent = Provider::apply(agent, &id, Timestamp(1), &entry).expect("known");
        assert_eq!(agent.quarantined().count(), 0);
    }
}
