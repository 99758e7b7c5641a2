//! How large an answer may become.
//!
//! A value can be asked for many times under other names, so what an operation costs by its fields
//! says little about the bytes of its answer. They are counted while the answer is put together,
//! and an operation that passes the bound gets an error instead; nothing of it is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_graphql::extensions::{
    Extension, ExtensionContext, ExtensionFactory, NextExecute, NextResolve, ResolveInfo,
};
use async_graphql::{Response, ServerError, ServerResult, Value};
use wharf_vocab::{Code, Fault};

use crate::limits::ANSWER_BYTES_MAX;

/// What a field takes beside its name and its value: quotes, a colon, a comma.
const FIELD_BYTES: usize = 4;

/// Counts the bytes of answers.
pub(crate) struct AnswerBytes;

impl ExtensionFactory for AnswerBytes {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(AnswerByteCount(AtomicUsize::new(0)))
    }
}

/// The bytes of one answer, or of one event of a subscription.
struct AnswerByteCount(AtomicUsize);

#[async_graphql::async_trait::async_trait]
impl Extension for AnswerByteCount {
    async fn execute(
        &self,
        ctx: &ExtensionContext<'_>,
        operation_name: Option<&str>,
        next: NextExecute<'_>,
    ) -> Response {
        self.0.store(0, Ordering::Relaxed);
        next.run(ctx, operation_name).await
    }

    async fn resolve(
        &self,
        ctx: &ExtensionContext<'_>,
        info: ResolveInfo<'_>,
        next: NextResolve<'_>,
    ) -> ServerResult<Option<Value>> {
        if self.0.load(Ordering::Relaxed) > ANSWER_BYTES_MAX {
            // Nothing more is looked up for an answer that is not given.
            return Err(too_large());
        }
        let named = info.alias.unwrap_or(info.name).len() + FIELD_BYTES;
        // What has fields of its own was counted by them.
        let is_leaf = info.field.selection_set.node.items.is_empty();
        let value = next.run(ctx, info).await?;
        let bytes = named + value.as_ref().filter(|_| is_leaf).map_or(0, length);
        if self.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > ANSWER_BYTES_MAX {
            return Err(too_large());
        }
        Ok(value)
    }
}

fn too_large() -> ServerError {
    let message = format!(
        "The answer would be larger than {} MiB; ask for less at once.",
        ANSWER_BYTES_MAX / 1024 / 1024
    );
    let fault = Fault::new(Code::RequestTooLarge, message);
    ServerError { source: Some(Arc::new(fault)), ..ServerError::new("too large", None) }
}

/// How long a value is as JSON, or a little more.
fn length(value: &Value) -> usize {
    match value {
        Value::Null | Value::Boolean(_) | Value::Number(_) => 24,
        Value::Enum(name) => name.len() + 2,
        Value::Binary(bytes) => 4 * bytes.len() + 2,
        Value::String(text) => text.bytes().map(escaped).sum::<usize>() + 2,
        Value::List(items) => items.iter().map(|item| length(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            let field = |(name, value): (&async_graphql::Name, &Value)| {
                name.bytes().map(escaped).sum::<usize>() + FIELD_BYTES + length(value)
            };
            fields.iter().map(field).sum::<usize>() + 2
        }
    }
}

/// How many bytes JSON has for one byte of a text.
fn escaped(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_at_least_what_is_written() {
        for json in [
            serde_json::json!(null),
            serde_json::json!([true, -1.5e-300, u64::MAX, i64::MIN]),
            serde_json::json!({"a\"b\\": "\u{1}\n\t\"ä😀", "": [], "x": {}}),
            serde_json::json!([[[["x".repeat(1000)]]], {"y": {"z": [1, 2, 3]}}]),
        ] {
            let written = json.to_string().len();
            let counted = length(&Value::from_json(json).expect("a value"));
            assert!(counted >= written, "{counted} < {written}");
        }
    }
}
