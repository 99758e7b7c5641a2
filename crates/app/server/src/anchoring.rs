//! Keeping the audit anchored while a core is up.
//!
//! What is cut off the end of the database after its last anchor cannot be found, so anchors
//! follow the audit closely: at once when nothing more comes, and every few seconds while more
//! comes all the time.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wharf_ports::{Trouble, TroubleOver};
use wharf_vocab::Fault;

use crate::database::StoreAdmin;
use crate::lock::HomeLock;
use crate::{Home, anchors};

/// How often it is looked whether the audit has grown.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How old an anchor may become while the audit grows.
const ANCHOR_EVERY: Duration = Duration::from_secs(2);

/// Writes anchors whenever the audit has grown, and once more at the end. It holds the lock on
/// the home and sees to it that others find it held, because it lives as long as anything writes
/// there.
#[derive(Debug)]
pub(crate) struct Anchoring {
    ended: CancellationToken,
    task: JoinHandle<HomeLock>,
}

impl Anchoring {
    pub(crate) fn begin(home: Home, store: Arc<dyn StoreAdmin>, mut lock: HomeLock) -> Self {
        let ended = CancellationToken::new();
        let is_ended = ended.clone();
        let task = tokio::spawn(async move {
            let mut pace = AnchorSchedule::default();
            let mut rewinds = store.rewinds();
            let mut trouble = Trouble::default();
            loop {
                let last = is_ended.is_cancelled();
                let rewound = store.rewinds();
                if std::mem::replace(&mut rewinds, rewound) != rewound
                    && let Err(fault) = anchors::set_aside(&home)
                {
                    tracing::warn!(%fault, "anchors of records that are lost were not kept");
                }
                let grown = store.audit_growth();
                if last || pace.is_due(grown, Instant::now()) {
                    let written = anchors::write(&home, &*store).await;
                    tell(&mut trouble, written.err().as_ref());
                }
                if last {
                    return lock;
                }
                if let Err(error) = lock.keep(&home) {
                    tracing::debug!(%error, "the lock of the home is not held");
                }
                // Woken at the end, it writes once more.
                let _ = tokio::time::timeout(LOOK_EVERY, is_ended.cancelled()).await;
            }
        });
        Self { ended, task }
    }

    pub(crate) async fn end(self) -> Option<HomeLock> {
        self.ended.cancel();
        let lock = self.task.await.ok();
        if lock.is_none() {
            tracing::warn!("the audit could not be anchored at the end");
        }
        lock
    }
}

/// Says that no anchor can be written, and when one could be again.
fn tell(trouble: &mut Trouble, fault: Option<&Fault>) {
    match fault {
        Some(fault) => {
            if let Some(failed) = trouble.failed() {
                tracing::warn!(%fault, failed, "the audit could not be anchored");
            }
        }
        None => {
            if let Some(TroubleOver { failed, seconds }) = trouble.over() {
                tracing::info!(failed, seconds, "the audit is anchored again");
            }
        }
    }
}

/// When the next anchor is due.
#[derive(Debug, Default)]
struct AnchorSchedule {
    /// How far the audit had grown when it was looked last.
    seen: u64,
    /// How far it had grown when it was anchored last, and when that was.
    anchored: Option<(u64, Instant)>,
}

impl AnchorSchedule {
    /// Whether to write an anchor now; if so, it counts as written. One that could not be written
    /// is tried again when the audit has grown.
    fn is_due(&mut self, grown: u64, now: Instant) -> bool {
        let rests = self.seen == grown;
        self.seen = grown;
        let due = match self.anchored {
            None => true,
            Some((anchored, _)) if anchored == grown => false,
            Some((_, at)) => rests || now.duration_since(at) >= ANCHOR_EVERY,
        };
        if due {
            self.anchored = Some((grown, now));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tracing_subscriber::fmt::MakeWriter;
    use wharf_vocab::Code;

    use super::*;

    /// What was logged.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<u8>>>);

    impl Told {
        fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock().expect("not poisoned")).into_owned()
        }
    }

    impl std::io::Write for Told {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Told {
        type Writer = Self;
        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn what_fails_all_the_time_is_not_told_all_the_time() {
        let (mut trouble, told) = (Trouble::default(), Told::default());
        let fault = Fault::new(Code::StoreUnavailable, "no room");
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(told.clone()).finish();
        tracing::subscriber::with_default(log, || {
            for _ in 0..100 {
                tell(&mut trouble, Some(&fault));
            }
            for _ in 0..100 {
                tell(&mut trouble, None);
            }
        });
        let all = told.text();
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(lines.len(), 2, "{all}");
        assert!(lines[0].contains("WARN") && lines[0].contains("no room"), "{all}");
        assert!(lines[1].contains("INFO") && lines[1].contains("failed=100"), "{all}");
    }

    #[test]
    fn the_audit_is_anchored_when_it_rests_and_every_few_seconds_while_it_grows() {
        let (mut pace, start) = (AnchorSchedule::default(), Instant::now());
        let at = |looks: u32| start + LOOK_EVERY * looks;
        assert!(pace.is_due(1, at(0)), "the first");
        assert!(!pace.is_due(1, at(1)), "nothing is new");
        assert!(!pace.is_due(2, at(2)), "more may come");
        assert!(pace.is_due(2, at(3)), "no more came");
        let due: Vec<u32> = (4..40).filter(|n| pace.is_due(u64::from(*n), at(*n))).collect();
        assert_eq!(due, [11, 19, 27, 35], "every two seconds");
    }
}
