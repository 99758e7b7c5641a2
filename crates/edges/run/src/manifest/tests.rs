use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use tempfile::TempDir;
use wharf_vocab::Isolation;

use super::*;

const LEAST: &str = "ref = \"text/shout@1\"\ndescription = \"Shouts.\"\nhandler = \"handler.py\"\n";

fn folder(manifest: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join(FILE_NAME), manifest).expect("written");
    fs::write(dir.path().join("handler.py"), "def entry(payload): ...\n").expect("written");
    dir
}

fn read_text(manifest: &str) -> Result<ReadManifest, Fault> {
    read(folder(manifest).path())
}

fn server(read: &ReadManifest) -> &ToolServer {
    read.manifest.tool_server().expect("a tool server")
}

/// A manifest that serves its tool in some way.
fn served(way: &str) -> String {
    format!("ref = \"text/shout@1\"\ndescription = \"Shouts.\"\n{way}\n")
}

/// The least manifest with more in it.
fn with(more: &str) -> String {
    format!("{LEAST}{more}\n")
}

#[track_caller]
fn refused(manifest: &str, message: &str) {
    let fault = read_text(manifest).expect_err(manifest);
    assert!(fault.is(Code::ToolManifestInvalid), "{fault}");
    assert_eq!(fault.message, message);
}

#[track_caller]
fn field_refused(manifest: &str, field: &str, why: &str) {
    let fault = read_text(manifest).expect_err(manifest);
    assert!(fault.is(Code::ToolManifestInvalid), "{fault}");
    assert_eq!(fault.details["field"], field, "{fault}");
    assert!(fault.message.contains(why), "{fault}");
}

#[test]
fn t043_the_least_manifest_has_cautious_defaults() {
    let read = read_text(LEAST).expect("reads");
    assert_eq!(read.id.as_str(), "text/shout@1");
    assert_eq!(read.hash, Digest::of_bytes(LEAST.as_bytes()));
    let Manifest { name, version, entrypoint, permissions, .. } = &read.manifest;
    assert_eq!((name.as_str(), version.as_str()), ("text/shout@1", "1"));
    assert_eq!(entrypoint.program, "./handler.py", "so that it is pinned");
    assert!(permissions.is_empty());
    let server = server(&read);
    assert_eq!(
        server.how,
        Serving::Handler { file: "handler.py".to_owned(), cold: false, function: None }
    );
    assert_eq!(server.tool.input_schema, json!({"type": "object"}));
    assert_eq!(server.tool.side_effects, None, "undeclared counts as yes");
    assert!(!server.tool.mock && !server.tool.requires_directive && !server.https_only);
}

#[test]
fn t043_everything_a_manifest_may_say_is_understood() {
    let read = read_text(&with(
        r#"
        cold = true
        timeout_s = 1.5
        max_concurrency = 4
        max_cost_micro = 2500
        side_effects = false
        requires_directive = true
        mock = true
        secrets = ["api-key"]
        token_secret = "door"
        permissions = ["network:egress:api.example.org", "secret:use:api-key"]
        sandbox = "strict"
        isolation = "world"
        required_outputs = ["text", "count", "text"]
        profile = "seed"
        [input_schema]
        type = "object"
        required = ["text"]
        [input_schema.properties.text]
        type = "string"
        maxLength = 20
        [resources]
        memory = "256Mi"
        disk = "1Gi"
        cpu_time = "60s"
        cpu = "500m"
        processes = 8
        open_files = 64
        "#,
    ))
    .expect("reads");
    let server = server(&read);
    assert_eq!(
        server.how,
        Serving::Handler { file: "handler.py".to_owned(), cold: true, function: None }
    );
    let tool = &server.tool;
    assert_eq!((tool.timeout_ms, tool.max_cost_micro), (Some(1_500), Some(2_500)));
    assert_eq!((tool.side_effects, tool.requires_directive, tool.mock), (Some(false), true, true));
    assert_eq!(tool.input_schema["properties"]["text"], json!({"type": "string", "maxLength": 20}));
    assert_eq!((server.calls_max, server.https_only), (Some(4), true));
    assert_eq!(server.sandbox, Some(SandboxLevel::Strict));
    assert_eq!(server.required_outputs, ["count", "text"]);
    assert_eq!(server.token_secret.as_ref().map(SecretName::as_str), Some("door"));
    assert_eq!(read.manifest.isolation, Some(Isolation::World));
    let usage = &read.manifest.limits.usage;
    assert_eq!((usage.memory_bytes, usage.disk_bytes), (Some(256 << 20), Some(1 << 30)));
    assert_eq!((usage.cpu_ms, usage.cpu_millicores), (Some(60_000), Some(500)));
    assert_eq!((usage.processes, usage.open_files), (Some(8), Some(64)));
}

