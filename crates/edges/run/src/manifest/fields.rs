//! The fields of a table, each read as what it must be, with errors that name it.

use toml::{Table, Value};
use wharf_vocab::{Fault, shown};

use super::invalid;

const LIST_ITEMS_MAX: usize = 500;
/// A name in which more than every third letter differs is another name.
const LETTERS_PER_SLIP: usize = 3;

/// A table and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    table: &'a Table,
    /// What stands before a field's name in an error.
    path: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(table: &'a Table, path: &'static str) -> Self {
        Self { table, path }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.table.get(name)
    }

    /// Refuses every field but these.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Fault> {
        let Some(unknown) = self.table.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let nearest = known.iter().map(|name| (distance(unknown, name), *name)).min();
        let hint = match nearest {
            Some((slips, name)) if slips * LETTERS_PER_SLIP <= name.len() => {
                format!("; did you mean {name}?")
            }
            _ => String::new(),
        };
        let shown = shown(unknown, 100);
        Err(self.wrong(&shown, &format!("there is no such field{hint}")))
    }

    /// Refuses each of these.
    pub(super) fn none_of(&self, names: &[&str], why: &str) -> Result<(), Fault> {
        let found = names.iter().find(|name| self.table.contains_key(**name));
        found.map_or(Ok(()), |name| Err(self.wrong(name, why)))
    }

    /// Text that must be there.
    pub(super) fn text(&self, name: &str, bytes_max: usize) -> Result<String, Fault> {
        let missing = || invalid(format!("The manifest's field {}{name} is missing.", self.path));
        self.optional_text(name, bytes_max)?.ok_or_else(missing)
    }

    pub(super) fn optional_text(
        &self,
        name: &str,
        bytes_max: usize,
    ) -> Result<Option<String>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if (1..=bytes_max).contains(&text.len()) => {
                Ok(Some(text.clone()))
            }
            Some(Value::String(_)) => {
                Err(self.wrong(name, &format!("it must have 1 to {bytes_max} bytes")))
            }
            Some(_) => Err(self.wrong(name, "it must be text")),
        }
    }

    /// A list of text.
    pub(super) fn texts(&self, name: &str, bytes_max: usize) -> Result<Option<Vec<String>>, Fault> {
        let items = match self.get(name) {
            None => return Ok(None),
            Some(Value::Array(items)) if items.len() <= LIST_ITEMS_MAX => items,
            Some(Value::Array(_)) => {
                return Err(self.wrong(name, &format!("it may have {LIST_ITEMS_MAX} items")));
            }
            Some(_) => return Err(self.wrong(name, "it must be a list of text")),
        };
        let one = |(at, item): (usize, &Value)| match item {
            Value::String(text) if text.len() <= bytes_max => Ok(text.clone()),
            _ => Err(self.wrong(
                &format!("{name}[{at}]"),
                &format!("it must be text of at most {bytes_max} bytes"),
            )),
        };
        items.iter().enumerate().map(one).collect::<Result<_, _>>().map(Some)
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Boolean(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(name, "it must be true or false")),
        }
    }

    /// A whole number that is not below `least`.
    pub(super) fn whole(&self, name: &str, least: u64) -> Result<Option<u64>, Fault> {
        let why = || format!("it must be a whole number, {least} or more");
        match self.get(name) {
            None => Ok(None),
            Some(Value::Integer(number)) => match u64::try_from(*number) {
                Ok(number) if number >= least => Ok(Some(number)),
                _ => Err(self.wrong(name, &why())),
            },
            Some(_) => Err(self.wrong(name, &why())),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Float(number)) => Ok(Some(*number)),
            Some(Value::Integer(number)) => match i32::try_from(*number) {
                Ok(number) => Ok(Some(f64::from(number))),
                Err(_) => Err(self.wrong(name, "it is too large")),
            },
            Some(_) => Err(self.wrong(name, "it must be a number")),
        }
    }

    /// A quantity as text.
    pub(super) fn quantity<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        self.word(name, read, expected)
    }

    /// A word of a few.
    pub(super) fn word<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, Fault> {
        let read = match self.get(name) {
            None => return Ok(None),
            Some(Value::String(word)) => read(word),
            Some(_) => None,
        };
        read.map(Some).ok_or_else(|| self.wrong(name, &format!("it must be {expected}")))
    }

    pub(super) fn table(&self, name: &str) -> Result<Option<&'a Table>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(_) => Err(self.wrong(name, "it must be a table")),
        }
    }

    /// Says what is wrong with a field.
    pub(super) fn wrong(&self, name: &str, why: &str) -> Fault {
        let field = format!("{}{name}", self.path);
        let end = if why.ends_with('?') { "" } else { "." };
        invalid(format!("The manifest's field {field} cannot be used: {why}{end}"))
            .with("field", field)
    }
}

/// How many letters must be changed, added or left out to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().take(100).enumerate() {
        let mut before = row[0];
        row[0] = at + 1;
        for (column, wanted) in other.iter().enumerate() {
            let changed = before + usize::from(letter != *wanted);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
