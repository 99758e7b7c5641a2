//! The fields of an object that is read: each is taken once, and what is left over is unknown.

use serde_json::Value;
use wharf_vocab::Object;

use super::DocumentReader;

/// The fields of an object.
pub(super) struct Fields<'a> {
    object: &'a Object,
    place: String,
    taken: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Those of a value, which must be an object.
    pub(super) fn open(reader: &mut DocumentReader, value: &'a Value, place: &str) -> Option<Self> {
        match value {
            Value::Object(object) => {
                Some(Self { object, place: place.to_owned(), taken: Vec::new() })
            }
            _ => reader.wrong(place, "This is an object."),
        }
    }

    /// A field and its place, if it is there; `null` counts as absent.
    pub(super) fn maybe(&mut self, name: &'static str) -> Option<(&'a Value, String)> {
        self.taken.push(name);
        let value = self.object.get(name).filter(|value| !value.is_null())?;
        Some((value, below(&self.place, name)))
    }

    /// A field that must be there.
    pub(super) fn needed(
        &mut self,
        reader: &mut DocumentReader,
        name: &'static str,
    ) -> Option<(&'a Value, String)> {
        let found = self.maybe(name);
        found.or_else(|| reader.wrong(&self.place, format!("`{name}` is missing.")))
    }

    /// All fields under names that are not known before.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'a str, &'a Value, String)> + use<'a> {
        let place = self.place.clone();
        self.object.iter().map(move |(name, value)| (name.as_str(), value, below(&place, name)))
    }

    /// Says which fields nobody asked for.
    pub(super) fn close(self, reader: &mut DocumentReader) {
        for name in self.object.keys() {
            if !self.taken.contains(&name.as_str()) {
                let known: Vec<String> = self.taken.iter().map(|one| format!("`{one}`")).collect();
                let text = format!("There is no `{name}` here, only {}.", known.join(", "));
                let _none: Option<()> = reader.wrong(&below(&self.place, name), text);
            }
        }
    }
}

/// The place of a field.
fn below(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}
