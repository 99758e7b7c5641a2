//! What a manifest says about its own fence, and what of it counts.
//!
//! A manifest can only tighten: what it says about its fence, its limits or its isolation counts
//! where that is stricter than what is usual. Anything looser is a wish, which is shown like a
//! permission and comes true only if the owner types it. It is one rule for everything that is
//! launched.

use wharf_vocab::{Isolation, SandboxLevel};

use super::{Approval, Manifest, Provider, ProviderLimits, Serving, Terms};

/// What holds for whatever is launched, unless its owner says something else about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultTerms {
    /// How firmly it is fenced in.
    pub sandbox: SandboxLevel,
    /// The owner's limits for all of them, which nothing exceeds.
    pub of_all: ProviderLimits,
    /// The limits where neither those nor anybody else says anything.
    pub limits: ProviderLimits,
}

/// What an owner typed of the terms of an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerTerms {
    /// How firmly it is fenced in.
    pub sandbox: Option<SandboxLevel>,
    /// Which runs share a process.
    pub isolation: Option<Isolation>,
    /// Limits.
    pub limits: ProviderLimits,
}

/// Something looser than usual that a manifest asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// What it is about.
    pub what: WishKind,
    /// Whether the owner gave it.
    pub granted: bool,
}

/// What a wish is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WishKind {
    /// A looser fence.
    Sandbox {
        /// What the manifest asks for.
        asked: SandboxLevel,
        /// What it gets otherwise.
        usual: SandboxLevel,
    },
    /// A higher limit.
    Limit {
        /// Which, by its name.
        name: &'static str,
        /// What the manifest asks for.
        asked: u64,
        /// What it gets otherwise.
        usual: u64,
    },
}

impl DefaultTerms {
    /// How firmly this one is fenced in, if nobody says anything about it.
    fn sandbox_of(&self, manifest: &Manifest) -> SandboxLevel {
        let how = manifest.tool_server().map(|server| &server.how);
        match how {
            // A container is a fence already, its command is the owner's own, and it has to reach
            // whoever runs it.
            Some(Serving::Image { .. }) => SandboxLevel::None,
            _ => self.sandbox,
        }
    }

    /// The terms of an approval: what its owner typed, and beside it what is usual, or what the
    /// manifest says where that is stricter.
    pub fn terms(&self, manifest: &Manifest, typed: OwnerTerms) -> Terms {
        let usual = self.sandbox_of(manifest);
        let asked = asked_sandbox(manifest).unwrap_or(usual);
        Terms {
            sandbox: typed.sandbox.unwrap_or_else(|| usual.max(asked)),
            isolation: typed.isolation.or(manifest.isolation).unwrap_or(Isolation::Shared),
            limits: typed.limits,
            only_tightened: true,
        }
    }

    /// The limits that hold for one.
    pub fn limits(&self, agent: &Provider) -> ProviderLimits {
        let terms = agent.approval.as_ref().map(|approval| &approval.terms);
        let given = terms.map(|terms| terms.limits.clone()).unwrap_or_default();
        let of_manifest = agent.manifest.limits.stricter(&self.of_all);
        if terms.is_some_and(|terms| !terms.only_tightened) {
            return of_manifest.stricter(&given).or(&self.limits);
        }
        given.or(&self.of_all).or(&self.limits).stricter(&of_manifest)
    }

    /// What a manifest asks for beyond what is usual.
    pub fn wishes(&self, agent: &Provider) -> Vec<Wish> {
        let manifest = &agent.manifest;
        let same = |approval: &&Approval| approval.manifest_hash == agent.manifest_hash;
        let approval = agent.approval.as_ref().filter(same);
        let usual = self.sandbox_of(manifest);
        let sandbox = asked_sandbox(manifest).filter(|asked| *asked < usual).map(|asked| Wish {
            what: WishKind::Sandbox { asked, usual },
            granted: approval.is_some_and(|approval| approval.terms.sandbox <= asked),
        });
        let usual = self.of_all.or(&self.limits).numbers().map(|(_, limit)| limit);
        let held = self.limits(agent).numbers().map(|(_, limit)| limit);
        let each = manifest.limits.numbers().into_iter().zip(usual).zip(held);
        let limits = each.filter_map(|(((name, asked), usual), held)| {
            let (asked, usual) = asked.zip(usual).filter(|(asked, usual)| asked > usual)?;
            let granted = approval.is_some() && held.is_none_or(|held| held >= asked);
            Some(Wish { what: WishKind::Limit { name, asked, usual }, granted })
        });
        sandbox.into_iter().chain(limits).collect()
    }
}

