//! A tool of the core that a definition without an implementation stands for.

use serde_json::{Value, json};
use wharf_protocol::tool::value::{Form, kept};
use wharf_vocab::Object;
use wharf_wire::agent_v1::{Chunk, TextChannel};

use crate::{Data, Tool, schema};

/// A tool of the core, and how values travel to it and back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreTool {
    id: String,
    input: Form,
    output: Form,
    progress: Form,
}

impl CoreTool {
    /// The tool with this id, whose types a definition knows.
    #[must_use]
    pub fn of<I: Data, O: Data, P: Data, S>(
        _tool: &Tool<I, O, P, S>,
        id: impl Into<String>,
    ) -> Self {
        Self::typed::<I, O, P>(id)
    }

    pub(crate) fn typed<I: Data, O: Data, P: Data>(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            input: Form::of(&kept(&schema::of_output::<I>())),
            output: Form::of(&kept(&schema::of_input::<O>())),
            progress: Form::of(&kept(&schema::of_input::<P>())),
        }
    }

    /// The tool with this id, whose schemas the catalog has.
    #[must_use]
    pub fn known(id: impl Into<String>, input: &Value, output: Option<&Value>) -> Self {
        let output = output.map_or(Form::Object, Form::of);
        Self { id: id.into(), input: Form::of(input), output, progress: Form::Object }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// An input as the core takes it.
    #[must_use]
    pub fn input(&self, input: Value) -> Object {
        self.input.pack(input)
    }

    /// An output as whoever called it takes it.
    #[must_use]
    pub fn output(&self, output: Object) -> Value {
        self.output.unpack(output)
    }

    /// An input as an implementation takes it.
    pub(crate) fn given(&self, input: Object) -> Value {
        self.input.unpack(input)
    }

    /// An output as the core gives it on.
    pub(crate) fn gives(&self, output: Value) -> Object {
        self.output.pack(output)
    }

    /// A piece of progress as whoever called it takes it. Some providers put values that are no
    /// objects under a key, others do not.
    pub(crate) fn progress(&self, chunk: Chunk) -> Value {
        let piece = value_of(chunk);
        if self.progress == Form::Object || piece.len() != 1 {
            return Value::Object(piece);
        }
        match self.progress.unpack(piece.clone()) {
            Value::Null => Value::Object(piece),
            inner => inner,
        }
    }
}

/// A piece of output as an object.
fn value_of(chunk: Chunk) -> Object {
    let value = match chunk {
        Chunk::Partial { json } => return json,
        Chunk::Status { text, fraction } => json!({"phase": text, "fraction": fraction}),
        Chunk::Text { channel, text } => {
            let channel = match channel {
                TextChannel::Stdout => "stdout",
                TextChannel::Stderr => "stderr",
                TextChannel::Log => "log",
            };
            json!({"channel": channel, "text": text})
        }
    };
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
