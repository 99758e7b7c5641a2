//! What a launch is given follows from what was approved, and goes when the launch goes.

use std::path::Path;

use serde_json::{Value, json};
use wharf_domain::Outcome;
use wharf_domain::provider::{ProviderLimits, Usage};
use wharf_ports::providers::{Approve, ProviderControl, ProviderState};
use wharf_ports::vault::Secret;
use wharf_ports::vault::Vault as _;
use wharf_vocab::{Code, Resource, SandboxLevel, SecretName};

use crate::stage::{Stage, id, owner};

fn asks_for(stage: &Stage, permissions: &[String]) {
    stage.write_manifest_with(json!({"permissions": permissions}));
}

fn name(text: &str) -> SecretName {
    SecretName::new(text).expect("valid")
}

/// A folder below the test's own, by the name the system knows it by.
fn made(stage: &Stage, folder: &str) -> String {
    let path = stage.dir.path().join(folder);
    std::fs::create_dir_all(&path).expect("made");
    std::fs::canonicalize(path).expect("there").display().to_string()
}

#[tokio::test]
async fn r066_permissions_become_the_fence_and_what_was_not_approved_is_not_in_it() {
    let mut stage = Stage::new().await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let shared = std::fs::canonicalize(elsewhere.path()).expect("there");
    let notes = made(&stage, "user/notes");
    let read = "filesystem:read:~/notes/**".to_owned();
    let nothing = "filesystem:read:~/nothing/**".to_owned();
    let write = format!("filesystem:write:{}/**", shared.display());
    let left_out = "network:egress:example.dev".to_owned();
    asks_for(&stage, &[read.clone(), write.clone(), nothing.clone(), left_out]);
    let permissions = Some(vec![read, write, nothing]);
    let launch = stage.started_with(Approve { permissions, ..Approve::default() }).await;
    let fence = &launch.spec.fence;
    assert_eq!(fence.read, [Path::new(&notes)]);
    assert_eq!(fence.write, [shared]);
    assert_eq!(fence.egress, None);
    assert!(stage.doors.opened().is_empty());
    let view = stage.until(|view| view.fence.is_some()).await;
    let notes = view.fence.expect("fenced").notes;
    assert!(notes[0].contains("nothing/** gives nothing"), "{notes:?}");
    assert_eq!((fence.level, fence.minimum), (SandboxLevel::Standard, SandboxLevel::Standard));
}

#[tokio::test]
async fn the_level_is_the_approvals_and_the_least_is_the_owners() {
    let mut stage =
        Stage::with(|options| options.hosting.sandbox_min = Some(SandboxLevel::Basic)).await;
    let sandbox = Some(SandboxLevel::Strict);
    let launch = stage.started_with(Approve { sandbox, ..Approve::default() }).await;
    let fence = &launch.spec.fence;
    assert_eq!((fence.level, fence.minimum), (SandboxLevel::Strict, SandboxLevel::Basic));
    let view = stage.until(|view| view.fence.is_some()).await;
    assert_eq!(view.fence.expect("fenced").level, SandboxLevel::Strict);
    let started = stage.audited("agent.run_started").await;
    assert_eq!(started[0].facts["sandbox"], "strict");
    assert_eq!(started[0].facts["notes"], 0);
}

#[tokio::test]
async fn limits_of_manifest_owner_and_approval_hold_where_they_are_strictest() {
    let usage = |memory, processes, files| Usage {
        memory_bytes: memory,
        processes,
        open_files: files,
        ..Usage::default()
    };
    let limits = |usage| ProviderLimits { usage, ..ProviderLimits::default() };
    let mut stage = Stage::with(|options| {
        options.hosting.limits = limits(usage(Some(1 << 30), Some(10), None));
    })
    .await;
    let resources = json!({"memory": "256Mi", "processes": 20, "open_files": 100});
    stage.write_manifest_with(json!({"resources": resources}));
    let approve = Approve { limits: limits(usage(None, Some(15), Some(50))), ..Approve::default() };
    let launch = stage.started_with(approve).await;
    let expected = usage(Some(256 << 20), Some(10), Some(50));
    assert_eq!(launch.spec.fence.usage, Usage { disk_bytes: Some(1 << 30), ..expected });
}

