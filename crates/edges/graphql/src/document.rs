//! What a document may look like, checked before anything is made of it.
//!
//! Reading a document and checking its rules take time and stack that grow with nesting, and
//! fragments that use each other can stand for far more than is written. So the text is looked at
//! before it is parsed, and each fragment is measured once before the rules are checked.

use std::collections::HashMap;

use async_graphql::Request;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, OperationType, Selection, SelectionSet,
};
use wharf_vocab::limits::JSON_DEPTH_MAX;
use wharf_vocab::{Code, Fault};

use crate::limits::{
    DEPTH_MAX, DOCUMENT_BYTES_MAX, FIELDS_MAX, FRAGMENTS_MAX, INTROSPECTION_LISTS_MAX,
    ROOT_FIELDS_MAX,
};

/// Deepest nesting of brackets in a document: fields, and values that stand in it.
const NESTING_MAX: usize = 64;

/// Checks a request's document and says what its operation does.
pub(crate) fn check(request: &mut Request) -> Result<OperationType, Fault> {
    if request.query.len() > DOCUMENT_BYTES_MAX {
        let message = format!(
            "A document may have {DOCUMENT_BYTES_MAX} bytes at most; send values as variables."
        );
        return Err(Fault::new(Code::RequestTooLarge, message).with("field", "query"));
    }
    if nesting(request.query.as_bytes(), Syntax::GraphQl) > NESTING_MAX {
        return Err(too_deep(NESTING_MAX));
    }
    let name = request.operation_name.clone();
    let document = request.parsed_query().map_err(|error| match error.locations.first() {
        Some(at) => {
            let message = format!(
                "The query is not valid GraphQL at line {}, column {}.",
                at.line, at.column
            );
            Fault::invalid("query", message).with("line", at.line).with("column", at.column)
        }
        None => Fault::invalid("query", "The query is not valid GraphQL."),
    })?;
    measure(document)?;
    Ok(operation(document, name.as_deref()))
}

/// Checks that JSON is not nested deeper than anything here reads.
pub(crate) fn check_json(bytes: &[u8]) -> Result<(), Fault> {
    if nesting(bytes, Syntax::Json) > JSON_DEPTH_MAX {
        return Err(too_deep(JSON_DEPTH_MAX));
    }
    Ok(())
}

fn too_deep(levels: usize) -> Fault {
    Fault::new(
        Code::RequestTooDeep,
        format!("The request is nested more than {levels} levels deep."),
    )
}

/// What the chosen operation does; one that cannot be chosen is refused later and reads nothing.
fn operation(document: &ExecutableDocument, name: Option<&str>) -> OperationType {
    let found = match (&document.operations, name) {
        (DocumentOperations::Single(operation), _) => Some(operation),
        (DocumentOperations::Multiple(all), Some(name)) => all.get(name),
        (DocumentOperations::Multiple(all), None) => all.values().next(),
    };
    found.map_or(OperationType::Query, |operation| operation.node.ty)
}

/// How large a selection is once fragments stand where they are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    /// All fields.
    fields: usize,
    /// Fields at its own level.
    top: usize,
    /// Levels of fields.
    depth: usize,
    /// Lists within lists of what introspection shows.
    lists: usize,
}

impl Size {
    fn beside(self, other: Self) -> Self {
        Self {
            fields: self.fields.saturating_add(other.fields),
            top: self.top.saturating_add(other.top),
            depth: self.depth.max(other.depth),
            lists: self.lists.max(other.lists),
        }
    }
}

fn measure(document: &ExecutableDocument) -> Result<(), Fault> {
    if document.fragments.len() > FRAGMENTS_MAX {
        let message = format!("A document may have {FRAGMENTS_MAX} fragments at most.");
        return Err(Fault::new(Code::RequestTooLarge, message));
    }
    let mut sizes = Sizes { document, known: HashMap::new() };
    for (_, operation) in document.operations.iter() {
        let size = sizes.of(&operation.node.selection_set.node)?;
        if size.top > ROOT_FIELDS_MAX {
            let message =
                format!("An operation may select {ROOT_FIELDS_MAX} fields at the top at most.");
            return Err(Fault::new(Code::RequestTooLarge, message));
        }
        if size.depth > DEPTH_MAX {
            let message = format!("Fields may be nested {DEPTH_MAX} levels deep at most.");
            return Err(Fault::new(Code::RequestTooDeep, message));
        }
    }
    Ok(())
}

