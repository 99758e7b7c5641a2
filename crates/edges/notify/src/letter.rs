//! How a notification is written and signed.
//!
//! Signatures are those of Standard Webhooks: over id, time and body, so that a receiver can tell
//! who sent it, that it is recent, and that it has it already.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use wharf_domain::Notification;
use wharf_domain::notify::IncludedValues;
use wharf_vocab::{DateTime, NotifyFormat, Timestamp};
use wharf_web::outbound::KEY_PREFIX;

/// The body of a letter.
pub(crate) fn body(
    (it, at): (&Notification, Timestamp),
    values: &IncludedValues,
    format: NotifyFormat,
    console: &str,
) -> Value {
    match format {
        NotifyFormat::Json => {
            let mut body = as_json(it, at, console);
            for (name, object) in [("inputs", &values.inputs), ("outputs", &values.outputs)] {
                if let Some(object) = object {
                    body[name] = Value::Object(object.clone());
                }
            }
            body
        }
        NotifyFormat::Slack => json!({ "text": sentence(it, console) }),
    }
}

fn as_json(it: &Notification, at: Timestamp, console: &str) -> Value {
    let mut body = json!({
        "id": it.id,
        "event": it.event,
        "happened_at": DateTime(at),
        "url": link(it, console),
    });
    let facts = [
        ("world", it.world.as_ref().map(ToString::to_string)),
        ("run_id", it.run.as_ref().map(ToString::to_string)),
        ("ask_id", it.ask.as_ref().map(ToString::to_string)),
        ("tool", it.tool.as_ref().map(ToString::to_string)),
        ("status", it.status.map(|status| status.to_string())),
        ("code", it.code.clone()),
        ("title", it.title.clone()),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            body[name] = value.into();
        }
    }
    body
}

/// Where a person sees more. It decides nothing by itself.
fn link(it: &Notification, console: &str) -> String {
    let base = console.trim_end_matches('/');
    match (&it.ask, &it.run, &it.world) {
        (Some(ask), ..) => format!("{base}/inbox?ask={ask}"),
        (None, Some(run), Some(world)) => format!("{base}/runs/{world}/{run}"),
        _ => format!("{base}/"),
    }
}

/// A line as Slack shows it. What others wrote cannot be a link or mention anybody there.
fn sentence(it: &Notification, console: &str) -> String {
    let tool = it.tool.as_ref().map_or_else(String::new, |tool| format!(" {tool}"));
    let title = it.title.as_ref().map_or_else(String::new, |title| format!(": {title}"));
    let world = it.world.as_ref().map_or_else(String::new, |world| format!(" in {world}"));
    let said = match it.event.as_str() {
        "ask.raised" => format!("Waiting for you{world}:{tool}{title}"),
        "run.ended" => {
            let status = it.status.map_or("ended", |status| status.as_str());
            let code = it.code.as_ref().map_or_else(String::new, |code| format!(" ({code})"));
            format!("Run{tool}{world} {status}{code}")
        }
        "budget.exceeded" => format!("Refused for want of money{world}:{tool}"),
        "test" => "This is a test of Wharf's notifications.".to_owned(),
        other => format!("{other}{title}"),
    };
    format!("{} <{}|Look at it>", escaped(&said), link(it, console))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The signature of a body: `v1,` and base64.
pub(crate) fn signature(key: &[u8], id: &str, seconds: u64, body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(key).ok()?.trim();
    let key = STANDARD.decode(text.strip_prefix(KEY_PREFIX)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Notification {
        let told = json!({"id": "0c1", "receiver": "desk", "event": "ask.raised", "world": "lab",
            "run": "r1", "ask": "0cask", "tool": "acme/mail", "title": "Send to <!everyone> & go?"});
        serde_json::from_value(told).expect("a notification")
    }

    #[test]
    fn f036_a_letter_is_signed_as_standard_webhooks_are() {
        // The example of the standard's own libraries.
        let key = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let body = br#"{"test": 2432232314}"#;
        let signed = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
        assert_eq!(signature(b"no key", "a", 1, body), None);
    }

    #[test]
    fn f036_a_body_says_what_waits_and_where_to_look() {
        let none = IncludedValues::default();
        let told = (&asked(), Timestamp(0));
        let body = body(told, &none, NotifyFormat::Json, "https://wharf.example/");
        assert_eq!(body["url"], "https://wharf.example/inbox?ask=0cask");
        assert_eq!((&body["event"], &body["run_id"]), (&json!("ask.raised"), &json!("r1")));
        assert!(body.get("inputs").is_none() && body.get("outputs").is_none());
    }

    #[test]
    fn f036_what_others_wrote_mentions_nobody_in_slack() {
        let none = IncludedValues::default();
        let told = (&asked(), Timestamp(0));
        let body = body(told, &none, NotifyFormat::Slack, "https://wharf.example");
        let text = body["text"].as_str().expect("text");
        assert!(!text.contains("<!everyone>"), "{text}");
        assert!(text.ends_with("<https://wharf.example/inbox?ask=0cask|Look at it>"), "{text}");
    }
}
