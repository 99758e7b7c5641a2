//! What is owed, what is tried when, what is given up.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use wharf_domain::notify::{IncludedValues, NotificationResult};
use wharf_domain::{Caller, Notification, Receiver};
use wharf_engine::Handle;
use wharf_ports::vault::Vault;
use wharf_vocab::{Code, Fault, NotificationId, NotificationState, ReceiverId, Timestamp, shown};
use wharf_web::outbound;

use crate::address::Outbound;
use crate::letter;

/// How long a notification is tried for.
const TRY_FOR_MS: u64 = 24 * 60 * 60 * 1_000;
/// The pause after the first failure; each is twice as long as the one before.
const PAUSE_MS: u64 = 2_000;
/// The longest pause.
const PAUSE_MS_MAX: u64 = 60 * 60 * 1_000;
/// Letters on their way to one receiver.
const AT_ONCE: usize = 2;
/// How long it looks away at most.
const LOOK_AWAY: Duration = Duration::from_secs(30);
/// How long it looks away while something waits.
const CLOCK_AGAIN: Duration = Duration::from_secs(1);
/// How long it looks away at least, so that many notifications are read together.
const BREATH: Duration = Duration::from_millis(20);
/// Longest reason that a history keeps.
const WHY_CHARS_MAX: usize = 300;
/// The pause before the store is asked again that could not be.
const STORE_AGAIN: Duration = Duration::from_secs(2);

pub(crate) struct Postman {
    desk: Arc<DeliveryDesk>,
    /// What is owed, as far as it is known here.
    owed: BTreeMap<NotificationId, Owed>,
    /// What is owed no more and may not be committed as such yet.
    over: BTreeSet<NotificationId>,
    on_the_way: FuturesUnordered<BoxFuture<'static, (NotificationId, Sent)>>,
}

/// What every letter is sent with.
struct DeliveryDesk {
    handle: Handle,
    vault: Arc<dyn Vault>,
    console: String,
    outbound: Option<Outbound>,
}

/// A notification that is owed.
struct Owed {
    it: Arc<Notification>,
    happened_at: Timestamp,
    tries: u32,
    next_at: Timestamp,
    is_on_the_way: bool,
}

/// What became of a try.
enum Sent {
    /// It is owed no more.
    Over,
    /// It is tried again.
    Again { counts: bool },
}

/// Why a receiver did not take a letter.
struct NotTaken {
    status: Option<u16>,
    why: String,
}

impl Postman {
    pub(crate) fn new(
        handle: Handle,
        vault: Arc<dyn Vault>,
        console: String,
        outbound: Option<Outbound>,
    ) -> Self {
        let desk = Arc::new(DeliveryDesk { handle, vault, console, outbound });
        Self {
            desk,
            owed: BTreeMap::new(),
            over: BTreeSet::new(),
            on_the_way: FuturesUnordered::new(),
        }
    }

    /// Sends what is owed, for as long as it is polled.
    pub(crate) async fn work(mut self) {
        let handle = self.desk.handle.clone();
        let mut look = true;
        loop {
            if look && let Err(pause) = self.look().await {
                tokio::time::sleep(pause).await;
                continue;
            }
            self.send_what_is_due();
            let pause = self.pause(handle.now());
            look = tokio::select! {
                Some((id, sent)) = self.on_the_way.next(), if !self.on_the_way.is_empty() => {
                    self.came_back(&id, &sent);
                    false
                }
                () = handle.receivers().owes() => {
                    tokio::time::sleep(BREATH).await;
                    true
                }
                () = tokio::time::sleep(pause) => self.owed.is_empty(),
            };
        }
    }

    /// How long there is nothing to do. The clock may be set meanwhile, so it is looked at often
    /// while something waits.
    fn pause(&self, now: Timestamp) -> Duration {
        let waiting = self.owed.values().filter(|owed| !owed.is_on_the_way);
        let waits = waiting.map(|owed| owed.next_at.until(now)).filter(|wait| !wait.is_zero());
        let pause = if self.owed.is_empty() { LOOK_AWAY } else { CLOCK_AGAIN };
        waits.min().unwrap_or(pause).min(pause).max(BREATH)
    }

