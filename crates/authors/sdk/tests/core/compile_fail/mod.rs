//! Mistakes that the compiler finds, and whether it says so in words that help.
//!
//! Each file here is compiled against the SDK as it was built for these tests. Lines that begin
//! with `//~` are texts that the compiler must say; `good.rs` has none and must compile.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/core/compile_fail")
}

/// Compiles a case against one build of the SDK.
fn compile(case: &str, sdk: &Path, dependencies: &Path) -> Output {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out = tempfile::tempdir().expect("a folder for what is compiled");
    Command::new(rustc)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--color=never"])
        .arg("--out-dir")
        .arg(out.path())
        .arg("--extern")
        .arg(format!("wharf_sdk={}", sdk.display()))
        .arg("-L")
        .arg(format!("dependency={}", dependencies.display()))
        .arg(folder().join(case))
        .output()
        .expect("the compiler runs")
}

/// Builds of the SDK beside this test, the newest first.
fn builds(dependencies: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dependencies).expect("the folder of this test");
    let files = files.filter_map(|file| file.ok().map(|file| file.path()));
    let mut found: Vec<_> = files
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libwharf_sdk-") && name.ends_with(".rlib")
        })
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Compiles a case that must fail, and looks for what it says must be said.
fn fails(case: &str) {
    let test = std::env::current_exe().expect("the path of this test");
    let dependencies = test.parent().expect("the folder of this test");
    let builds = builds(dependencies);
    let works = |sdk: &&PathBuf| compile("good.rs", sdk, dependencies).status.success();
    let sdk = builds.iter().find(works).expect("a build of the SDK with which good code compiles");
    let output = compile(case, sdk, dependencies);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{case} compiles");
    let source = std::fs::read_to_string(folder().join(case)).expect("the case");
    let expected: Vec<_> = source.lines().filter_map(|line| line.strip_prefix("//~ ")).collect();
    assert!(!expected.is_empty(), "{case} says nothing of what must be said");
    for text in expected {
        assert!(said.contains(text), "{case}: the compiler does not say {text:?}, but:\n{said}");
    }
}

macro_rules! cases {
    ($($name:ident: $file:literal,)+) => { $(
        #[test]
        fn $name() {
            fails($file);
        }
    )+ };
}

cases! {
    k002_an_implemented_tool_takes_no_implementation: "second_implementation.rs",
    k002_an_implemented_tool_is_not_remote: "implemented_remote.rs",
    k001_input_and_output_are_data: "not_data.rs",
    k002_a_handler_takes_the_input_of_its_tool: "wrong_handler.rs",
    k002_a_handler_gives_a_result: "no_result.rs",
    k008_a_layer_is_of_the_types_of_its_tool: "wrong_layer.rs",
    k013_retry_needs_inputs_that_can_be_cloned: "retry_without_clone.rs",
    k013_not_every_layer_stands_around_all_tools: "around_all.rs",
    k003_a_call_is_made_from_a_place: "no_place.rs",
    k002_the_attribute_wants_an_async_function: "attribute_not_async.rs",
    k002_the_attribute_wants_one_input: "attribute_inputs.rs",
    k002_the_attribute_wants_owned_inputs: "attribute_borrows.rs",
    k002_the_attribute_wants_a_result: "attribute_no_result.rs",
    k006_the_attribute_wants_a_good_name: "attribute_name.rs",
    k001_the_attribute_wants_a_description: "attribute_no_description.rs",
    k002_the_attribute_stands_above_a_function: "attribute_on_struct.rs",
}
