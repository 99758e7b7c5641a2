//! What must not be seen anywhere: tokens and addresses.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;
use wharf_ports::vault::Secret;

use crate::stage::Plan;
use crate::troupe::Troupe;

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("sound").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn t044_neither_token_nor_address_is_logged_however_a_run_goes() {
    let kept = Kept::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(kept.clone())
        .with_max_level(tracing::Level::TRACE)
        .finish();
    let subscriber = tracing::Dispatch::new(subscriber);
    // While there is one subscriber only, whoever comes to a place first decides for all threads
    // whether something is logged there, and other tests log nothing.
    let _other = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _guard = tracing::dispatcher::set_default(&subscriber);
    tracing::info!("the log is kept");

    let mut troupe = Troupe::tcp().await;
    let bearer = Some(Secret::new(b"token-canary".to_vec()));
    let plan = Plan::new(troupe.endpoint().with_bearer(bearer));
    let adjust = |settings: &mut wharf_run::link::Settings| {
        settings.session.silence_ms = 50;
        settings.failures_max = 1;
    };
    let stage = plan.with(adjust).open().await;
    stage.put("/in.txt", "hello").await;
    let run =
        stage.start_with(json!({"file.world": "/in.txt"}), json!({"out.world": "/out.txt"})).await;
    let (mut actor, request) = troupe.take().await;
    let address = request["inputs"]["file"].as_str().expect("an address").to_owned();
    actor.log("one").await;
    // The silent connection is given up, and the next one ends with an error that quotes.
    let (mut actor, _) = troupe.take().await;
    actor.fail("ERR_HANDLER", &format!("cannot read {address}")).await;
    let fault = stage.fault_of(&run).await;
    assert!(!format!("{fault:?}").contains("signature="), "{fault}");

    troupe.token = Some("another");
    let run = stage.start(json!({})).await;
    assert!(troupe.try_accept().await.is_none());
    let fault = stage.fault_of(&run).await;
    let logged = String::from_utf8(kept.0.lock().expect("sound").clone()).expect("text");
    assert!(logged.contains("the log is kept"));
    for canary in ["token-canary", "signature="] {
        assert!(!logged.contains(canary), "{logged}");
        assert!(!format!("{fault:?}").contains(canary), "{fault}");
    }
}

#[tokio::test]
async fn t044_a_token_that_a_server_repeats_is_not_kept() {
    let troupe = Troupe::tcp().await;
    let bearer = Some(Secret::new(b"token-canary\n".to_vec()));
    let stage = Plan::new(troupe.endpoint().with_bearer(bearer)).open().await;
    let run = stage.start(json!({})).await;
    let (mut actor, _) = troupe.take().await;
    actor.log("I was shown token-canary").await;
    actor.stream(json!({"token": "token-canary"})).await;
    actor.succeed(json!({"token-canary": ["token-canary"]})).await;
    let kept = format!("{:?}{:?}", stage.end_of(&run).await, stage.progress_of(&run).await);
    assert!(kept.contains("I was shown ***"), "{kept}");
    assert!(!kept.contains("canary"), "{kept}");
}