    /// Reads what is owed from the journal.
    async fn look(&mut self) -> Result<(), Duration> {
        let owed = self.desk.handle.receivers().owed().await.map_err(|fault| {
            tracing::debug!(code = %fault.code, "what is owed cannot be read");
            STORE_AGAIN
        })?;
        let mut known = std::mem::take(&mut self.owed);
        let over = std::mem::take(&mut self.over);
        for (happened_at, it) in owed {
            if over.contains(&it.id) {
                self.over.insert(it.id);
                continue;
            }
            let new = || Owed {
                it: Arc::new(it.clone()),
                happened_at,
                tries: 0,
                next_at: happened_at,
                is_on_the_way: false,
            };
            self.owed.insert(it.id.clone(), known.remove(&it.id).unwrap_or_else(new));
        }
        // What is on its way comes back.
        self.owed.extend(known.into_iter().filter(|(_, owed)| owed.is_on_the_way));
        Ok(())
    }

    fn send_what_is_due(&mut self) {
        let now = self.desk.handle.now();
        let mut busy: HashMap<ReceiverId, usize> = HashMap::new();
        for owed in self.owed.values().filter(|owed| owed.is_on_the_way) {
            *busy.entry(owed.it.receiver.clone()).or_default() += 1;
        }
        for owed in self.owed.values_mut() {
            let letters = busy.entry(owed.it.receiver.clone()).or_default();
            if owed.is_on_the_way || owed.next_at > now || *letters >= AT_ONCE {
                continue;
            }
            (*letters, owed.is_on_the_way) = (*letters + 1, true);
            let desk = Arc::clone(&self.desk);
            let (it, happened_at, tries) = (Arc::clone(&owed.it), owed.happened_at, owed.tries);
            self.on_the_way.push(Box::pin(async move {
                let sent = desk.deliver(&it, happened_at, tries + 1).await;
                (it.id.clone(), sent)
            }));
        }
    }

    fn came_back(&mut self, id: &NotificationId, sent: &Sent) {
        let now = self.desk.handle.now();
        match sent {
            Sent::Over => {
                self.owed.remove(id);
                self.over.insert(id.clone());
            }
            Sent::Again { counts } => {
                let Some(owed) = self.owed.get_mut(id) else { return };
                owed.is_on_the_way = false;
                owed.tries += u32::from(*counts);
                let doubled = 1_u64.checked_shl(owed.tries.saturating_sub(1).min(32));
                let pause = PAUSE_MS.saturating_mul(doubled.unwrap_or(u64::MAX));
                owed.next_at = now.plus_ms(pause.min(PAUSE_MS_MAX));
            }
        }
    }
}

/// Whether a fault says that a receiver's condition makes no sense of what happened.
fn is_of_condition(fault: &Fault) -> bool {
    fault.is(Code::FlowExpression) || fault.is(Code::FlowExpressionLimit)
}

/// What became of a notification, for its receiver's history.
fn told(
    it: &Notification,
    happened_at: Timestamp,
    tries: u32,
    (state, status, why): (NotificationState, Option<u16>, Option<String>),
) -> NotificationResult {
    NotificationResult {
        id: it.id.clone(),
        event: it.event.clone(),
        about: it.about(),
        happened_at,
        state,
        tries,
        status,
        why,
    }
}

fn count(result: &'static str) {
    metrics::counter!("wharf_notification_tries_total", "result" => result).increment(1);
}

