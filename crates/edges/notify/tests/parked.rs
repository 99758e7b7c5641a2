//! A receiver that never takes anything: pauses grow, and after a day it is given up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use wharf_domain::grant::Keyring;
use wharf_domain::notify::ReceiverSpec;
use wharf_domain::{Caller, WorldSettings};
use wharf_engine::{EngineOptions, Handle, NewRun};
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryState, MemoryStore};
use wharf_notify::{NotifyEdge, NotifyOptions};
use wharf_ports::ManualClock;
use wharf_ports::vault::{KeptSecret, Secret, Vault};
use wharf_vocab::{
    Code, Fault, NodeId, NotificationState, NotifyFormat, NotifyOn, ReceiverId, SecretName,
    Timestamp, WorldId,
};

const HOUR_MS: u64 = 3_600_000;
const LONG: Duration = Duration::from_secs(60);

/// Secrets that are there from the beginning.
struct Kept(BTreeMap<String, String>);

impl Vault for Kept {
    fn set(&self, _: SecretName, _: Secret) -> BoxFuture<'_, Result<(), Fault>> {
        async { Ok(()) }.boxed()
    }

    fn get(&self, name: SecretName) -> BoxFuture<'_, Result<Secret, Fault>> {
        let none = || Fault::new(Code::SecretNotFound, "There is no such secret.");
        let found = self.0.get(name.as_str()).cloned().ok_or_else(none);
        async { Ok(Secret::new(found?.into_bytes())) }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptSecret>, Fault>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn remove(&self, _: SecretName) -> BoxFuture<'_, Result<(), Fault>> {
        async { Ok(()) }.boxed()
    }

    fn keyring(&self) -> BoxFuture<'_, Result<Keyring, Fault>> {
        async { Ok(Keyring::none()) }.boxed()
    }

    fn rotate(&self, _: bool) -> BoxFuture<'_, Result<Keyring, Fault>> {
        async { Ok(Keyring::none()) }.boxed()
    }
}

/// Answers every request with 503, and counts them.
async fn refuses() -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut read = [0; 8192];
            // One packet has all of so small a request.
            if matches!(stream.read(&mut read).await, Ok(1..)) {
                counted.fetch_add(1, Ordering::SeqCst);
                let answer = "HTTP/1.1 503 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    });
    (url, asked)
}

async fn engine(clock: &Arc<ManualClock>) -> Handle {
    let state = MemoryState::new(&AuditKey::new([7; 32]));
    let store = Arc::new(MemoryStore::with_state(state, clock.clone()));
    let node = NodeId::new("test").expect("valid");
    let options = EngineOptions::new(node, store, clock.clone(), 1);
    let handle = Handle::start(options).await.expect("starts");
    wharf_builtin::register(&handle).await.expect("registers");
    let world = WorldId::new("default").expect("valid");
    let owner = Caller::owner();
    handle.worlds().create(&owner, world, WorldSettings::default()).await.expect("made");
    handle
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + LONG;
    while !is_so() {
        assert!(tokio::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn f036_pauses_grow_and_after_a_day_a_notification_is_parked_and_shown() {
    let clock = Arc::new(ManualClock::at(Timestamp(1_800_000_000_000)));
    let handle = engine(&clock).await;
    let (url, asked) = refuses().await;
    let secret = |name: &str| SecretName::new(name).expect("valid");
    let kept = [
        ("notify.desk.url".to_owned(), url),
        ("notify.desk.key".to_owned(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()),
    ];
    let spec = ReceiverSpec {
        on: [NotifyOn::Run].into(),
        world: None,
        statuses: Default::default(),
        when: None,
        include: Default::default(),
        format: NotifyFormat::Json,
        allow_private: true,
        url: secret("notify.desk.url"),
        key: secret("notify.desk.key"),
    };
    let (owner, desk) = (Caller::owner(), ReceiverId::new("desk").expect("valid"));
    handle.receivers().add(&owner, desk.clone(), spec).await.expect("added");
    let _edge = NotifyEdge::start(NotifyOptions {
        handle: handle.clone(),
        vault: Arc::new(Kept(kept.into_iter().collect())),
        console: "http://localhost/".to_owned(),
    });
    let inputs = json!({"text": "x"}).as_object().cloned().expect("an object");
    let tool = "wharf/echo".parse().expect("valid");
    let new = NewRun::new(tool, inputs, WorldId::new("default").expect("valid"));
    handle.runs().create(&owner, new).await.expect("accepted");
    until("the first try", || asked.load(Ordering::SeqCst) == 1).await;
    // The pauses: 2 s, 4 s, 8 s, … up to an hour.
    for (tries, pause) in (1..).zip([2_000, 4_000, 8_000, 16_000]) {
        clock.advance_ms(pause - 1_000);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(asked.load(Ordering::SeqCst), tries, "not before {pause} ms");
        clock.advance_ms(1_000);
        until("another try", || asked.load(Ordering::SeqCst) == tries + 1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    clock.advance_ms(25 * HOUR_MS);
    let parked = || handle.receivers().get(&desk).is_ok_and(|it| it.parked == 1);
    until("it to be given up", parked).await;
    let history = handle.receivers().history(&desk).await.expect("readable");
    let (_, told) = &history[0];
    assert_eq!((told.state, told.status), (NotificationState::Parked, Some(503)));
    assert_eq!(told.why.as_deref(), Some("it answered with 503"));
    until("nothing to be owed", || {
        handle.receivers().owed().now_or_never().is_some_and(|it| it.is_ok_and(|it| it.is_empty()))
    })
    .await;
}
