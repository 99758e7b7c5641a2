//! Handlers in TypeScript, with a real Node for every run.

use std::time::Duration;

use serde_json::json;
use wharf_toolserver::Report;
use wharf_toolserver::worker::WorkerSettings;
use wharf_wire::run_v1::Phase;

use crate::kit::{Tool, write};

/// Counts, says what it does, and what it costs.
const COUNT: &str = r#"
import { tool, type Cx } from "wharf-sdk";

interface Counted { words: number }

export const count = tool({
  description: "Counts words.",
  input: { type: "object", properties: { text: { type: "string" }, times: { type: "integer", default: 2 } }, required: ["text"] },
  run({ text, times }, cx: Cx): Counted & Record<string, unknown> {
    cx.status("counting", 0.5);
    cx.log("a line", "warn");
    console.log("printed");
    cx.text("one ");
    cx.text("two");
    cx.cost(7);
    return { words: text.split(" ").length, times, mock: cx.isMock };
  },
});
"#;

fn node(text: &str) -> Option<Tool> {
    let files = [("handler.ts", text)];
    (!wharf_skips::lacks("node")).then(|| Tool::node(&files, WorkerSettings::default()))
}

fn place(name: &str) -> String {
    format!("/artifacts/run-1/{name}")
}

#[tokio::test]
async fn k033_t016_a_tool_in_typescript_takes_gives_and_tells_what_others_do() {
    let Some(tool) = node(COUNT) else { return };
    tool.prepare().await.expect("it can be imported");
    let outcome = tool.run(json!({"text": "to be or"})).await;
    let expected = json!({"words": 3, "times": 2, "mock": false, "text": "one two"});
    assert_eq!(outcome.outputs(), expected);
    assert_eq!(outcome.done.cost, Some(json!(7)));
    assert!(outcome.lines().contains(&"a line") && outcome.lines().contains(&"printed"));
    let phase = Phase::Other("counting".to_owned());
    assert!(outcome.reports.contains(&Report::Event { phase, progress: Some(0.5) }));
    let shown = json!({"text": "one "}).as_object().expect("an object").clone();
    assert!(outcome.reports.contains(&Report::Partial(shown)), "{outcome:?}");
}

#[tokio::test]
async fn k033_t014_what_does_not_fit_is_refused_and_what_goes_wrong_is_known_by_its_class() {
    let broken = COUNT.replace("cx.cost(7);", "cx.cost(7); (undefined as any).x;");
    let Some(tool) = node(&broken) else { return };
    let refused = tool.run(json!({"text": 7})).await;
    assert_eq!(refused.failure().code, "ERR_INPUTS");
    assert!(refused.failure().message.contains("/text"), "{refused:?}");
    let failed = tool.run(json!({"text": "secret"})).await;
    assert_eq!((&*failed.failure().code, &*failed.failure().message), ("ERR_HANDLER", "TypeError"));
    assert_eq!(failed.done.cost, Some(json!(7)), "what was spent is spent");
}

#[tokio::test]
async fn k033_t016_files_come_in_and_go_out() {
    let text = r#"
import { tool } from "wharf-sdk";
export default tool({
  input: { type: "object", properties: { document: { type: "string", format: "binary" }, more: { type: "string" } } },
  async run({ document, more }, cx) {
    const bytes = new Uint8Array(await document!.arrayBuffer());
    const image = await cx.write("image", bytes.map((byte) => byte ^ 1));
    return { image, size: document!.size, more, wanted: cx.outputs, long: "x".repeat(100_000) };
  },
});
"#;
    let Some(tool) = node(text) else { return };
    write(tool.folder.path(), "artifacts/run-1/in.bin", "bytes");
    write(tool.folder.path(), "artifacts/run-1/more.txt", "text of it");
    let inputs = json!({"document": place("in.bin"), "more": place("more.txt")});
    let outputs = json!({"image": place("out.bin"), "long": place("long.txt")});
    let given = tool.start(&inputs, &outputs).end().await.outputs();
    let expected = json!({"image": place("out.bin"), "size": 5, "more": "text of it",
        "wanted": ["image", "long"], "long": place("long.txt")});
    assert_eq!(given, expected);
    let written = |name: &str| {
        std::fs::read(tool.folder.path().join("artifacts/run-1").join(name)).expect("written")
    };
    assert_eq!(written("out.bin"), b"bytes".map(|byte| byte ^ 1));
    assert_eq!(written("long.txt").len(), 100_000);

    let inline = tool.start(&json!({"document": "hello"}), &outputs).end().await;
    assert_eq!(inline.outputs()["size"], 5, "what is given as it is, is a file, too");
}

