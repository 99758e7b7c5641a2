//! Errors as peers see them: a sentence, and a code for programs in `extensions`.

use async_graphql::{ErrorExtensionValues, Response, ServerError, Value};
use wharf_vocab::{Code, Fault};

use crate::limits::COMPLEXITY_MAX;

/// An answer that is nothing but an error.
pub(crate) fn response(fault: &Fault) -> Response {
    Response::from_errors(vec![server_error(fault)])
}

/// Gives every error of an answer its code. What resolvers report is a [`Fault`]; all else comes
/// from reading the document and is the caller's to repair.
pub(crate) fn coded(mut response: Response) -> Response {
    for error in &mut response.errors {
        let fault = match error.source::<Fault>() {
            Some(fault) => fault.clone(),
            None => of_document(&error.message),
        };
        let coded = server_error(&fault);
        error.message = coded.message;
        error.extensions = coded.extensions;
    }
    response
}

/// A fault about a field of REST's message, in the spelling of GraphQL.
pub(crate) fn in_camel_case(mut fault: Fault) -> Fault {
    for name in ["field", "path"] {
        let Some(serde_json::Value::String(field)) = fault.details.get_mut(name) else { continue };
        let mut words = field.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        let camel = words.fold(first, |all, word| {
            let mut letters = word.chars();
            let initial = letters.next().map(|letter| letter.to_ascii_uppercase());
            all + &initial.into_iter().chain(letters).collect::<String>()
        });
        fault.message = fault.message.replace(field.as_str(), &camel);
        *field = camel;
    }
    fault
}

/// Something inside went wrong; nobody outside learns what.
pub(crate) fn internal() -> Fault {
    Fault::new(Code::CoreInternal, "Something inside the core went wrong; its log says more.")
}

fn server_error(fault: &Fault) -> ServerError {
    let mut extensions = ErrorExtensionValues::default();
    extensions.set("code", fault.code.as_str());
    extensions.set("retryable", fault.retryable);
    let details = serde_json::Value::Object(fault.details.clone());
    if let Ok(details @ Value::Object(_)) = Value::from_json(details)
        && !fault.details.is_empty()
    {
        extensions.set("details", details);
    }
    let mut error = ServerError::new(fault.message.clone(), None);
    error.extensions = Some(extensions);
    error
}

/// What the library found wrong with a document. It tells that by a sentence only: its errors have
/// no kind, and a rule of its own that adds one cannot be put before those that it has.
fn of_document(message: &str) -> Fault {
    match message {
        "Query is too complex." => {
            let message = format!(
                "The operation asks for too much at once: it may cost {COMPLEXITY_MAX} at most."
            );
            Fault::new(Code::RequestTooLarge, message)
        }
        text if text.contains("recursion depth") => {
            Fault::new(Code::RequestTooDeep, "The operation is nested too deep.")
        }
        _ => {
            // What was found instead of what was wanted is the caller's value, which errors never
            // repeat.
            let cut = [", found ", " does not contain the value "];
            let cut = cut.iter().find_map(|phrase| Some((message.split_once(phrase)?.0, *phrase)));
            let shown = match cut {
                Some((shown, ", found ")) => format!("{shown}."),
                Some((shown, _)) => format!("{shown} does not contain the given value."),
                None => message.to_owned(),
            };
            Fault::new(Code::RequestInvalid, shown)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t045_every_error_has_a_code_and_none_repeats_a_value() {
        let raw = ServerError::new("Expected input type \"Int\", found \"c4nary\".", None);
        let response = coded(Response::from_errors(vec![raw]));
        let shown = serde_json::to_value(&response).expect("JSON");
        let error = &shown["errors"][0];
        assert_eq!(error["extensions"]["code"], "request.invalid");
        assert_eq!(error["message"], "Expected input type \"Int\".");

        let fault = Fault::new(Code::RunNotFound, "There is no run.").with("run_id", "r1");
        let shown = serde_json::to_value(super::response(&fault)).expect("JSON");
        let expect = serde_json::json!({
            "code": "run.not_found", "retryable": false, "details": {"run_id": "r1"}});
        assert_eq!(shown["errors"][0]["extensions"], expect);
        assert_eq!(shown["errors"][0]["message"], "There is no run.");
    }
}
