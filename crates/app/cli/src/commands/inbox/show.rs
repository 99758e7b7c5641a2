//! `wharf inbox show`: one ask with all that helps to decide it.

use serde_json::Value;
use wharf_vocab::{AskKind, Object};
use wharf_wire::rest_v1::{Ask, AskDetail, SimilarRun, ToolDefinition};

use super::about;
use crate::commands::runs::named;
use crate::commands::{Context, Exit, Output, Result, Table, asks};
use crate::{moment, output, plain};

/// What `wharf inbox show` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf inbox show c3
  wharf inbox show c3 --json

Shows the arguments, the tool's definition and permissions, the runs that led to the ask, and
earlier decisions about the same tool. Asks that were decided can be shown, too.
A unique beginning of the id is enough.")]
pub(crate) struct InboxShowArgs {
    /// The ask's id, or the beginning of it
    id: String,
}

/// Shows one ask.
pub(super) async fn run(args: &InboxShowArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let ask = asks::find_any(&client, &args.id).await?;
    let raw: Value = client.inbox().get(&ask).raw().await?;
    let output = context.output;
    if output.is_json() {
        output.json(&raw)?;
        return Ok(Exit::Done);
    }
    let detail: AskDetail = output::typed(raw)?;
    output.text(&text_of(&detail, output))?;
    Ok(Exit::Done)
}

fn text_of(detail: &AskDetail, output: Output) -> String {
    let ask = &detail.ask;
    let mut text = head(ask, output);
    match detail.kept.as_ref().and_then(|kept| kept.inputs.as_ref()) {
        Some(digest) => {
            let (bytes, b3) = (digest.bytes, &digest.b3);
            text.push_str(&format!("arguments: not kept; {bytes} bytes, b3 {b3}\n"));
        }
        None => text.push_str(&about::inputs("arguments", &detail.inputs, output)),
    }
    if let Some(definition) = &detail.definition {
        text.push_str(&definition_of(definition, detail.same_definition, output));
    }
    if !detail.permissions.is_empty() {
        text.push_str("its provider may\n");
        for permission in detail.permissions.iter().filter(|it| it.approved) {
            let (meaning, name) =
                (plain::line(&permission.meaning), plain::line(&permission.permission));
            text.push_str(&format!("  {meaning} ({name})\n"));
        }
    }
    if detail.chain.len() > 1 {
        text.push_str("how it came to this\n");
        let mut table = Table::bare(output).keep_whole(&[0]);
        for link in &detail.chain {
            let caller = link.caller.as_ref().map(|caller| format!("started by {caller}"));
            let run = named(&link.run_id, &link.world);
            table.row([&format!("  {}", link.tool), &run, &caller.unwrap_or_default()]);
        }
        text.push_str(&table.text());
    }
    text.push_str(&earlier(&detail.previous, output));
    if let Some(similar) = &detail.similar_run {
        text.push_str(&compared(similar, &detail.inputs, output));
    }
    text.push_str(&what_to_type(ask));
    text
}

fn head(ask: &Ask, output: Output) -> String {
    let mut table = Table::bare(output).keep_whole(&[0]).uncut(&[1]);
    let decided = ask.decision.as_ref().map(|how| {
        let by = ask.decided_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
        let when = ask.decided_at.map(|at| format!(", {}", moment::shown(at)));
        format!("{how}{by}{}", when.unwrap_or_default())
    });
    let open = ask.decision.is_none();
    table.row(["ask", &ask.ask_id]);
    table.row_with_state(["kind", ask.kind.as_str()], 1);
    table.row(["title", &ask.title]);
    table.row(["tool", &ask.tool]);
    table.row(["run", &named(&ask.run_id, &ask.world)]);
    table.facts([
        ("asked by", ask.caller.as_ref().map(ToString::to_string)),
        ("for", Some(ask.audience.clone())),
        ("since", Some(moment::shown(ask.created_at))),
        ("expires", open.then(|| moment::shown(ask.deadline))),
        ("decided", decided),
        ("reason", ask.reason.clone()),
    ]);
    about::files_and_detail(&mut table, ask, "");
    table.text()
}

fn definition_of(definition: &ToolDefinition, same: bool, output: Output) -> String {
    let paint = output.out_paint();
    let yes_no = |it: Option<bool>| match it {
        Some(true) => "yes",
        Some(false) => "no",
        None => "it does not say",
    };
    let mut table = Table::bare(output).keep_whole(&[0]).uncut(&[1]);
    table.row(["  description", &definition.description]);
    table.row(["  side effects", yes_no(definition.side_effects)]);
    if let Some(most) = definition.max_cost_micro {
        table.row(["  costs at most", &crate::amount::dollars(most)]);
    }
    table.row(["  definition", definition.hash.get(..16).unwrap_or(&definition.hash)]);
    let warning = match same {
        true => String::new(),
        false => format!("  {}\n", paint.bad("it is not the definition that the ask is for")),
    };
    format!("the tool\n{}{warning}", table.text())
}