#[tokio::test]
async fn k033_t019_a_canceled_run_hears_it_and_keeps_its_cost() {
    let text = r#"
import { tool } from "wharf-sdk";
export const wait = tool({
  input: {},
  async run(_, cx) {
    cx.cost(11);
    console.log("waiting");
    await new Promise((resolve) => cx.signal.addEventListener("abort", resolve));
    console.log("cleaned up");
    return {};
  },
});
"#;
    let Some(tool) = node(text) else { return };
    let mut running = tool.start(&json!({}), &json!({}));
    running.line("waiting").await;
    running.cancel.cancel();
    let outcome = running.end().await;
    assert_eq!(outcome.failure().code, "ERR_CANCELED");
    assert_eq!(outcome.done.cost, Some(json!(11)));
    assert!(outcome.lines().contains(&"cleaned up"), "{outcome:?}");

    // One that does not listen is ended.
    let deaf = text
        .replace("cx.signal.addEventListener(\"abort\", resolve)", "setTimeout(resolve, 600_000)");
    let settings =
        WorkerSettings { cancel_grace: Duration::from_millis(400), ..WorkerSettings::default() };
    let tool = Tool::node(&[("handler.ts", &deaf)], settings);
    let mut running = tool.start(&json!({}), &json!({}));
    running.line("waiting").await;
    running.cancel.cancel();
    assert_eq!(running.end().await.failure().code, "ERR_CANCELED");
}

#[tokio::test]
async fn k033_t014_values_that_json_lacks_and_lost_errors_are_told() {
    let text = r#"
import { tool, Fault } from "wharf-sdk";
export const give = tool({
  input: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
  run({ what }): unknown {
    if (what === "nan") return { x: Number.NaN };
    if (what === "bytes") return { x: new Uint8Array(3) };
    if (what === "fault") throw new Fault("acme.no_voice", "There is no such voice.");
    if (what === "envelope") return { status: "error", error: { code: "X", message: "y" } };
    if (what === "text") return "only text";
    if (what === "exit") process.exit(3);
    setImmediate(() => { throw new RangeError("later"); });
    return new Promise(() => {});
  },
});
"#;
    let Some(tool) = node(text) else { return };
    let failure = async |what: &str| {
        let outcome = tool.run(json!({"what": what})).await;
        let failure = outcome.failure().clone();
        (failure.code, failure.message)
    };
    let (code, message) = failure("nan").await;
    assert!(code == "ERR_HANDLER" && message.contains("`x` holds a number"), "{message}");
    assert!(failure("bytes").await.1.contains("`x` holds bytes"));
    let fault = ("acme.no_voice".to_owned(), "There is no such voice.".to_owned());
    assert_eq!(failure("fault").await, fault);
    assert_eq!(failure("later").await, ("ERR_HANDLER".to_owned(), "RangeError".to_owned()));
    assert!(failure("exit").await.1.contains("status 3"));
    let whole = tool.run(json!({"what": "envelope"})).await.outputs();
    assert_eq!(whole["status"], "error", "outputs are no envelope: {whole}");
    assert_eq!(tool.run(json!({"what": "text"})).await.outputs(), json!({"value": "only text"}));
}

#[tokio::test]
async fn k033_what_cannot_be_imported_is_told_before_the_first_run() {
    if wharf_skips::lacks("node") {
        return;
    }
    let tool = "import { tool } from \"wharf-sdk\";\n";
    for (text, expected) in [
        (format!("{tool}enum Color {{ Red }}\n"), "line 2: an enum makes code"),
        (
            format!("{tool}import {{ z }} from \"zzod/v4\";\n"),
            "line 2: the package zzod is not installed",
        ),
        (
            format!("{tool}export const a = tool({{ input: {{}} ;\n"),
            "SyntaxError in handler.ts, line 2",
        ),
        (format!("{tool}const x: any = 1;\nx.y.z;\n"), "TypeError in handler.ts, line 3"),
        ("export const a = 1;\n".to_owned(), "exports no tool"),
        (
            format!(
                "{tool}export const a = tool({{ input: {{}}, run: () => 1 }}), b = tool({{ input: {{}}, run: () => 1 }});\n"
            ),
            "several tools; name the one to serve. It has `a`, `b`.",
        ),
    ] {
        let tool = Tool::node(&[("handler.ts", &text)], WorkerSettings::default());
        let failure = tool.prepare().await.expect_err(expected);
        assert_eq!(failure.code, "ERR_HANDLER");
        assert!(failure.message.contains(expected), "{expected}: {failure}");
        assert!(!failure.message.contains(tool.folder.path().to_str().expect("text")), "{failure}");
    }
}

#[tokio::test]
async fn k033_files_beside_the_handler_are_found_as_a_compiler_finds_them() {
    let text = r##"
import { one } from "./lib/one.js";
import { two } from "./lib/two.ts";
import three from "./three";
import { tool } from "#wharf";
export const sum = tool({ input: {}, run: async () => ({ sum: one + two + three + (await import("./lib/two.js")).two }) });
"##;
    if wharf_skips::lacks("node") {
        return;
    }
    let files = [
        ("handler.ts", text),
        ("lib/one.ts", "export const one: number = 1;"),
        ("lib/two.ts", "import type { X } from './one.ts'; export const two = 2 as number;"),
        ("three/index.ts", "export default 3 satisfies number;"),
    ];
    let tool = Tool::node(&files, WorkerSettings::default());
    assert_eq!(tool.run(json!({})).await.outputs(), json!({"sum": 8}));
}
