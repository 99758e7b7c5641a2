//! Requests about agents.

use std::collections::BTreeSet;
use std::path::PathBuf;

use wharf_domain::provider::{ProviderLimits, Rate, Usage};
use wharf_ports::providers::{Approve, NewFolder};
use wharf_vocab::{Digest, Fault};
use wharf_wire::rest_v1::{self as wire, AddTool, ApproveAgent};

use crate::answer::invalid;

/// Most permissions a manifest can ask for.
const PERMISSIONS_MAX: usize = 500;
/// Longest permission.
const PERMISSION_BYTES_MAX: usize = 300;

/// The folder of a new agent. Where a relative path leads only its sender knows.
pub(crate) fn folder(folder: &str) -> Result<PathBuf, Fault> {
    if wharf_views::is_absolute(folder) {
        return Ok(PathBuf::from(folder));
    }
    let message = "The field `folder` must be an absolute path without control characters.";
    Err(invalid("folder", message))
}

/// The folder of a new tool server, and what of it is approved at once, if anything.
pub(crate) fn new_tool(request: AddTool) -> Result<(NewFolder, Option<Approve>), Fault> {
    let AddTool { folder: path, namespace, approve, permissions, sandbox } = request;
    let folder = NewFolder { path: folder(&path)?, namespace, ..NewFolder::default() };
    if !approve.unwrap_or(false) {
        let named = permissions.map(|_| "permissions").or(sandbox.map(|_| "sandbox"));
        return match named {
            Some(name) => {
                let message = format!("The field `{name}` counts only with `approve: true`.");
                Err(invalid(name, message))
            }
            None => Ok((folder, None)),
        };
    }
    let all = permissions.is_none().then_some(true);
    let request = ApproveAgent { permissions, all, sandbox, ..ApproveAgent::default() };
    approval(request).map(|approve| (folder, Some(approve)))
}

/// What an owner approves.
pub(crate) fn approval(request: ApproveAgent) -> Result<Approve, Fault> {
    Ok(Approve {
        manifest_hash: request.manifest_hash.as_deref().map(manifest_hash).transpose()?,
        permissions: permissions(request.permissions, request.all.unwrap_or(false))?,
        sandbox: request.sandbox,
        isolation: request.isolation,
        limits: request.limits.as_ref().map_or_else(|| Ok(ProviderLimits::default()), limits)?,
    })
}

/// The hash of the manifest that was looked at, as agents are shown with it.
fn manifest_hash(text: &str) -> Result<Digest, Fault> {
    let wrong = || invalid("manifest_hash", "The field `manifest_hash` must be 64 hex digits.");
    let is_hash = text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit());
    let digest = is_hash.then(|| serde_json::from_value(text.to_ascii_lowercase().into()));
    digest.and_then(Result::ok).ok_or_else(wrong)
}

/// The permissions that are approved; none stands for all the agent asks for.
fn permissions(named: Option<Vec<String>>, all: bool) -> Result<Option<Vec<String>>, Fault> {
    let mut permissions = match (named, all) {
        (None, true) => return Ok(None),
        (Some(permissions), false) => permissions,
        (None, false) | (Some(_), true) => {
            let message = "Send either `permissions` or `all: true`, and not both.";
            return Err(invalid("permissions", message));
        }
    };
    let fits = |text: &String| text.len() <= PERMISSION_BYTES_MAX;
    if permissions.len() > PERMISSIONS_MAX || !permissions.iter().all(fits) {
        let message = format!(
            "A manifest has {PERMISSIONS_MAX} permissions of {PERMISSION_BYTES_MAX} bytes at most."
        );
        return Err(invalid("permissions", message));
    }
    let mut seen = BTreeSet::new();
    permissions.retain(|permission| seen.insert(permission.clone()));
    Ok(Some(permissions))
}

