//! A core that speaks TLS, as its users meet it.

use std::path::Path;

use crate::children::Finish as _;
use crate::support::{TestHome, wait_for};

/// A certificate for these names with its key, in files of a folder.
fn certificate(folder: &Path, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("made");
    std::fs::create_dir_all(folder).expect("makes");
    // The key first: whoever looks in between finds a pair that does not fit, and waits.
    for (name, text) in
        [("key.pem", made.signing_key.serialize_pem()), ("cert.pem", made.cert.pem())]
    {
        let new = folder.join("new");
        std::fs::write(&new, text).expect("written");
        std::fs::rename(&new, folder.join(name)).expect("moved");
    }
}

const SETTINGS: &str = "[http]\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n";

#[test]
fn clients_of_the_home_trust_its_core_and_others_must_be_told_whom_to_trust() {
    let home = TestHome::new();
    home.configure(SETTINGS);
    certificate(&home.path(), &["wharf.example"]);
    let core = home.up_on("0.0.0.0:0", &[]);
    let url = core.url();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    // The certificate is for another name than the address, and for nobody on this machine.
    let ran = home.run(&["run", "wharf/count", "n=3", "--json"]).code(0);
    assert_eq!(ran.json()["outputs"]["sum"], 6);
    home.run(&["runs", "watch", ran.json()["run_id"].as_str().expect("an id")]).code(0);
    let checks = home.run(&["doctor", "--json"]);
    assert!(checks.stdout.contains("for wharf.example"), "{checks:#?}");
    assert!(checks.stdout.contains(&format!("answers at {url}")), "{checks:#?}");
    let link = home.run(&["console", "--print"]).code(0).stdout;
    assert!(link.starts_with("https://wharf.example:"), "{link}");

    let other = TestHome::new();
    let token = core.token();
    let called = ["runs", "--url", &url, "--token", &token];
    let refused = other.run(&called).code(1);
    assert!(refused.stderr.contains("nobody vouches for"), "{refused:#?}");
    assert!(refused.stderr.contains("--ca FILE"), "{refused:#?}");
    let ca = home.path().join("cert.pem").display().to_string();
    other.run(&[&called[..], &["--ca", &ca]].concat()).code(0);
    let by_variable = other.wharf(&called).env("WHARF_CA", &ca).finish();
    assert!(by_variable.status.success(), "{by_variable:?}");
    let wrong = TestHome::new();
    certificate(&wrong.path(), &["wharf.example"]);
    let ca = wrong.path().join("cert.pem").display().to_string();
    other.run(&[&called[..], &["--ca", &ca]].concat()).code(1);

    let plain = url.replace("https://", "http://");
    let told = other.run(&["runs", "--url", &plain, "--token", &token]).code(2);
    assert!(told.stderr.contains("use https://"), "{told:#?}");
    core.stop().code(0);
}

#[test]
fn a_renewed_certificate_is_taken_on_while_a_run_is_watched() {
    let home = TestHome::new();
    home.configure(SETTINGS);
    certificate(&home.path(), &["localhost"]);
    let core = home.up();
    assert!(core.url().starts_with("https://localhost:"), "{}", core.url());
    let shown = || std::fs::read_to_string(home.path().join("run/core.pem")).expect("there");
    let before = shown();
    let watching = home.spawn(&["run", "wharf/ask", "question=Ready?", "--json"]);
    let ask = wait_for("the question", || {
        let inbox = home.run(&["inbox", "--json"]);
        let asks: serde_json::Value = serde_json::from_str(&inbox.stdout).ok()?;
        Some(asks.get(0)?["ask_id"].as_str()?.to_owned())
    });
    certificate(&home.path(), &["localhost", "second.example"]);
    wait_for("the new certificate to be in use", || {
        (shown() != before && home.log().contains("a new certificate is in use")).then_some(())
    });
    // Whoever comes now trusts the new one; whoever was there goes on.
    home.run(&["answer", &ask, "yes"]).code(0);
    let ended = watching.wait();
    assert_eq!(ended.code(0).json()["status"], "succeeded");
    core.stop().code(0);
}

#[test]
fn a_certificate_that_cannot_be_used_keeps_the_core_from_starting() {
    let home = TestHome::new();
    home.configure(SETTINGS);
    let up = ["up", "--listen", "127.0.0.1:0"];
    let refused = home.run(&up).code(1);
    assert!(refused.stderr.contains("cert.pem cannot be read"), "{refused:#?}");
    assert!(refused.stderr.contains("[config.invalid]"), "{refused:#?}");
    certificate(&home.path(), &["localhost"]);
    let other = TestHome::new();
    certificate(&other.path(), &["localhost"]);
    let key = other.path().join("key.pem");
    std::fs::copy(key, home.path().join("key.pem")).expect("copied");
    let refused = home.run(&up).code(1);
    assert!(refused.stderr.contains("does not belong to the certificate"), "{refused:#?}");
    // Without TLS nobody else is let in.
    home.configure("");
    let open = home.run(&["up", "--listen", "0.0.0.0:0"]).code(1);
    assert!(open.stderr.contains("tls_cert"), "{open:#?}");
}