#[test]
fn t044_secrets_are_permissions_that_an_owner_can_refuse() {
    let asked = |more: &str| read_text(&with(more)).expect("reads").manifest.permissions;
    assert_eq!(asked("secrets = [\"a\", \"b\", \"a\"]"), ["secret:use:a", "secret:use:b"]);
    assert_eq!(asked("token_secret = \"door\""), ["secret:use:door"], "it is handed over, too");
    assert_eq!(asked("secrets = [\"a\"]\ntoken_secret = \"a\""), ["secret:use:a"]);
    field_refused(&with("secrets = [\"a\", \"no blank\"]"), "secrets[1]", "the name of a secret");
    field_refused(&with("token_secret = \"../x\""), "token_secret", "the name of a secret");
}

#[test]
fn t043_a_tool_is_served_in_exactly_one_of_four_ways() {
    let how = |way: &str| server(&read_text(&served(way)).expect(way)).how.clone();
    let hex = "0123456789abcdef".repeat(4);
    assert_eq!(
        how("exec = [\"./server\", \"--port\", \"{port}\"]"),
        Serving::Program { argv: vec!["./server".into(), "--port".into(), "{port}".into()] }
    );
    let image = format!("ghcr.io/some/tool:1@sha256:{hex}");
    assert_eq!(how(&format!("image = \"{image}\"")), Serving::Image { image });
    for url in [
        "wss://tools.example.org/run",
        "wss://tools.example.org:8443",
        "wss://[2001:db8::1]:9/run",
        "ws://127.0.0.1:8000/run",
        "ws://localhost:8000",
        "ws://[::1]:8000/run",
    ] {
        assert_eq!(how(&format!("url = \"{url}\"")), Serving::Remote { url: url.into() });
    }
    refused(
        &served(""),
        "The manifest must have exactly one of handler, exec, image and url, and it has none.",
    );
    refused(
        &served("url = \"wss://a\"\nhandler = \"handler.py\""),
        "The manifest must have exactly one of handler, exec, image and url, and it has handler \
         and url.",
    );
}