fn earlier(previous: &[Ask], output: Output) -> String {
    if previous.is_empty() {
        return String::new();
    }
    let mut table = Table::bare(output);
    for ask in previous {
        let how = ask.decision.as_ref().map(ToString::to_string).unwrap_or_default();
        let by = ask.decided_by.as_deref().map(|by| format!("by {by}")).unwrap_or_default();
        let when = ask.decided_at.map(moment::shown).unwrap_or_default();
        let reason = ask.reason.as_deref().unwrap_or_default();
        table.row([&format!("  {how}"), &by, &when, reason]);
    }
    format!("earlier decisions about this tool\n{}", table.text())
}

/// What differs from the latest run of the same tool that went well.
fn compared(similar: &SimilarRun, inputs: &Object, output: Output) -> String {
    let (run, when) = (named(&similar.run_id, &similar.world), moment::shown(similar.created_at));
    let mut text = format!("the last run that succeeded: {run}, {when}\n");
    let keys: std::collections::BTreeSet<&String> =
        inputs.keys().chain(similar.inputs.keys()).collect();
    let differs = |key: &&&String| inputs.get(**key) != similar.inputs.get(**key);
    let changed: Vec<&&String> = keys.iter().filter(differs).collect();
    if changed.is_empty() {
        text.push_str("  it had the same arguments\n");
        return text;
    }
    let mut table = Table::bare(output).keep_whole(&[0]);
    for key in changed {
        let of = |object: &Object| object.get(*key).map_or("nothing".to_owned(), about::short);
        table.row([&format!("  {key}"), &format!("was {}", of(&similar.inputs))]);
    }
    text.push_str(&table.text());
    text
}

fn what_to_type(ask: &Ask) -> String {
    let id = plain::line(&ask.ask_id);
    match (ask.decision.is_some(), ask.kind) {
        (true, _) => String::new(),
        (false, AskKind::Question) => format!("answer it with\n  wharf answer {id}\n"),
        (false, AskKind::Approval) => {
            format!("decide it with\n  wharf approve {id}\n  wharf deny {id} --reason …\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn detail(decision: &Value) -> AskDetail {
        let time = "2026-11-15T09:00:00.000Z";
        let ask = json!({"ask_id": "c3a1", "kind": "approval", "run_id": "r1", "tool": "mail/send",
            "world": "lab", "title": "Send it?", "args_digest": "0123", "caller": "g-1",
            "audience": "person", "deadline": time, "created_at": time, "decision": decision,
            "decided_by": "owner", "decided_at": time});
        let link = |run: &str, tool: &str| json!({"run_id": run, "world": "lab", "tool": tool, "status": "waiting", "caller": "g-1"});
        output::typed(json!({"ask": ask, "inputs": {"to": "ada\u{1b}[2J@example.dev", "n": 2},
            "definition": {"hash": "ab".repeat(32), "description": "Sends mail.",
                "input_schema": {}, "side_effects": true, "requires_directive": true, "mock": false,
                "idempotency": false},
            "same_definition": false, "permissions": [],
            "chain": [link("r0", "acme/plan"), link("r1", "mail/send")],
            "previous": [{"ask_id": "c2", "kind": "approval", "run_id": "r9", "tool": "mail/send",
                "world": "lab", "title": "Send it?", "audience": "person", "deadline": time,
                "created_at": time, "decision": "deny", "decided_by": "owner", "decided_at": time,
                "reason": "not on a Friday"}],
            "similar_run": {"run_id": "r8", "world": "lab", "status": "succeeded",
                "created_at": time, "inputs": {"to": "bob@example.dev", "n": 2}}}))
        .expect("a detail")
    }

    #[test]
    fn whoever_decides_sees_what_it_is_about() {
        let text = text_of(&detail(&Value::Null), Output::new(false));
        for part in [
            "r1 --world lab",
            "ada\\u001b[2J@example.dev",
            "Sends mail.",
            "it is not the definition that the ask is for",
            "acme/plan",
            "not on a Friday",
            "was \"bob@example.dev\"",
            "wharf approve c3a1\n  wharf deny c3a1 --reason …\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains("  n  was"), "{text}");
    }

    #[test]
    fn what_was_decided_is_not_offered_again() {
        let text = text_of(&detail(&json!("allow")), Output::new(false));
        assert!(text.contains("allow by owner") && !text.contains("wharf approve"), "{text}");
    }
}
