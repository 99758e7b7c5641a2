//! What a launch can reach follows from what was approved, and from nothing else.

use std::os::unix::fs::symlink;

use super::*;

struct Place {
    _dir: tempfile::TempDir,
    root: PathBuf,
    ground: PermissionContext,
}

/// A home with notes, the core's own folder in it, and an agent's folder.
fn place() -> Place {
    let dir = tempfile::tempdir().expect("a folder");
    let root = std::fs::canonicalize(dir.path()).expect("there");
    for folder in ["home/notes/deep", "home/wharf/agents", "agent", "srv/a/data", "srv/b/data"] {
        std::fs::create_dir_all(root.join(folder)).expect("made");
    }
    for file in ["home/notes/a.md", "home/notes/b.txt", "home/notes/deep/c.md", "srv/one.txt"] {
        std::fs::write(root.join(file), "x").expect("written");
    }
    let ground = PermissionContext {
        user_home: Some(root.join("home")),
        hidden: vec![root.join("home/wharf")],
        folder: root.join("agent"),
    };
    Place { _dir: dir, root, ground }
}

impl Place {
    fn given(&self, permissions: &[&str]) -> FenceGrants {
        let text = permissions.iter().map(|p| p.replace("ROOT", &self.root.display().to_string()));
        let parsed: Vec<_> = text.map(|p| Permission::parse(&p).expect("valid")).collect();
        derive(&parsed, &self.ground)
    }

    fn checked(&self, permission: &str) -> Result<(), Fault> {
        let text = permission.replace("ROOT", &self.root.display().to_string());
        check(&[text], &self.ground)
    }

    fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| self.root.join(name)).collect()
    }
}

#[test]
fn nothing_approved_gives_nothing() {
    assert_eq!(place().given(&[]), FenceGrants::default());
}

#[test]
fn files_and_whole_folders_are_given_as_they_are_and_home_is_the_owners() {
    let place = place();
    let given = place.given(&[
        "filesystem:read:~/notes/**",
        "filesystem:read:ROOT/srv/one.txt",
        "filesystem:write:ROOT/srv/a/**",
    ]);
    assert_eq!(given.read, place.paths(&["home/notes", "srv/one.txt"]));
    assert_eq!(given.write, place.paths(&["srv/a"]));
    assert_eq!(given.notes, Vec::<String>::new());
}

#[test]
fn other_patterns_give_what_they_fit_when_the_launch_begins() {
    let place = place();
    assert_eq!(
        place.given(&["filesystem:read:~/notes/*.md"]).read,
        place.paths(&["home/notes/a.md"])
    );
    assert_eq!(
        place.given(&["filesystem:read:~/notes/**/*.md"]).read,
        place.paths(&["home/notes/a.md", "home/notes/deep/c.md"])
    );
    assert_eq!(
        place.given(&["filesystem:write:ROOT/srv/*/data/**"]).write,
        place.paths(&["srv/a/data", "srv/b/data"])
    );
    // A pattern that ends with one star fits the folder's name, not what is in the folder.
    assert_eq!(place.given(&["filesystem:read:ROOT/srv/*"]).read, place.paths(&["srv/one.txt"]));
}

#[test]
fn what_cannot_be_given_is_noted() {
    let place = place();
    for (permission, why) in [
        ("filesystem:read:ROOT/nothing/**", "does not exist"),
        ("filesystem:read:ROOT/srv", "is a folder"),
    ] {
        let given = place.given(&[permission]);
        assert!(given.read.is_empty());
        assert!(given.notes[0].contains(why), "{:?}", given.notes);
    }
    for number in 0..1_100 {
        std::fs::write(place.root.join(format!("srv/b/f{number:04}.log")), "").expect("written");
    }
    let many = place.given(&["filesystem:read:ROOT/srv/b/*.log"]);
    assert_eq!(many.read.len(), MATCHES_MAX);
    assert!(many.notes[0].contains("the rest is left out"));
}

