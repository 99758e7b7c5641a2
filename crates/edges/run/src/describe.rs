//! Asking a handler what tools it has: it is imported once, in a fence of its own that has no
//! network, no secrets and no permissions, before anybody has approved anything of it.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use wharf_domain::provider::MadeEnvironment;
use wharf_engine::check_schema;
use wharf_hosting::{Errand, blocking, open_plain, random_hex, read_bounded, run_errand_for};
use wharf_vocab::{Code, Fault, ProviderId, shown};

use crate::environment;
use crate::manifest::DescribedTool;
use crate::runtime::{self, Runtime};
use crate::tools::ToolServers;

/// How long the import may take.
const WITHIN: Duration = Duration::from_secs(60);
/// Tools that one handler may have.
const TOOLS_MAX: usize = 100;
/// Lines of a traceback that are passed on, and characters of each.
const LINES_MAX: usize = 60;
const LINE_CHARS_MAX: usize = 500;
/// Whose log tells of imports before there is a provider.
const ID: &str = "wharf/describe@1";

/// Why it is not known what a handler has.
#[derive(Debug)]
pub(crate) enum DescribeError {
    /// It cannot be imported.
    Handler(Fault),
    /// Nobody could try.
    Untried(Fault),
}

#[derive(Debug, Deserialize)]
struct Description {
    #[serde(default)]
    tools: Vec<ToolDescription>,
    #[serde(default)]
    error: Option<ImportError>,
}

#[derive(Debug, Deserialize)]
struct ToolDescription {
    name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    mock: bool,
    #[serde(default)]
    durable: bool,
}

#[derive(Debug, Deserialize)]
struct ImportError {
    message: String,
    #[serde(default)]
    traceback: Vec<String>,
}

/// Imports a handler and says what tools it has.
pub(crate) async fn describe(
    servers: &ToolServers,
    folder: &Path,
    file: &str,
    made: Option<&MadeEnvironment>,
) -> Result<Vec<DescribedTool>, DescribeError> {
    let place = servers.options.hosting.folder.join(format!("describe-{}", name()?));
    let described = asked(servers, (folder, file), made, &place).await;
    // What cannot be removed is removed with the home.
    let _ = tokio::fs::remove_dir_all(&place).await;
    let described = described.map_err(DescribeError::Untried)?;
    if let Some(error) = described.error {
        return Err(DescribeError::Handler(unfit(&error)));
    }
    if described.tools.is_empty() || described.tools.len() > TOOLS_MAX {
        let message = format!("A handler must have 1 to {TOOLS_MAX} tools.");
        return Err(DescribeError::Handler(Fault::new(Code::ToolHandlerInvalid, message)));
    }
    let tools = described.tools.into_iter().map(checked);
    tools.collect::<Result<_, _>>().map_err(DescribeError::Handler)
}

fn name() -> Result<String, DescribeError> {
    random_hex(8).map_err(DescribeError::Untried)
}

async fn asked(
    servers: &ToolServers,
    (folder, file): (&Path, &str),
    made: Option<&MadeEnvironment>,
    place: &Path,
) -> Result<Description, Fault> {
    let answer = place.join("tools.json");
    let mut errand = Errand {
        program: servers.options.program.clone(),
        read: vec![servers.options.program.clone()],
        write: vec![place.to_owned()],
        within: WITHIN,
        ..Errand::default()
    };
    errand.args = ["tool", "describe", "--handler"].map(str::to_owned).into();
    errand.args.push(folder.join(file).display().to_string());
    errand.args.extend(["--out".to_owned(), answer.display().to_string()]);
    if Runtime::of(file) == Some(Runtime::Node) {
        let node = runtime::node_for(servers, &mut errand)?;
        errand.args.extend(["--node".to_owned(), node]);
    } else {
        errand.starts.extend(runtime::python());
    }
    if let Some(made) = made {
        let python = environment::equip_errand(&servers.options.environments, made, &mut errand)?;
        errand.args.extend(["--python".to_owned(), python.display().to_string()]);
    }
    errand.env.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned());
    let id = ProviderId::new(ID)
        .map_err(|_| Fault::new(Code::CoreInternal, "An import cannot be named."))?;
    let end = run_errand_for(servers, &id, &folder.display().to_string(), errand).await?;
    let read = blocking(move || {
        let text = read_bounded(open_plain(&answer), "is not a plain file");
        text.map_err(|why| Fault::new(Code::AgentStartFailed, format!("Its answer {why}.")))
    });
    let Ok(text) = read.await else {
        let why = match (&end.exit, end.errors.last()) {
            (None, _) => format!("it took more than {} seconds", WITHIN.as_secs()),
            (Some(_), Some(line)) => shown(line, LINE_CHARS_MAX),
            (Some(exit), None) => exit.how.to_string(),
        };
        let message = format!("The handler {file} could not be looked at: {why}.");
        return Err(Fault::new(Code::AgentStartFailed, message));
    };
    serde_json::from_slice(&text).map_err(|error| {
        let message = format!("What the handler {file} says of itself cannot be read: {error}.");
        Fault::new(Code::AgentStartFailed, message)
    })
}

fn unfit(error: &ImportError) -> Fault {
    let message = shown(&error.message, LINE_CHARS_MAX);
    let message = format!("The handler cannot be imported: {}.", message.trim_end_matches('.'));
    let lines = error.traceback.iter().take(LINES_MAX);
    let lines: Vec<_> = lines.map(|line| shown(line, LINE_CHARS_MAX)).collect();
    Fault::new(Code::ToolHandlerInvalid, message).with("traceback", lines)
}

fn checked(tool: ToolDescription) -> Result<DescribedTool, Fault> {
    let name = tool.name.as_deref().unwrap_or("entry");
    for schema in [&tool.input_schema, &tool.output_schema].into_iter().flatten() {
        if !schema.is_object() || check_schema(schema).is_err() {
            let message = format!("The types of the function {} make no schema.", shown(name, 100));
            return Err(Fault::new(Code::ToolSchemaInvalid, message));
        }
    }
    let ToolDescription { name, description, input_schema, output_schema, mock, durable } = tool;
    Ok(DescribedTool { name, description, input_schema, output_schema, mock, durable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_with_what_it_leaves_out() {
        let text = r#"{"describe": 1, "tools": [{"name": "shout", "input_schema": {"type": "object"},
            "output_schema": null, "stream": null, "mock": true, "durable": true}]}"#;
        let mut read: Description = serde_json::from_str(text).expect("reads");
        let tool = checked(read.tools.remove(0)).expect("fits");
        assert_eq!((tool.name.as_deref(), tool.mock, tool.durable), (Some("shout"), true, true));
        let text = r#"{"describe": 1, "error": {"message": "SyntaxError in h.py, line 1: x."}}"#;
        let read: Description = serde_json::from_str(text).expect("reads");
        let fault = unfit(&read.error.expect("an error"));
        assert!(fault.is(Code::ToolHandlerInvalid));
        assert_eq!(
            fault.message,
            "The handler cannot be imported: SyntaxError in h.py, line 1: x."
        );
    }
}