/// An owner's limits. A limit of nothing at all would stop an agent for ever, so there is none.
pub(super) fn limits(limits: &wire::AgentLimits) -> Result<ProviderLimits, Fault> {
    let numbers = [
        ("calls_max", limits.calls_max.map(u64::from)),
        ("rate", limits.rate.map(|rate| u64::from(rate.count).min(rate.per_ms))),
        ("call_ms", limits.call_ms),
        ("input_bytes", limits.input_bytes),
        ("output_bytes", limits.output_bytes),
        ("stream_bytes", limits.stream_bytes),
        ("memory_bytes", limits.memory_bytes),
        ("cpu_ms", limits.cpu_ms),
        ("cpu_millicores", limits.cpu_millicores),
        ("processes", limits.processes),
        ("open_files", limits.open_files),
        ("disk_bytes", limits.disk_bytes),
    ];
    if let Some((name, _)) = numbers.iter().find(|(_, number)| *number == Some(0)) {
        let name = format!("limits.{name}");
        return Err(invalid(&name, format!("The field `{name}` must be more than 0.")));
    }
    Ok(ProviderLimits {
        calls_max: limits.calls_max,
        rate: limits.rate.map(|rate| Rate { count: rate.count, per_ms: rate.per_ms }),
        call_ms: limits.call_ms,
        input_bytes: limits.input_bytes,
        output_bytes: limits.output_bytes,
        stream_bytes: limits.stream_bytes,
        usage: Usage {
            memory_bytes: limits.memory_bytes,
            cpu_ms: limits.cpu_ms,
            cpu_millicores: limits.cpu_millicores,
            processes: limits.processes,
            open_files: limits.open_files,
            disk_bytes: limits.disk_bytes,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wharf_vocab::{Code, Isolation, SandboxLevel};

    #[test]
    fn a_folder_is_absolute_and_can_be_shown() {
        let read = |text: &str| folder(text);
        assert_eq!(read("/srv/agents/hello"), Ok(PathBuf::from("/srv/agents/hello")));
        for bad in ["", "hello", "./hello", "~/hello", "/a\nb", "/a\0b"] {
            let fault = read(bad).expect_err(bad);
            assert_eq!(fault.details["field"], "folder", "{bad}");
        }
        assert!(read(&format!("/{}", "x".repeat(5_000))).is_err());
    }

    #[test]
    fn an_approval_names_permissions_or_all() {
        let read = |body: Value| {
            let read = approval(serde_json::from_value(body).expect("a request"));
            read.map(|approve| approve.permissions)
        };
        let some = |texts: &[&str]| Ok(Some(texts.iter().map(ToString::to_string).collect()));
        assert_eq!(read(json!({"all": true})), Ok(None));
        assert_eq!(read(json!({"permissions": []})), some(&[]));
        assert_eq!(read(json!({"permissions": ["b:c", "a:b", "b:c"]})), some(&["b:c", "a:b"]));
        assert_eq!(read(json!({"permissions": ["a:b"], "all": false})), some(&["a:b"]));
        for bad in [
            json!({}),
            json!({"all": false}),
            json!({"all": true, "permissions": []}),
            json!({"permissions": ["x".repeat(301)]}),
            json!({"permissions": vec!["a:b"; 501]}),
        ] {
            assert!(read(bad).is_err_and(|fault| fault.is(Code::RequestInvalid)));
        }
    }

    #[test]
    fn an_approval_sets_terms() {
        let body = json!({"all": true, "sandbox": "strict", "isolation": "run",
            "limits": {"calls_max": 2, "rate": {"count": 60, "per_ms": 60_000}, "cpu_ms": 5}});
        let read = approval(serde_json::from_value(body).expect("a request")).expect("fits");
        assert_eq!(read.sandbox, Some(SandboxLevel::Strict));
        assert_eq!(read.isolation, Some(Isolation::Run));
        assert_eq!((read.limits.calls_max, read.limits.usage.cpu_ms), (Some(2), Some(5)));
        assert_eq!(read.limits.rate, Some(Rate { count: 60, per_ms: 60_000 }));
        let body = json!({"all": true, "limits": {"processes": 0}});
        let fault = approval(serde_json::from_value(body).expect("a request")).expect_err("none");
        assert_eq!(fault.details["field"], "limits.processes");
        for odd in [json!({"all": true, "sandbox": "loose"}), json!({"all": true, "limit": {}})] {
            assert!(serde_json::from_value::<ApproveAgent>(odd).is_err());
        }
    }
}