struct Sizes<'d> {
    document: &'d ExecutableDocument,
    /// Fragments that were measured; none while one is being measured.
    known: HashMap<&'d str, Option<Size>>,
}

impl<'d> Sizes<'d> {
    fn of(&mut self, selection: &'d SelectionSet) -> Result<Size, Fault> {
        let mut sum = Size::default();
        for item in &selection.items {
            let size = match &item.node {
                Selection::Field(field) => {
                    let name = field.node.name.node.as_str();
                    self.field(name, &field.node.selection_set.node)?
                }
                Selection::InlineFragment(inline) => self.of(&inline.node.selection_set.node)?,
                Selection::FragmentSpread(spread) => {
                    self.fragment(spread.node.fragment_name.node.as_str())?
                }
            };
            sum = sum.beside(size);
            if sum.fields > FIELDS_MAX {
                let message = format!(
                    "A document may have {FIELDS_MAX} fields at most, fragments counted where they are used."
                );
                return Err(Fault::new(Code::RequestTooLarge, message));
            }
        }
        Ok(sum)
    }

    fn field(&mut self, name: &str, below: &'d SelectionSet) -> Result<Size, Fault> {
        let inner = self.of(below)?;
        if matches!(name, "__schema" | "__type") {
            if inner.lists > INTROSPECTION_LISTS_MAX {
                let message = "Introspection is nested too deep.";
                return Err(Fault::new(Code::RequestTooDeep, message));
            }
            // What types are made of may be told in full, however deep that is.
            return Ok(Size { fields: inner.fields + 1, top: 1, depth: 1, lists: 0 });
        }
        let list = matches!(
            name,
            "types" | "fields" | "args" | "inputFields" | "interfaces" | "possibleTypes"
        );
        Ok(Size {
            fields: inner.fields + 1,
            top: 1,
            depth: inner.depth + 1,
            lists: inner.lists + usize::from(list),
        })
    }

    fn fragment(&mut self, name: &'d str) -> Result<Size, Fault> {
        match self.known.get(name) {
            Some(Some(size)) => return Ok(*size),
            // It uses itself, which the rules refuse with a better message.
            Some(None) => return Ok(Size::default()),
            None => {}
        }
        let Some(fragment) = self.document.fragments.get(name) else { return Ok(Size::default()) };
        self.known.insert(name, None);
        let size = self.of(&fragment.node.selection_set.node)?;
        self.known.insert(name, Some(size));
        Ok(size)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Json,
    GraphQl,
}

/// How deep brackets are nested, those in text and comments aside.
fn nesting(bytes: &[u8], syntax: Syntax) -> usize {
    let (mut depth, mut deepest, mut at) = (0_usize, 0, 0);
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at..];
        at += match byte {
            b'"' => text_bytes(rest, syntax),
            b'#' if syntax == Syntax::GraphQl => comment_bytes(rest),
            b'[' | b'{' | b'(' => {
                depth += 1;
                deepest = deepest.max(depth);
                1
            }
            b']' | b'}' | b')' => {
                depth = depth.saturating_sub(1);
                1
            }
            _ => 1,
        };
    }
    deepest
}

/// How long the text is that begins here, quotes included.
fn text_bytes(bytes: &[u8], syntax: Syntax) -> usize {
    let quote: &[u8] = match syntax {
        Syntax::GraphQl if bytes.starts_with(b"\"\"\"") => b"\"\"\"",
        _ => b"\"",
    };
    let mut at = quote.len();
    while at < bytes.len() {
        // In a block only an escaped end counts as escaped; elsewhere every byte can be.
        let escaped = if quote.len() == 3 {
            bytes[at..].starts_with(b"\\\"\"\"").then_some(4)
        } else {
            (bytes[at] == b'\\').then_some(2)
        };
        if let Some(length) = escaped {
            at += length;
        } else if bytes[at..].starts_with(quote) {
            return at + quote.len();
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn comment_bytes(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests;