#[test]
fn a_link_moves_no_fence() {
    let place = place();
    symlink(place.root.join("home"), place.root.join("srv/link")).expect("linked");
    symlink(place.root.join("home/notes/a.md"), place.root.join("srv/x.md")).expect("linked");
    for permission in ["ROOT/srv/link/**", "ROOT/srv/x.md", "ROOT/srv/*.md", "ROOT/srv/link/*/*.md"]
    {
        let given = place.given(&[&format!("filesystem:read:{permission}")]);
        assert!(given.read.is_empty(), "{permission}: {given:?}");
    }
}

#[test]
fn the_cores_own_folder_is_neither_approved_nor_given() {
    let place = place();
    for permission in [
        "filesystem:read:~/wharf/**",
        "filesystem:read:~/wharf",
        "filesystem:read:~/wharf/agents/x.txt",
        "filesystem:write:~/wharf/agents/**",
        "filesystem:read:~/**",
        "filesystem:read:/**",
        "filesystem:read:~/wha*/**",
    ] {
        let fault = place.checked(permission).expect_err(permission);
        assert!(fault.is(Code::RequestInvalid));
        assert!(fault.message.contains("keeps for itself"), "{permission}: {fault}");
        assert!(place.given(&[permission]).read.is_empty(), "{permission}");
        assert!(place.given(&[permission]).write.is_empty(), "{permission}");
    }
    // A pattern that happens to fit something in there is given without it.
    for wide in ["filesystem:read:~/*/agents/**", "filesystem:read:~/**/*.db"] {
        std::fs::write(place.root.join("home/wharf/wharf.db"), "x").expect("written");
        place.checked(wide).expect(wide);
        let given = place.given(&[wide]);
        assert!(given.read.is_empty() && !given.notes.is_empty(), "{given:?}");
    }
    symlink(place.root.join("home/wharf"), place.root.join("srv/way-in")).expect("linked");
    place.checked("filesystem:read:ROOT/srv/way-in/**").expect_err("through a link");
    for fine in ["filesystem:read:~/notes/**", "filesystem:read:~/*.md", "env:read:LANG"] {
        place.checked(fine).expect(fine);
    }
}

#[test]
fn the_agents_own_folder_is_never_writable() {
    let place = place();
    for permission in ["ROOT/agent/**", "ROOT/agent/state.db", "ROOT/**", "ROOT/agen?/**"] {
        let write = format!("filesystem:write:{permission}");
        let hidden_apart = PermissionContext { hidden: Vec::new(), ..place.ground.clone() };
        let text = write.replace("ROOT", &place.root.display().to_string());
        let fault = check(&[text], &hidden_apart).expect_err(permission);
        assert!(fault.message.contains("never write there"), "{fault}");
        assert!(place.given(&[&write]).write.is_empty(), "{permission}");
    }
    place.checked("filesystem:read:ROOT/agent/**").expect("readable anyway");
}

#[test]
fn hosts_secrets_and_names_of_the_environment_pass_through() {
    let given = place().given(&[
        "network:egress:example.dev:443",
        "secret:use:API_KEY",
        "env:read:LANG",
        "tool:invoke:a/b",
        "database:rw:x",
    ]);
    assert_eq!(given.hosts.len(), 1);
    assert_eq!(given.secrets, [SecretName::new("API_KEY").expect("valid")]);
    assert_eq!(given.env, ["LANG"]);
    assert!(given.read.is_empty() && given.write.is_empty());
}

#[test]
fn without_a_home_a_tilde_gives_nothing() {
    let mut place = place();
    place.ground.user_home = None;
    let given = place.given(&["filesystem:read:~/notes/**"]);
    assert!(given.read.is_empty() && given.notes.len() == 1);
    place.checked("filesystem:read:~/notes/**").expect_err("nobody knows ~");
}

#[test]
fn an_origin_has_a_host_and_a_port() {
    for (origin, wanted) in [
        ("http://127.0.0.1:7421", Some(("127.0.0.1", 7421))),
        ("https://s3.example.com", Some(("s3.example.com", 443))),
        ("http://s3.example.com/", Some(("s3.example.com", 80))),
        ("http://[::1]:9000", Some(("[::1]", 9000))),
        ("http://[::1]", Some(("[::1]", 80))),
        ("memory://objects", None),
        ("http://host:port", None),
        ("", None),
    ] {
        let wanted = wanted.map(|(host, port)| (host.to_owned(), port));
        assert_eq!(host_and_port(origin), wanted, "{origin}");
    }
}
