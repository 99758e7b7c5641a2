//! What a worker carries: the right to one attempt of one run, and to nothing else.
//!
//! It comes in two forms with the same rights. The long one says all that it gives and is sealed
//! with the core's key; the short one is derived from task and attempt under the same key, so it
//! can be given again after a restart without having been stored.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use wharf_vocab::ToolId;

use super::Keyring;
use crate::permission::ToolPattern;

/// Longest text of a worker's credential.
pub const CREDENTIAL_BYTES_MAX: usize = 8 * 1024;
/// What every short form begins with.
pub const HANDLE_PREFIX: &str = "wh-";

const SEALED: &[u8] = b"wharf.worker.1\0";
const DERIVED: &[u8] = b"wharf.worker.handle.1\0";
const ROLE: &str = "worker";
/// Bytes of the derived part of a handle, as much as 128 bits of hexadecimal text.
const HANDLE_BYTES: usize = 20;

/// One thing that a worker may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum WorkerScope {
    /// Read what is to be done.
    PromptRead,
    /// Say what came of it, and how far it is.
    ResultWrite,
    /// Write files into the run's world.
    ArtifactWrite,
    /// Ask a question.
    Ask,
    /// Call tools that fit a pattern.
    Invoke(ToolPattern),
}

impl fmt::Display for WorkerScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PromptRead => f.write_str("prompt:read"),
            Self::ResultWrite => f.write_str("result:write"),
            Self::ArtifactWrite => f.write_str("artifact:write"),
            Self::Ask => f.write_str("ask:raise"),
            Self::Invoke(pattern) => write!(f, "tool:invoke:{pattern}"),
        }
    }
}

impl From<WorkerScope> for String {
    fn from(scope: WorkerScope) -> Self {
        scope.to_string()
    }
}

impl TryFrom<String> for WorkerScope {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "prompt:read" => Ok(Self::PromptRead),
            "result:write" => Ok(Self::ResultWrite),
            "artifact:write" => Ok(Self::ArtifactWrite),
            "ask:raise" => Ok(Self::Ask),
            other => other
                .strip_prefix("tool:invoke:")
                .and_then(|pattern| ToolPattern::parse(pattern).ok())
                .map(Self::Invoke)
                .ok_or_else(|| "there is no such scope".to_owned()),
        }
    }
}

/// The right to one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerGrant {
    /// What is executed.
    pub agent_id: String,
    /// What the worker may do.
    pub scopes: Vec<WorkerScope>,
    /// The attempt's task.
    pub task_id: String,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// When it was made, in Unix seconds.
    pub issued_at: u64,
    /// When it is good no more, in Unix seconds.
    pub expire_at: u64,
    /// Makes it one of its kind.
    pub nonce: String,
}

/// The long form as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    agent_id: String,
    role: String,
    scopes: Vec<WorkerScope>,
    task_id: String,
    attempt: u32,
    issued_at: u64,
    expire_at: u64,
    nonce: String,
    sig_hex: String,
}

impl WorkerGrant {
    /// Whether it lets its bearer call a tool.
    pub fn may_invoke(&self, tool: &ToolId) -> bool {
        let fits = |scope: &WorkerScope| match scope {
            WorkerScope::Invoke(pattern) => pattern.matches(tool),
            _ => false,
        };
        self.scopes.iter().any(fits)
    }

    /// The patterns of tools that it lets its bearer call.
    pub fn tools(&self) -> Vec<ToolPattern> {
        let pattern = |scope: &WorkerScope| match scope {
            WorkerScope::Invoke(pattern) => Some(pattern.clone()),
            _ => None,
        };
        self.scopes.iter().filter_map(pattern).collect()
    }

    /// The long form. Without a key that seals now it is one that is never good.
    pub fn mint(&self, keyring: &Keyring) -> String {
        let sig_hex = match keyring.keys.get(&keyring.current) {
            Some(key) => hex(&self.mac(key).finalize().into_bytes()),
            None => String::new(),
        };
        let Self { agent_id, scopes, task_id, attempt, issued_at, expire_at, nonce } = self.clone();
        let role = ROLE.to_owned();
        let sealed = Sealed {
            agent_id,
            role,
            scopes,
            task_id,
            attempt,
            issued_at,
            expire_at,
            nonce,
            sig_hex,
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&sealed).unwrap_or_default())
    }

    /// Reads the long form back if one of the keys sealed it. Time and fences are for the caller
    /// to check.
    pub fn verify(keyring: &Keyring, text: &str) -> Option<Self> {
        if text.len() > CREDENTIAL_BYTES_MAX {
            return None;
        }
        let sealed: Sealed = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let seal = unhex(&sealed.sig_hex)?;
        let is_worker = sealed.role == ROLE;
        let grant = Self {
            agent_id: sealed.agent_id,
            scopes: sealed.scopes,
            task_id: sealed.task_id,
            attempt: sealed.attempt,
            issued_at: sealed.issued_at,
            expire_at: sealed.expire_at,
            nonce: sealed.nonce,
        };
        // Every key is tried, so that the time it takes says nothing.
        let mut good = false;
        for key in keyring.keys.values() {
            good |= grant.mac(key).verify_slice(&seal).is_ok();
        }
        (good && is_worker).then_some(grant)
    }

    /// All fields, each with its length before it: no two grants have the same encoding.
    fn mac(&self, key: &[u8; 32]) -> Hmac<Sha256> {
        let mut mac = keyed(key);
        mac.update(SEALED);
        let mut part = |bytes: &[u8]| {
            mac.update(&(bytes.len() as u64).to_be_bytes());
            mac.update(bytes);
        };
        part(self.agent_id.as_bytes());
        part(ROLE.as_bytes());
        part(&(self.scopes.len() as u64).to_be_bytes());
        for scope in &self.scopes {
            part(scope.to_string().as_bytes());
        }
        part(self.task_id.as_bytes());
        part(&self.attempt.to_be_bytes());
        part(&self.issued_at.to_be_bytes());
        part(&self.expire_at.to_be_bytes());
        part(self.nonce.as_bytes());
        mac
    }
}

