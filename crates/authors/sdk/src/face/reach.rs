//! Which tools of the core are meant by definitions that have no implementation.

use std::collections::HashMap;

use serde_json::Value;
use wharf_protocol::tool::value::{Form, kept};
use wharf_vocab::Object;

use crate::{Data, Tool, schema};

/// Which tools of the core are meant by definitions that have no implementation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    tools: HashMap<String, Reached>,
}

/// A tool of the core, and how values travel to it and back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    id: String,
    input: Form,
    output: Form,
    progress: Form,
}

impl Reach {
    /// Adds a tool.
    pub fn add<I: Data, O: Data, P: Data, S>(
        &mut self,
        tool: &Tool<I, O, P, S>,
        id: impl Into<String>,
    ) {
        self.tools.insert(tool.name().to_owned(), Reached::of(tool, id));
    }

    /// The tool that a name stands for.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Reached> {
        self.tools.get(name)
    }
}

impl Reached {
    /// The tool with this id, whose types a definition knows.
    #[must_use]
    pub fn of<I: Data, O: Data, P: Data, S>(
        _tool: &Tool<I, O, P, S>,
        id: impl Into<String>,
    ) -> Self {
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

    /// A piece of progress as whoever called it takes it. Some providers put values that are no
    /// objects under a key, others do not.
    pub(super) fn progress(&self, piece: Value) -> Value {
        match (self.progress, piece) {
            (Form::Object, piece) => piece,
            (form, Value::Object(piece)) if piece.len() == 1 => match form.unpack(piece.clone()) {
                Value::Null => Value::Object(piece),
                inner => inner,
            },
            (_, piece) => piece,
        }
    }
}