#[test]
fn t043_what_is_not_a_server_is_refused_by_its_field() {
    let hex = "0123456789abcdef".repeat(4);
    for (way, field, why) in [
        ("handler = \"../handler.py\"".to_owned(), "handler", "in the folder"),
        ("handler = \"/etc/passwd\"".to_owned(), "handler", "in the folder"),
        ("handler = \"none.py\"".to_owned(), "handler", "none.py is not there"),
        ("handler = \".\"".to_owned(), "handler", "in the folder"),
        ("handler = 3".to_owned(), "handler", "must be text"),
        ("exec = []".to_owned(), "exec", "must name a program"),
        ("exec = \"./server {port}\"".to_owned(), "exec", "list of text"),
        ("exec = [\"./server\", 1]".to_owned(), "exec[1]", "must be text"),
        ("exec = [\"\", \"{port}\"]".to_owned(), "exec[0]", "path of a program"),
        ("exec = [\"./server\"]".to_owned(), "exec", "{port}"),
        ("exec = [\"./server{port}\"]".to_owned(), "exec", "{port}"),
        ("exec = [\"./s\", \"{port}\", \"\\u0000\"]".to_owned(), "exec[2]", "zero byte"),
        ("exec = [\"./s\", \"{port}\"]\ncold = true".to_owned(), "cold", "only a handler"),
        ("image = \"tool:latest\"".to_owned(), "image", "must be pinned"),
        ("image = \"tool@sha256:abc\"".to_owned(), "image", "64 hex digits"),
        (format!("image = \"tool@sha256:{}\"", hex.to_uppercase()), "image", "lower case"),
        (format!("image = \"--privileged@sha256:{hex}\""), "image", "image's name"),
        (format!("image = \"a b@sha256:{hex}\""), "image", "image's name"),
        (format!("image = \"@sha256:{hex}\""), "image", "image's name"),
        ("url = \"https://example.org\"".to_owned(), "url", "wss://"),
        ("url = \"ws://example.org/run\"".to_owned(), "url", "only for this machine"),
        ("url = \"ws://127.0.0.1.example.org\"".to_owned(), "url", "only for this machine"),
        ("url = \"wss://user:pass@example.org\"".to_owned(), "url", "token_secret"),
        ("url = \"wss:///run\"".to_owned(), "url", "does not name a host"),
        ("url = \"wss://example.org:0\"".to_owned(), "url", "does not name a host"),
        ("url = \"wss://[nothing]\"".to_owned(), "url", "does not name a host"),
        ("url = \"wss://a/run#part\"".to_owned(), "url", "behind #"),
        ("url = \"wss://a b/run\"".to_owned(), "url", "blanks"),
        ("url = \"wss://a/run\"\nsecrets = [\"x\"]".to_owned(), "secrets", "this core starts"),
        ("url = \"wss://a/run\"\nsandbox = \"strict\"".to_owned(), "sandbox", "this core starts"),
    ] {
        field_refused(&served(&way), field, why);
    }
}

#[test]
fn t043_references_have_a_strict_grammar() {
    let read = |reference: &str| read_text(&LEAST.replace("text/shout@1", reference));
    for good in ["a/b@0", "llm/lite-llm_2@12"] {
        assert_eq!(read(good).expect(good).id.as_str(), good);
    }
    field_refused(&LEAST.replace("text/", "wharf/"), "ref", "wharf is a name of the core itself");
    for bad in ["", "shout", "text/shout", "Text/shout@1", "text/shout@x", "a/b/c@1", "a/b@", "@1"]
    {
        let fault = read(bad).expect_err(bad);
        assert!(fault.is(Code::ToolManifestInvalid), "{bad}: {fault}");
        assert_eq!(fault.details["field"], "ref", "{bad}");
    }
}

#[test]
fn t043_a_field_of_another_name_is_refused_with_the_one_that_comes_nearest() {
    for (more, message) in [
        ("timeout = 3", "timeout cannot be used: there is no such field; did you mean timeout_s?"),
        ("Mock = true", "Mock cannot be used: there is no such field; did you mean mock?"),
        ("secret = []", "secret cannot be used: there is no such field; did you mean secrets?"),
        ("zebra = 1", "zebra cannot be used: there is no such field."),
        (
            "[resources]\nmemmory = \"1Mi\"",
            "resources.memmory cannot be used: there is no such field; did you mean memory?",
        ),
    ] {
        refused(&with(more), &format!("The manifest's field {message}"));
    }
}