#[tokio::test]
async fn where_nobody_sets_a_limit_there_is_one_all_the_same_and_it_is_shown() {
    let unless_said = Usage {
        memory_bytes: Some(1 << 30),
        processes: Some(256),
        open_files: Some(1024),
        disk_bytes: Some(1 << 30),
        ..Usage::default()
    };
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    assert_eq!(launch.spec.fence.usage, unless_said);
    assert_eq!(stage.edge.control().show(&id()).expect("known").limits.usage, unless_said);
    // Each may raise what nobody else has set lower.
    let said = Usage { memory_bytes: Some(8 << 30), processes: Some(999), ..Usage::default() };
    let limits = |usage| ProviderLimits { usage, ..ProviderLimits::default() };
    for by_settings in [true, false] {
        let (settings, terms) = if by_settings {
            (limits(said.clone()), ProviderLimits::default())
        } else {
            (ProviderLimits::default(), limits(said.clone()))
        };
        let mut stage = Stage::with(|options| options.hosting.limits = settings).await;
        let launch = stage.started_with(Approve { limits: terms, ..Approve::default() }).await;
        let usage = &launch.spec.fence.usage;
        assert_eq!((usage.memory_bytes, usage.processes), (Some(8 << 30), Some(999)));
        assert_eq!(usage.open_files, Some(1024));
    }
}

#[tokio::test]
async fn r066_the_launcher_is_told_what_no_agent_may_see_by_its_real_path() {
    let mut stage = Stage::with(|options| {
        let home = options.hosting.hidden[0].parent().expect("a folder").to_owned();
        std::fs::create_dir_all(home.join("kept")).expect("made");
        std::os::unix::fs::symlink("kept", home.join("link")).expect("links");
        options.hosting.hidden = vec![home.join("link"), home.join("link/not there yet")];
    })
    .await;
    let launch = stage.started().await;
    let kept = made(&stage, "kept");
    let kept = Path::new(&kept);
    assert_eq!(launch.spec.fence.hidden, [kept.to_owned(), kept.join("not there yet")]);
}

#[tokio::test]
async fn hosts_are_reached_through_a_door_that_is_open_as_long_as_the_launch() {
    let mut stage = Stage::new().await;
    asks_for(&stage, &["network:egress:api.example.dev:443".to_owned()]);
    let launch = stage.started().await;
    let socket = launch.spec.fence.egress.clone().expect("a way out");
    let doors = stage.doors.opened();
    assert_eq!(doors[0].socket, socket);
    assert_eq!(doors[0].allowed, ["api.example.dev:443"]);
    assert!(doors[0].is_open());
    launch.exit(1);
    let next = stage.launch().await;
    assert!(!doors[0].is_open(), "closed with its launch");
    assert_ne!(next.spec.fence.egress, Some(socket));
    assert!(stage.doors.opened()[1].is_open());
}

#[tokio::test]
async fn approved_secrets_go_by_file_and_stay_out_of_environment_and_log() {
    let mut stage = Stage::new().await;
    let secret = Secret::new(b"canary-first\ncanary-second\n".to_vec());
    stage.vault.set(name("API_KEY"), secret.clone()).await.expect("kept");
    stage.vault.set(name("OTHER"), Secret::new(b"canary-other".to_vec())).await.expect("kept");
    asks_for(&stage, &["secret:use:API_KEY".to_owned(), "secret:use:OTHER".to_owned()]);
    let permissions = Some(vec!["secret:use:API_KEY".to_owned()]);
    let launch = stage.started_with(Approve { permissions, ..Approve::default() }).await;
    assert_eq!(launch.spec.secret_files.len(), 1, "only what was approved");
    assert_eq!(launch.spec.secret_files[&name("API_KEY")], secret);
    for line in ["canary-first", "canary-second"] {
        assert!(launch.spec.secrets.iter().any(|kept_out| kept_out == line), "{line}");
    }
    let around = format!("{:?} {:?}", launch.spec.env, launch.spec.args);
    assert!(!around.contains("canary"), "{around}");
    let audited = stage.handle.audit().list(0, 1_000).await.expect("readable");
    assert!(!format!("{audited:?}").contains("canary"));
}

#[tokio::test]
async fn a_secret_that_is_not_set_fails_the_start_by_its_name() {
    let stage = Stage::new().await;
    asks_for(&stage, &["secret:use:API_KEY".to_owned()]);
    stage.edge.control().add(owner(), stage.folder()).await.expect("added");
    stage.edge.control().approve(owner(), id(), Approve::default()).await.expect("approved");
    let fault = stage.edge.control().start(owner(), id()).await.expect_err("no secret");
    assert!(fault.is(Code::SecretNotFound) && fault.message.contains("API_KEY"), "{fault}");
    assert!(!stage.edge.control().show(&id()).expect("known").provider.wanted);
}

