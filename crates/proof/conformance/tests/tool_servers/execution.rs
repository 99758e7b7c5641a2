//! The tool of the scripted server: it repeats a text word by word.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

use crate::scripted::Shared;

/// One attempt of a run.
pub(crate) struct Run {
    pub(crate) digest: String,
    pub(crate) watchers: AtomicUsize,
    pub(crate) log: watch::Sender<Log>,
    canceled: watch::Sender<bool>,
}

/// What a run said, with numbers.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) frames: Vec<(u64, Message)>,
    pub(crate) done: bool,
}

impl Run {
    pub(crate) fn new(digest: String) -> Self {
        let (log, canceled) = (watch::Sender::default(), watch::Sender::default());
        Self { digest, watchers: AtomicUsize::new(0), log, canceled }
    }

    pub(crate) fn cancel(&self) {
        self.canceled.send_replace(true);
    }
}

/// Says what a run has to say.
struct Teller<'a> {
    shared: &'a Shared,
    run: &'a Run,
    run_id: &'a str,
}

impl Teller<'_> {
    fn has(&self, fault: &str) -> bool {
        self.shared.has(fault)
    }

    fn say(&self, mut message: Value) {
        self.run.log.send_modify(|log| {
            let seq = log.frames.len() as u64 + 1;
            if message["control"]["run_id"].is_null() {
                message["control"]["run_id"] = json!(self.run_id);
            }
            if !self.has("no-numbers") && !self.has("no-additions") {
                message["control"]["seq"] = json!(seq);
            }
            log.frames.push((seq, Message::text(message.to_string())));
        });
    }

    fn say_raw(&self, message: Message) {
        self.run.log.send_modify(|log| log.frames.push((log.frames.len() as u64 + 1, message)));
    }

    fn log(&self) {
        let mut data = json!({ "msg": "Reading", "level": "info", "timestamp": 1_700_000_000 });
        let mut control = json!({});
        match self.shared.fault {
            "unknown-level" => data["level"] = json!("fatal"),
            "milliseconds" => data["timestamp"] = json!(1_700_000_000_000_u64),
            "log-of-another-run" => control["run_id"] = json!("another"),
            "no-additions" => data = json!({ "msg": "Reading" }),
            "not-a-number" => {
                let text = r#"{"kind":"Log","control":{},"data":{"msg":"x","timestamp":NaN}}"#;
                return self.say_raw(Message::text(text));
            }
            "binary-log" => return self.say_raw(Message::binary(b"{}".to_vec())),
            _ => {}
        }
        self.say(json!({ "kind": "Log", "control": control, "data": data }));
    }

    fn event(&self, phase: &str, progress: Option<f64>) {
        let mut data = json!({ "phase": phase });
        if let Some(progress) = progress {
            data["progress"] = json!(progress);
        }
        self.say(json!({ "kind": "Event", "control": {}, "data": data }));
    }

    fn partial(&self, outputs: &Value) {
        let control = json!({ "final": false });
        self.say(json!({ "kind": "Response", "control": control, "outputs": outputs }));
    }

    fn failure(&self, code: &str, message: &str) {
        let control = json!({ "status": "error", "cost_micro": 0, "final": true });
        let message = match self.shared.fault {
            "stack-trace" => "Traceback (most recent call last): boom",
            "names-a-file" => "The file /srv/tool/handler.py failed.",
            _ => message,
        };
        let mut error = json!({ "code": code, "message": message });
        if self.has("error-without-code") && code == "ERR_CANNOT" {
            error = json!({ "message": message });
        }
        let last = json!({
            "kind": "Response", "control": control, "outputs": {}, "error": error,
        });
        self.say(last);
    }

    fn success(&self, outputs: &Value) {
        let mut control = json!({ "status": "success", "cost_micro": 25, "final": true });
        match self.shared.fault {
            "unknown-status" => control["status"] = json!("succeeded"),
            "fraction-of-a-cost" => control["cost_micro"] = json!(0.5),
            "no-cost" => control["cost_micro"] = Value::Null,
            "no-final" => return,
            _ => {}
        }
        let mut last = json!({ "kind": "Response", "control": control, "outputs": outputs });
        if self.has("error-beside-success") {
            last["error"] = json!({ "code": "NONE", "message": "Nothing." });
        }
        self.say(last.clone());
        match self.shared.fault {
            "two-finals" => self.say(last),
            "log-after-the-final" => self.log(),
            _ => self.event("completed", None),
        }
    }
}

/// Executes a run to its end.
pub(crate) async fn execute(shared: Arc<Shared>, run: Arc<Run>, request: Value) {
    shared.active.fetch_add(1, Ordering::SeqCst);
    let run_id = request["control"]["run_id"].as_str().unwrap_or_default();
    let teller = Teller { shared: &shared, run: &run, run_id };
    if let Err((code, message)) = work(&teller, &request).await {
        teller.failure(code, message);
    }
    run.log.send_modify(|log| log.done = true);
    shared.active.fetch_sub(1, Ordering::SeqCst);
}

type Refused = (&'static str, &'static str);

