//! TLS to the server, as the address asks for it.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use wharf_contract::desk::node;
use wharf_postgres::own_with_tls;
use wharf_store_postgres::{PostgresOptions, PostgresStore};

use crate::support::{Database, key};

/// Somebody who vouches for others.
fn issuer() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed")
}

async fn opens(url: &str) -> Result<(), String> {
    let options = PostgresOptions::parse(url, None)?;
    let clock = Database::at(String::new()).clock;
    let store = PostgresStore::open(options, &key(), &node("core-a"), clock).await;
    store.map_err(|error| error.message)?.close().await.map_err(|error| error.message)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s007_tls_is_spoken_and_checked_as_sslmode_says() {
    let (ours, others) = (issuer(), issuer());
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let own_key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&own_key, &ours).expect("signed");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let port = port.expect("a free port").port();
    let made = own_with_tls(port, &certificate.pem(), &own_key.serialize_pem());
    let Some(server) = made else { return };
    server.sql("postgres", "CREATE DATABASE w TEMPLATE template0");
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let (root, other) = (file("ours.pem", &ours.pem()), file("others.pem", &others.pem()));
    let url = |host: &str, mode: &str, root: Option<&Path>| {
        let root = root.map_or(String::new(), |it| format!("&sslrootcert={}", it.display()));
        format!("postgres://wharf@{host}:{port}/w?sslmode={mode}{root}")
    };
    let (name, ip) = ("localhost", "127.0.0.1");
    opens(&url(name, "verify-full", Some(&root))).await.expect("vouched for, and by its name");
    opens(&url(ip, "verify-ca", Some(&root))).await.expect("vouched for, whatever its name");
    opens(&url(ip, "require", None)).await.expect("encrypted, whoever it is");
    opens(&url(ip, "disable", None)).await.expect("the server takes both");
    for wrong in [
        url(ip, "verify-full", Some(&root)),
        url(name, "verify-full", Some(&other)),
        url(name, "verify-ca", Some(&other)),
        url(name, "require", Some(&other)),
        url(name, "verify-full", None),
    ] {
        let error = opens(&wrong).await.expect_err(&wrong);
        assert!(error.contains("ertificate"), "{wrong}: {error}");
    }

    // The same again, as the server sees it.
    for (mode, encrypted) in [("require", "t"), ("prefer", "t"), ("disable", "f")] {
        let database = Database::at(url(ip, mode, None));
        let store = database.open("core-a").await;
        let sql = "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                   WHERE application_name = 'wharf'";
        let desk = database.desk(&store).await;
        desk.put(desk.batch(wharf_vocab::ShardId(0))).await;
        assert_eq!(server.sql("w", sql), encrypted, "{mode}");
        store.close().await.expect("closes");
        drop((desk, store));
        crate::support::until("its connections are gone", async || server.sql("w", sql).is_empty())
            .await;
        server.sql("w", "DELETE FROM wharf.cores");
    }
}