/// The short form for a task and an attempt; the same as long as the core's key is.
pub fn handle(keyring: &Keyring, task_id: &str, attempt: u32) -> Option<String> {
    let mut mac = keyed(keyring.keys.get(&keyring.current)?);
    mac.update(DERIVED);
    mac.update(&(task_id.len() as u64).to_be_bytes());
    mac.update(task_id.as_bytes());
    mac.update(&attempt.to_be_bytes());
    let bytes = mac.finalize().into_bytes();
    Some(format!("{HANDLE_PREFIX}{}", hex(&bytes[..HANDLE_BYTES])))
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("every length is a good key")
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn keyring(current: &str, keys: &[(&str, u8)]) -> Keyring {
        let keys: BTreeMap<_, _> = keys.iter().map(|(n, b)| ((*n).to_owned(), [*b; 32])).collect();
        Keyring { current: current.to_owned(), keys }
    }

    fn grant() -> WorkerGrant {
        WorkerGrant {
            agent_id: "coder".into(),
            scopes: [WorkerScope::PromptRead, WorkerScope::ResultWrite].into(),
            task_id: "ST-1".into(),
            attempt: 2,
            issued_at: 10,
            expire_at: 700,
            nonce: "n".into(),
        }
    }

    #[test]
    fn o018_every_field_is_sealed() {
        let keys = keyring("k1", &[("k1", 1)]);
        let text = grant().mint(&keys);
        assert_eq!(WorkerGrant::verify(&keys, &text), Some(grant()));
        let json: serde_json::Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&text).expect("base64")).expect("JSON");
        let mut names: Vec<_> = json.as_object().expect("an object").keys().collect();
        names.sort();
        let wanted = "agent_id attempt expire_at issued_at nonce role scopes sig_hex task_id";
        assert_eq!(names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(" "), wanted);
        for (field, value) in [
            ("agent_id", "x".into()),
            ("role", "owner".into()),
            ("scopes", serde_json::json!(["prompt:read", "result:write", "tool:invoke:*"])),
            ("task_id", "ST-2".into()),
            ("attempt", 3.into()),
            ("issued_at", 11.into()),
            ("expire_at", 701.into()),
            ("nonce", "m".into()),
            ("sig_hex", "0".repeat(64).into()),
            ("sig_hex", "".into()),
            ("sig_hex", "é".repeat(32).into()),
        ] {
            let mut forged = json.clone();
            forged[field] = value;
            let forged = URL_SAFE_NO_PAD.encode(forged.to_string());
            assert_eq!(WorkerGrant::verify(&keys, &forged), None, "{field}");
        }
        for nonsense in ["", "e30", "////", &"A".repeat(CREDENTIAL_BYTES_MAX + 1)] {
            assert_eq!(WorkerGrant::verify(&keys, nonsense), None);
        }
    }

    #[test]
    fn o018_a_key_that_was_replaced_is_good_as_long_as_it_is_kept() {
        let old = keyring("k1", &[("k1", 1)]);
        let text = grant().mint(&old);
        assert!(WorkerGrant::verify(&keyring("k2", &[("k1", 1), ("k2", 2)]), &text).is_some());
        assert!(WorkerGrant::verify(&keyring("k2", &[("k2", 2)]), &text).is_none());
        assert!(WorkerGrant::verify(&Keyring::none(), &grant().mint(&Keyring::none())).is_none());
    }

    #[test]
    fn o019_a_handle_is_derived_from_task_and_attempt() {
        let keys = keyring("k1", &[("k1", 1)]);
        let one = handle(&keys, "ST-1", 1).expect("a key");
        assert!(one.starts_with("wh-") && one.len() >= 3 + 32);
        assert!(one[3..].bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_eq!(handle(&keys, "ST-1", 1), Some(one.clone()));
        let others = [handle(&keys, "ST-1", 2), handle(&keys, "ST-2", 1)];
        let other_key = handle(&keyring("k1", &[("k1", 9)]), "ST-1", 1);
        assert!(others.iter().chain([&other_key]).all(|other| other.as_ref() != Some(&one)));
        assert_eq!(handle(&Keyring::none(), "ST-1", 1), None);
    }

    #[test]
    fn o018_scopes_are_what_they_say() {
        let scope = |text: &str| WorkerScope::try_from(text.to_owned());
        for text in ["prompt:read", "result:write", "artifact:write", "ask:raise"] {
            assert_eq!(scope(text).expect("a scope").to_string(), text);
        }
        assert!(scope("*").is_err() && scope("tool:invoke:").is_err());
        let mut grant = grant();
        let tool = ToolId::new("llm/chat").expect("valid");
        assert!(!grant.may_invoke(&tool));
        grant.scopes.push(scope("tool:invoke:llm/*").expect("a scope"));
        assert!(grant.may_invoke(&tool));
        assert!(!grant.may_invoke(&ToolId::new("mail/send").expect("valid")));
    }
}
