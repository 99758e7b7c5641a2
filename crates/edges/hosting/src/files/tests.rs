//! Pins that hold and pins that break.

use super::*;
use wharf_domain::provider::{
    AgentDetails, Manifest, ProviderEntry, ProviderInput, ProviderKind, ProviderLimits, Terms,
};
use wharf_domain::{Caller, Severity};
use wharf_vocab::{Code, ProviderId, Timestamp};

/// Manifests as these tests write them: as much as pins have to do with.
const FILE: ManifestFile = ManifestFile {
    name: "test.manifest.json",
    invalid: Code::AgentManifestInvalid,
    read,
    read_again: |folder, _| read(folder),
};

fn read(folder: &Path) -> Result<ReadManifest, Fault> {
    let invalid = || Fault::new(Code::AgentManifestInvalid, "The manifest cannot be read.");
    let bytes = std::fs::read(folder.join(FILE.name)).map_err(|_| invalid())?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &serde_json::Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(text).collect()
    };
    let entrypoint = &value["entrypoint"];
    Ok(ReadManifest {
        id: ProviderId::new(text(&value["id"])).map_err(|_| invalid())?,
        hash: Digest::of_bytes(&bytes),
        manifest: Manifest {
            name: text(&value["id"]),
            version: text(&value["version"]),
            description: String::new(),
            entrypoint: Entrypoint {
                program: text(&entrypoint["value"]),
                args: list(&entrypoint["args"]),
            },
            permissions: list(&value["permissions"]),
            limits: ProviderLimits::default(),
            isolation: None,
            kind: ProviderKind::Agent(AgentDetails::default()),
        },
    })
}

/// An agent's folder on disk, added and approved as it lies there.
fn approved(folder: &Path) -> Provider {
    let read = read(folder).expect("valid");
    let files = digests(FILE, folder, &read.manifest.entrypoint).expect("readable");
    let add = ProviderInput::Add {
        folder: folder.display().to_string(),
        manifest_hash: read.hash,
        manifest: read.manifest,
    };
    let approve = ProviderInput::Approve {
        manifest_hash: None,
        permissions: Vec::new(),
        files,
        terms: Terms::default(),
    };
    let by = Caller::owner().to_ref();
    [add, approve]
        .iter()
        .fold(None, |agent: Option<Provider>, input| {
            let decided = Provider::decide(agent.as_ref(), &read.id, input, &by).expect("legal");
            let (entry, record): (ProviderEntry, _) = decided.expect("a change");
            assert_eq!(record.severity, Severity::Info);
            Provider::apply(agent, &read.id, Timestamp(1), &entry)
        })
        .expect("known")
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("written");
}

