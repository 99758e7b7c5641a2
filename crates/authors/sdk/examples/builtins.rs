//! Asking, telling, and completions by a model: ordinary tools, so layers stand around them too.

use serde::{Deserialize, Serialize};
use wharf_sdk::builtin::{Answer, Completion, ELICIT, NOTIFY, SAMPLE, Said};
use wharf_sdk::layers::Redact;
use wharf_sdk::{Code, Cx, Fault, JsonSchema, Lane, Scope, tool};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

/// Write a letter and send it.
#[tool]
async fn letter(to: String, cx: Cx) -> Result<String, Fault> {
    let text = cx.sample(format!("Write to {to}, card 4711.")).await?.text;
    match cx.ask::<Confirm>(format!("Send this to {to}?")).await? {
        Answer::Accepted(Confirm { ok: true }) => {}
        Answer::Accepted(_) | Answer::Declined => return Ok("kept".to_owned()),
        Answer::OffScript(words) => return Ok(words),
        Answer::Cancelled | Answer::Denied | Answer::Expired => {
            return Err(Fault::new(Code::ToolCanceled, "Nobody wants a letter."));
        }
    }
    cx.notify(format!("Sent to {to}.")).await?;
    Ok(text)
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Scope::root();

    // Whoever is asked, told and sampled. Without these, built-ins go to the transport.
    root.provide(&ELICIT, |question, _cx| async move {
        assert!(question.message.starts_with("Send this to "));
        Ok(Answer::Accepted(serde_json::json!({"ok": true})))
    })?;
    root.provide(&NOTIFY, |notice, _cx| async move {
        assert_eq!(notice.message, "Sent to someone.");
        Ok(())
    })?;
    root.provide(&SAMPLE, |prompt, _cx| async move {
        let Said::Text(text) = prompt.prompt else { return Ok(Completion::default()) };
        Ok(Completion { text: format!("({text})"), ..Completion::default() })
    })?;

    // No number reaches the model, and no name reaches the log.
    root.around(&SAMPLE, |mut prompt, next| async move {
        if let Said::Text(text) = &mut prompt.prompt {
            *text = text.replace(|letter: char| letter.is_ascii_digit(), "*");
        }
        next.run(prompt).await
    });
    root.layer(Lane::Outer, &NOTIFY, Redact::input(|text| text.replace("Ada", "someone")));

    assert_eq!(LETTER.call(&root, "Ada".to_owned()).await?, "(Write to Ada, card ****.)");
    root.close().await;
    Ok(())
}