fn asked_sandbox(manifest: &Manifest) -> Option<SandboxLevel> {
    let of_server = manifest.tool_server().and_then(|server| server.sandbox);
    of_server.or_else(|| manifest.mcp().and_then(|details| details.sandbox))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use wharf_vocab::{Digest, ProviderId, Timestamp, ToolId};

    use super::super::{Entrypoint, ProviderEntry, ProviderInput, ProviderKind, ToolServer, Usage};
    use super::*;
    use crate::{Caller, ToolDef};

    const GI: u64 = 1 << 30;

    fn usual(sandbox: SandboxLevel) -> DefaultTerms {
        let usage = Usage { memory_bytes: Some(GI), processes: Some(256), ..Usage::default() };
        let limits = ProviderLimits { usage, ..ProviderLimits::default() };
        DefaultTerms { sandbox, of_all: ProviderLimits::default(), limits }
    }

    fn memory(bytes: u64) -> ProviderLimits {
        let usage = Usage { memory_bytes: Some(bytes), ..Usage::default() };
        ProviderLimits { usage, ..ProviderLimits::default() }
    }

    fn served(how: Serving, sandbox: Option<SandboxLevel>, limits: ProviderLimits) -> Manifest {
        let tool = ToolId::new("text/shout@1").expect("valid");
        let server = ToolServer {
            how,
            tool: ToolDef::new(tool, "", json!({})),
            token_secret: None,
            calls_max: None,
            environment: None,
            required_outputs: Vec::new(),
            https_only: false,
            source: Default::default(),
            sandbox,
        };
        Manifest {
            name: String::new(),
            version: String::new(),
            description: String::new(),
            entrypoint: Entrypoint { program: "x".into(), args: Vec::new() },
            permissions: Vec::new(),
            limits,
            isolation: None,
            kind: ProviderKind::ToolServer(Box::new(server)),
        }
    }

    fn handler(sandbox: Option<SandboxLevel>, limits: ProviderLimits) -> Manifest {
        served(
            Serving::Handler { file: "h.py".into(), cold: false, function: None },
            sandbox,
            limits,
        )
    }

    /// One that was added, and approved with these terms.
    fn agent(manifest: Manifest, terms: Option<Terms>) -> Provider {
        let id = ProviderId::new("text/shout@1").expect("valid");
        let manifest_hash = Digest::of(&[b"m"]);
        let added = ProviderInput::Add { folder: "/f".into(), manifest_hash, manifest };
        let approved = terms.map(|terms| ProviderInput::Approve {
            manifest_hash: None,
            permissions: Vec::new(),
            files: BTreeMap::new(),
            terms,
        });
        let mut agent = None;
        for input in [Some(added), approved].into_iter().flatten() {
            let by = Caller::owner().to_ref();
            let decided = Provider::decide(agent.as_ref(), &id, &input, &by).expect("legal");
            let (entry, _): (ProviderEntry, _) = decided.expect("something");
            agent = Provider::apply(agent, &id, Timestamp(0), &entry);
        }
        agent.expect("known")
    }

    #[test]
    fn a_manifest_tightens_its_fence_and_never_loosens_it() {
        use SandboxLevel::{Basic, None as Unfenced, Standard, Strict};
        for (owner, asked, typed, got) in [
            (Standard, None, None, Standard),
            (Standard, Some(Unfenced), None, Standard),
            (Standard, Some(Basic), None, Standard),
            (Standard, Some(Strict), None, Strict),
            (Strict, Some(Unfenced), None, Strict),
            (Strict, Some(Standard), None, Strict),
            (Basic, Some(Standard), None, Standard),
            (Standard, Some(Unfenced), Some(Unfenced), Unfenced),
            (Standard, Some(Unfenced), Some(Strict), Strict),
            (Strict, None, Some(Basic), Basic),
        ] {
            let typed = OwnerTerms { sandbox: typed, ..OwnerTerms::default() };
            let manifest = handler(asked, ProviderLimits::default());
            let terms = usual(owner).terms(&manifest, typed.clone());
            assert_eq!(terms.sandbox, got, "{owner} {asked:?} {typed:?}");
        }
        let image = Serving::Image { image: "i".into() };
        let terms = usual(Strict)
            .terms(&served(image, None, ProviderLimits::default()), OwnerTerms::default());
        assert_eq!(terms.sandbox, Unfenced, "a container is the owner's own fence");
    }

    #[test]
    fn a_looser_fence_is_a_wish_until_the_owner_types_it() {
        let usual = usual(SandboxLevel::Standard);
        let manifest = handler(Some(SandboxLevel::None), ProviderLimits::default());
        let what = WishKind::Sandbox { asked: SandboxLevel::None, usual: SandboxLevel::Standard };
        let wishes = |typed: Option<OwnerTerms>| {
            let terms = typed.map(|typed| usual.terms(&manifest, typed));
            usual.wishes(&agent(manifest.clone(), terms))
        };
        let wish = |granted| vec![Wish { what: what.clone(), granted }];
        assert_eq!(wishes(None), wish(false), "before anybody approves it");
        assert_eq!(wishes(Some(OwnerTerms::default())), wish(false));
        let basic = OwnerTerms { sandbox: Some(SandboxLevel::Basic), ..OwnerTerms::default() };
        assert_eq!(wishes(Some(basic)), wish(false));
        let none = OwnerTerms { sandbox: Some(SandboxLevel::None), ..OwnerTerms::default() };
        assert_eq!(wishes(Some(none)), wish(true));
        let strict = handler(Some(SandboxLevel::Strict), memory(GI / 2));
        assert_eq!(usual.wishes(&agent(strict, None)), []);
    }

    #[test]
    fn a_higher_limit_is_a_wish_and_a_lower_one_counts() {
        let usual = usual(SandboxLevel::Standard);
        let held = |asked: u64, typed: Option<ProviderLimits>| {
            let manifest = handler(None, memory(asked));
            let terms = typed.map(|limits| {
                usual.terms(&manifest, OwnerTerms { limits, ..OwnerTerms::default() })
            });
            let agent = agent(manifest, terms);
            (usual.limits(&agent).usage.memory_bytes, usual.wishes(&agent))
        };
        let wish = |granted| {
            let what = WishKind::Limit { name: "memory_bytes", asked: 8 * GI, usual: GI };
            vec![Wish { what, granted }]
        };
        assert_eq!(held(8 * GI, None), (Some(GI), wish(false)));
        assert_eq!(held(8 * GI, Some(ProviderLimits::default())), (Some(GI), wish(false)));
        assert_eq!(held(8 * GI, Some(memory(2 * GI))), (Some(2 * GI), wish(false)));
        assert_eq!(held(8 * GI, Some(memory(9 * GI))), (Some(8 * GI), wish(true)));
        assert_eq!(held(GI / 2, Some(memory(GI))), (Some(GI / 2), vec![]));
        assert_eq!(held(GI / 2, Some(ProviderLimits::default())), (Some(GI / 2), vec![]));
        let capped = DefaultTerms { of_all: memory(GI / 4), ..usual.clone() };
        let manifest = handler(None, memory(8 * GI));
        let terms =
            capped.terms(&manifest, OwnerTerms { limits: memory(8 * GI), ..OwnerTerms::default() });
        let limits = capped.limits(&agent(manifest, Some(terms)));
        assert_eq!(limits.usage.memory_bytes, Some(GI / 4), "nothing exceeds the limit of all");
    }

    #[test]
    fn approvals_of_older_cores_keep_what_they_gave() {
        let usual = usual(SandboxLevel::Standard);
        let old = Terms { sandbox: SandboxLevel::None, ..Terms::default() };
        let manifest = handler(Some(SandboxLevel::None), memory(8 * GI));
        let agent = agent(manifest, Some(old));
        assert_eq!(usual.limits(&agent).usage.memory_bytes, Some(8 * GI));
        assert_eq!(usual.limits(&agent).usage.processes, Some(256));
        assert!(usual.wishes(&agent).iter().all(|wish| wish.granted));
    }
}