#[test]
fn t043_each_field_says_what_it_must_be() {
    for (more, field, why) in [
        ("timeout_s = 0", "timeout_s", "0.001"),
        ("timeout_s = -1.0", "timeout_s", "0.001"),
        ("timeout_s = nan", "timeout_s", "0.001"),
        ("timeout_s = 90000", "timeout_s", "86400"),
        ("timeout_s = \"3s\"", "timeout_s", "must be a number"),
        ("timeout_s = 99999999999", "timeout_s", "too large"),
        ("max_concurrency = 0", "max_concurrency", "1 or more"),
        ("max_concurrency = 1.5", "max_concurrency", "whole number"),
        ("max_cost_micro = -1", "max_cost_micro", "0 or more"),
        ("free = 0", "free", "true or false"),
        ("free = true\nmax_cost_micro = 1", "free", "has a price"),
        ("side_effects = \"no\"", "side_effects", "true or false"),
        ("mock = 1", "mock", "true or false"),
        ("sandbox = \"loose\"", "sandbox", "none, basic, standard or strict"),
        ("isolation = \"all\"", "isolation", "shared, world or run"),
        ("profile = \"upstream\"", "profile", "default or seed"),
        ("permissions = [\"nonsense\"]", "permissions[0]", "domain:action:pattern"),
        ("permissions = \"all\"", "permissions", "list of text"),
        ("required_outputs = [\"\"]", "required_outputs[0]", "empty"),
        ("resources = 3", "resources", "must be a table"),
        ("[resources]\nmemory = 256", "resources.memory", "a size such as 256Mi"),
        ("[resources]\nprocesses = 0", "resources.processes", "1 or more"),
    ] {
        field_refused(&with(more), field, why);
    }
    refused(
        "ref = \"a/b@1\"\nhandler = \"handler.py\"",
        "The manifest's field description is missing.",
    );
    refused("description = \"x\"", "The manifest's field ref is missing.");
    let long = format!("description = \"{}\"", "x".repeat(2_001));
    field_refused(&LEAST.replace("description = \"Shouts.\"", &long), "description", "1 to 2000");
    let items = vec!["\"a:b\""; 501].join(",");
    field_refused(&with(&format!("permissions = [{items}]")), "permissions", "500 items");
}