impl DeliveryDesk {
    /// Tries to bring a notification, and writes down what became of it.
    async fn deliver(&self, it: &Notification, happened_at: Timestamp, tries: u32) -> Sent {
        let receivers = self.handle.receivers();
        let Ok(receiver) = receivers.get(&it.receiver) else {
            // Nobody is there any more who could want it.
            return self.end(it, None).await;
        };
        if receiver.paused.is_some() {
            return Sent::Again { counts: false };
        }
        if self.handle.trust().check_current(&Caller::receiver(&receiver)).is_err() {
            let _ = receivers.rights_ended(&it.receiver).await;
            return Sent::Again { counts: false };
        }
        let posted = match receivers.letter(&receiver, it).await {
            // Its condition does not hold: it is not for this receiver.
            Ok(None) => return self.end(it, None).await,
            Ok(Some(values)) => self.post(&receiver, (it, happened_at), &values).await,
            Err(fault) if is_of_condition(&fault) => {
                let why = format!("its condition cannot be evaluated: {}", fault.message);
                let why = shown(&why, WHY_CHARS_MAX);
                count(NotificationState::Parked.as_str());
                let state = NotificationState::Parked;
                let told = told(it, happened_at, tries, (state, None, Some(why)));
                return self.end(it, Some(told)).await;
            }
            Err(_) => return Sent::Again { counts: false },
        };
        let (state, status, why) = match posted {
            Ok(status) => (NotificationState::Sent, Some(status), None),
            Err(NotTaken { status, why }) => {
                tracing::debug!(receiver = %receiver.id, tries, "a notification was not taken");
                let too_old = self.handle.now().ms_since(happened_at) >= TRY_FOR_MS;
                if !too_old {
                    count("failed");
                    return Sent::Again { counts: true };
                }
                (NotificationState::Parked, status, Some(why))
            }
        };
        count(state.as_str());
        self.end(it, Some(told(it, happened_at, tries, (state, status, why)))).await
    }

    /// Writes down that a notification is owed no more.
    async fn end(&self, it: &Notification, told: Option<NotificationResult>) -> Sent {
        match self.handle.receivers().settle(it, told).await {
            Ok(()) => Sent::Over,
            // It is sent again; the receiver knows it by its id.
            Err(_) => Sent::Again { counts: false },
        }
    }

    /// Posts a letter; the answer's body is dropped unread.
    async fn post(
        &self,
        receiver: &Receiver,
        (it, happened_at): (&Notification, Timestamp),
        values: &IncludedValues,
    ) -> Result<u16, NotTaken> {
        let not_taken = |why: &str| NotTaken { status: None, why: why.to_owned() };
        let spec = &receiver.spec;
        let gone = || not_taken("its address or key is not kept any more");
        let url = self.vault.get(spec.url.clone()).await.map_err(|_| gone())?;
        let key = self.vault.get(spec.key.clone()).await.map_err(|_| gone())?;
        let url = std::str::from_utf8(url.expose()).map_err(|_| gone())?;
        let url = outbound::read(url.trim(), spec.allow_private)
            .map_err(|_| not_taken("its address cannot be used"))?;
        let clients = self.outbound.as_ref().ok_or_else(|| not_taken("there is no HTTP client"))?;
        let body = letter::body((it, happened_at), values, spec.format, &self.console).to_string();
        let seconds = self.handle.now().0 / 1_000;
        let signature = letter::signature(key.expose(), &it.id, seconds, body.as_bytes());
        let signature = signature.ok_or_else(|| not_taken("its key cannot be used"))?;
        let request = clients
            .client(spec.allow_private)
            .post(url)
            .header("content-type", "application/json")
            .header("webhook-id", it.id.as_str())
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", signature)
            .body(body);
        // The address is nobody's business, so it leaves the error before it is read.
        let answer = request.send().await.map_err(|error| {
            let error = error.without_url();
            not_taken(if error.is_timeout() {
                "it did not answer in time"
            } else if error.is_connect() {
                "it cannot be reached, or its address may not be"
            } else {
                "the connection broke off"
            })
        })?;
        let status = answer.status();
        match status.is_success() {
            true => Ok(status.as_u16()),
            false => Err(NotTaken {
                status: Some(status.as_u16()),
                why: format!("it answered with {}", status.as_u16()),
            }),
        }
    }
}
