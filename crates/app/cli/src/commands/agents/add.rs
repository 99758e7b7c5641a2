//! `wharf agents add`.

use std::path::{Component, Path, PathBuf};

use reqwest::Method;
use serde_json::Value;
use wharf_wire::rest_v1::{AddAgent, Agent};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::{plain, table};

use super::words;

/// What `wharf agents add` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf agents add ./hello
  wharf agents add /srv/agents/hello --json

The folder holds opensentience.agent.json. Adding reads it and runs nothing. Add it again when it
has changed; then it needs a new approval.")]
pub(crate) struct Args {
    /// The folder with the agent's manifest, on the core's machine
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Adds the agent, and shows what it asks for.
pub(super) async fn run(args: &Args, context: &Context) -> Result<Exit> {
    let output = context.output;
    let body = AddAgent { folder: absolute(&args.folder)? };
    let client = context.client()?;
    let raw: Value = client.send_json(Method::POST, &["v1", "agents"], &body).await?;
    if output.is_json() {
        output.json(&raw)?;
    } else {
        output.text(&text_of(&table::typed(raw)?, output))?;
    }
    Ok(Exit::Done)
}

/// The path from the root, because the core has another working directory.
fn absolute(folder: &Path) -> Result<String> {
    let unreadable = |error| Failure::unreadable(folder.display(), &error);
    let mut path = std::path::absolute(folder).map_err(unreadable)?;
    // Where `..` leads depends on what is linked where, so the system must say.
    if path.components().any(|part| part == Component::ParentDir) {
        path = path.canonicalize().map_err(unreadable)?;
    }
    let wrong = |_| Failure::usage(format!("{} is not valid UTF-8", folder.display()));
    path.into_os_string().into_string().map_err(wrong)
}

fn text_of(agent: &Agent, output: Output) -> String {
    let paint = output.out_paint();
    let id = paint.strong(&plain::line(&agent.agent_id));
    let version = plain::line(&agent.version);
    if agent.state != "added" {
        let state = words::state(agent);
        return format!("{id} {version} is known and has not changed; it is {state}\n");
    }
    let mut text = format!("{} {id} {version}", paint.good("added"));
    if !agent.description.is_empty() {
        text.push_str(&format!(", {}", plain::cut(&agent.description, 100)));
    }
    text.push_str(&format!("\nit starts {}\n", words::command(agent)));
    text.push_str(&words::requests(agent, output));
    text.push_str(&words::how_to_approve(agent));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_told_by_its_path_from_the_root() {
        let dir = tempfile::tempdir().expect("a directory");
        let here = std::env::current_dir().expect("a directory");
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        assert_eq!(absolute(dir.path()), Ok(text(dir.path())));
        assert_eq!(absolute(Path::new("./hello")), Ok(text(&here.join("hello"))));
        std::fs::create_dir(dir.path().join("a")).expect("made");
        let real = dir.path().canonicalize().expect("there");
        assert_eq!(absolute(&dir.path().join("a/../a")), Ok(text(&real.join("a"))));
        assert!(absolute(&dir.path().join("none/../a")).is_err());
    }

    #[test]
    fn a_new_agent_is_introduced_and_a_known_one_is_not() {
        let text = text_of(&words::example("added"), Output::new(false));
        for part in [
            "added dev.wharf.hello 0.1.0, says hello\n",
            "it starts ./hello 'two words'\n",
            "connect to example.dev",
            "wharf agents approve dev.wharf.hello --all\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
        let text = text_of(&words::example("running"), Output::new(false));
        assert_eq!(text, "dev.wharf.hello 0.1.0 is known and has not changed; it is running\n");
    }
}
