//! Callers that ask for runs, a clerk who answers and cancels, and a watcher who remembers ends.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use wharf_fuzz::Dice;

use super::kinds::{KINDS, Kind};
use crate::support::LONG;

const CALLERS: u64 = 6;
const PAUSE: Duration = Duration::from_millis(4);

/// A run that somebody asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) kind: Kind,
    pub(super) n: u64,
    /// Whether the core said that it has it.
    pub(super) accepted: bool,
    /// How it had ended when somebody looked.
    pub(super) seen: Option<Value>,
}

/// Everybody who has to do with the core, and what they know.
pub(super) struct Load {
    seed: u64,
    core: Mutex<Option<(Client, String)>>,
    asked: Mutex<BTreeMap<String, Asked>>,
    asking: AtomicBool,
    working: AtomicBool,
}

impl Load {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            core: Mutex::default(),
            asked: Mutex::default(),
            asking: AtomicBool::new(true),
            working: AtomicBool::new(true),
        }
    }

    pub(super) fn is_up(&self, client: Client, url: String) {
        *self.core.lock().unwrap_or_else(PoisonError::into_inner) = Some((client, url));
    }

    pub(super) fn is_down(&self) {
        *self.core.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn asked(&self) -> MutexGuard<'_, BTreeMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many runs were accepted in all.
    pub(super) fn until_accepted(&self, count: usize) {
        let deadline = Instant::now() + LONG;
        while self.asked().values().filter(|asked| asked.accepted).count() < count {
            assert!(Instant::now() < deadline, "too few runs are accepted");
            std::thread::sleep(PAUSE);
        }
    }

    pub(super) fn stop_asking(&self) {
        self.asking.store(false, Ordering::SeqCst);
    }

    pub(super) fn start(self: &Arc<Self>, runtime: &Runtime) -> Vec<JoinHandle<()>> {
        let mut tasks: Vec<_> =
            (0..CALLERS).map(|caller| runtime.spawn(Arc::clone(self).call(caller))).collect();
        tasks.push(runtime.spawn(Arc::clone(self).decide()));
        tasks.push(runtime.spawn(Arc::clone(self).watch()));
        tasks
    }

    /// Waits for everybody's end; whoever panicked takes the test along.
    pub(super) fn stop(&self, runtime: &Runtime, tasks: Vec<JoinHandle<()>>) {
        self.working.store(false, Ordering::SeqCst);
        for task in tasks {
            runtime.block_on(task).expect("everybody comes to an end");
        }
    }

    fn core(&self) -> Option<(Client, String)> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn works(&self) -> bool {
        self.working.load(Ordering::SeqCst)
    }

    /// Sends a request; nothing if the core is gone before it has answered.
    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let (client, url) = self.core()?;
        let method = method.parse().expect("a method");
        let mut request = client.request(method, format!("{url}{path}")).timeout(LONG);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let body = answer.bytes().await.ok()?;
        Some((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    /// Asks for one run after another.
    async fn call(self: Arc<Self>, caller: u64) {
        let mut dice = Dice::new(self.seed ^ (caller + 1).wrapping_mul(0x9e37_79b9));
        for count in 0_u64.. {
            if !self.asking.load(Ordering::SeqCst) {
                return;
            }
            if self.core().is_none() {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let (kind, n) = (*dice.pick(&KINDS), dice.roll() % 10_000);
            let id = format!("t-{caller}-{count}-{}", format!("{kind:?}").to_lowercase());
            if kind == Kind::Keyed {
                self.insist(&id, n).await;
            } else {
                let asked = Asked { kind, n, accepted: false, seen: None };
                self.asked().insert(id.clone(), asked);
                let sent = self.send("POST", "/v1/runs", Some(&kind.request(&id, n))).await;
                self.answered(&id, sent);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn answered(&self, id: &str, answer: Option<(u16, Value)>) {
        match answer {
            Some((202, _)) => {
                self.asked().get_mut(id).expect("asked for").accepted = true;
            }
            // Whether it was committed is not known while the database is away.
            Some((503, answer)) if answer["error"]["code"] == "store.unavailable" => {}
            // The core may have too much to do, or be on its way down; then it has taken nothing.
            Some((429 | 503, _)) => drop(self.asked().remove(id)),
            Some((status, answer)) => panic!("{id} was answered with {status}: {answer}"),
            None => {}
        }
    }

    /// Asks under a key until there is an answer, also from the next core, and then once more: it
    /// is one run.
    async fn insist(&self, key: &str, n: u64) {
        let request = Kind::Keyed.request(key, n);
        let mut known: Option<String> = None;
        while self.works() {
            match self.send("POST", "/v1/runs", Some(&request)).await {
                Some((200 | 202, answer)) => {
                    let id = answer["run_id"].as_str().expect("an id").to_owned();
                    let asked = Asked { kind: Kind::Keyed, n, accepted: true, seen: None };
                    self.asked().entry(id.clone()).or_insert(asked);
                    match known.replace(id.clone()) {
                        Some(first) => return assert_eq!(first, id, "one key is one run"),
                        None => continue,
                    }
                }
                Some((429 | 503, _)) | None => tokio::time::sleep(PAUSE).await,
                Some((status, answer)) => panic!("{key} was answered with {status}: {answer}"),
            }
        }
    }

    /// Answers questions, lets pass or refuses, and calls off what is to be called off.
    async fn decide(self: Arc<Self>) {
        let mut last = String::new();
        while self.works() {
            tokio::time::sleep(PAUSE * 5).await;
            let Some((200, inbox)) = self.send("GET", "/v1/inbox?limit=200", None).await else {
                continue;
            };
            for ask in inbox["items"].as_array().into_iter().flatten() {
                let id = ask["ask_id"].as_str().expect("an id");
                let run = ask["run_id"].as_str().expect("an id");
                let denied = run.ends_with("denied");
                let (path, body) = match ask["kind"].as_str() {
                    Some("question") => ("questions", json!({"value": "blue"})),
                    _ if denied => ("approvals", json!({"decision": "deny", "reason": "no"})),
                    _ => ("approvals", json!({"decision": "allow"})),
                };
                let verb = if path == "questions" { "answer" } else { "decide" };
                // It may have been decided by a request whose answer was lost.
                self.send("POST", &format!("/v1/{path}/{id}/{verb}"), Some(&body)).await;
            }
            // Runs that came to nothing stay open here for ever, so they take their turns.
            let open = self.to_cancel(&last);
            last = open.last().cloned().unwrap_or_default();
            for id in open {
                let path = format!("/v1/runs/{id}/cancel?world=default");
                self.send("POST", &path, Some(&json!({}))).await;
            }
        }
    }

    /// Some of the runs behind one, by id, that are to be canceled.
    fn to_cancel(&self, behind: &str) -> Vec<String> {
        let asked = self.asked();
        let behind = asked.range::<str, _>((Bound::Excluded(behind), Bound::Unbounded));
        let open = behind.filter(|(_, it)| it.kind == Kind::Canceled && it.seen.is_none());
        open.map(|(id, _)| id.clone()).take(20).collect()
    }

    /// Looks at runs and remembers how those ended that are over.
    async fn watch(self: Arc<Self>) {
        while self.works() {
            tokio::time::sleep(PAUSE).await;
            let unseen: Vec<(String, Kind)> = self
                .asked()
                .iter()
                .filter(|(_, asked)| asked.seen.is_none())
                .map(|(id, asked)| (id.clone(), asked.kind))
                .collect();
            for (id, kind) in unseen {
                let path = format!("/v1/runs/{id}?world={}", kind.world());
                let Some((200, run)) = self.send("GET", &path, None).await else { continue };
                if run["ended_at"].is_string()
                    && let Some(asked) = self.asked().get_mut(&id)
                {
                    asked.seen = Some(run);
                }
            }
        }
    }
}