#[tokio::test]
async fn a_secret_that_is_gone_ends_the_restarts() {
    let mut stage = Stage::new().await;
    stage.vault.set(name("API_KEY"), Secret::new(b"k".to_vec())).await.expect("kept");
    asks_for(&stage, &["secret:use:API_KEY".to_owned()]);
    let launch = stage.started().await;
    stage.vault.remove(name("API_KEY")).await.expect("removed");
    launch.exit(1);
    let view = stage.until(|view| view.state == ProviderState::Crashed).await;
    assert!(view.reason.expect("a reason").contains("API_KEY"));
}

#[tokio::test]
async fn r066_of_the_cores_environment_only_approved_names_are_passed() {
    let mut stage = Stage::new().await;
    // Set by cargo for every test it runs.
    let (given, held) = ("CARGO_PKG_NAME", "CARGO_PKG_VERSION");
    assert!(std::env::var_os(held).is_some(), "{held} is part of this test");
    asks_for(&stage, &[format!("env:read:{given}"), "env:read:PATH".to_owned()]);
    let launch = stage.started().await;
    assert_eq!(launch.env(given), "wharf-agent");
    assert!(!launch.spec.env.contains_key(held));
    assert_ne!(launch.env("PATH"), std::env::var("PATH").unwrap_or_default(), "never the core's");
}

#[tokio::test]
async fn what_no_agent_may_have_is_refused_at_approval_with_a_sentence() {
    let stage = Stage::new().await;
    let own = made(&stage, "agent");
    let hidden = made(&stage, "wharf");
    for (permission, why) in [
        (format!("filesystem:read:{hidden}/**"), "keeps for itself"),
        (format!("filesystem:write:{own}/state/**"), "never write there"),
        ("filesystem:read:/**".to_owned(), "keeps for itself"),
    ] {
        asks_for(&stage, std::slice::from_ref(&permission));
        stage.edge.control().add(owner(), stage.folder()).await.expect("added");
        let fault = stage
            .edge
            .control()
            .approve(owner(), id(), Approve::default())
            .await
            .expect_err("refused");
        assert!(fault.is(Code::RequestInvalid) && fault.message.contains(why), "{fault}");
        assert_eq!(fault.details["permission"], Value::String(permission));
    }
}

#[tokio::test]
async fn a_launch_that_goes_over_a_limit_is_named_and_started_again() {
    let mut stage = Stage::new().await;
    let (launch, _agent) = stage.joined(&["echo"]).await;
    launch.exceed(Resource::Memory);
    let next = stage.launch().await;
    let audited = stage.audited("agent.resource_exceeded").await;
    assert_eq!(audited[0].facts["resource"], "memory");
    for _ in 0..3 {
        next.exceed(Resource::Memory);
        stage.launch().await.exceed(Resource::Memory);
    }
    let view = stage.until(|view| view.state == ProviderState::Crashed).await;
    let reason = view.reason.expect("a reason");
    assert!(reason.contains("it went over its limit of memory"), "{reason}");
}

#[tokio::test]
async fn whoever_called_learns_that_the_agent_went_over_a_limit() {
    let mut stage = Stage::new().await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let _call = agent.call().await;
    launch.exceed(Resource::Memory);
    drop(agent);
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert!(error.is(Code::ToolAgentLost), "{error}");
    assert!(error.message.contains("it went over its limit of memory"), "{error}");
}

#[tokio::test]
async fn what_a_launch_keeps_for_a_while_goes_with_it() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let tmp = Path::new(launch.env("TMPDIR")).to_owned();
    assert!(launch.spec.private_dirs.contains(&tmp));
    std::fs::create_dir_all(&tmp).expect("made");
    std::fs::write(tmp.join("large"), "x").expect("written");
    launch.exit(1);
    let next = stage.launch().await;
    assert_ne!(Path::new(next.env("TMPDIR")), tmp, "the next one begins afresh");
    let deadline = tokio::time::Instant::now() + crate::agent::LONG;
    while tmp.exists() {
        assert!(tokio::time::Instant::now() < deadline, "it is still there");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}