#[test]
fn t043_schemas_stand_in_the_manifest_or_beside_it() {
    let manifest = with("input_schema = \"in.json\"\noutput_schema = \"schemas/out.json\"");
    let dir = folder(&manifest);
    fs::create_dir(dir.path().join("schemas")).expect("made");
    let schema = r#"{"type":"object","required":["text"]}"#;
    fs::write(dir.path().join("in.json"), schema).expect("written");
    fs::write(dir.path().join("schemas/out.json"), r#"{"type":"object"}"#).expect("written");
    let first = read(dir.path()).expect("reads");
    assert_eq!(server(&first).tool.input_schema["required"], json!(["text"]));
    assert_eq!(server(&first).tool.output_schema, Some(json!({"type": "object"})));
    fs::write(dir.path().join("schemas/out.json"), r#"{"type": "object"}"#).expect("written");
    let second = read(dir.path()).expect("reads");
    assert_ne!(first.hash, second.hash, "a schema is part of what was looked at");
}

#[test]
fn t043_schemas_that_cannot_be_used_are_refused() {
    for (more, why) in [
        ("input_schema = \"none.json\"", "the file none.json is not there"),
        ("input_schema = \"../in.json\"", "not a plain file in the folder"),
        ("input_schema = \"/etc/passwd\"", "not a plain file in the folder"),
        ("input_schema = \"link.json\"", "not a plain file in the folder"),
        ("input_schema = \"away/in.json\"", "not a plain file in the folder"),
        ("input_schema = \"dir\"", "not a plain file in the folder"),
        ("input_schema = \"pipe\"", "not a plain file in the folder"),
        ("input_schema = \"large.json\"", "is larger than 256000 bytes"),
        ("input_schema = \"broken.json\"", "is not JSON (line 1, column 2)"),
        ("input_schema = \"list.json\"", "it must be a JSON object"),
        ("input_schema = [1]", "a table or the name of a file"),
        ("input_schema = { type = \"wrong\" }", "not valid JSON Schema"),
        ("input_schema = { \"$ref\" = \"https://example.org/s\" }", "outside of itself"),
        ("input_schema = { default = 2020-01-01 }", "JSON does not have"),
        ("input_schema = { maximum = inf }", "JSON does not have"),
    ] {
        let dir = folder(&with(more));
        let at = |name: &str| dir.path().join(name);
        let away = tempfile::tempdir().expect("a folder");
        fs::write(away.path().join("in.json"), "{}").expect("written");
        symlink(away.path().join("in.json"), at("link.json")).expect("linked");
        symlink(away.path(), at("away")).expect("linked");
        fs::create_dir(at("dir")).expect("made");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("made");
        fs::write(at("large.json"), " ".repeat(256_001)).expect("written");
        fs::write(at("broken.json"), "{x").expect("written");
        fs::write(at("list.json"), "[]").expect("written");
        let fault = read(dir.path()).expect_err(more);
        assert!(fault.is(Code::ToolManifestInvalid), "{fault}");
        assert_eq!(fault.details["field"], "input_schema", "{fault}");
        assert!(fault.message.contains(why), "{more}: {fault}");
    }
}

#[test]
fn t043_a_file_that_is_no_manifest_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let fault = read(dir.path()).expect_err("none");
    assert!(fault.is(Code::ToolManifestInvalid), "{fault}");
    assert!(fault.message.ends_with("wharf.tool.toml is not there or cannot be read."), "{fault}");
    assert!(read(&dir.path().join("none")).is_err());
    let check = |text: &str, why: &str| {
        let fault = read_text(text).expect_err(why);
        assert!(fault.is(Code::ToolManifestInvalid) && fault.message.contains(why), "{fault}");
    };
    check("ref = \"a/b@1\"\nref = \"a/b@2\"", "is not TOML (line 2)");
    check("ref = ", "is not TOML (line 1)");
    check(&with(&format!("# {}", "x".repeat(256_000))), "is larger than 256000 bytes");
    check(&with(&format!("mock = {}1{}", "[".repeat(5_000), "]".repeat(5_000))), "is not TOML");
    fs::write(dir.path().join(FILE_NAME), [0xff, 0xfe]).expect("written");
    let fault = read(dir.path()).expect_err("not text");
    assert_eq!(fault.message, "The manifest is not UTF-8 text.");
    fs::remove_file(dir.path().join(FILE_NAME)).expect("removed");
    symlink(folder(LEAST).path().join(FILE_NAME), dir.path().join(FILE_NAME)).expect("linked");
    let fault = read(dir.path()).expect_err("a link");
    assert!(fault.message.contains("is not a plain file"), "{fault}");
}

#[test]
fn t041_only_what_says_so_is_free_and_a_price_of_0_does_not() {
    let free = |more: &str| {
        let read = read_text(&format!("{LEAST}{more}")).expect("reads");
        let tool = &server(&read).tool;
        (tool.free, tool.max_cost_micro)
    };
    assert_eq!(free(""), (false, None));
    assert_eq!(free("max_cost_micro = 0"), (false, Some(0)));
    assert_eq!(free("free = true"), (true, None));
    assert_eq!(free("free = true\nmax_cost_micro = 0"), (true, Some(0)));
    let hash = |more: &str| {
        let read = read_text(&format!("{LEAST}{more}")).expect("reads");
        server(&read).tool.hash()
    };
    assert_eq!(hash(""), hash("free = false"), "what is not free is hashed as it always was");
}

fn described(name: Option<&str>, description: &str) -> DescribedTool {
    let input_schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    DescribedTool {
        name: name.map(str::to_owned),
        description: description.to_owned(),
        input_schema: Some(input_schema),
        output_schema: None,
        mock: false,
        durable: false,
    }
}

fn known(read: &ReadManifest, folder: &std::path::Path) -> Provider {
    let entry = wharf_domain::provider::ProviderAdded {
        folder: folder.display().to_string(),
        manifest_hash: read.hash.clone(),
        manifest: read.manifest.clone(),
        by: wharf_domain::Caller::owner().to_ref(),
    };
    let entry = wharf_domain::provider::ProviderEntry::Added(entry);
    Provider::apply(None, &read.id, wharf_vocab::Timestamp(1), &entry).expect("added")
}

#[test]
fn t043_each_function_of_a_handler_is_a_tool_of_the_namespace() {
    let dir = folder("namespace = \"acme\"\nversion = 2\nhandler = \"handler.py\"\nmock = true\n");
    let source = ManifestSource::of_folder(dir.path()).expect("reads");
    let read = source.tools(&[described(Some("Shout"), "Shouts."), described(Some("count"), "")]);
    let read = read.expect("two tools");
    let ids: Vec<_> = read.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["acme/shout@2", "acme/count@2"]);
    let shout = server(&read[0]);
    let how =
        Serving::Handler { file: "handler.py".into(), cold: false, function: Some("Shout".into()) };
    assert_eq!((&shout.how, shout.source), (&how, ToolSource::Function));
    assert_eq!((shout.tool.description.as_str(), shout.tool.mock), ("Shouts.", true));
    assert_eq!(shout.tool.input_schema["properties"]["text"]["type"], "string");
    assert_ne!(read[0].hash, read[1].hash);
    for one in &read {
        let again = read_again(dir.path(), &known(one, dir.path())).expect("reads again");
        assert_eq!(&again, one, "the same without asking the handler");
    }
    let other = source.tools(&[described(Some("Shout"), "Whispers.")]).expect("another one");
    assert_ne!(other[0].hash, read[0].hash, "what the handler says counts");
}

