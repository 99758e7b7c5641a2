//! When the audit cannot be written, nothing that needs it is done.

use std::collections::BTreeMap;

use serde_json::json;
use wharf_domain::grant::NewGrant;
use wharf_domain::provider::{AgentDetails, Entrypoint, ProviderKind, ProviderLimits, Terms};
use wharf_domain::{Manifest, ProviderInput, Resolution, Rights};
use wharf_ports::StoreErrorKind;
use wharf_vocab::{Code, Digest, Fault, ProviderId, RunStatus};

use crate::peer::{Peer, guarded, tool};
use crate::support::{Bench, new, owner};

pub(crate) fn add() -> ProviderInput {
    let manifest = Manifest {
        name: "Agent".into(),
        version: "1.0.0".into(),
        description: String::new(),
        entrypoint: Entrypoint { program: "./agent".into(), args: vec![] },
        permissions: vec![],
        limits: ProviderLimits::default(),
        isolation: None,
        kind: ProviderKind::Agent(AgentDetails::default()),
    };
    ProviderInput::Add { folder: "agent".into(), manifest_hash: Digest::of(&[b"m"]), manifest }
}

fn approve() -> ProviderInput {
    let (permissions, files, terms) = (vec![], BTreeMap::new(), Terms::default());
    ProviderInput::Approve { manifest_hash: None, permissions, files, terms }
}

#[tokio::test]
async fn r155_without_an_audit_nothing_privileged_happens() {
    for (kind, code) in [
        (StoreErrorKind::Full, Code::StoreFull),
        (StoreErrorKind::Unavailable, Code::StoreUnavailable),
    ] {
        let bench = Bench::new().await;
        let peer =
            Peer::join(&bench.handle, "acme", vec![tool("acme/work"), guarded("acme/act")]).await;
        let id = ProviderId::new("dev.agent").expect("valid");
        bench.handle.providers().change(&owner(), &id, add()).await.expect("added");
        let gated = bench.start("acme/act", json!({})).await.expect("accepted");
        let ask = gated.asks[0].ask.spec.ask_id.clone();
        let audited = bench.audit().await.len();
        let closed = |what: &str, result: Result<(), Fault>| {
            let fault = result.expect_err(what);
            assert!(fault.is(code) && fault.retryable, "{what}: {fault}");
        };

        bench.store.fail_commits(usize::MAX, kind);
        let handle = &bench.handle;
        let who = owner();
        closed("approve", handle.providers().change(&who, &id, approve()).await.map(drop));
        closed("run", handle.runs().create(&who, new("acme/work", json!({}))).await.map(drop));
        closed("decide", handle.asks().resolve(&who, &ask, Resolution::ALLOW).await.map(drop));
        let grant = NewGrant {
            label: "more".into(),
            rights: Rights::all(),
            person: false,
            budget_micro: None,
        };
        closed("grant", handle.trust().make_grant(&who, grant).await.map(drop));
        assert!(!handle.providers().get(&id).expect("known").is_approved());
        assert!(peer.is_idle().await, "nothing is sent");

        bench.store.fail_commits(0, kind);
        bench.handle.providers().change(&who, &id, approve()).await.expect("approved");
        bench.store.fail_commits(usize::MAX, kind);
        closed("start", handle.providers().change(&who, &id, ProviderInput::Want).await.map(drop));
        assert!(!handle.providers().get(&id).expect("known").wanted);

        bench.store.fail_commits(0, kind);
        let shown = handle.runs().get(&gated.key).await.expect("known");
        assert_eq!(shown.status(), RunStatus::Waiting, "what was refused has not happened");
        assert!(handle.trust().grants().is_empty() && peer.is_idle().await);
        assert_eq!(bench.audit().await.len(), audited + 1, "only the approval was written");
        handle.asks().resolve(&who, &ask, Resolution::ALLOW).await.expect("decided now");
        assert_eq!(peer.next().await.dispatch().run, gated.key);
    }
}
