//! A tool server in an image, run by a container engine. The image is made from nothing: this
//! program, the libraries it needs, and a handler of a few lines.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::{add, file, manifest, show, text, write};
use crate::children::{Finish as _, command};
use crate::support::{TestHome, wait_for};

/// Takes the run and answers it, with nothing but the system's calls.
const HANDLER: &str = r#"
#include <unistd.h>
int main(void) {
    static char line[65536];
    const char done[] = "{\"kind\":\"done\",\"result\":{\"text\":\"from an image\"},\"cost\":7}\n";
    if (read(3, line, sizeof line) <= 0) return 1;
    return write(3, done, sizeof done - 1) < 0;
}
"#;
const NAME: &str = "localhost/wharf-test-image";

/// An engine with a store of its own, which vanishes with the test.
struct Engine {
    place: tempfile::TempDir,
    runtime: &'static str,
}

impl Engine {
    /// One that can run what is in the image; `None` where there is none, which is said.
    fn new() -> Option<Self> {
        let mut engine = Self { place: tempfile::tempdir().expect("a folder"), runtime: "" };
        if wharf_skips::lacks("podman") {
            return None;
        }
        let mut why = engine.import().err().unwrap_or_default();
        for runtime in ["runc", "crun"] {
            engine.runtime = runtime;
            let words = [engine.run(), vec![NAME.to_owned(), "/wharf".into(), "--version".into()]];
            let words = words.concat();
            let tried = command(&words[0]).args(&words[1..]).finish();
            if tried.status.success() {
                return Some(engine);
            }
            why.push_str(&String::from_utf8_lossy(&tried.stderr));
        }
        wharf_skips::skip(&format!("this machine runs no containers, so no image is run: {why}"));
        None
    }

    fn podman(&self) -> Vec<String> {
        let folder = |name| text(&self.place.path().join(name)).to_owned();
        let mut words = vec!["podman".to_owned(), "--root".into(), folder("root")];
        words.extend(["--runroot".to_owned(), folder("runroot")]);
        words.extend(["--cgroup-manager", "cgroupfs"].map(str::to_owned));
        words
    }

    /// The command that runs an image, as far as the image's name.
    fn run(&self) -> Vec<String> {
        let mut words = self.podman();
        words.extend(
            ["--runtime", self.runtime, "run", "--rm", "--network", "host"].map(str::to_owned),
        );
        // The engine's own limits can be higher than a machine allows.
        words.extend(
            ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"].map(str::to_owned),
        );
        words
    }

    #[track_caller]
    fn ask(&self, words: &[&str]) -> String {
        self.try_ask(words).unwrap_or_else(|why| panic!("{words:?}: {why}"))
    }

    fn try_ask(&self, words: &[&str]) -> Result<String, String> {
        let podman = self.podman();
        let output = command(&podman[0]).args(&podman[1..]).args(words).finish();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Makes the image; an error is why the engine cannot take it.
    fn import(&self) -> Result<(), String> {
        let root = self.place.path().join("image");
        let wharf = Path::new(env!("CARGO_BIN_EXE_wharf"));
        for folder in ["tmp", "artifacts"] {
            std::fs::create_dir_all(root.join(folder)).expect("made");
        }
        std::fs::copy(wharf, root.join("wharf")).expect("copied");
        for library in libraries(wharf) {
            let at = root.join(library.strip_prefix("/").expect("a whole path"));
            std::fs::create_dir_all(at.parent().expect("a parent")).expect("made");
            std::fs::copy(&library, at).expect("copied");
        }
        // Without certificates nothing could be fetched, and the server says so and ends.
        let certificates = Path::new("/etc/ssl/certs/ca-certificates.crt");
        std::fs::create_dir_all(root.join("etc/ssl/certs")).expect("made");
        let at = root.join(certificates.strip_prefix("/").expect("a whole path"));
        std::fs::copy(certificates, at).expect("copied");
        write(self.place.path(), "handler.c", HANDLER);
        let source = self.place.path().join("handler.c");
        let handler = root.join("handler");
        ran(command("cc").args(["-static", "-o", text(&handler), text(&source)]));
        let packed = self.place.path().join("image.tar");
        ran(command("tar").args(["-C", text(&root), "-cf", text(&packed), "."]));
        self.try_ask(&["import", "--quiet", text(&packed), NAME]).map(drop)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let podman = self.podman();
        command(&podman[0]).args(&podman[1..]).args(["rm", "-fa", "-t", "0"]).finish();
    }
}

/// The libraries that a program is loaded with.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = command("ldd").arg(program).finish();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = shown.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

#[track_caller]
fn ran(command: &mut Command) {
    let output = command.finish();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn t042_an_image_made_from_nothing_is_run_by_a_container_engine() {
    let Some(engine) = Engine::new() else { return };
    let digest = engine.ask(&["image", "inspect", "--format", "{{.Digest}}", NAME]);
    let mut command = engine.run();
    command.extend(["--volume", "{artifacts}:/artifacts", "{image}"].map(str::to_owned));
    let serve = ["/wharf", "tool", "serve", "--exec", "/handler", "--artifacts", "/artifacts"];
    command.extend(serve.into_iter().chain(["--listen", "127.0.0.1:{port}"]).map(str::to_owned));
    let home = TestHome::new();
    home.configure(&format!("[tools]\ncontainer = {}\n", json!(command)));
    let core = home.up();
    let folder =
        manifest("test/image@1", &format!("image = \"{NAME}@{digest}\"\nmax_cost_micro = 10"));
    add(&home, folder.path());
    assert_eq!(show(&home, "test/image@1")["server"]["kind"], "image");
    let run = home.run(&["run", "test/image@1", "--out", "text.world=/said.txt"]).code(0).json();
    assert_eq!(run["outputs"]["text"], "world://default/said.txt");
    assert_eq!(run["cost_micro"], 7);
    assert_eq!(file(&home, "/said.txt"), "from an image", "written through the shared folder");
    assert_eq!(engine.ask(&["ps", "--quiet"]).lines().count(), 1, "one container serves it");
    core.stop();
    wait_for("the container to end with the core", || {
        engine.ask(&["ps", "--all", "--quiet"]).is_empty().then_some(())
    });
}
