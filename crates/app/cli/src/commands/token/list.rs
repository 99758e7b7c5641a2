//! `wharf token list`.

use wharf_vocab::Verb;
use wharf_wire::rest_v1::Token;

use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::table::{self, Table};
use crate::{amount, moment};

/// Lists all tokens.
pub(super) async fn run(context: &Context) -> Result<Exit> {
    let output = context.output;
    let items = context.client()?.tokens().list().raw().all().await?;
    if output.is_json() {
        output.json(&items)?;
        return Ok(Exit::Done);
    }
    let tokens: Vec<Token> = table::rows(items)?;
    if tokens.is_empty() {
        output.line("no tokens but the owner's; make one with: wharf token create --verb read")?;
        return Ok(Exit::Done);
    }
    let headings =
        ["TOKEN", "STATE", "VERBS", "WORLDS", "TOOLS", "PERSON", "BUDGET", "EXPIRES", "LABEL"];
    let mut table = Table::new(output, &headings)
        .keep_whole(&[0, 1])
        .leave_out(4, "all")
        .leave_out(5, "no")
        .leave_out(6, "")
        .leave_out(8, "");
    for token in &tokens {
        let verbs: Vec<_> = token.verbs.iter().map(|verb: &Verb| verb.as_str()).collect();
        let all = |list: Option<String>| list.unwrap_or_else(|| "all".to_owned());
        let expires = token.expires_at.map(moment::relative_to_now);
        let cells = [
            token.token_id.as_str(),
            token.state.as_str(),
            &verbs.join(" "),
            &all(token.worlds.as_ref().map(|list| table::joined(list, " "))),
            &all(token.tools.as_ref().map(|list| list.join(" "))),
            if token.person { "yes" } else { "no" },
            &token.budget_micro.map(amount::dollars).unwrap_or_default(),
            &expires.unwrap_or_else(|| "never".to_owned()),
            &token.label,
        ];
        table.row_with_state(cells, 1);
    }
    output.text(&table.text())?;
    Ok(Exit::Done)
}
