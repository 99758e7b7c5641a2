//! Secrets reach a server by file, and nobody else.

use serde_json::json;
use wharf_ports::providers::ProviderControl as _;
use wharf_ports::vault::Secret;
use wharf_ports::vault::Vault as _;
use wharf_vocab::{Code, SecretName};

use crate::launcher::seen;
use crate::stage::{Stage, id};

const CANARY: &str = "canary-8f2d1c77";

async fn keep(stage: &Stage, name: &str, text: &str) {
    let secret = Secret::new(text.as_bytes());
    stage.vault.set(SecretName::new(name).expect("valid"), secret).await.expect("kept");
}

#[tokio::test]
async fn t044_a_secret_is_in_no_message_no_log_no_argument_and_no_audit() {
    let stage = Stage::new().await;
    keep(&stage, "API_KEY", CANARY).await;
    stage.write_manifest("well", "secrets = [\"API_KEY\"]");
    stage.approved().await;
    let run = stage.run(json!({"op": "secret", "name": "API_KEY"})).await;
    assert_eq!(stage.outputs(&run).await["bytes"], CANARY.len(), "the server has it");
    let spec = &stage.launcher.specs()[0];
    assert!(!format!("{:?}{:?}{:?}", spec.args, spec.env, spec.program).contains(CANARY));
    assert!(spec.secrets.iter().any(|secret| secret == CANARY), "the log must be freed of it");
    assert!(stage.launcher.log().contains("the secret is ***"), "{}", stage.launcher.log());
    let logs = stage.edge.logs(id(), 100).await.expect("readable");
    assert!(logs.iter().all(|line| !line.text.contains(CANARY)));
    let seen = seen(spec);
    assert!(seen.contains("API_KEY") && !seen.contains(CANARY), "{seen}");
    let audit = stage.handle.audit().list(0, 10_000).await.expect("readable");
    assert!(!audit.is_empty());
    assert!(audit.iter().all(|sealed| !format!("{:?}", sealed.record).contains(CANARY)));
    let journal = format!("{:?}", stage.end_of(&run.key).await);
    assert!(!journal.contains(CANARY));
}

#[tokio::test]
async fn t044_a_server_whose_secret_is_not_set_is_not_enabled_and_says_which() {
    let stage = Stage::new().await;
    stage.write_manifest("well", "secrets = [\"API_KEY\"]");
    stage.add().await.expect("added");
    let fault = stage.approve(Default::default()).await.expect_err("not set");
    assert!(fault.is(Code::SecretNotFound), "{fault}");
    assert!(fault.message.contains("API_KEY"), "{fault}");
    keep(&stage, "API_KEY", CANARY).await;
    stage.edge.start(crate::stage::owner(), id()).await.expect("enabled");
    let run = stage.run(json!({"op": "secret", "name": "API_KEY"})).await;
    stage.outputs(&run).await;
}
