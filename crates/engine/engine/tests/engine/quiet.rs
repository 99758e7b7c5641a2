//! What fails again and again is told once, with how often, and when it is over.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;
use wharf_ports::ObjectErrorKind;
use wharf_vocab::RunStatus;
use wharf_vocab::limits::{LEASE_MS, LEASE_RETRY_MS};

use crate::leases::{renewed, shared};
use crate::staged::{staged, start};
use crate::support::{object, stream};

/// What is logged in this thread.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<u8>>>);

impl Told {
    /// Listens as long as the guard lives.
    fn listen() -> (Self, DefaultGuard) {
        let told = Self::default();
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(told.clone()).finish();
        (told, tracing::subscriber::set_default(log))
    }

    /// The lines that say this.
    fn lines(&self, what: &str) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.0.lock().expect("not poisoned")).into_owned();
        text.lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
    }
}

impl io::Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Told {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn leases_that_cannot_be_prolonged_are_told_once_and_when_they_are_again() {
    let (told, _guard) = Told::listen();
    let (bench, clock, _peer) = shared().await;
    bench.store.fail_renewals(true);
    renewed(&bench, &clock, LEASE_MS / 3).await;
    for _ in 0..4 {
        renewed(&bench, &clock, LEASE_RETRY_MS).await;
    }
    bench.store.fail_renewals(false);
    renewed(&bench, &clock, LEASE_RETRY_MS).await;
    renewed(&bench, &clock, LEASE_MS / 3).await;
    let lines = told.lines("leases");
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("could not be prolonged"), "{lines:#?}");
    assert!(lines[1].contains("prolonged again failed=5 "), "{lines:#?}");
}

#[tokio::test]
async fn outputs_that_cannot_be_published_are_told_once_for_all_runs() {
    let (told, _guard) = Told::listen();
    let (bench, peer) = staged().await;
    let mut begun = Vec::new();
    for _ in 0..3 {
        let (run, attempt) = start(&bench, &peer).await;
        for name in ["a", "b"] {
            attempt.data().write(name, 3, stream("one")).await.expect("written");
        }
        begun.push((run, attempt));
    }
    bench.objects.fail_next(9, ObjectErrorKind::Unavailable);
    for (_, attempt) in &begun {
        attempt.succeeded(object(json!({})), 0).await.expect("told");
    }
    for (run, _) in &begun {
        assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
    let lines = told.lines("could not be published");
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("failed=1"), "{lines:#?}");
}
