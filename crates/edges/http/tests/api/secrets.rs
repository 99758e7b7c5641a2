//! Secrets: set, listed by name, removed, and never shown.

use serde_json::json;
use wharf_ports::vault::Vault;
use wharf_vocab::SecretName;

use crate::support::{Edge, eventually};

const CANARY: &[u8] = b"c4n4ry\0\xff-secret\n";

#[tokio::test]
async fn r151_a_secret_goes_in_and_only_its_name_comes_out() {
    let edge = Edge::start().await;
    let set = edge.call("PUT", "/v1/secrets/MAIL_KEY").bytes(CANARY.to_vec()).send().await;
    assert_eq!((set.status, set.body.as_slice()), (204, &b""[..]));
    let name = SecretName::new("MAIL_KEY").expect("valid");
    assert_eq!(edge.vault.get(name).await.expect("kept").expose(), CANARY);
    let listed = edge.get("/v1/secrets").await;
    let expect = json!([{"name": "MAIL_KEY", "set_at": "1970-01-01T00:00:00.000Z"}]);
    assert_eq!(listed.json()["items"], expect);
    edge.get("/v1/secrets/MAIL_KEY").await.refused(405, "request.method_unknown");

    let remove = async || edge.call("DELETE", "/v1/secrets/MAIL_KEY").send().await;
    assert_eq!(remove().await.status, 204);
    remove().await.refused(404, "secret.not_found");
    let audit = eventually(async || {
        let audit = edge.get("/v1/audit?limit=200").await.text();
        (audit.contains("secret.set") && audit.contains("secret.removed")).then_some(audit)
    })
    .await;
    assert!(audit.contains("secret:MAIL_KEY") && !audit.contains("c4n4ry"), "{audit}");
}

#[tokio::test]
async fn what_is_no_secret_is_refused() {
    let edge = Edge::start().await;
    let put = |path: &str, body: Vec<u8>| edge.call("PUT", path).bytes(body).send();
    assert_eq!(put("/v1/secrets/A", vec![b'x'; 64 * 1024]).await.status, 204);
    let large = put("/v1/secrets/A", vec![b'x'; 64 * 1024 + 1]).await;
    large.refused(413, "request.too_large");
    put("/v1/secrets/A", Vec::new()).await.refused(400, "request.invalid");
    put("/v1/secrets/a%20b", b"x".to_vec()).await.refused(400, "request.invalid");
    let without = Edge::start_with(|options| options.vault = None).await;
    without.get("/v1/secrets").await.refused(404, "secret.not_found");
}