async fn work(teller: &Teller<'_>, request: &Value) -> Result<(), Refused> {
    let unlike = |key: &str| !request[key].is_object() && !request[key].is_null();
    if teller.has("starts-before-looking") && unlike("inputs") {
        teller.event("started", None);
    }
    if (unlike("inputs") || unlike("outputs")) && !teller.has("takes-lists-as-inputs") {
        return Err(("ERR_INPUTS", "Inputs and outputs are objects."));
    }
    if request["inputs"].is_null() && teller.has("refuses-null") {
        return Err(("ERR_INPUTS", "Inputs are missing."));
    }
    let mode = &request["control"]["mode"];
    let known = mode.is_null() || mode == "mock" || mode == "real";
    if !known && !teller.has("runs-unknown-modes") {
        return Err(("ERR_INPUTS", "The mode is unknown."));
    }
    if teller.has("starts-before-checking") {
        teller.event("started", None);
    }
    targets(teller, &request["outputs"])?;
    let read = references(teller, request).await?;
    if !teller.has("starts-before-checking") {
        teller.event("started", None);
    }
    teller.log();
    let text = request["inputs"]["text"].as_str().unwrap_or("nothing");
    if text == "slow" {
        return slow(teller, request).await;
    }
    words(teller, text, read).await
}

fn targets(teller: &Teller<'_>, outputs: &Value) -> Result<(), Refused> {
    let Some(outputs) = outputs.as_object() else { return Ok(()) };
    for target in outputs.values().filter_map(Value::as_str) {
        let http = target.starts_with("http");
        let path = target.starts_with("/artifacts/");
        if http && !teller.has("writes-anywhere") {
            return Err(("ERR_EGRESS", "That address may not be reached."));
        }
        if path && target.contains("/../") && !teller.has("writes-any-path") {
            return Err(("ERR_PATH", "That path may not be opened."));
        }
        if !http && !path && !teller.has("writes-to-ftp") {
            return Err(("ERR_OUTPUTS", "That destination is unknown."));
        }
    }
    Ok(())
}

/// What references were read as.
async fn references(teller: &Teller<'_>, request: &Value) -> Result<Value, Refused> {
    let mut read = Value::Null;
    let refs = &request["control"]["refs"];
    let Some(inputs) = request["inputs"].as_object() else { return Ok(read) };
    for (key, value) in inputs {
        let Some(text) = value.as_str() else { continue };
        let listed = refs.as_array().is_none_or(|refs| refs.contains(&json!(key)));
        let local = text.starts_with("http://127.0.0.1:");
        if !listed && local && teller.has("fetches-everything") {
            let _ = TcpStream::connect(address(text)).await;
        }
        if !listed && text.starts_with("http") && teller.has("refuses-unlisted") {
            return Err(("ERR_EGRESS", "That address may not be reached."));
        }
        if !listed {
            continue;
        }
        if local && teller.has("fetches-from-loopback") {
            let _ = TcpStream::connect(address(text)).await;
        } else if text.starts_with("http") {
            return Err(("ERR_EGRESS", "That address may not be reached."));
        } else if text.starts_with("/artifacts/") {
            if !teller.has("reads-any-path") {
                return Err(("ERR_PATH", "That path may not be opened."));
            }
            read = json!("root:x:0:0");
        }
    }
    Ok(read)
}

fn address(url: &str) -> &str {
    let rest = url.trim_start_matches("http://");
    rest.split('/').next().unwrap_or(rest)
}

/// The text, word by word.
async fn words(teller: &Teller<'_>, text: &str, read: Value) -> Result<(), Refused> {
    match teller.shared.fault {
        "unknown-phase" => teller.event("resting", None),
        "progress-beyond-one" => teller.event("checkpoint", Some(1.5)),
        "partial-lists" => teller.partial(&json!(["Hello"])),
        "error-without-code" if text == "nothing" => {
            return Err(("ERR_CANNOT", "There is no text."));
        }
        _ => teller.event("checkpoint", Some(0.5)),
    }
    let mut so_far = String::new();
    for part in text.split_inclusive(' ') {
        so_far.push_str(part);
        let shown = if teller.has("deltas") { part } else { &so_far };
        teller.partial(&json!({ "text": shown }));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let nonce = format!("{:?}", std::time::Instant::now());
    teller.success(&json!({ "text": so_far, "nonce": nonce, "read": read }));
    Ok(())
}

/// Nothing, for a minute.
async fn slow(teller: &Teller<'_>, request: &Value) -> Result<(), Refused> {
    let deadline = match request["control"]["deadline_ms"].as_u64() {
        Some(limit) if !teller.has("ignores-deadlines") => Duration::from_millis(limit),
        _ => Duration::from_secs(60),
    };
    let mut canceled = teller.run.canceled.subscribe();
    let mut life = tokio::time::interval(Duration::from_millis(200));
    let end = tokio::time::sleep(deadline);
    tokio::pin!(end);
    loop {
        tokio::select! {
            _ = canceled.wait_for(|&canceled| canceled) => {
                if !teller.has("no-preempted") {
                    teller.event("preempted", None);
                }
                return Err(("ERR_CANCELED", "The run was canceled."));
            }
            () = &mut end => {
                let late = teller.has("cancels-at-deadlines");
                let code = if late { "ERR_CANCELED" } else { "ERR_TIMEOUT" };
                return Err((code, "The run took too long."));
            }
            _ = life.tick() => {
                if !teller.has("never-shows-life") {
                    teller.event("checkpoint", None);
                }
            }
        }
    }
}