#[test]
fn t043_a_handler_without_a_manifest_is_named_by_its_functions_or_its_file() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("words.py"), "").expect("written");
    let source = ManifestSource::of_file(dir.path(), "words.py", "local");
    let read = source.tools(&[described(None, "")]).expect("a plain entry");
    assert_eq!(read[0].id.as_str(), "local/words@1");
    assert_eq!(server(&read[0]).source, ToolSource::File);
    let known = known(&read[0], dir.path());
    assert_eq!(read_again(dir.path(), &known).expect("reads again"), read[0]);
    fs::remove_file(dir.path().join("words.py")).expect("removed");
    assert!(read_again(dir.path(), &known).expect_err("gone").message.ends_with("is gone."));
}

#[test]
fn t043_what_a_manifest_leaves_open_its_handler_says_and_what_it_says_wins() {
    let dir = folder("ref = \"text/shout@1\"\nhandler = \"handler.py\"\n");
    let source = ManifestSource::of_folder(dir.path()).expect("reads");
    let read = source.tools(&[described(Some("shout"), "Shouts.")]).expect("one").remove(0);
    assert_eq!(server(&read).source, ToolSource::Handler);
    assert_eq!(server(&read).tool.description, "Shouts.");
    assert_eq!(read_again(dir.path(), &known(&read, dir.path())).expect("reads again"), read);
    let two = [described(Some("shout"), ""), described(Some("count"), "")];
    let fault = source.tools(&two).expect_err("which one?");
    assert!(fault.message.contains("shout, count"), "{fault}");

    let dir = folder(&with("function = \"count\"\ninput_schema = { type = \"object\" }"));
    let source = ManifestSource::of_folder(dir.path()).expect("reads");
    let read = source.tools(&two).expect("the named one").remove(0);
    let count = server(&read);
    assert_eq!(count.source, ToolSource::Manifest, "nothing was left open");
    assert!(matches!(&count.how, Serving::Handler { function: Some(name), .. } if name == "count"));
    let fault = source.tools(&[described(Some("shout"), "")]).expect_err("no such function");
    assert!(fault.message.contains("it has shout"), "{fault}");
}

#[test]
fn t043_a_namespace_is_for_handlers_and_for_nothing_that_a_function_says() {
    field_refused("namespace = \"a\"\nexec = [\"x\", \"{port}\"]\n", "namespace", "handler");
    field_refused(&with("namespace = \"acme\""), "namespace", "the ref says it already");
    let alone = "namespace = \"acme\"\nhandler = \"handler.py\"\n";
    field_refused(&format!("{alone}description = \"x\"\n"), "description", "by itself");
    field_refused(&format!("{alone}function = \"x\"\n"), "function", "all functions");
    field_refused("namespace = \"wharf\"\nhandler = \"handler.py\"\n", "namespace", "core itself");
}
