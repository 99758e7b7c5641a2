//! `wharf mcp show`.

use wharf_vocab::ProviderState;
use wharf_wire::rest_v1::McpServer;

use crate::commands::providers::{limits, words as shared};
use crate::commands::tools::diff;
use crate::commands::{Context, Exit, Output, Result, Table};
use crate::{moment, output, plain};

use super::{McpSelector, words};

/// Shows one server.
pub(super) async fn run(which: &McpSelector, context: &Context) -> Result<Exit> {
    let output = context.output;
    let (client, id) = which.find(context).await?;
    // One server is looked at more closely than a list of them.
    let raw = client.mcp_servers().get(&id).raw().await?;
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let server: McpServer = output::typed(raw)?;
    let missing = words::missing_secrets(&server, &client).await;
    let changes = diff::of(&client, &server.quarantined, output).await?;
    let text = text_of(&server, output);
    let next = match missing.is_empty() {
        true => what_next(&server),
        false => format!("\n{}", words::how_to_set(&missing)),
    };
    output.text(&format!("{text}{next}{changes}"))?;
    Ok(Exit::Done)
}

fn text_of(server: &McpServer, output: Output) -> String {
    let mut head = Table::bare(output).keep_whole(&[0]).uncut(&[1]);
    head.facts([
        ("server", Some(server.server_id.to_string())),
        ("description", shared::some(&server.description)),
    ]);
    head.row_with_state(["state", server.state.as_str()], 1);
    let approved = server.permissions_approved.is_some();
    let is_launched = server.url.is_none();
    head.facts([
        ("because", server.reason.clone()),
        ("process", server.pid.map(|pid| pid.to_string())),
        ("launch", server.launch_id.as_ref().map(ToString::to_string)),
        (
            "sandbox",
            (approved && is_launched)
                .then(|| shared::sandbox(server.sandbox, server.sandbox_wanted)),
        ),
    ]);
    for note in &server.sandbox_notes {
        head.row(["", note]);
    }
    let new = if server.accept_new { "new ones are taken on by themselves" } else { "pinned" };
    head.facts([
        ("isolation", server.isolation.map(|isolation| isolation.to_string())),
        ("processes", (server.instances > 1).then(|| server.instances.to_string())),
        ("limits", shared::some(&limits::words(&server.limits)).filter(|_| is_launched)),
        ("kept", shared::some(&limits::kept(&server.limits_kept))),
        ("tools", approved.then(|| format!("{}, {new}", server.tools.len()))),
        ("trusted", (!server.trust_annotations).then(|| "every tool is taken to act".to_owned())),
        ("sampling", server.sampling.map(|sampling| sampling.to_string())),
        ("idle", server.idle_s.map(|idle| format!("ended after {idle}s without a call"))),
        ("folder", Some(server.folder.clone())),
        ("added", Some(moment::shown(server.added_at))),
    ]);
    let mut text = format!("{}\n{}", head.text(), words::what_it_is(server, output));
    if approved && is_launched {
        text.push_str(&shared::pinned_files(&server.pinned_files, output));
    }
    text.push_str(&shared::drift(&server.drift));
    if !server.tools.is_empty() {
        text.push_str("\nit offers\n");
        for tool in &server.tools {
            let changed = server.quarantined.contains(tool);
            let mark = if changed { "  new or changed, not approved" } else { "" };
            text.push_str(&format!("  {}{mark}\n", plain::line(tool)));
        }
    }
    text
}

/// What its owner would do next.
fn what_next(server: &McpServer) -> String {
    let id = plain::line(&server.server_id);
    if let Some(tool) = server.quarantined.first() {
        let tool = plain::line(tool);
        return format!("\ntake a change on with\n  wharf tools approve {tool}\n");
    }
    if !server.drift.is_empty() || server.state == ProviderState::Drifted {
        let folder = plain::line(&server.folder);
        return format!(
            "\nread it again and approve it with\n  wharf mcp stop {id}\n  \
             wharf mcp add '{folder}'\n  wharf mcp approve {id} --all\n"
        );
    }
    match server.state {
        ProviderState::Added => format!("\n{}", words::how_to_approve(server)),
        ProviderState::Approved | ProviderState::Stopped => {
            format!("\nstart it with\n  wharf mcp start {id}\n")
        }
        ProviderState::Unhealthy | ProviderState::BackingOff | ProviderState::Crashed => {
            format!("\nsee what it said with\n  wharf mcp logs {id}\n")
        }
        ProviderState::Starting
        | ProviderState::Running
        | ProviderState::Draining
        | ProviderState::Drifted => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::example;

    #[test]
    fn m079_a_server_is_shown_with_what_to_do_next() {
        for (state, next) in [
            ("added", "wharf mcp approve every --all"),
            ("stopped", "wharf mcp start every"),
            ("crashed", "wharf mcp logs every"),
            ("drifted", "wharf mcp approve every --all"),
        ] {
            assert!(what_next(&example(state)).contains(next), "{state}");
        }
        assert_eq!(what_next(&example("running")), "");
        let mut server = example("running");
        server.pid = Some(4711);
        server.permissions_approved = Some(Vec::new());
        server.quarantined = server.tools.clone();
        let text = text_of(&server, Output::new(false));
        for part in ["4711", "every/echo  new or changed, not approved\n", "1, pinned\n"] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
    }

    #[test]
    fn m075_nothing_of_a_servers_own_words_reaches_the_terminal_raw() {
        let mut server = example("crashed");
        server.reason = Some("\u{1b}[31mboom\nagain".into());
        server.description = "\u{1b}[2J".into();
        server.hints = vec!["\u{1b}[2Jhint".into()];
        let output = Output::new(false);
        assert_eq!(words::state(&server), "crashed: boom again");
        assert!(!text_of(&server, output).contains('\u{1b}'));
        assert!(!words::hints(&server, output).contains('\u{1b}'));
    }
}