fn manifest(version: &str, permissions: &str) -> String {
    format!(
        r#"{{"id":"dev.example.hello","version":"{version}","permissions":[{permissions}],
        "entrypoint":{{"type":"command","value":"./run.sh","args":
        ["agent.py","--mode","./lib/more.py","../outside.py","missing.py"]}}}}"#
    )
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(dir.path().join("lib")).expect("made");
    for name in ["run.sh", "agent.py", "lib/more.py"] {
        write(dir.path(), name, "one");
    }
    write(dir.path(), FILE.name, &manifest("1", r#""env:read:A""#));
    dir
}

#[test]
fn r084_all_files_of_a_folder_are_pinned_but_what_is_hidden_or_made_by_tools() {
    let dir = folder();
    for folder in ["lib/__pycache__", "node_modules/x", "target", "venv", ".git", "lib/deep/er"] {
        std::fs::create_dir_all(dir.path().join(folder)).expect("made");
        write(dir.path(), &format!("{folder}/file"), "x");
    }
    write(dir.path(), ".hidden", "x");
    std::os::unix::fs::symlink("/etc", dir.path().join("link")).expect("links");
    let agent = approved(dir.path());
    let approval = agent.approval.as_ref().expect("approved");
    let names: Vec<_> = approval.files.keys().map(String::as_str).collect();
    assert_eq!(names, [".", "agent.py", "lib/deep/er/file", "lib/more.py", "link", "run.sh"]);
    assert_eq!(approval.files["agent.py"], Digest::of_bytes(b"one"));
    assert_eq!(differences(FILE, &agent), Vec::<String>::new());
}

#[test]
fn what_the_folder_says_is_left_out_and_it_cannot_be_said_unseen() {
    let dir = folder();
    std::fs::create_dir(dir.path().join("out")).expect("made");
    write(dir.path(), ".wharfignore", "out/\n*.log\nagent.py\n");
    write(dir.path(), "out/1.txt", "x");
    let agent = approved(dir.path());
    let approval = agent.approval.as_ref().expect("approved");
    let names: Vec<_> = approval.files.keys().map(String::as_str).collect();
    // What the command names is pinned whatever the list says.
    assert_eq!(names, [".", ".wharfignore", "agent.py", "lib/more.py", "run.sh"]);
    let watch = FileWatch::of(FILE, &agent);
    write(dir.path(), "out/2.txt", "y");
    write(dir.path(), "run.log", "z");
    assert_eq!(differences(FILE, &agent), Vec::<String>::new());
    assert!(watch.is_all_unchanged());
    write(dir.path(), "agent.py", "two");
    assert_eq!(differences(FILE, &agent), ["agent.py was changed"]);
    write(dir.path(), "agent.py", "one");
    write(dir.path(), ".wharfignore", "*\n");
    assert_eq!(differences(FILE, &agent)[0], ".wharfignore was changed");
    assert!(!watch.is_all_unchanged());
}

#[test]
fn files_in_what_a_shell_is_told_are_pinned_too() {
    let dir = folder();
    let told = "cd . && exec env MODE=x python3 -u './agent.py' --more=lib/more.py";
    let entrypoint =
        Entrypoint { program: "sh".to_owned(), args: vec!["-c".to_owned(), told.to_owned()] };
    let pinned = named(dir.path(), &entrypoint);
    assert_eq!(pinned, ["agent.py", "lib/more.py"]);
}

#[test]
fn r084_every_difference_is_told_in_one_line() {
    let dir = folder();
    let agent = approved(dir.path());
    write(dir.path(), "agent.py", "two");
    std::fs::remove_file(dir.path().join("lib/more.py")).expect("removed");
    write(dir.path(), "missing.py", "new");
    write(dir.path(), FILE.name, &manifest("2", r#""network:egress:x.dev""#));
    assert_eq!(
        differences(FILE, &agent),
        [
            "test.manifest.json changed: asks for network:egress:x.dev in addition, \
             does not ask for env:read:A any more, has the version 2 instead of 1",
            "agent.py was changed",
            "lib/more.py is gone",
            "missing.py is new",
        ]
    );
    std::fs::remove_file(dir.path().join(FILE.name)).expect("removed");
    assert_eq!(differences(FILE, &agent)[0], "test.manifest.json is gone");
}

#[test]
fn a_watch_sees_changes_also_of_the_same_length_and_renames_over() {
    let dir = folder();
    let agent = approved(dir.path());
    let watch = FileWatch::of(FILE, &agent);
    assert!(watch.is_unchanged() && watch.is_all_unchanged());
    write(dir.path(), ".unrelated.txt", "x");
    assert!(watch.is_unchanged() && watch.is_all_unchanged());
    write(dir.path(), "new.py", "two");
    assert!(!watch.is_all_unchanged());
    std::fs::rename(dir.path().join("new.py"), dir.path().join("agent.py")).expect("renamed");
    assert!(!watch.is_unchanged());
    watch.replace(FileWatch::of(FILE, &agent));
    assert!(watch.is_unchanged());
    std::fs::remove_file(dir.path().join("run.sh")).expect("removed");
    assert!(!watch.is_unchanged());
}

#[test]
fn too_many_files_are_not_pinned() {
    let dir = folder();
    let args: Vec<_> = (0..70).map(|number| format!("f{number}")).collect();
    for name in &args {
        write(dir.path(), name, "x");
    }
    let entrypoint = Entrypoint { program: "./run.sh".to_owned(), args };
    let fault = digests(FILE, dir.path(), &entrypoint).expect_err("too many");
    assert!(fault.message.contains("64"), "{fault}");
}

#[test]
fn r084_modules_that_no_command_names_are_pinned_and_planted_ones_are_seen() {
    let dir = tempfile::tempdir().expect("a folder");
    let text = r#"{"id":"dev.example.hello","version":"1","permissions":[],
        "entrypoint":{"type":"command","value":"python3","args":["-m","agent"]}}"#;
    write(dir.path(), FILE.name, text);
    for name in ["agent.py", "helper.py"] {
        write(dir.path(), name, "one");
    }
    std::os::unix::fs::symlink("helper.py", dir.path().join("alias.py")).expect("links");
    let agent = approved(dir.path());
    let watch = FileWatch::of(FILE, &agent);
    assert!(watch.is_all_unchanged());
    assert_eq!(differences(FILE, &agent), Vec::<String>::new());
    write(dir.path(), "helper.py", "two");
    write(dir.path(), "json.py", "planted");
    std::fs::remove_file(dir.path().join("alias.py")).expect("removed");
    std::os::unix::fs::symlink("json.py", dir.path().join("alias.py")).expect("links");
    assert!(!watch.is_all_unchanged());
    let expected = ["alias.py was changed", "helper.py was changed", "json.py is new"];
    assert_eq!(differences(FILE, &agent), expected);
    for number in 0..20 {
        write(dir.path(), &format!("new{number:02}.py"), "x");
    }
    let lines = differences(FILE, &agent);
    assert_eq!((lines.len(), lines[10].as_str()), (11, "and 13 more"));
}

#[test]
fn r084_of_a_folder_that_is_too_large_only_named_files_are_pinned_and_it_may_not_become_one() {
    let large = folder();
    for number in 0..1_001 {
        write(large.path(), &format!("f{number}"), "x");
    }
    let heavy = folder();
    let hole = std::fs::File::create(heavy.path().join("hole")).expect("made");
    hole.set_len(65 * 1024 * 1024).expect("sparse");
    for dir in [&large, &heavy] {
        let agent = approved(dir.path());
        let approval = agent.approval.as_ref().expect("approved");
        assert!(!is_whole(approval));
        let names: Vec<_> = approval.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["agent.py", "lib/more.py", "run.sh"]);
        write(dir.path(), "other", "x");
        assert_eq!(differences(FILE, &agent), Vec::<String>::new());
        assert!(FileWatch::of(FILE, &agent).is_all_unchanged());
    }
    let small = folder();
    let agent = approved(small.path());
    let watch = FileWatch::of(FILE, &agent);
    for number in 0..1_001 {
        write(small.path(), &format!("f{number}"), "x");
    }
    assert!(!watch.is_all_unchanged());
    assert!(
        !FileWatch::of(FILE, &agent).is_all_unchanged(),
        "nor when it was too large from the start"
    );
    assert_eq!(differences(FILE, &agent), ["the folder has more in it than can be compared"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_named_is_looked_at_each_time_and_the_rest_now_and_then() {
    let dir = folder();
    let agent = approved(dir.path());
    let watch = FileWatch::of(FILE, &agent);
    write(dir.path(), "planted.py", "x");
    assert!(watch.is_unchanged(), "not looked at yet");
    tokio::time::advance(std::time::Duration::from_secs(3)).await;
    assert!(!watch.is_unchanged(), "it is time");
    assert!(!watch.is_all_unchanged());
    std::fs::remove_file(dir.path().join("planted.py")).expect("removed");
    assert!(watch.is_all_unchanged() && watch.is_unchanged());
    write(dir.path(), "agent.py", "two");
    assert!(!watch.is_unchanged(), "at once");
}
